"""Measures a turn over real documents without a language model: CPU, and the first word for many at once.

    python -m benchmarks.turns SET HOME [MODE]     # `standard` by default; a minute, and minutes where HOME is new

SET is a folder with `queries.jsonl` and `files/LIBRARY`, such as `../shared/bench/practical`. HOME keeps the libraries,
so that another version of the code can be measured on the same ones. Nothing is asked twice, and no questions that lean
on a conversation. Compare figures of one run, or of runs that take turns: a busy machine has others.
"""

import asyncio
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

from app.settings import read_settings
from app.wiring.services import open_services
from benchmarks.cached import read_cpu
from benchmarks.streaming import start

FIRST = 8
"""Questions that are asked to warm up."""
ALONE = 100
"""Questions that are asked one after the other."""
AT_ONCE = 32


async def load(folder: Path, home: Path) -> None:
    """Ingest the libraries that HOME does not have yet."""
    async with open_services(read_settings(home=home, load_samples=False)) as services:
        for library in sorted((folder / "files").iterdir()):
            if not await services.library.documents.list(library.name):
                report = await services.library.ingestion.add_paths(library.name, [library])
                print(f"{library.name}: {len(report.documents)} documents, {report.chunks} chunks")
        await services.library.wait_for_indexes()


async def ask(service: str, query: dict[str, str], mode: str) -> float:
    """Ask, read to the end, and return the seconds to the first word."""
    address = urlsplit(service)
    assert address.hostname
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    body = json.dumps({"question": query["question"], "workspace": query["library"], "mode": mode}).encode()
    began, first = time.monotonic(), 0.0
    head = f"POST /api/chat HTTP/1.1\r\nHost: {address.netloc}\r\nContent-Type: application/json\r\n"
    writer.write(f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
    while piece := await reader.read(65536):
        if not first and b"event: content" in piece:
            first = time.monotonic() - began
    writer.close()
    assert first, query
    return first


async def measure(service: str, pid: int, queries: Sequence[dict[str, str]], mode: str) -> None:
    """Print CPU a turn, and the seconds to the first word, alone and at once."""
    for query in queries[:FIRST]:
        await ask(service, query, mode)
    alone = queries[FIRST : FIRST + ALONE]
    spent = read_cpu(pid)
    waits = [await ask(service, query, mode) for query in alone]
    spent = (read_cpu(pid) - spent) / len(alone)
    print(f"{mode}: {len(alone)} questions in a row: {spent * 1000:.1f} ms of CPU each; first word {show(waits)}")
    left = queries[FIRST + ALONE :]
    for begin in range(0, len(left) - AT_ONCE + 1, AT_ONCE):
        spent, began = read_cpu(pid), time.monotonic()
        waits = await asyncio.gather(*(ask(service, query, mode) for query in left[begin : begin + AT_ONCE]))
        seconds, spent = time.monotonic() - began, (read_cpu(pid) - spent) / AT_ONCE
        print(
            f"{AT_ONCE} at once: {spent * 1000:.1f} ms of CPU each, {AT_ONCE / seconds:.1f} a second; "
            f"first word {show(waits)}"
        )


def show(seconds: Sequence[float]) -> str:
    """Return p50, p95 and the most."""
    p50, p95 = np.percentile(seconds, (50, 95))
    return f"{p50:.3f} s p50, {p95:.3f} s p95, {max(seconds):.3f} s at most"


def main(folder: Path, home: Path, mode: str = "standard") -> None:
    """Load the libraries, start a server on them, ask and print."""
    asyncio.run(load(folder, home))
    lines = (folder / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    queries = [query for query in map(json.loads, lines) if not query.get("before")]
    # In an order of their own, so that no part has one library's questions only.
    order = np.random.default_rng(1).permutation(len(queries))
    environment = {"ASKGRAPH_HOME": str(home), "ASKGRAPH_LOAD_SAMPLES": "false"}
    with start("/healthz", "-m", "app.cli", "serve", "--port", "PORT", **environment) as (service, pid):
        asyncio.run(measure(service, pid, [queries[i] for i in order], mode))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:4])
