import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from uuid import uuid4

import openai
import pytest
from langgraph.graph import START, StateGraph
from langsmith import utils

from app.adapters.chat.openai import OpenAIChat
from app.adapters.tracing.langsmith import open_tracing
from app.answering.requests import Ask, collect
from app.settings import Settings
from app.wiring.services import open_services
from domain.ports.models import Message
from nodes.context import Ledger
from tests.adapters.postgres.two_steps import State, build
from tests.wire.langsmith import PROJECT_ID, TENANT_ID, serve_langsmith
from tests.wire.openai import serve_openai


@pytest.fixture(autouse=True)
def fresh_environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The SDK caches the environment; neither it nor what `open_tracing` sets may outlive a test."""
    for name in [name for name in os.environ if name.startswith(("LANGSMITH_", "LANGCHAIN_"))]:
        monkeypatch.delenv(name)
    before = dict(os.environ)
    clear_caches()
    yield
    for name in set(os.environ) - set(before):
        del os.environ[name]
    clear_caches()


def clear_caches() -> None:
    utils.get_env_var.cache_clear()  # type: ignore[attr-defined]
    utils.get_tracer_project.cache_clear()


def trace_to(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"TRACING": "true", "ENDPOINT": url, "API_KEY": "key", "PROJECT": "askgraph-tests"}
    for name, value in settings.items():
        monkeypatch.setenv(f"LANGSMITH_{name}", value)
    clear_caches()


async def test_a_model_call_shows_under_its_node_with_what_it_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serve_langsmith() as recorder, serve_openai() as server, openai.DefaultAsyncHttpxClient() as http:
        trace_to(recorder.url, monkeypatch)
        model = OpenAIChat("gpt-4.1-mini", api_key="secret-key", base_url=server.base_url, timeout=10, http=http)

        async def speak(state: State) -> State:
            stream = model.stream([Message("user", "Hello!")], Ledger(), temperature=0, max_tokens=50)
            return {"text": "".join([piece async for piece in stream])}

        graph: StateGraph[State, None, State, State] = StateGraph(State)
        graph.add_node("speak", speak)
        graph.add_edge(START, "speak")
        with open_tracing() as tracing:
            assert tracing is not None
            await graph.compile().ainvoke({"text": ""})
            await asyncio.to_thread(tracing.client.flush)
        assert recorder.tree() == [["LangGraph", ["speak", ["ChatOpenAI"]]]]
        call = recorder.runs[-1]
        assert call["run_type"] == "llm"
        assert call["extra"]["metadata"]["ls_model_name"] == "gpt-4.1-mini"
        assert call["outputs"]["generations"][0][0]["message"]["kwargs"]["usage_metadata"]["output_tokens"] > 0
        assert "secret-key" not in json.dumps(recorder.runs)


async def test_a_turn_is_traced_node_by_node_with_its_thread_and_run(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serve_langsmith() as recorder:
        trace_to(recorder.url, monkeypatch)
        async with open_services(settings) as services:
            await services.library.ingestion.add("default", "note.txt", b"The Falke has a warranty of 36 months.")
            turns = services.make_run_manager()
            done, _ = await collect(await turns.ask(Ask("How long is the warranty of the Falke?", mode="thorough")))
            assert done["type"] == "done"
            await turns.close()
        nodes = ["route", "retrieve", "rerank", "grade", "generate", "verify"]
        [[root, *children]] = recorder.tree()
        assert root == "answer"
        assert {run["session_name"] for run in recorder.runs} == {"askgraph-tests"}
        assert [child[0] for child in children] == nodes
        by_name = {run["name"]: run for run in recorder.runs}
        for name in ("answer", *nodes):
            metadata = by_name[name]["extra"]["metadata"]
            assert metadata["thread_id"] == done["thread_id"]
            assert metadata["run_id"] == done["run_id"]
            assert by_name[name]["trace_id"] == done["run_id"]
        assert by_name["generate"]["outputs"]["answer"] == done["answer"]


def test_nothing_is_traced_unless_asked_for() -> None:
    with open_tracing() as tracing:
        assert tracing is None
    assert "LANGSMITH_USE_DAEMON" not in os.environ


async def test_the_page_of_a_run_is_known_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serve_langsmith() as recorder:
        trace_to(recorder.url, monkeypatch)
        run_id = uuid4()
        with open_tracing() as tracing:
            assert tracing is not None
            async with asyncio.timeout(10):
                while (url := tracing.trace_url(run_id)) is None:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
        assert url.endswith(f"/o/{TENANT_ID}/projects/p/{PROJECT_ID}/r/{run_id}?poll=true")


def test_the_page_of_a_run_is_unknown_where_nobody_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    trace_to("http://127.0.0.1:9", monkeypatch)
    with open_tracing() as tracing:
        assert tracing is not None
        assert tracing.trace_url(uuid4()) is None


def test_the_queue_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    trace_to("http://127.0.0.1:9", monkeypatch)
    with open_tracing() as tracing:
        assert tracing is not None
        queue = tracing.client.tracing_queue
        assert queue is not None
        assert queue.maxsize == 1000
        # What finds it full is dropped, and waits for nobody.
        monkeypatch.setattr(queue, "maxsize", 20)
        graph = build().compile()
        for _ in range(30):
            graph.invoke({"text": "0"})
        assert queue.qsize() <= 20
        assert tracing.client.compressed_traces is None, "compressed traces would bypass the queue"


SILENT_TURNS = """
import asyncio
from app.adapters.tracing.langsmith import open_tracing
from tests.adapters.postgres.two_steps import build

async def run():
    graph = build().compile()
    for _ in range(10):
        await graph.ainvoke({"text": "0"})

with open_tracing() as tracing:
    assert tracing is not None
    asyncio.run(run())
    print("closing", flush=True)
"""


@pytest.mark.parametrize("listens", [True, False])
def test_the_exit_does_not_wait_for_a_dead_service(listens: bool) -> None:
    """The exit is quick if nobody listens and if the server never answers. The stock client delays it by a minute."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        if listens:
            silent.listen(100)
        settings = {"TRACING": "true", "ENDPOINT": f"http://127.0.0.1:{silent.getsockname()[1]}", "API_KEY": "key"}
        environment = {**os.environ, **{f"LANGSMITH_{name}": value for name, value in settings.items()}}
        with subprocess.Popen(
            [sys.executable, "-c", SILENT_TURNS],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "closing\n"
            closing = time.monotonic()
            assert process.wait(60) == 0
            # The limit is 3 s, plus slack for a busy machine.
            assert time.monotonic() - closing < 15
