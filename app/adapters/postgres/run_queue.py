"""Accepted runs and their leases, which are jobs of procrastinate's (docs/decisions/03-runs-and-streams.md).

A run that can begin at once is inserted as a job that this process is doing already, so that nothing waits for a queue.
Its lock is the thread's. When the process dies, its heartbeats end, and the job goes back into the queue
(`app.adapters.postgres.presence`), where procrastinate's worker takes it (`app.adapters.postgres.worker`).
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, cast

import psycopg
from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from app.adapters.postgres import queue_sql, sql
from app.adapters.postgres.jobs import RETRY_SECONDS, Task
from app.adapters.postgres.pool import Pool, open_session
from app.adapters.postgres.presence import Connection, Presence
from domain.errors import DatabaseUnavailable, ThreadBusy, UnknownThread
from domain.events import Done, Failed
from domain.runs import Lease, RunRecord, RunRequest, RunState, RunStatus
from domain.state import TurnInput, gather_scope

if TYPE_CHECKING:
    from app.adapters.postgres.worker import Worker

logger = logging.getLogger("askgraph.queue")

QUEUE = "runs"
TASK = "execute_run"

DRAIN_SECONDS = 5.0
"""How long runs from the queue may take to end when the process is about to."""

Execute = Callable[[Lease], Awaitable[None]]


@dataclass(slots=True)
class _Holding:
    job_id: int
    attempt: int
    by_worker: bool
    """Whether procrastinate's worker does the job, and finishes it."""
    handed_back: bool = False


class PostgresRunQueue:
    """Runs and who executes them in PostgreSQL."""

    def __init__(self, pool: Pool, database_url: str, more: Sequence[Task] = ()) -> None:
        """`more` is what a worker does besides executing runs."""
        self._pool = pool
        self._database_url = database_url
        self._more = more
        self._presence = Presence(database_url, self._check_leases)
        self._held: dict[str, _Holding] = {}
        self._accepting: set[str] = set()
        self._on_stop: Callable[[str], None] | None = None
        self._on_lost: Callable[[str], None] | None = None
        self._worker: Worker | None = None

    async def close(self) -> None:
        """End the heartbeats. Another process begins again at once what this one still holds."""
        await self._presence.close()

    def watch_leases(self, *, on_stop: Callable[[str], None], on_lost: Callable[[str], None]) -> None:
        """Call `on_stop` with the id of each run held here that shall stop, with every heartbeat until it has ended;
        and `on_lost`, once, with that of each whose lease this process has lost."""
        self._on_stop, self._on_lost = on_stop, on_lost

    @asynccontextmanager
    async def work(
        self,
        execute: Execute,
        *,
        concurrency: int = 8,
        drain_seconds: float = DRAIN_SECONDS,
    ) -> AsyncIterator[None]:
        """As the port says. What is being executed at the end may take `drain_seconds`."""
        from app.adapters.postgres.worker import open_worker

        runs = Task(QUEUE, TASK, concurrency, lambda job: self._execute_job(job.id, execute, **job.args))
        async with open_worker(
            self._database_url, self._presence, [runs, *self._more], drain_seconds=drain_seconds
        ) as self._worker:
            yield

    def stop_taking(self) -> None:
        """Take no more runs from the queue; those that are being executed go on. For a process that hands back what it
        has, and must not get it again."""
        if self._worker is not None:
            self._worker.stop()

    async def accept(self, request: RunRequest, *, wait: bool) -> Lease | None:
        worker_id = await self._presence.register()
        self._accepting.add(request.run_id)
        try:
            async with open_session(self._pool, request.workspace_id) as session:
                row = await session.fetch_one(
                    sql.ACCEPT_RUN,
                    run_id=request.run_id,
                    thread_id=request.thread_id,
                    request=Jsonb({field.name: getattr(request, field.name) for field in fields(request)}),
                    queue=QUEUE,
                    task=TASK,
                    lock=f"thread {request.thread_id}",
                    worker_id=worker_id,
                    wait=wait,
                )
            if row is None:
                raise UnknownThread
            if row["begun"] is None:
                if row["waiting"] is None:
                    raise ThreadBusy
                return None
            self._held[request.run_id] = _Holding(row["begun"], 1, by_worker=False)
            return Lease(request, 1)
        except psycopg.errors.ForeignKeyViolation as error:
            # This process was away for so long that it has been forgotten. Its next heartbeat registers it anew.
            raise DatabaseUnavailable from error
        finally:
            self._accepting.discard(request.run_id)

    async def end(
        self,
        lease: Lease,
        state: RunState,
        ended: Done | Failed,
        ended_id: str,
        record: RunRecord,
        tape: bytes | None = None,
    ) -> bool:
        run_id = lease.request.run_id
        holding = self._held.get(run_id)
        async with open_session(self._pool, lease.request.workspace_id) as session:
            row = await session.fetch_one(
                sql.END_RUN,
                **_list_columns(record)
                | {
                    "state": state,
                    "ended": Jsonb(ended),
                    "ended_id": ended_id,
                    "attempt": lease.attempt,
                    "by_worker": holding is not None and holding.by_worker,
                    "worker_id": self._presence.worker_id,
                    "queue": QUEUE,
                    "tape": tape,
                },
            )
        self._release(lease)
        return row is not None

    async def hand_back(self, lease: Lease) -> None:
        holding = self._held.get(lease.request.run_id)
        if holding is None or holding.attempt != lease.attempt:
            return
        if holding.by_worker:
            # procrastinate's worker gives it back when the task ends, which it takes from the task's outcome.
            holding.handed_back = True
            return
        # Where the database does not answer, the next heartbeat finds a job that nobody here knows, and gives it back.
        self._release(lease)
        async with open_session(self._pool, lease.request.workspace_id) as session:
            await session.fetch(queue_sql.HAND_BACK_JOBS, job_ids=[holding.job_id], worker_id=self._presence.worker_id)

    async def get(self, workspace_id: str, run_id: str) -> RunStatus | None:
        async with open_session(self._pool, workspace_id) as session:
            return _read_status(await session.fetch_one(sql.GET_RUN_STATUS, run_id=run_id))

    async def list_unfinished(self, workspace_id: str, thread_id: str) -> list[RunStatus]:
        async with open_session(self._pool, workspace_id) as session:
            rows = await session.fetch(sql.LIST_UNFINISHED_RUNS, thread_id=thread_id)
        return [status for row in rows if (status := _read_status(row))]

    async def request_stop(self, workspace_id: str, run_id: str) -> RunStatus | None:
        async with open_session(self._pool, workspace_id) as session:
            return _read_status(await session.fetch_one(sql.REQUEST_RUN_STOP, run_id=run_id))

    async def _execute_job(self, job_id: int, execute: Execute, workspace_id: str, run_id: str) -> float | None:
        async with open_session(self._pool, workspace_id) as session:
            row = await session.fetch_one(sql.BEGIN_RUN, run_id=run_id)
        if row is None:
            # It has ended, though the process died before the job was finished; or its thread was deleted.
            return None
        lease = Lease(_read_request(row["request"]), row["attempt"], row["stop_requested"])
        if run_id in self._held:
            # This process itself was away for too long, and is back.
            self._tell(self._on_lost, run_id)
        self._held[run_id] = holding = _Holding(job_id, lease.attempt, by_worker=True)
        try:
            await execute(lease)
            if holding.handed_back:
                return 0.0
            # Where `execute` returns though the run has not ended, it is to be executed again.
            return RETRY_SECONDS if self._held.get(run_id) is holding else None
        finally:
            self._release(lease)

    @staticmethod
    def _tell(listener: Callable[[str], None] | None, run_id: str) -> None:
        if listener is not None:
            listener(run_id)

    def _release(self, lease: Lease) -> None:
        holding = self._held.get(lease.request.run_id)
        if holding is not None and holding.attempt == lease.attempt:
            del self._held[lease.request.run_id]

    async def _check_leases(self, connection: Connection, worker_ids: list[int]) -> None:
        expected = dict(self._held)
        cursor = await connection.execute(queue_sql.LIST_HELD_RUNS, {"worker_ids": worker_ids, "queue": QUEUE})
        rows = {row["run_id"]: row for row in await cursor.fetchall()}
        for run_id, holding in expected.items():
            row = rows.get(run_id)
            if self._held.get(run_id) is not holding:
                continue  # it has ended meanwhile
            if row is None or row["attempt"] != holding.attempt:
                logger.warning("The lease of the run %s is lost: another process executes it.", run_id)
                del self._held[run_id]
                self._tell(self._on_lost, run_id)
            elif row["stop"]:
                self._tell(self._on_stop, run_id)
        # Accepted, though the answer that said so was lost on its way here: nobody executes them.
        orphans = [
            row["job_id"]
            for run_id, row in rows.items()
            if row["worker_id"] == worker_ids[0] and run_id not in self._held and run_id not in self._accepting
        ]
        if orphans:
            await connection.execute(queue_sql.HAND_BACK_JOBS, {"job_ids": orphans, "worker_id": worker_ids[0]})


def _list_columns(record: RunRecord) -> dict[str, Any]:
    """The record as its row has it."""
    return {
        field.name: Jsonb(value) if isinstance(value := getattr(record, field.name), list | dict) else value
        for field in fields(record)
    }


def _read_request(stored: dict[str, Any]) -> RunRequest:
    """Without what only a newer version of askgraph knows of a run: an older one beside it executes it all the same."""
    known = {field.name for field in fields(RunRequest)}
    request = RunRequest(**{name: value for name, value in stored.items() if name in known})
    return replace(request, turn=cast(TurnInput, gather_scope(request.turn)))


def _read_status(row: DictRow | None) -> RunStatus | None:
    return None if row is None else RunStatus(**row | {"request": _read_request(row["request"])})
