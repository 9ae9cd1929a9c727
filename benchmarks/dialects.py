"""Measures what other protocols cost beside our own API: the time to the first piece of the answer.

    python -m benchmarks.dialects [ROUNDS]    # about two minutes

`askgraph serve` on a fresh home with the sample library, without a language model; one reader, who asks by each
protocol in turn. First questions that nobody has asked: each protocol asks every question of the list equally often,
under names of its own, which keep it new to the cache. Then one question whose answer is stored, where little but the
protocol is left to measure. Compare the columns of one run with each other. On a busy machine, look at the quickest
tenth: what others do on it makes a time longer, never shorter.
"""

import asyncio
import json
import re
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.streaming import QUESTIONS, start

ROUNDS = 4


@dataclass(frozen=True)
class Protocol:
    """How to ask by a protocol, and how its first piece of text looks."""

    path: str
    body: Callable[[str], dict[str, Any]]
    first: re.Pattern[bytes]


PROTOCOLS = {
    "our own API": Protocol("/api/chat", lambda q: {"question": q}, re.compile(rb"event: content")),
    "OpenAI, chat completions": Protocol(
        "/v1/chat/completions",
        lambda q: {"model": "standard", "stream": True, "messages": [{"role": "user", "content": q}]},
        re.compile(rb'"content": ?"[^"]'),
    ),
    "OpenAI, responses": Protocol(
        "/v1/responses",
        lambda q: {"model": "standard", "stream": True, "input": q},
        re.compile(rb"response\.output_text\.delta"),
    ),
    "AI SDK": Protocol(
        "/api/ui/chat",
        lambda q: {"id": q, "messages": [{"role": "user", "parts": [{"type": "text", "text": q}]}]},
        re.compile(rb'"text-delta"'),
    ),
    "LangGraph, Agent Server": Protocol(
        "/langgraph/runs/stream",
        lambda q: {
            "assistant_id": "standard",
            "input": {"messages": [{"role": "user", "content": q}]},
            "stream_mode": ["messages-tuple"],
        },
        re.compile(rb"event: messages\b"),
    ),
}


async def ask(service: str, protocol: Protocol, question: str) -> float:
    """Ask, read to the end, and return the seconds to the first piece of the answer."""
    host, port = service.removeprefix("http://").split(":")
    data = json.dumps(protocol.body(question)).encode()
    reader, writer = await asyncio.open_connection(host, int(port))
    head = f"POST {protocol.path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
    asked = time.perf_counter()
    writer.write(f"{head}Content-Length: {len(data)}\r\nConnection: close\r\n\r\n".encode() + data)
    first, read = 0.0, b""
    while piece := await reader.read(65536):
        read += piece
        if not first and protocol.first.search(read):
            first = time.perf_counter() - asked
    writer.close()
    assert first, read[-2000:].decode()
    return first


async def measure(service: str, title: str, rounds: int, *, is_new: bool) -> None:
    """Print the time to the first piece by each protocol, and how much more that is than by our own API."""
    taken: dict[str, list[float]] = {name: [] for name in PROTOCOLS}
    names = list(PROTOCOLS)
    for number in range(rounds):
        for question in QUESTIONS if is_new else QUESTIONS[:1]:
            # Nobody is always the first.
            for name in names[number % len(names) :] + names[: number % len(names)]:
                asked = f"Reader {number} of {names.index(name)} asks: {question}" if is_new else question
                taken[name].append(await ask(service, PROTOCOLS[name], asked))
    print(f"\n{title} (n = {len(taken['our own API'])} each), ms to the first piece")
    print(f"  {'':<26}{'median':>10}{'more':>8}{'quickest tenth':>18}{'more':>8}")
    own = np.percentile(taken["our own API"], (50, 10)) * 1000
    for name, times in taken.items():
        median, quick = np.percentile(times, (50, 10)) * 1000
        print(f"  {name:<26}{median:10.2f}{median - own[0]:+8.2f}{quick:18.2f}{quick - own[1]:+8.2f}")


async def main(service: str, rounds: int) -> None:
    """Measure both."""
    for protocol in PROTOCOLS.values():
        await ask(service, protocol, QUESTIONS[0])
    await measure(service, "questions that nobody has asked", rounds, is_new=True)
    await measure(service, "a stored answer", rounds * 50, is_new=False)


if __name__ == "__main__":
    given = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    with (
        tempfile.TemporaryDirectory(prefix="askgraph-bench-") as home,
        start("/healthz", "-m", "app.cli", "serve", "--port", "PORT", ASKGRAPH_HOME=home) as (address, _),
    ):
        asyncio.run(main(address, given))
