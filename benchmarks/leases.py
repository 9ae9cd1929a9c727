"""Measures the cost of letting runs survive their process: of recording a cached answer, a run with a lease, and a job
that goes through the queue to a worker of this process.

    python -m benchmarks.leases

One after the other, and so many at once. Everything is measured in turns, so that whatever else the machine does hits
all alike. CPU is this process's and that of Postgres's backends together.
"""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any, cast
from uuid import uuid4

from app.adapters.embedded import open_servers
from app.adapters.postgres.conversations.run_log import PostgresRunLog
from app.adapters.postgres.migrations import upgrade
from app.adapters.postgres.pool import ALL_WORKSPACES, Pool, borrow, open_pool
from app.adapters.postgres.queue.ingestions import PostgresIngestionQueue
from app.adapters.postgres.queue.runs import PostgresRunQueue
from domain.documents import DocumentReport
from domain.events import Done, Failed
from domain.runs import Lease, RunRecord, RunRequest, ServedRun, Shown
from domain.scope import Scope
from domain.state import TurnInput

ROUNDS = 5
RUNS = 200
"""Runs of a round."""
AT_ONCE = 32

FAILED = Failed(type="error", code="model_timeout", message="Too late.", retryable=True)
SHOWN = Shown(sources=[], steps=[], corrections=[])
DONE = cast(Done, {"type": "done", "answer": "36 months."})


def make_request() -> RunRequest:
    run_id, thread_id = str(uuid4()), str(uuid4())
    turn = TurnInput(
        run_id=run_id, question="How long?", scope=Scope("a").to_json(), mode="fast", profile={"name": "fast"}
    )
    return RunRequest(run_id, thread_id, "a", turn)


def make_record(request: RunRequest) -> RunRecord:
    return RunRecord(
        request.run_id, request.thread_id, "a", "fast", "How long?", datetime.now(UTC), answer="36 months."
    )


async def read_cpu(pool: Pool) -> float:
    """Seconds, of this process and the server's backends."""
    async with borrow(pool, ALL_WORKSPACES) as connection:
        cursor = await connection.execute("SELECT pid FROM pg_stat_activity WHERE datname = current_database()")
        backends = [row["pid"] for row in await cursor.fetchall()]
    return process_time() + sum(_read_backend_cpu(pid) for pid in backends)


def _read_backend_cpu(pid: int) -> float:
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with open_servers(Path(folder)) as servers:
            assert servers.database_url
            await upgrade(servers.database_url)
            async with open_pool(servers.database_url) as pool:
                await measure(pool, servers.database_url)


async def measure(pool: Pool, database_url: str) -> None:
    """Print the table."""
    runs, ingestions = PostgresRunLog(pool), PostgresIngestionQueue(pool)
    begun: dict[str, asyncio.Future[float]] = {}

    async def ingest(workspace_id: str, source: str, data: bytes, **options: Any) -> DocumentReport:
        begun[source].set_result(perf_counter())
        return DocumentReport(source, "added")

    queue = PostgresRunQueue(pool, database_url, [ingestions.task(ingest)])

    async def record() -> float:
        request = make_request()
        record = make_record(request)
        await runs.record_served([ServedRun(request, record, DONE, "1-1", record.started_at, SHOWN)])
        return 0.0

    async def lease() -> float:
        """Milliseconds until the run may begin."""
        request, began = make_request(), perf_counter()
        taken = await queue.accept(request, wait=True)
        waited = perf_counter() - began
        assert taken is not None
        assert await queue.end(taken, "failed", FAILED, "1-1", make_record(request))
        return 1000 * waited

    async def enqueue() -> float:
        source, began = str(uuid4()), perf_counter()
        begun[source] = asyncio.get_running_loop().create_future()
        await ingestions.accept("a", source, b"")
        return 1000 * (await begun[source] - began)

    async def refuse(lease: Lease) -> None:
        raise AssertionError

    ways = {"record a stored answer": record, "accept, end with record": lease, "through the queue": enqueue}
    async with queue.work(refuse):
        for clients in (1, AT_ONCE):
            figures: dict[str, list[tuple[float, float, float, float]]] = {name: [] for name in ways}
            for _ in range(ROUNDS):
                for name, take in ways.items():
                    figures[name].append(await take_turn(pool, take, clients))
            print(f"{clients} at once".ljust(28) + "p50 ms   until it begins ms   CPU ms a run   runs/s")
            for name, rounds in figures.items():
                p50, waited, cpu, rate = (median(column) for column in zip(*rounds, strict=True))
                print(f"{name:<28}{p50:6.2f}{waited:21.2f}{cpu:15.2f}{rate:9.0f}")
    await queue.close()


async def take_turn(
    pool: Pool, take: Callable[[], Awaitable[float]], clients: int
) -> tuple[float, float, float, float]:
    """The median of milliseconds a run and until it may begin, the mean CPU, and runs a second."""
    took: list[tuple[float, float]] = []

    async def ask() -> None:
        for _ in range(RUNS // clients):
            began = perf_counter()
            waited = await take()
            took.append((1000 * (perf_counter() - began), waited))

    cpu, began = await read_cpu(pool), perf_counter()
    await asyncio.gather(*(ask() for _ in range(clients)))
    seconds = perf_counter() - began
    cpu = await read_cpu(pool) - cpu
    return median(t for t, _ in took), median(w for _, w in took), 1000 * cpu / len(took), len(took) / seconds


if __name__ == "__main__":
    asyncio.run(main())
