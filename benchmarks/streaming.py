"""Measures the CPU of streaming an answer, besides its language model's. `make bench` measures its first word.

    python -m benchmarks.streaming    # about a minute

A loopback model (200 ms to the first token, then 50 tokens a second) in one process, `askgraph serve` on a fresh home
with the sample library in another; this one asks over HTTP, as readers do. Then, in this process, the client for models
alone, beside the stock one of langchain-openai.

Compare figures of one run with each other: another machine, or a busy one, has others. CPU is read from /proc.
"""

import asyncio
import tempfile
import time
from dataclasses import dataclass, field
from statistics import median

import httpx2
import openai
import orjson
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from app.adapters.chat.openai import OpenAIChat
from benchmarks.shared import behave, next_question, read_cpu, start_model, start_service
from domain.ports.models import Message
from nodes.context import Ledger

TTFT, RATE = 0.2, 50
LENGTH = 1000
"""Tokens of an answer of which the CPU is measured, which nobody reads to its end. Otherwise answers are as short as
they come."""
STREAMS = 48


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
        readings = await asyncio.gather(*(ask(service) for _ in range(readers)))
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


async def measure_streams(service: str, model: str, pid: int) -> None:
    """Print the CPU of streams while they flow, once all have begun."""
    await behave(model, length=LENGTH)
    readings = [Reading(next_question()) for _ in range(STREAMS)]
    asking = []
    for reading in readings:
        asking.append(asyncio.ensure_future(ask(service, reading)))
        await asyncio.sleep(0.1)
    await asyncio.gather(*(reading.begun.wait() for reading in readings))
    started, spent = time.monotonic(), read_cpu(pid)
    await asyncio.sleep(3)
    ended, spent = time.monotonic(), read_cpu(pid) - spent
    flowed = sum(max(0.0, (reading.ended or ended) - started) for reading in readings)
    for task in asking:
        task.cancel()
    await asyncio.gather(*asking, return_exceptions=True)
    print(f"\nstreams of {RATE} tokens a second, {STREAMS} side by side")
    print(f"  CPU of the service, a token           {spent / flowed / RATE * 1e6:8.0f} µs")
    print(f"  such streams a core                   {flowed / spent:8.0f}")


async def measure_clients(model: str) -> None:
    """Print the CPU of a chunk in the client alone, ours beside the stock one."""

    stock = ChatOpenAI(model="gpt-4.1-mini", api_key=SecretStr("none"), base_url=f"{model}/v1", stream_usage=True)
    print("\nthe client alone, µs of CPU a chunk")
    async with openai.DefaultAsyncHttpxClient() as http:
        ours = OpenAIChat("gpt-4.1-mini", api_key="none", base_url=f"{model}/v1", timeout=60, http=http)

        async def stream_stock() -> int:
            return len([chunk async for chunk in stock.astream("Hello")])

        async def stream_ours() -> int:
            said = [Message("user", "Hello")]
            return len([text async for text in ours.stream(said, Ledger(), temperature=0.2, max_tokens=1000)])

        await behave(model, rate=0, length=20)
        await asyncio.gather(stream_stock(), stream_ours())
        for pace, rate, length, streams in (("flat out", 0, 500, 2), ("at pace", RATE, 2 * RATE, 16)):
            await behave(model, rate=rate, length=length)
            costs = {}
            for name, stream in (("stock", stream_stock), ("ours", stream_ours)):
                spent = time.process_time()
                chunks = sum(await asyncio.gather(*(stream() for _ in range(streams))))
                costs[name] = (time.process_time() - spent) / chunks * 1e6
            ratio = costs["stock"] / costs["ours"]
            print(f"  {pace:<10} stock {costs['stock']:6.0f}   ours {costs['ours']:6.0f}   ratio {ratio:.1f}")


def main() -> None:
    """Start both servers, measure, and print."""
    with (
        tempfile.TemporaryDirectory(prefix="askgraph-bench-") as home,
        start_model(TTFT, RATE) as model,
        start_service(home, model) as (service, pid),
    ):
        asyncio.run(ask(service))
        asyncio.run(measure_streams(service, model, pid))
        asyncio.run(measure_clients(model))


if __name__ == "__main__":
    main()
