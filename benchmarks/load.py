"""Loads a service with many readers at once: no stream may be cut, no token late, and what is too much is refused.

    make load    # about five minutes

A loopback model in one process, `askgraph serve` on a fresh home with the sample library in another; this one asks over
HTTP. 256 readers of 10 tokens a second, 64 of 50, and then 1,000 at once, of which the service takes on as many as
ASKGRAPH_MAX_RUNS says. A token is late where it comes more than half a second after its turn, counted from the one
before it. The exit code is 1 if a stream was cut, an accepted run failed, or a token was late.
"""

import asyncio
import re
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field

import httpx2
import numpy as np
import orjson

from benchmarks.shared import QUESTIONS, behave, read_cpu, read_memory, start_model, start_service

LATE_SECONDS = 0.5
"""Seconds after its turn from which a token is late."""
STREAM_SECONDS = 15
"""How long an answer is being written."""
PHASES = ((256, 10), (64, 50), (1000, 10))
"""Readers at once, and tokens a second of each."""
CONNECTING = 64
"""Connections that are opened at the same time."""


@dataclass
class Reading:
    """What one reader saw. Seconds are of the monotonic clock."""

    asked: float = 0.0
    status: int = 0
    answered: float = 0.0
    """When the response began."""
    tokens: list[float] = field(default_factory=list)
    """When each came."""
    end: str = "cut"
    """`done`, `error CODE`, `refused CODE` or `cut`."""

    def gaps(self) -> list[float]:
        return [after - before for before, after in zip(self.tokens, self.tokens[1:], strict=False)]


async def read(service: str, number: int, connecting: asyncio.Semaphore) -> Reading:
    """Ask what nobody has asked before, and read to the end."""
    target = httpx2.URL(f"{service}/api/chat")
    body = orjson.dumps({"question": f"Reader {number} asks: {QUESTIONS[number % len(QUESTIONS)]}"})
    reading = Reading()
    try:
        async with connecting:
            reader, writer = await asyncio.open_connection(target.host, target.port, limit=2**20)
        reading.asked = time.monotonic()
        writer.write(
            f"POST {target.path} HTTP/1.1\r\nHost: {target.host}:{target.port}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
            + body
        )
        reading.status = int((await reader.readline()).split()[1])
        reading.answered = time.monotonic()
        last = ""
        while line := await reader.readline():
            if line.startswith(b"event: "):
                last = line[7:].strip().decode()
                if last == "content":
                    reading.tokens.append(time.monotonic())
            elif code := re.search(rb'"code":"(\w+)"', line):
                if reading.status != 200:
                    reading.end = f"refused {code[1].decode()}"
                elif last == "error":
                    reading.end = f"error {code[1].decode()}"
            if last == "done":
                reading.end = "done"
        writer.close()
    except (OSError, IndexError, ValueError) as error:
        reading.end = f"cut ({type(error).__name__})"
    return reading


async def run_phase(service: str, model: str, pid: int, readers: int, rate: int, first: int) -> bool:
    """Print a row, and return True if all went well."""
    await behave(model, rate=rate, length=rate * STREAM_SECONDS)
    connecting = asyncio.Semaphore(CONNECTING)
    spent, began = read_cpu(pid), time.monotonic()
    readings = await asyncio.gather(*(read(service, first + number, connecting) for number in range(readers)))
    took, spent = time.monotonic() - began, read_cpu(pid) - spent
    ends = Counter(reading.end for reading in readings)
    gaps = np.array([gap for reading in readings for gap in reading.gaps()] or [0.0])
    late = int((gaps > 1 / rate + LATE_SECONDS).sum())
    refused = [reading.answered - reading.asked for reading in readings if reading.end.startswith("refused")]
    first_words = [reading.tokens[0] - reading.asked for reading in readings if reading.tokens]
    memory = read_memory(pid)
    print(
        f"| {readers:,} × {rate}/s | {', '.join(f'{count} {end}' for end, count in ends.most_common())} | {late} "
        f"of {len(gaps):,} | {np.percentile(gaps, 99) * 1000:.0f} / {gaps.max() * 1000:.0f} ms "
        f"| {np.percentile(first_words or [0], 50):.1f} / {max(first_words, default=0):.1f} s "
        f"| {max(refused, default=0):.2f} s | {took:.0f} s | {spent:.0f} s | {memory} MB |",
        flush=True,
    )
    return late == 0 and all(end == "done" or end.startswith("refused") for end in ends)


async def main(service: str, model: str, pid: int) -> bool:
    await read(service, 0, asyncio.Semaphore(1))
    print(
        "| readers | ended | late tokens | between tokens, p99 / max | first word, p50 / max | last refusal | took",
        end="",
    )
    print(" | CPU | memory |\n|---|---|---|---|---|---|---|---|---|")
    first, good = 1, True
    for readers, rate in PHASES:
        good &= await run_phase(service, model, pid, readers, rate, first)
        first += readers
    return good


if __name__ == "__main__":
    with (
        tempfile.TemporaryDirectory() as home,
        start_model(0.2) as model,
        start_service(home, model) as (service, pid),
    ):
        sys.exit(0 if asyncio.run(main(service, model, pid)) else 1)
