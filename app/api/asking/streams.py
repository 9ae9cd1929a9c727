"""Responses of runs: server-sent events, which `askgraph/frames.py` reads, or one JSON answer."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Mapping
from contextlib import aclosing
from typing import Any, TypeVar

from fastapi import Request
from fastapi.responses import JSONResponse
from sse_starlette import EventSourceResponse
from starlette.responses import Response

from app.answering.requests import AcceptedRun, collect, read_events
from app.api.perimeter.errors import respond_to, status_of_failure
from app.api.schema.descriptions import describe_answer
from app.support.cancelling import end_tasks, finish
from domain.events import Done, Event, Failed
from domain.execution.streams import StreamedEvent

STREAM_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
"""Headers of a stream: no proxy may store or buffer it."""

MEDIA_TYPE = "text/event-stream"

GONE = 499
"""The status that nginx logs where the client has closed the connection; nobody receives it."""

PING_SECONDS = 15
"""An idle stream sends a comment at this interval, so that proxies do not close it."""

Leave = Callable[[], Awaitable[object]]
Result = TypeVar("Result")


def wants_json(accept: str, stream: bool | None) -> bool:
    """Return True where `?stream=false` or `Accept: application/json` asks for one JSON answer."""
    if stream is not None:
        return not stream
    return "application/json" in accept and "text/event-stream" not in accept


def locate(run: AcceptedRun) -> dict[str, str]:
    """Make the headers that identify the run before its first event. OpenAI's SDKs log the first."""
    return {
        "X-Request-Id": run.run_id,
        "X-Run-Id": run.run_id,
        "X-Thread-Id": run.thread_id,
        "Location": f"/api/runs/{run.run_id}?workspace={run.workspace_id}",
    }


async def respond(
    request: Request,
    events: AsyncGenerator[StreamedEvent],
    stream: bool | None,
    *,
    headers: Mapping[str, str] | None = None,
    on_leave: Leave | None = None,
) -> Response:
    """Make the response that the client asked for. Calls `on_leave` where the client leaves before the end."""
    headers = dict(headers or {})
    if not wants_json(request.headers.get("accept", ""), stream):
        return respond_with_frames(encode_events(events, on_leave), headers)
    followed = await collect_while_connected(request, read_events(events))
    if followed is None:
        if on_leave is not None:
            await on_leave()
        return Response(status_code=GONE)
    ended, seen = followed
    if ended["type"] == "error":
        status = status_of_failure(ended)
        refused = respond_to(ended["code"], ended["message"], retryable=ended["retryable"], status=status)
        refused.headers.update(headers)
        return refused
    return JSONResponse(describe_answer(ended, seen), headers=headers)


def respond_with_frames(
    frames: AsyncIterator[bytes],
    headers: Mapping[str, str],
    silence: bytes = b": ping\n\n",
    media_type: str = MEDIA_TYPE,
) -> Response:
    """Make the response that streams these frames, and `silence` while none comes."""
    make_ping: Any = lambda: silence  # noqa: E731
    headers = {**headers, **STREAM_HEADERS}
    return EventSourceResponse(
        frames, ping=PING_SECONDS, ping_message_factory=make_ping, headers=headers, media_type=media_type
    )


async def stream_events(events: AsyncGenerator[Event]) -> AsyncGenerator[StreamedEvent]:
    """Number the events of a strict replay, which is no run, like those of a run. They come all at once."""
    async with aclosing(events):
        for number, event in enumerate([event async for event in events], 1):
            yield StreamedEvent.of(event, f"1-{number}")


async def collect_while_connected(
    request: Request, events: AsyncGenerator[Event]
) -> tuple[Done | Failed, list[Event]] | None:
    """Return the run's last event and all its events; None where the client of `request` has left."""
    return await work_while_connected(request, collect(events))


async def work_while_connected(request: Request, work: Coroutine[Any, Any, Result]) -> Result | None:
    """Return the result of the work; None where the client of `request` has left, and the work was cancelled."""

    async def wait_until_left() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    working = asyncio.create_task(work)
    leaving = asyncio.create_task(wait_until_left())
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        await end_tasks(working, leaving)


def encode_frame(event: StreamedEvent) -> bytes:
    """Encode one event as a frame. An event without an id leaves the reader's `Last-Event-ID` as it is."""
    name = b"event: %b\ndata: %b\n\n" % (event.type.encode(), event.data)
    return b"id: %b\n%b" % (event.id.encode(), name) if event.id else name


async def encode_events(
    events: AsyncGenerator[StreamedEvent],
    on_leave: Leave | None,
    encode: Callable[[StreamedEvent], Iterable[bytes]] = lambda event: (encode_frame(event),),
    begun: Iterable[bytes] = (),
) -> AsyncGenerator[bytes]:
    """Yield the frames with which a run's stream begins, and those of its events. Calls `on_leave` where the client
    leaves before the end."""
    ended = False
    try:
        for frame in begun:
            yield frame
        async with aclosing(events) as open_events:
            async for event in open_events:
                ended = event.is_end
                for frame in encode(event):
                    yield frame
    finally:
        if on_leave is not None and not ended:
            await finish(on_leave)
