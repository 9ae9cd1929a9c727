"""`langgraph dev`, as an engineer starts it, on the services' own embedded servers."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.settings import read_settings
from app.wiring.services import open_services
from graphs.answer import build_answer_graph

REPOSITORY = Path(__file__).parents[2]
PROGRAMS = Path(sys.executable).parent
START_SECONDS = 120
"""How long it may take to listen on a slow machine; it takes about ten."""

HANDBOOK = """# Falke weather station

## Warranty
The Falke weather station has a warranty of 36 months from the date of purchase.
"""


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """LangGraph's server with its check for blocking calls on, and one document in the library."""
    folder = tmp_path_factory.mktemp("studio")
    environment = {**os.environ, "ASKGRAPH_HOME": str(folder / "home"), "NO_COLOR": "1"}
    asyncio.run(add(folder / "home", HANDBOOK))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = folder / "log"
    command: list[str | Path] = [
        PROGRAMS / "langgraph",
        "dev",
        "--config",
        REPOSITORY / "langgraph.json",
        "--no-browser",
        "--no-reload",
    ]
    with log.open("wb") as output:
        # In its own folder, because it keeps its threads in files where it is started.
        process = subprocess.Popen(
            [*command, "--port", str(port)], cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT
        )
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
            wait_until_ready(client, process, log)
            yield client
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


async def add(home: Path, text: str) -> None:
    async with open_services(read_settings(home=home, load_samples=False)) as services:
        await services.library.ingestion.add("default", "handbook.md", text.encode())


def wait_until_ready(client: httpx.Client, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        assert process.poll() is None, f"langgraph dev ended:\n{log.read_text()[-4000:]}"
        try:
            if client.get("/ok").is_success:
                return
        except httpx.TransportError:
            time.sleep(0.2)
    pytest.fail(f"langgraph dev does not answer:\n{log.read_text()[-4000:]}")


def call(client: httpx.Client, path: str, **body: Any) -> Any:
    response = client.post(path, json=body)
    assert response.is_success, response.text
    return response.json()


def test_the_graph_is_listed_and_drawn(studio: httpx.Client) -> None:
    [assistant] = call(studio, "/assistants/search", graph_id="answer")
    drawn = studio.get(f"/assistants/{assistant['assistant_id']}/graph").json()
    expected = build_answer_graph().get_graph()
    assert {node["id"] for node in drawn["nodes"]} == set(expected.nodes)
    assert len(drawn["edges"]) == len(expected.edges)


def test_studio_has_no_context_to_fill_in(studio: httpx.Client) -> None:
    [assistant] = call(studio, "/assistants/search", graph_id="answer")
    schemas = studio.get(f"/assistants/{assistant['assistant_id']}/schemas").json()
    assert schemas["context_schema"]["properties"] == {}
    assert "question" in schemas["input_schema"]["properties"]


def test_a_question_alone_is_answered_from_the_documents(studio: httpx.Client) -> None:
    question = {"question": "How long is the warranty of the Falke weather station?"}
    state = call(studio, "/runs/wait", assistant_id="answer", input=question)
    assert "36 months" in state["answer"]
    assert [citation["heading_path"][-1] for citation in state["citations"]] == ["Warranty"]


def test_a_thread_keeps_its_steps(studio: httpx.Client) -> None:
    thread = call(studio, "/threads")["thread_id"]
    question = {"question": "How long is the warranty of the Falke weather station?"}
    call(studio, f"/threads/{thread}/runs/wait", assistant_id="answer", input=question)
    history = studio.get(f"/threads/{thread}/history", params={"limit": 20}).json()
    ran = [node for state in reversed(history) for node in state["next"]]
    assert ran == ["__start__", "route", "retrieve", "rerank", "grade", "generate"]
