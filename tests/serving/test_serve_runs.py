"""Runs whose process is told to end, or killed, while it answers: another one goes on."""

import asyncio
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from app.settings import Settings
from app.wiring.services import Services
from domain.execution.streams import order_of
from domain.runs import RunStatus
from tests.asking import list_thread
from tests.conftest import find_programs
from tests.wire.openai import OpenAIServer, serve_openai

ASKGRAPH = Path(sys.executable).with_name("askgraph")


@dataclass
class Serving:
    process: asyncio.subprocess.Process
    address: str


@dataclass
class Read:
    """What was read of a run."""

    run_id: str = ""
    thread_id: str = ""
    ids: list[str] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when there are some words of the answer."""

    @property
    def text(self) -> str:
        text = ""
        for event in self.events:
            if event["type"] == "content":
                text += event["token"]
            elif event["type"] == "correction":
                text = event["answer"]
        return text


@asynccontextmanager
async def serve(settings: Settings, model: OpenAIServer) -> AsyncIterator[Serving]:
    assert settings.database_url
    assert settings.redis_url
    process = await asyncio.create_subprocess_exec(
        ASKGRAPH,
        "serve",
        "--port",
        "0",
        env={
            **find_programs(),
            "DATABASE_URL": settings.database_url.get_secret_value(),
            "REDIS_URL": settings.redis_url.get_secret_value(),
            "OPENAI_API_KEY": "sk-test",
            "OPENAI_BASE_URL": model.base_url,
            "ASKGRAPH_LOAD_SAMPLES": "false",
            "COLUMNS": "300",
        },
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout
        banner = ""
        while "Ctrl-C" not in banner:
            line = await process.stdout.readline()
            assert line, banner
            banner += line.decode()
        match = re.search(r"http://[\d.:]+\d", banner)
        assert match, banner
        yield Serving(process, match[0])
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGINT)
        await process.communicate()


async def read(response: httpx.Response, into: Read) -> None:
    """Until the stream ends, or is cut."""
    event: dict[str, Any] = {}
    try:
        async for line in response.aiter_lines():
            name, _, value = line.partition(": ")
            match name:
                case "id":
                    into.ids.append(value)
                case "event":
                    event = {"type": value}
                case "data":
                    into.events.append(event | orjson.loads(value))
            if len(into.text) > 20:
                into.begun.set()
    except httpx.RemoteProtocolError:
        pass


async def ask_and_follow(http: httpx.AsyncClient, serving: Serving, question: str, into: Read) -> None:
    async with http.stream("POST", f"{serving.address}/api/chat", json={"question": question}) as response:
        into.run_id, into.thread_id = response.headers["X-Run-Id"], response.headers["X-Thread-Id"]
        await read(response, into)


async def resume(http: httpx.AsyncClient, serving: Serving, into: Read) -> None:
    path = f"{serving.address}/api/runs/{into.run_id}/events"
    async with http.stream("GET", path, headers={"Last-Event-ID": into.ids[-1]}) as response:
        await read(response, into)


async def check_whole(services: Services, run: Read) -> RunStatus:
    """No event twice, the answer as it was shown, one turn in the thread, and one record."""
    numbers = [order_of(event_id) for event_id in run.ids]
    assert numbers == sorted(set(numbers))
    done = run.events[-1]
    assert done["type"] == "done"
    assert run.text == done["answer"]
    assert "36 months" in done["answer"]
    restarts = [event for event in run.events if event["type"] == "correction" and event["reason"] == "restart"]
    assert len(restarts) == 1
    steps = await services.make_history_reader().read("default", run.thread_id)
    [turn] = next(step["changed"]["turns"] for step in reversed(steps) if "turns" in step["changed"])
    assert (turn["run_id"], turn["answer"]) == (run.run_id, done["answer"])
    assert [step["node"] for step in steps if not step["next"]] == ["generate"]
    assert [record.run_id for record in await list_thread(services, run.thread_id)] == [run.run_id]
    status = await services.runs.queue.get("default", run.run_id)
    assert status is not None
    return status


@pytest.mark.usefixtures("library")
@pytest.mark.field
async def test_runs_go_on_elsewhere_when_their_process_ends_or_is_killed(
    services: Services, settings: Settings
) -> None:
    # An answer that takes half a minute, so that none ends before its process is made to.
    async with (
        serve_openai(rate=50, length=1500) as model,
        httpx.AsyncClient(timeout=60) as http,
        AsyncExitStack() as stack,
    ):
        ended, killed, survivor = await asyncio.gather(
            *(stack.enter_async_context(serve(settings, model)) for _ in range(3))
        )
        handed_on, cut = Read(), Read()
        readings = [
            asyncio.create_task(ask_and_follow(http, ended, "How long is the warranty of the Falke?", handed_on)),
            asyncio.create_task(ask_and_follow(http, killed, "Which warranty does the Falke have?", cut)),
        ]
        await asyncio.gather(handed_on.begun.wait(), cut.begun.wait())
        model.behaviour.length = 0
        ended.process.send_signal(signal.SIGTERM)
        killed.process.kill()
        await asyncio.gather(*readings)

        assert cut.events[-1]["type"] != "error"
        told = handed_on.events.pop()
        assert (told["type"], told["retryable"]) == ("error", True)
        assert await ended.process.wait() == 0
        await asyncio.gather(resume(http, survivor, handed_on), resume(http, survivor, cut))
        for run in (handed_on, cut):
            status = await check_whole(services, run)
            assert (status.state, status.attempt) == ("done", 2)
