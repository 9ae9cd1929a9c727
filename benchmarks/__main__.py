"""Prints what askgraph costs on this machine, beside what it should cost (`make bench`, under ten minutes).

Each figure is the median of five. Milliseconds are those of whole requests over HTTP and grow on a busy machine; CPU,
memory and counts are those of the service's process and of its servers, and hardly do.
"""

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import httpx2
import numpy as np
import orjson
import psycopg
import redis.asyncio

from app.adapters.embedded import open_servers
from app.samples import FOLDER
from benchmarks.shared import (
    ANSWERED,
    QUESTIONS,
    behave,
    next_question,
    read_cpu,
    read_memory,
    start,
    start_model,
    start_service,
)

ROOT = Path(__file__).parents[1]
TIMES = 5
ALONE, AT_ONCE, AGAIN = 16, 32, 100
SENT = ("evalsha", "xrange", "xdel", "exec")
"""Commands that the service sends to Redis by themselves; what a script calls is counted under its own name."""
WAIT = 600
TTFT, RATE = 0.2, 50
"""Seconds to the first token of the loopback model, and tokens a second."""

Row = tuple[str, str, str]
"""The work, what was measured, and what is aimed at."""


def main() -> None:
    """Measure and print, a row as soon as it is known."""
    print(f"{'work':<62}{'measured':>22}   reach")
    with tempfile.TemporaryDirectory(prefix="askgraph-bench-") as folder:
        for measured in (measure_clone, measure_turns, measure_streams, measure_beside_langgraph):
            for work, figure, reach in measured(Path(folder) / measured.__name__):
                print(f"{work:<62}{figure:>22}   {reach}", flush=True)


def repeat(measure: Callable[[], Any]) -> np.ndarray:
    """The medians, of five, of each figure that `measure` returns."""
    return np.asarray(np.median([measure() for _ in range(TIMES)], axis=0))


def measure_clone(home: Path) -> Iterator[Row]:
    """Once, because it takes longer than all the rest."""
    began = time.monotonic()
    clone = home / "clone"
    subprocess.run(["git", "clone", "-q", ROOT, clone], check=True)
    subprocess.run(["make", "-s", "install", f"PYTHON={sys.executable}"], cwd=clone, check=True, capture_output=True)
    for arguments in (["ingest", FOLDER], ["ask", QUESTIONS[0]]):
        command = [clone / ".venv/bin/python", "-m", "askgraph", *arguments]
        done = subprocess.run(command, env={"ASKGRAPH_HOME": str(home)}, check=True, capture_output=True, text=True)
    assert "[1]" in done.stdout, done.stdout
    yield "fresh clone to a cited answer (make install, ingest, ask)", f"{time.monotonic() - began:.0f} s", "30 s"


def measure_turns(home: Path) -> Iterator[Row]:
    """Without a language model: CPU and calls, the first word, memory, and what is added to the library."""
    with start_service(home) as (service, pid):
        asyncio.run(ask_at_once(service, 8))

        def take_turns() -> tuple[float, ...]:
            spent, before = read_cpu(pid), count(home)
            waits = [asyncio.run(ask_at_once(service, 1))[0] for _ in range(ALONE)]
            spent = read_cpu(pid) - spent
            time.sleep(1.5)  # until Postgres has added up its counts
            return 1000 * spent / ALONE, *((count(home) - before) / ALONE), *np.percentile(waits, (50, 95))

        cpu, redis, postgres, p50, p95 = repeat(take_turns)
        yield "CPU of a turn without a model, HTTP included", f"{cpu:.0f} ms", "30 ms"
        yield "transactions of Postgres, calls of Redis, a turn", f"{postgres:.1f}, {redis:.1f}", ""
        yield "its first word, p50 / p95", f"{p50:.0f} / {p95:.0f} ms", "35 / 90 ms"
        waited = repeat(lambda: np.percentile(asyncio.run(ask_at_once(service, AT_ONCE)), (50, 95)))
        yield f"first words, {AT_ONCE} at once, p50 / p95", f"{waited[0]:.0f} / {waited[1]:.0f} ms", "500 ms"
        cpu, wait = repeat(lambda: ask_again(service, pid))
        yield "an answer that is stored, CPU and p50", f"{cpu:.1f}, {wait:.1f} ms", ""
        yield "resident memory of the service by then", f"{read_memory(pid)} MB", "260 MB"
        for size, reach in ((1, "1 s"), (5, "2 s")):
            seconds = repeat(lambda size=size: wait_for_words(service, size * 10**6))  # type: ignore[misc]
            yield f"words of {size} MB searchable after", f"{seconds:.1f} s", reach
        yield "ingestion with embedding", f"{repeat(lambda: ingest(service)):.0f} chunks/s", "150 chunks/s"


def count(home: Path) -> np.ndarray:
    """The calls of Redis and the transactions of Postgres so far."""

    async def ask_servers() -> np.ndarray:
        async with open_servers(home) as servers:
            assert servers.database_url
            assert servers.redis_url
            async with redis.asyncio.Redis.from_url(servers.redis_url) as client:
                stats = await client.info("commandstats")
            async with await psycopg.AsyncConnection.connect(servers.database_url) as connection:
                found = await connection.execute("SELECT sum(xact_commit)::int FROM pg_stat_database")
                [transactions] = await found.fetchone() or [0]
        return np.array([sum(stats.get(f"cmdstat_{name}", {"calls": 0})["calls"] for name in SENT), transactions])

    return asyncio.run(ask_servers())


def ask_again(service: str, pid: int) -> tuple[float, float]:
    """The milliseconds of CPU and of waiting for an answer that is stored."""
    with httpx2.Client(base_url=service, timeout=WAIT) as http:
        question, waits = {"question": QUESTIONS[0]}, []
        http.post("/api/chat?stream=false", json=question)
        spent = read_cpu(pid)
        for _ in range(AGAIN):
            began = time.monotonic()
            assert http.post("/api/chat?stream=false", json=question).json()["cached"]
            waits.append(1000 * (time.monotonic() - began))
    return 1000 * (read_cpu(pid) - spent) / AGAIN, median(waits)


async def ask_at_once(service: str, readers: int) -> list[float]:
    """The milliseconds until each has the first word."""
    readings = await asyncio.gather(*(ask(service) for _ in range(readers)))
    return [1000 * (reading.first - reading.asked) for reading in readings]


_numbers = iter(range(10**6))


def write_text(size: int) -> tuple[str, str]:
    """A text of so many bytes, and the word that only its last line has. Marks of Markdown at random places would make
    headings of paragraphs, which each passage is indexed with."""
    chance, number = np.random.default_rng(next(_numbers)), next(_numbers)
    found = [word for file in sorted(FOLDER.glob("*.md")) for word in file.read_text("utf-8").split()]
    words = [word for word in found if word[0].isalnum() or not word[0].isascii()]
    lines = ["# Notes"]
    while sum(map(len, lines)) + 2 * len(lines) < size:
        lines += (" ".join(words[at] for at in chance.integers(len(words), size=80)) + "." for _ in range(size // 500))
    return "\n\n".join(lines)[:size] + f"\n\nThe zorbling{number} is kept in the cellar.\n", f"zorbling{number}"


def wait_for_words(service: str, size: int) -> float:
    """The seconds from an upload until an answer cites the document's last line. It is deleted again."""
    text, word = write_text(size)
    with httpx2.Client(base_url=service, timeout=WAIT) as http:
        began = time.monotonic()
        sent = http.post("/api/documents?wait=false", files={"files": (f"{word}.md", text.encode())})
        assert sent.status_code == 202, sent.text
        # Questions in the meantime would take a third of the processor that reads the file.
        while http.get(sent.headers["location"]).json()["state"] != "done":
            assert time.monotonic() - began < WAIT
            time.sleep(0.05)
        question = {"question": f"Where is the {word} kept?", "mode": "fast"}
        assert word in json.dumps(http.post("/api/chat?stream=false", json=question).json()["citations"])
        seconds = time.monotonic() - began
        [document] = [d for d in http.get("/api/documents").json()["documents"] if d["source"] == f"{word}.md"]
        http.delete(f"/api/documents/{document['id']}").raise_for_status()
    return seconds


def ingest(service: str) -> float:
    """The chunks a second of a file of 100 kB."""
    text, word = write_text(10**5)
    with httpx2.Client(base_url=service, timeout=WAIT) as http:
        began = time.monotonic()
        report = http.post("/api/documents", files={"files": (f"{word}.md", text.encode())}).json()
    return float(report["documents"][0]["chunks"] / (time.monotonic() - began))


def measure_streams(home: Path) -> Iterator[Row]:
    """What a first word takes besides the language model, which is on loopback."""
    with start_model(TTFT, RATE) as model, start_service(home, model) as (service, _):
        asyncio.run(ask(service))
        for readers, reach in ((1, "10 ms"), (AT_ONCE, "100 ms")):
            [(streams, waits)] = [
                repeat(lambda readers=readers: asyncio.run(measure_first_words(service, model, readers)))  # type: ignore[misc]
            ]
            yield f"first word over the model's, stream alone, {readers} at once", f"{streams:.0f} ms", reach
            yield "    with search and judgements", f"{waits:.0f} ms", ""


def measure_beside_langgraph(home: Path) -> Iterator[Row]:
    """The same graph and the same requests of LangGraph's protocol, to us and to `langgraph dev`."""
    home.mkdir()
    with start_service(home) as (service, pid):
        ours = compare(f"{service}/langgraph", "standard", pid)
    with start_dev(home) as (address, pid):
        theirs = compare(address, "answer", pid)
    yield "LangGraph's protocol, beside `langgraph dev`: CPU a turn", show(ours[0], theirs[0], "ms"), ".6 times"
    yield "    p50 of a turn", show(ours[1], theirs[1], "ms"), ""
    yield f"    turns a second, {AT_ONCE} at once", show(ours[2], theirs[2], "/s"), "1.5 times"


@dataclass
class Reading:
    """A reply as its reader saw it; seconds of the monotonic clock, which all processes share."""

    question: str
    asked: float = 0.0
    first: float = 0.0
    """When the first piece of the answer came."""
    ended: float = 0.0
    tail: bytes = b""
    begun: asyncio.Event = field(default_factory=asyncio.Event)


async def ask(service: str, reading: Reading | None = None) -> Reading:
    """Ask what is new to the service, and read to the end. Bytes are looked at and not parsed, so that the reader costs
    little beside what it measures."""
    reading = reading or Reading(next_question())
    target = httpx2.URL(f"{service}/api/chat")
    reader, writer = await asyncio.open_connection(target.host, target.port)
    data = orjson.dumps({"question": reading.question})
    reading.asked = time.monotonic()
    head = f"POST {target.path} HTTP/1.1\r\nHost: {target.host}\r\nContent-Type: application/json\r\n"
    writer.write(f"{head}Content-Length: {len(data)}\r\nConnection: close\r\n\r\n".encode() + data)
    while piece := await reader.read(65536):
        if not reading.first and b"event: content" in piece:
            reading.first = time.monotonic()
            reading.begun.set()
        reading.tail = (reading.tail + piece)[-2000:]
    reading.ended = time.monotonic()
    writer.close()
    assert reading.first, reading.tail.decode()
    return reading


async def measure_first_words(service: str, model: str, readers: int) -> tuple[float, float]:
    """Return the median of how many milliseconds the first word takes of the stream's own, and besides the model's time
    to its first token. The stream's own are from when the model had said all that the first word waits for, the
    judgements asked beside the answer and the answer's first token; the rest is search, judgements and queues."""
    await behave(model, length=0)
    waits: list[float] = []
    streams: list[float] = []
    async with httpx2.AsyncClient() as http:
        readings = await asyncio.gather(*(ask(service, Reading(next_question(ANSWERED))) for _ in range(readers)))
        requests = (await http.get(f"{model}/requests")).json()
        spoke = (await http.get(f"{model}/spoke")).json()
    for reading in readings:
        said = [
            at
            for request, at in zip(requests, spoke, strict=True)
            if at is not None and at < reading.first and reading.question in str(request["messages"])
        ]
        waits.append(reading.first - reading.asked - TTFT)
        streams.append(reading.first - max(said))
    return 1000 * median(streams), 1000 * median(waits)


@contextmanager
def start_dev(home: Path) -> Iterator[tuple[str, int]]:
    options = ("--config", str(ROOT / "langgraph.json"), "--port", "PORT", "--no-browser", "--no-reload")
    # It keeps its threads in files where it is started.
    with chdir(home), start("/ok", "-m", "langgraph_cli", "dev", *options, ASKGRAPH_HOME=str(home)) as served:
        yield served


def compare(address: str, assistant: str, pid: int) -> np.ndarray:
    """The milliseconds of CPU and of waiting a turn, and the turns a second of many at once."""

    async def turn(http: httpx2.AsyncClient) -> float:
        began = time.monotonic()
        body = {"assistant_id": assistant, "input": {"question": next_question()}}
        response = await http.post(f"{address}/runs/wait", json=body)
        assert response.json()["outcome"], response.text
        return 1000 * (time.monotonic() - began)

    async def measure() -> tuple[float, float, float]:
        async with httpx2.AsyncClient(timeout=WAIT) as http:
            await turn(http)
            spent = read_cpu(pid)
            waits = [await turn(http) for _ in range(ALONE)]
            spent = read_cpu(pid) - spent
            began = time.monotonic()
            await asyncio.gather(*(turn(http) for _ in range(AT_ONCE)))
            return 1000 * spent / ALONE, median(waits), AT_ONCE / (time.monotonic() - began)

    return repeat(lambda: asyncio.run(measure()))


def show(ours: float, theirs: float, unit: str) -> str:
    return f"{ours:.0f} : {theirs:.0f} {unit} ({ours / theirs:.2f})"


if __name__ == "__main__":
    main()
