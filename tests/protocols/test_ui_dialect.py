"""The AI SDK, unmodified, against the service."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from app.serving.application import make_app
from app.wiring.services import Services
from tests.asking import QUESTION
from tests.http_client import run_app
from tests.protocols.examples import read_example
from tests.protocols.node_clients import needs_node, run_code, run_node
from tests.protocols.test_leaving import stream_chat
from tests.wire.serving import serve_app

SLOW = "How long does the battery of the Falke last?"
ENDLESS = "How often must the barometer of the Falke be calibrated?"


@dataclass
class Served:
    """The service, which answers `SLOW` once somebody has come back for it, and `ENDLESS` never."""

    address: str
    services: Services
    going: asyncio.Event
    stopped: asyncio.Event


@pytest.fixture
async def served(services: Services, library: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Served]:
    kind, queue = type(services.library.search), services.runs.queue
    going, back, stopped = asyncio.Event(), asyncio.Event(), asyncio.Event()
    search_lexical, request_stop = kind.search_lexical, queue.request_stop

    async def wait(library: Any, scope: Any, query: str, limit: int) -> Any:
        if "barometer" in query:
            going.set()
            await asyncio.sleep(60)
        elif "battery" in query:
            await back.wait()
        return await search_lexical(library, scope, query, limit)

    async def note(*given: Any) -> Any:
        result = await request_stop(*given)
        stopped.set()
        return result

    monkeypatch.setattr(kind, "search_lexical", wait)
    monkeypatch.setattr(queue, "request_stop", note)
    async with run_app(make_app(services)) as running:

        async def note_return(scope: Any, receive: Any, send: Any) -> None:
            async def send_noted(message: Any) -> None:
                await send(message)
                if scope["path"].endswith("/stream"):
                    back.set()

            await running(scope, receive, send_noted)

        async with serve_app(note_return) as address:
            yield Served(address, services, going, stopped)


def chat(text: str, **more: Any) -> dict[str, Any]:
    """Make a request with one message."""
    return {"id": "chat", "messages": [{"role": "user", "parts": [{"type": "text", "text": text}]}], **more}


def read(frames: str) -> list[dict[str, Any]]:
    *parts, end = [line.removeprefix("data: ") for line in frames.splitlines() if line.startswith("data: ")]
    assert end == "[DONE]"
    return [json.loads(part) for part in parts]


@needs_node
async def test_the_ai_sdk_asks_goes_on_and_comes_back(served: Served) -> None:
    told = await run_node("ui.mjs", served.address, QUESTION, "Who handles claims?", SLOW, ENDLESS)
    parts: dict[str, dict[str, Any]] = {part["type"]: part for part in told["answer"]["parts"]}
    async with httpx.AsyncClient(base_url=served.address) as plain:
        own = (await plain.post("/api/chat", json={"question": QUESTION}, params={"stream": "false"})).json()
        assert parts["text"]["text"] == own["answer"]
        assert parts["text"]["state"] == "done"
        assert "36 months" in (await plain.get(parts["source-url"]["url"])).text
    assert parts["source-document"]["title"] == "Station handbook"
    assert parts["data-citations"]["data"] == own["citations"]
    assert "step" in parts["data-step"]["data"]
    assert told["answer"]["metadata"]["outcome"] == "answered"
    # The conversation goes on in its thread.
    assert told["next"]["metadata"]["thread_id"] == told["answer"]["metadata"]["thread_id"]
    assert "Petra Lindqvist" in str(told["next"]["parts"])
    # Who has left finds the answer, from its beginning, while it is being written.
    assert "14 months" in str(told["found"]["parts"])
    assert told["after"]["metadata"]["thread_id"] == told["found"]["metadata"]["thread_id"]
    assert told["nothing"] is None
    assert told["refused"].startswith("There is no mode 'none'")
    async with asyncio.timeout(5):
        await served.stopped.wait()


async def test_another_answer_is_written_anew(served: Served) -> None:
    async with httpx.AsyncClient(base_url=served.address) as client:
        for more, headers, cached in (
            ({}, {}, False),
            ({"trigger": "submit-message"}, {}, True),
            ({"trigger": "regenerate-message"}, {}, False),
            ({}, {"Cache-Control": "no-cache"}, False),
        ):
            parts = read((await client.post("/api/ui/chat", json=chat(QUESTION, **more), headers=headers)).text)
            assert parts[-1]["messageMetadata"]["cached"] is cached


async def test_the_parts_come_in_the_protocols_order(served: Served) -> None:
    async with httpx.AsyncClient(base_url=served.address) as client:
        response = await client.post("/api/ui/chat", json=chat(QUESTION, mode="thorough"))
        assert response.headers["x-vercel-ai-ui-message-stream"] == "v1"
        kinds = [part["type"] for part in read(response.text)]
        assert list(dict.fromkeys(kinds)) == [
            "start", "start-step", "data-step", "text-start", "text-delta", "data-verification", "text-end",
            "source-url", "source-document", "data-citations", "finish-step", "finish",
        ]  # fmt: skip
        assert (await client.get("/api/ui/chat/chat/stream")).status_code == 204


async def test_a_stopped_answer_ends_with_abort(served: Served) -> None:
    async with (
        httpx.AsyncClient(base_url=served.address) as client,
        client.stream("POST", "/api/ui/chat", json=chat(ENDLESS)) as response,
    ):
        await served.going.wait()
        await client.post(f"/api/runs/{response.headers['x-run-id']}/cancel")
        parts = read("".join([text async for text in response.aiter_text()]))
    assert [part["type"] for part in parts[-2:]] == ["finish-step", "abort"]


async def test_an_answer_is_found_by_all_who_come_back_at_once(served: Served) -> None:
    async with httpx.AsyncClient(base_url=served.address) as client, AsyncExitStack() as stack:
        asking = await stack.enter_async_context(client.stream("POST", "/api/ui/chat", json=chat(ENDLESS)))
        opened = (client.stream("GET", "/api/ui/chat/chat/stream") for _ in range(4))
        found = await asyncio.gather(*(stack.enter_async_context(each) for each in opened))
        assert {each.headers.get("x-run-id") for each in found} == {asking.headers["x-run-id"]}
        await client.post(f"/api/runs/{asking.headers['x-run-id']}/cancel")


async def translate(events: Any) -> list[dict[str, Any]]:
    async def stop() -> None: ...

    return read("".join([frame.decode() async for frame in stream_chat(events, stop)]))


async def test_tools_of_the_agent_are_dynamic_tools_that_the_server_runs() -> None:
    async def work() -> Any:
        yield {"type": "tool_call", "call_id": "c1", "name": "search", "arguments": {"queries": ["warranty"]}}
        yield {"type": "tool_result", "call_id": "c1", "name": "search", "text": "", "sources": [1]}
        yield {"type": "error", "code": "timeout", "message": "It took too long.", "retryable": True}

    ours = {"toolCallId": "c1", "dynamic": True, "providerExecuted": True}
    parts = await translate(work())
    assert [part["type"] for part in parts[-3:]] == ["error", "finish-step", "finish"]
    assert [part for part in parts if part["type"].startswith("tool-")] == [
        {"type": "tool-input-available", "toolName": "search", "input": {"queries": ["warranty"]}, **ours},
        {"type": "tool-output-available", "output": {"text": "", "sources": [1]}, **ours},
    ]


async def test_errors_are_said_in_plain_text(served: Served) -> None:
    async with httpx.AsyncClient(base_url=served.address) as client:
        for body, says in (
            ({"id": "chat", "messages": []}, "messages: List should have at least 1 item"),
            (chat(""), "question"),
            (chat(QUESTION, mode="none"), "There is no mode 'none'"),
            ({"id": "c", "messages": [{"role": "user", "parts": [{"type": "file"}]}]}, "Only text can be asked about"),
        ):
            refused = await client.post("/api/ui/chat", json=body)
            assert refused.status_code == 422
            assert refused.headers["content-type"] == "text/plain; charset=utf-8"
            assert says in refused.text


@needs_node
async def test_the_example_of_the_page_runs(served: Served) -> None:
    example = read_example("AI SDK", "js").replace("http://127.0.0.1:8000", served.address)
    said = await run_code(example)
    assert "36 months" in said
    assert f"Station handbook {served.address}/api/documents/" in said
