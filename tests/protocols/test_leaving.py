"""Clients that leave while their answer streams."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any, cast

import pytest
from sse_starlette import EventSourceResponse

from app.answering.requests import AcceptedRun
from app.api.protocols import ag_ui, openai, openai_responses, ui
from app.api.protocols.agent_server.messages import make_human
from app.api.protocols.agent_server.runs import respond_streaming
from app.api.protocols.agent_server.translation import Translation
from app.api.protocols.client_conversations import Asked, Message
from domain.events import Content, Event
from domain.execution.streams import StreamedEvent
from domain.ports.conversations import ConversationIndex

Events = AsyncGenerator[Event]
Stop = Callable[[], Awaitable[object]]


def make_asked(events: Events, stop: Stop) -> Asked:
    # Without an index: nothing is remembered.
    return Asked(AcceptedRun("r", "t", "default"), events, stop, "", cast(ConversationIndex, None), False)


def stream_completion(events: Events, stop: Stop) -> AsyncGenerator[bytes]:
    return openai.Completion("fast", "http://localhost/", make_asked(events, stop)).stream(with_usage=False)


def stream_response(events: Events, stop: Stop) -> AsyncGenerator[bytes]:
    body = openai_responses.ResponseRequest(model="fast", input="?")
    return openai_responses.Translation(make_asked(events, stop), body, "http://localhost/").stream()


def stream_agent(events: Events, stop: Stop) -> AsyncGenerator[bytes]:
    body = ag_ui.RunInput(threadId="t", runId="r", messages=[Message(role="user", content="?")])
    return ag_ui.Translation(body, make_asked(events, stop)).stream()


def stream_chat(events: Events, stop: Stop) -> AsyncGenerator[bytes]:
    asked = make_asked(events, stop)
    return ui.Translation(asked, "http://localhost/").stream(is_stopped_by_leaving=True)


def stream_run(events: Events, stop: Stop) -> AsyncGenerator[bytes]:
    async def number() -> AsyncGenerator[StreamedEvent]:
        async with aclosing(events) as opened:
            async for event in opened:
                yield StreamedEvent.of(event, "1-1")

    translation = Translation("r", "t", {"name": "fast"}, ["messages-tuple"], [], make_human("?", "q"))
    response = cast(EventSourceResponse, respond_streaming(translation, number(), {}, on_leave=stop))
    return cast("AsyncGenerator[bytes]", response.body_iterator)


@pytest.mark.parametrize("stream", [stream_completion, stream_response, stream_agent, stream_chat, stream_run])
async def test_a_client_that_leaves_stops_its_run(stream: Callable[[Events, Stop], AsyncGenerator[bytes]]) -> None:
    stopped, sent = asyncio.Event(), asyncio.Event()

    async def write_for_ever() -> AsyncGenerator[Event]:
        while True:
            yield Content(type="content", token="word ")
            await asyncio.sleep(0)

    async def stop() -> None:
        # As a database would: the server cancels each wait of the task that streams.
        await asyncio.sleep(0.01)
        stopped.set()

    async def receive() -> Any:
        await sent.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        if b'"word "' in message.get("body", b""):
            assert not stopped.is_set()
            sent.set()

    frames = stream(write_for_ever(), stop)
    await EventSourceResponse(frames)({"type": "http", "method": "POST", "headers": []}, receive, send)
    async with asyncio.timeout(5):
        await stopped.wait()
