"""Compares the service with a graph of the same shape on `langgraph dev`, in one run.

    python -m benchmarks.side_by_side make FOLDER    # once: its environment, from the package index
    python -m benchmarks.side_by_side run FOLDER     # ten minutes on two busy cores

The graph (`benchmarks.same_shape`) takes our steps and does nothing in them but stream the answer: what it costs is its
server's. All ask the same loopback model, in turns: each phase is measured at all of them before the next. Ours
searches, reranks, judges and records; its figures include its Postgres and Valkey. CPU is that of all processes of a
service. In the end each server gets `kill -9` while it answers, and is started again.
"""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import venv
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
import orjson

from benchmarks.shared import MODELS, QUESTIONS, behave, start_model

PACKAGES = ("langgraph-cli[inmem]", "langchain-openai")
GRAPH = Path(__file__).with_name("same_shape.py")
LATE_SECONDS = 0.5
ALONE, STREAMS = 6, int(os.environ.get("BENCH_STREAMS", "32"))
TTFT, RATE, STREAM_SECONDS = 0.2, 10, 8
KILLED = 12
"""Answers that are being written when a server is killed."""
AGAIN_SECONDS = 180.0
"""Seconds after the restart in which an answer has to be there."""


@dataclass
class Turn:
    """A turn as its reader saw it; seconds of the monotonic clock."""

    asked: float
    run: tuple[str, str] = ("", "")
    """Thread and run."""
    tokens: list[float] = field(default_factory=list)
    ended: bool = False


class Service:
    """A server that is measured, in a process of its own."""

    name = ""
    health = "/ok"

    def __init__(self, home: Path, model: str) -> None:
        self.home = home
        self.model = model
        self.http = httpx2.AsyncClient(timeout=120, limits=httpx2.Limits(max_connections=1000))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.process: subprocess.Popen[bytes] | None = None
        self._spent = 0.0

    def describe(self) -> tuple[list[str], dict[str, str]]:
        """Return the command and its environment."""
        raise NotImplementedError

    async def begin(self, question: str) -> AsyncIterator[tuple[str, str]]:
        """Ask, and yield ("run", its id), ("token", "") for each token, and ("end", "")."""
        raise NotImplementedError
        yield "", ""

    async def is_kept(self, run: tuple[str, str]) -> str:
        """Return how a turn stands after the restart: `answered`, or another word."""
        raise NotImplementedError

    async def start(self) -> None:
        """Start the server, and wait until it answers."""
        self.home.mkdir(exist_ok=True)
        command, environment = self.describe()
        with (self.home / "log").open("ab") as log:
            self.process = subprocess.Popen(  # noqa: ASYNC220
                command, cwd=self.home, env=os.environ | environment, stdout=log, stderr=log, start_new_session=True
            )
        self.http.base_url = f"http://127.0.0.1:{self.port}"
        for _ in range(1200):
            try:
                (await self.http.get(self.health)).raise_for_status()
                return
            except httpx2.HTTPError:
                assert self.process.poll() is None, (self.home / "log").read_text()[-2000:]
                await asyncio.sleep(0.1)
        raise AssertionError(f"{self.name} does not answer")

    def stop(self, number: signal.Signals = signal.SIGINT) -> None:
        """End the server, in good order or not."""
        if self.process is None or self.process.poll() is not None:
            return
        os.killpg(self.process.pid, number)
        self.process.wait(60)

    def list_processes(self) -> list[int]:
        """Return the processes of the service: the server, its home's Postgres and Valkey, and their children."""
        assert self.process is not None
        parents, found = {}, {self.process.pid}
        for each in Path("/proc").glob("[0-9]*"):
            try:
                parents[int(each.name)] = int((each / "stat").read_text().rpartition(")")[2].split()[1])
                if str(self.home).encode() in (each / "cmdline").read_bytes():
                    found.add(int(each.name))
            except OSError:
                continue
        while more := {pid for pid, parent in parents.items() if parent in found} - found:
            found |= more
        return sorted(found)

    def read_cpu(self) -> float:
        """Return the seconds of CPU that the service has used, processes that have ended included."""
        seconds = 0.0
        for pid in self.list_processes():
            try:
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            seconds += sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
        return seconds

    async def turn(self, number: int) -> Turn:
        """Ask a question that nobody has asked before, and read to the end."""
        turn = Turn(time.monotonic())
        try:
            async for kind, what in self.begin(f"Reader {number} asks: {QUESTIONS[number % len(QUESTIONS)]}"):
                if kind == "run":
                    thread, _, run = what.partition("/")
                    turn.run = (thread, run)
                elif kind == "token":
                    turn.tokens.append(time.monotonic())
                else:
                    turn.ended = True
        except httpx2.HTTPError:
            pass
        return turn


class Ours(Service):
    """`askgraph serve` on a fresh home with the sample library."""

    name = "askgraph"
    health = "/healthz"

    def describe(self) -> tuple[list[str], dict[str, str]]:
        return [sys.executable, "-m", "app.cli", "serve", "--port", str(self.port)], {
            "ASKGRAPH_HOME": str(self.home / "home"),
            "OPENAI_API_KEY": "none",
            "OPENAI_BASE_URL": f"{self.model}/v1",
            "PYTHONPATH": str(Path.cwd()),
            **MODELS,
        }

    async def begin(self, question: str) -> AsyncIterator[tuple[str, str]]:
        async with self.http.stream("POST", "/api/chat", json={"question": question}) as response:
            response.raise_for_status()
            yield "run", f"/{response.headers['x-run-id']}"
            async for line in response.aiter_lines():
                if line.startswith("event: "):
                    if line == "event: content":
                        yield "token", ""
                    elif line == "event: done":
                        yield "end", ""

    async def is_kept(self, run: tuple[str, str]) -> str:
        response = await self.http.get(f"/api/runs/{run[1]}")
        if response.status_code == 404:
            return "lost"
        state: str = response.json()["state"]
        return "answered" if state == "done" else state


class LangGraphDev(Service):
    """`langgraph dev`: LangGraph's server with its stores in memory."""

    name = "langgraph dev"

    def describe(self) -> tuple[list[str], dict[str, str]]:
        config: dict[str, Any] = {"dependencies": ["."], "graphs": {"answer": f"{GRAPH}:graph"}}
        (self.home / "langgraph.json").write_bytes(orjson.dumps(config))
        program = ENVIRONMENT / "bin" / "langgraph"
        options = ["--no-browser", "--no-reload", "--port", str(self.port), "--n-jobs-per-worker", "256"]
        model = {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": f"{self.model}/v1"}
        return [str(program), "dev", *options], {**model, "PYTHONPATH": "", "LANGSMITH_TRACING": "false"}

    async def begin(self, question: str) -> AsyncIterator[tuple[str, str]]:
        thread = (await self.http.post("/threads", json={})).raise_for_status().json()["thread_id"]
        body = {
            "assistant_id": "answer",
            "input": {"messages": [{"type": "human", "content": question}]},
            "stream_mode": ["messages-tuple"],
            # As ours: the answer is written whether its reader stays or not, and kept after every step.
            "on_disconnect": "continue",
            "durability": "async",
        }
        async with self.http.stream("POST", f"/threads/{thread}/runs/stream", json=body) as response:
            response.raise_for_status()
            event, ended = "", True
            async for line in response.aiter_lines():
                if line.startswith("event: "):
                    event = line[7:].strip()
                    ended = ended and event != "error"
                elif line.startswith("data: ") and event == "metadata":
                    yield "run", f"{thread}/{orjson.loads(line[6:])['run_id']}"
                elif line.startswith("data: ") and event == "messages" and '"content":""' not in line[:200]:
                    yield "token", ""
            if ended:
                yield "end", ""

    async def is_kept(self, run: tuple[str, str]) -> str:
        response = await self.http.get(f"/threads/{run[0]}/runs/{run[1]}")
        if response.status_code == 404:
            return "lost"
        status: str = response.json()["status"]
        if status != "success":
            return status
        state = (await self.http.get(f"/threads/{run[0]}/state")).json()
        messages = (state.get("values") or {}).get("messages", [])
        return "answered" if messages and messages[-1]["type"] == "ai" else "without answer"


async def measure_alone(service: Service) -> str:
    """One question after the other."""
    spent, turns = service.read_cpu(), []
    for number in range(ALONE):
        turns.append(await service.turn(1000 + number))
    spent = service.read_cpu() - spent
    first = [turn.tokens[0] - turn.asked - TTFT for turn in turns]
    return f"first word {_show(first)} after the model's, {1000 * spent / ALONE:.0f} ms of CPU a turn"


async def measure_streams(service: Service) -> str:
    """Many answers at once, each at the speed of reading."""
    spent = service.read_cpu()
    turns = await asyncio.gather(*(service.turn(2000 + number) for number in range(STREAMS)))
    spent = service.read_cpu() - spent
    first = [turn.tokens[0] - turn.asked for turn in turns if turn.tokens]
    gaps = [b - a for turn in turns for a, b in zip(turn.tokens, turn.tokens[1:], strict=False)]
    late = sum(gap > 1 / RATE + LATE_SECONDS for gap in gaps)
    return (
        f"{sum(turn.ended for turn in turns)} of {STREAMS} ended, first word {_show(first)}, "
        f"late {late} of {len(gaps):,}, "
        f"{1000 * spent / STREAMS:.0f} ms of CPU a turn"
    )


async def measure_kill(service: Service) -> str:
    """`kill -9` in the middle of answers."""
    turns = [asyncio.create_task(service.turn(4000 + number)) for number in range(KILLED)]
    await asyncio.sleep(STREAM_SECONDS / 2)
    service.stop(signal.SIGKILL)
    readings = await asyncio.gather(*turns)
    runs = [turn.run for turn in readings if turn.run[1]]
    began = time.monotonic()
    await service.start()
    up = time.monotonic() - began
    ends: Counter[str] = Counter()
    while time.monotonic() - began < AGAIN_SECONDS:
        ends = Counter([await service.is_kept(run) for run in runs])
        if ends["answered"] == len(runs):
            break
        await asyncio.sleep(1)
    told = ", ".join(f"{count} {end}" for end, count in ends.most_common())
    return f"of {len(runs)} accepted: {told}, {time.monotonic() - began:.0f} s after the restart, which took {up:.0f} s"


def _show(seconds: list[float]) -> str:
    return "{:.2f} / {:.2f} s".format(*np.percentile(seconds or [float("nan")], [50, 100]))


PHASES = (
    ("alone", measure_alone, {"rate": 50, "length": 0}),
    (f"{STREAMS} streams of {RATE}/s", measure_streams, {"rate": RATE, "length": RATE * STREAM_SECONDS}),
    ("kill -9", measure_kill, {"rate": RATE, "length": RATE * STREAM_SECONDS}),
)


async def compare(model: str, folder: Path) -> None:
    """Start both, and measure them phase by phase."""
    services = [Ours(folder / "ours", model), LangGraphDev(folder / "langgraph", model)]
    try:
        for service in services:
            await service.start()
            await service.turn(0)  # what is loaded late
        for name, measure, behaviour in PHASES:
            await behave(model, **behaviour)
            for service in services:
                print(f"| {name} | {service.name} | {await measure(service)} |", flush=True)
    finally:
        for service in services:
            service.stop()


def run() -> None:
    """Run with a model of their own."""
    with tempfile.TemporaryDirectory(prefix="askgraph-bench-") as folder, start_model(TTFT) as model:
        asyncio.run(compare(model, Path(folder)))


def make(folder: Path) -> None:
    """Make the environment."""
    venv.create(folder, with_pip=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "-q", "install"]
    subprocess.run([*pip, *PACKAGES], check=True)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["make", place]:
            make(Path(place))
        case ["run", place]:
            ENVIRONMENT = Path(place).resolve()
            run()
        case _:
            sys.exit(__doc__)
