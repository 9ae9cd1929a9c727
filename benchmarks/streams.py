"""Measures the cost of keeping runs' events in Redis, by how long the first event of a batch waits for others.

    python -m benchmarks.streams

32 runs of 50 tokens a second for three seconds, then 20,000 events as fast as they go. CPU is this process's, less what
the 32 runs take without writing; Valkey has its own. The lag is from appending an event to its arrival at a follower on
a connection of its own, in this same process.
"""

import asyncio
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import quantiles
from time import perf_counter, process_time

from app.adapters.embedded import open_servers
from app.adapters.redis.connection import RedisServer
from app.adapters.redis.streams import RedisRunStreams
from domain.streams import StreamedEvent

RUNS = 32
TOKENS_A_SECOND = 50
SECONDS = 3
AT_ONCE = 20_000
GATHERING_MS = (0, 2, 5, 10, 20)

Write = Callable[[str, StreamedEvent], None]


def make_event(number: int) -> StreamedEvent:
    return StreamedEvent.of({"type": "content", "token": " warranty"}, f"1-{number}")


async def write_at_pace(write: Write, lags: list[float] | None = None) -> float:
    """CPU seconds of all runs side by side. Where `lags` is given, `write` is told the time as the event's data."""

    async def run(place: int) -> None:
        await asyncio.sleep(place / RUNS / TOKENS_A_SECOND)
        due = perf_counter()
        for number in range(1, SECONDS * TOKENS_A_SECOND + 1):
            event = make_event(number)
            if lags is not None:
                event = StreamedEvent(event.id, event.type, str(perf_counter()).encode())
            write(f"paced-{place}", event)
            due += 1 / TOKENS_A_SECOND
            await asyncio.sleep(max(0, due - perf_counter()))

    began = process_time()
    await asyncio.gather(*(run(place) for place in range(RUNS)))
    return process_time() - began


async def write_at_once(streams: RedisRunStreams) -> tuple[float, float]:
    """CPU seconds and seconds."""
    began, began_cpu = perf_counter(), process_time()
    for number in range(1, AT_ONCE + 1):
        streams.append(f"at-once-{number % RUNS}", make_event(number))
        if number % 1000 == 0:
            await streams.flush("")
    return process_time() - began_cpu, perf_counter() - began


async def measure_lags(streams: RedisRunStreams) -> list[float]:
    """Milliseconds of one run's events, while the others write too."""
    lags: list[float] = []

    async def follow() -> None:
        async for event in streams.follow("paced-0"):
            if event is not None:
                lags.append(1000 * (perf_counter() - float(event.data)))

    following = asyncio.create_task(follow())
    await write_at_pace(streams.append, lags)
    await streams.flush("")
    following.cancel()
    await asyncio.wait([following])
    return lags


async def measure(redis_url: str) -> None:
    alone = await write_at_pace(lambda run_id, event: None)
    events = RUNS * SECONDS * TOKENS_A_SECOND
    print("| gathering | µs of CPU an event, at pace | commands an event | lag p50 / p95 | µs flat out | events/s |")
    print("| --- | --- | --- | --- | --- | --- |")
    for milliseconds in GATHERING_MS:
        server = RedisServer(redis_url, timeout_seconds=10)
        streams = RedisRunStreams(server, redis_url, gather_seconds=milliseconds / 1000)
        await server.client.flushall()
        calls = await count_calls(server)
        paced = await write_at_pace(streams.append) - alone
        await streams.flush("")
        calls = await count_calls(server) - calls
        await server.client.flushall()
        cpu, took = await write_at_once(streams)
        await server.client.flushall()
        lags = quantiles(await measure_lags(streams), n=20)
        print(f"| {milliseconds} ms | {1e6 * paced / events:.0f} | {calls / events:.3f}", end=" ")
        print(f"| {lags[9]:.1f} / {lags[18]:.1f} ms | {1e6 * cpu / AT_ONCE:.1f} | {AT_ONCE / took:,.0f} |")
        await streams.close()
        await server.close()


async def count_calls(server: RedisServer) -> int:
    """Batches written so far."""
    stats = await server.client.info("commandstats")
    return sum(stats.get(f"cmdstat_{name}", {}).get("calls", 0) for name in ("evalsha", "eval"))


async def main() -> None:
    with tempfile.TemporaryDirectory() as home:
        async with open_servers(Path(home), postgres=False) as servers:
            assert servers.redis_url
            await measure(servers.redis_url)


if __name__ == "__main__":
    asyncio.run(main())
