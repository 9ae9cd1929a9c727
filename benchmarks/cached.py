"""Measures the cost of a cached answer, beside the same answer in a run with thread and state, and beside an endpoint
of Starlette that does nothing, which shows how fast the machine is at the moment.

    python -m benchmarks.cached [HITS]     # 3,000 by default; under a minute

The server is `askgraph serve` on the sample library in a process of its own. Its CPU time is the kernel's count and
includes the recording of hits; the client is another process. The round with the least CPU counts, of three. A run is
forced by asking the same question in a thread that the client names. Latency on the server is what `timings` says: from
the checked question to the answer. Round trips to Redis and transactions of Postgres are the servers' own counts.
"""

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import numpy as np
import psycopg
import redis.asyncio

from app.adapters.embedded import open_servers
from benchmarks.shared import read_cpu, start, start_service

QUESTION = "How many days of holiday does an employee have?"
CLIENTS = (1, 32)
ROUNDS = 3
HITS = 3_000
ROUND_TRIPS = ("evalsha", "xrange", "xdel", "exec")
"""Commands that the service sends by themselves; what a script calls is counted under its own name."""


BARE = """
import sys, uvicorn
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

async def answer(request):
    await request.body()
    return Response(b'{"timings":{"total":0}}' + b" " * 3000, media_type="application/json")

app = Starlette(routes=[Route("/", answer), Route("/api/chat", answer, methods=["POST"])])
uvicorn.run(app, port=int(sys.argv[1]), log_config=None, access_log=False)
"""


@dataclass(frozen=True, slots=True)
class Served:
    """A server in a process of its own."""

    port: int
    pid: int

    @classmethod
    def at(cls, address: str, pid: int) -> "Served":
        return cls(int(address.rsplit(":", 1)[1]), pid)


@dataclass(slots=True)
class Asked:
    """Measurements of a series of questions."""

    server_ms: list[float] = field(default_factory=list)
    """Milliseconds, from the answers' `timings`."""
    client_ms: list[float] = field(default_factory=list)
    seconds: float = 0.0


def main(hits: int = HITS) -> None:
    """Start the servers, measure, and print."""
    with (
        tempfile.TemporaryDirectory(prefix="askgraph-bench-") as home,
        start_service(home) as service,
        start("/", "-c", BARE, "PORT") as bare,
    ):
        asyncio.run(measure(Path(home), Served.at(*service), Served.at(*bare), hits))


async def measure(home: Path, service: Served, bare: Served, hits: int) -> None:
    """Print a row for each way and number of clients."""
    async with open_servers(home) as servers:
        assert servers.database_url
        assert servers.redis_url
        await ask(service.port, 1, 2)
        print("stored answers, one server process:")
        print(
            "                  clients hits/s  a core      CPU  x bare  server p50    p95  client p50  Redis  Postgres"
        )
        ways = [("cached, JSON", clients, hits, False) for clients in CLIENTS]
        for name, clients, count, in_threads in (*ways, ("through a run", 8, hits // 20, True)):
            rows = []
            for _ in range(ROUNDS):
                await ask(bare.port, clients, hits // 10)
                spent_bare = read_cpu(bare.pid)
                await ask(bare.port, clients, hits)
                spent_bare = (read_cpu(bare.pid) - spent_bare) / hits
                await ask(service.port, clients, clients * 4, in_threads=in_threads)
                await asyncio.sleep(1.5)  # until all is recorded, and Postgres has added up its counts
                counted = await count_calls(servers.database_url, servers.redis_url)
                spent = read_cpu(service.pid)
                asked = await ask(service.port, clients, count, in_threads=in_threads)
                await asyncio.sleep(1.5)
                spent = (read_cpu(service.pid) - spent) / count
                trips, statements = (await count_calls(servers.database_url, servers.redis_url) - counted) / count
                p50, p95 = np.percentile(asked.server_ms, (50, 95))
                rows.append(
                    (
                        spent,
                        f"  {name:<18}{clients:5} {count / asked.seconds:6.0f} {1 / spent:7.0f} {spent * 1000:5.2f} ms "
                        f"{spent / spent_bare:7.1f} {p50:8.2f} ms {p95:6.2f} {np.median(asked.client_ms):8.2f} ms "
                        f"{trips:6.2f} {statements:9.2f}",
                    )
                )
            print(min(rows)[1])


async def ask(port: int, clients: int, count: int, *, in_threads: bool = False) -> Asked:
    """Ask so often, by so many clients that each keep a connection."""
    asked = Asked()

    async def client(times: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(times):
            thread = {"thread_id": str(uuid4())} if in_threads else {}
            body = json.dumps({"question": QUESTION, **thread}).encode()
            head = f"POST /api/chat?stream=false HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n"
            began = time.perf_counter()
            writer.write(head.encode() + b"Content-Type: application/json\r\n\r\n" + body)
            headers = await reader.readuntil(b"\r\n\r\n")
            length = next(line for line in headers.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            answer = json.loads(await reader.readexactly(int(length.split(b":")[1])))
            asked.client_ms.append((time.perf_counter() - began) * 1000)
            asked.server_ms.append(answer["timings"]["total"])
        writer.close()

    began = time.perf_counter()
    await asyncio.gather(*(client(times) for times in share(count, clients)))
    asked.seconds = time.perf_counter() - began
    return asked


def share(count: int, clients: int) -> Iterable[int]:
    """Number of questions of each client."""
    return (len(range(first, count, clients)) for first in range(clients))


async def count_calls(database_url: str, redis_url: str) -> np.ndarray:
    """Return the commands that Redis and the transactions that Postgres has executed so far."""
    async with redis.asyncio.Redis.from_url(redis_url) as client:
        stats = await client.info("commandstats")
    trips = sum(stats.get(f"cmdstat_{command}", {"calls": 0})["calls"] for command in ROUND_TRIPS)
    async with await psycopg.AsyncConnection.connect(database_url) as connection:
        cursor = await connection.execute("SELECT sum(xact_commit) FROM pg_stat_database")
        row = await cursor.fetchone()
    return np.array([trips, int(row[0]) if row else 0])


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else HITS)
