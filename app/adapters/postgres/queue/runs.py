"""The queue of runs. The lease of a run is a job of procrastinate (docs/decisions/03-runs-and-streams.md).

A run that can begin at once is inserted as a job that this process is already doing, so it never waits in the queue.
The job's lock is the thread. If the process dies, its heartbeats end, the job goes back into the queue (`presence`),
and procrastinate's worker takes it there (`worker`).
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence, Set
from contextlib import asynccontextmanager
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, LiteralString

import psycopg
from psycopg.rows import DictRow

from app.adapters.postgres.conversations.run_log import INSERT_RUN, list_columns
from app.adapters.postgres.conversations.threads import MAY_READ, MERGED_CALLERS, MOST_ASKED, list_groups
from app.adapters.postgres.pool import Pool, open_session, write_json
from app.adapters.postgres.queue.jobs import RETRY_SECONDS, Task
from app.adapters.postgres.queue.leases import HAND_BACK_JOBS, UNFINISHED
from app.adapters.postgres.queue.presence import Connection, Presence
from domain.errors import DatabaseUnavailable, ThreadBusy
from domain.events import Done, Failed
from domain.history.lineage import NO_LINEAGE, Lineage
from domain.runs import Lease, RunRecord, RunRequest, RunState, RunStatus, Shown
from domain.scope import Scope
from domain.threads import state_key

if TYPE_CHECKING:
    from app.adapters.postgres.queue.worker import Worker

logger = logging.getLogger("askgraph.queue")

QUEUE = "runs"
TASK = "execute_run"

DRAIN_SECONDS = 5.0
"""Time that runs taken from the queue get to finish when the process shuts down."""

MOST_WAITING = 32
"""Number of runs that may wait for another run of their thread. As the runs of a process are limited, this limits the
queue as well."""

_IS_FREE: LiteralString = f"""
    NOT EXISTS (
        SELECT FROM accepted_runs
        WHERE workspace_id = %(workspace_id)s AND thread_id = %(thread_id)s AND {UNFINISHED}
    )
"""

_MAY_WAIT: LiteralString = """
    %(wait)s AND %(most_waiting)s > (
        SELECT count(*) FROM accepted_runs
        WHERE workspace_id = %(workspace_id)s AND thread_id = %(thread_id)s AND state = 'queued'
    )
"""

# See `conversations.threads`. What is refused leaves the thread as it was.
_CLAIM: LiteralString = f"""
    INSERT INTO threads (thread_id, workspace_id, asked, groups, asked_by)
    VALUES (%(thread_id)s, %(workspace_id)s, %(asked)s, %(groups)s, ARRAY[%(caller)s])
    ON CONFLICT (workspace_id, thread_id) DO UPDATE SET (asked, updated_at, asked_by) = (
        SELECT
            CASE WHEN accepted
                THEN left(concat_ws(E'\\n', nullif(threads.asked, ''), nullif(excluded.asked, '')), {MOST_ASKED})
                ELSE threads.asked
            END,
            CASE WHEN accepted THEN now() ELSE threads.updated_at END,
            CASE WHEN accepted THEN {MERGED_CALLERS} ELSE threads.asked_by END
        FROM (SELECT {_IS_FREE} OR {_MAY_WAIT}) AS found (accepted)
    )
    RETURNING thread_id
"""

# procrastinate's unique index on the locks of jobs in progress lets a thread have one run at a time; the second one
# waits. The claim locks the thread's row, so that concurrent calls follow each other. Returns no job if the thread is
# busy and the run is not to wait.
_ACCEPT: LiteralString = f"""
    WITH thread AS ({_CLAIM}),
    job (queue_name, task_name, lock, args) AS (
        SELECT %(queue)s, %(task)s, %(lock)s,
            jsonb_build_object('workspace_id', %(workspace_id)s::text, 'run_id', %(run_id)s::text)
        FROM thread
    ),
    begun AS (
        INSERT INTO procrastinate_jobs (queue_name, task_name, lock, args, status, worker_id)
        SELECT job.*, 'doing', %(worker_id)s FROM job
        WHERE {_IS_FREE}
        ON CONFLICT (lock) WHERE status = 'doing' DO NOTHING
        RETURNING id
    ),
    waiting AS (
        INSERT INTO procrastinate_jobs (queue_name, task_name, lock, args)
        SELECT job.* FROM job WHERE NOT EXISTS (SELECT FROM begun) AND {_MAY_WAIT}
        RETURNING id
    ),
    run AS (
        INSERT INTO accepted_runs (workspace_id, run_id, thread_id, request, state, attempt, started_at, job_id)
        SELECT %(workspace_id)s, %(run_id)s, %(thread_id)s, %(request)s, 'running', 1, now(), id FROM begun
        UNION ALL
        SELECT %(workspace_id)s, %(run_id)s, %(thread_id)s, %(request)s, 'queued', 0, NULL, id FROM waiting
    )
    SELECT begun.id AS begun, waiting.id AS waiting
    FROM thread LEFT JOIN begun ON true LEFT JOIN waiting ON true
"""

_BEGIN: LiteralString = f"""
    UPDATE accepted_runs SET state = 'running', attempt = attempt + 1, started_at = now()
    WHERE workspace_id = %(workspace_id)s AND run_id = %(run_id)s AND {UNFINISHED}
    RETURNING request, attempt, stop_requested
"""

# The attempt is the fencing token. procrastinate's worker finishes its own job a moment later, so only the lock is
# released here; a job that another worker has taken over meanwhile is left to it.
_END: LiteralString = f"""
    WITH ended AS (
        UPDATE accepted_runs
        SET state = %(state)s, ended = %(ended)s, ended_id = %(ended_id)s, ended_at = now(), shown = %(shown)s
        WHERE workspace_id = %(workspace_id)s AND run_id = %(run_id)s
            AND attempt = %(attempt)s AND {UNFINISHED}
        RETURNING thread_id, run_id, job_id
    ),
    deleted AS (
        DELETE FROM procrastinate_jobs USING ended
        WHERE id = job_id AND NOT %(by_worker)s AND (status = 'todo' OR worker_id = %(worker_id)s)
    ),
    unlocked AS (
        UPDATE procrastinate_jobs SET lock = NULL FROM ended WHERE id = job_id AND %(by_worker)s
    ),
    record AS ({INSERT_RUN} FROM ended),
    document AS (
        INSERT INTO run_documents (workspace_id, run_id, document_id, revision, shown)
        SELECT %(workspace_id)s, ended.run_id, used.document_id, used.revision, bool_or(used.shown)
        FROM ended, (
            SELECT document_id, revision, shown
            FROM unnest(%(documents)s::text[], %(revisions)s::integer[], %(documents_shown)s::boolean[])
                AS own (document_id, revision, shown)
            UNION ALL
            SELECT document_id, revision, shown FROM run_documents
            WHERE workspace_id = %(workspace_id)s AND %(drew_on_turns)s AND run_id = ANY(%(turns)s::text[])
        ) AS used
        GROUP BY ended.run_id, used.document_id, used.revision
    ),
    turn AS (
        INSERT INTO run_turns (workspace_id, run_id, earlier_run_id, drawn_on)
        SELECT %(workspace_id)s, ended.run_id, earlier, %(drew_on_turns)s
        FROM ended, unnest(%(turns)s::text[]) AS earlier
    ),
    tape AS (
        INSERT INTO tapes (workspace_id, run_id, thread_id, tape)
        SELECT %(workspace_id)s, run_id, thread_id, %(tape)s FROM ended WHERE %(tape)s::bytea IS NOT NULL
    )
    SELECT (
        SELECT pg_notify(
            'procrastinate_queue_v1#' || %(queue)s,
            json_build_object('type', 'job_inserted', 'job_id', next.job_id)::text
        )::text
        FROM accepted_runs AS next
        WHERE next.workspace_id = %(workspace_id)s AND next.thread_id = ended.thread_id
            AND next.job_id <> ended.job_id AND {UNFINISHED}
        ORDER BY next.job_id LIMIT 1
    ) AS woken
    FROM ended
"""

# What an earlier attempt has shown stays.
_NOTE_SHOWING: LiteralString = f"""
    UPDATE accepted_runs SET showing = ARRAY(
        SELECT unnest(showing || %(document_ids)s::text[]) UNION
        SELECT document_id FROM run_documents
        WHERE workspace_id = %(workspace_id)s AND run_id = ANY(%(turns)s::text[]) AND shown
    )
    WHERE workspace_id = %(workspace_id)s AND run_id = %(run_id)s AND attempt = %(attempt)s AND {UNFINISHED}
"""

_STATUS: LiteralString = (
    "request, state, attempt, accepted_at, started_at, ended_at, ended, ended_id, stop_requested, shown"
)

_GET: LiteralString = f"""
    SELECT {_STATUS} FROM accepted_runs WHERE workspace_id = %(workspace_id)s AND run_id = %(run_id)s
"""

_LIST_UNFINISHED: LiteralString = f"""
    SELECT {_STATUS} FROM accepted_runs
    WHERE workspace_id = %(workspace_id)s AND thread_id = %(thread_id)s AND {UNFINISHED}
    ORDER BY state = 'running' DESC, attempt > 0 DESC, job_id
"""

_LIST_TURNS: LiteralString = f"""
    SELECT {_STATUS} FROM accepted_runs AS run
    WHERE workspace_id = %(workspace_id)s AND thread_id = %(thread_id)s AND {MAY_READ} AND (
        %(before)s::text IS NULL OR (accepted_at, run_id) < (
            SELECT accepted_at, run_id FROM accepted_runs
            WHERE workspace_id = %(workspace_id)s AND run_id = %(before)s
        )
    )
    ORDER BY accepted_at DESC, run_id DESC LIMIT %(limit)s
"""

_LIST_READABLE: LiteralString = """
    SELECT run_id FROM unnest(%(run_ids)s::text[]) AS run_id
    WHERE CASE WHEN %(steps)s THEN may_read_steps(%(workspace_id)s, run_id, %(groups)s)
        ELSE may_read_run(%(workspace_id)s, run_id, %(groups)s) END
"""

_REQUEST_STOP: LiteralString = f"""
    UPDATE accepted_runs SET stop_requested = stop_requested OR {UNFINISHED}
    WHERE workspace_id = %(workspace_id)s AND run_id = %(run_id)s
    RETURNING {_STATUS}
"""

_LIST_HELD: LiteralString = f"""
    SELECT id AS job_id, worker_id, args ->> 'run_id' AS run_id, attempt, coalesce(stop_requested, false) AS stop
    FROM procrastinate_jobs AS job
    LEFT JOIN accepted_runs AS run
        ON run.workspace_id = args ->> 'workspace_id' AND run.run_id = args ->> 'run_id'
        AND {UNFINISHED}
    WHERE job.status = 'doing' AND worker_id = ANY (%(worker_ids)s) AND queue_name = %(queue)s
"""

Execute = Callable[[Lease], Awaitable[None]]


@dataclass(slots=True)
class _Holding:
    job_id: int
    attempt: int
    by_worker: bool
    """True if procrastinate's worker does the job, and so will finish it."""
    handed_back: bool = False


class PostgresRunQueue:
    """Implements `RunQueue` in PostgreSQL."""

    def __init__(self, pool: Pool, database_url: str, more: Sequence[Task] = ()) -> None:
        """`more` are further tasks of a worker, besides executing runs."""
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
        """Stop the heartbeats. Other processes take over at once what this one still holds."""
        await self._presence.close()

    def watch_leases(self, *, on_stop: Callable[[str], None], on_lost: Callable[[str], None]) -> None:
        self._on_stop, self._on_lost = on_stop, on_lost

    @asynccontextmanager
    async def work(
        self,
        execute: Execute,
        *,
        concurrency: int = 8,
        drain_seconds: float = DRAIN_SECONDS,
    ) -> AsyncIterator[None]:
        """Implements the port. When the context ends, runs in progress get `drain_seconds` to finish."""
        from app.adapters.postgres.queue.worker import open_worker

        runs = Task(QUEUE, TASK, concurrency, lambda job: self._execute_job(job.id, execute, **job.args))
        async with open_worker(
            self._database_url, self._presence, [runs, *self._more], drain_seconds=drain_seconds
        ) as self._worker:
            yield

    def stop_taking(self) -> None:
        if self._worker is not None:
            self._worker.stop()

    async def accept(self, request: RunRequest, *, wait: bool) -> Lease | None:
        worker_id = await self._presence.register()
        self._accepting.add(request.run_id)
        try:
            async with open_session(self._pool, request.workspace_id) as session:
                row = await session.fetch_one(
                    _ACCEPT,
                    run_id=request.run_id,
                    thread_id=request.thread_id,
                    asked="" if request.forked_from is not None else request.turn["question"],
                    groups=request.turn["scope"].get("groups"),
                    caller=request.caller,
                    request=write_json({field.name: getattr(request, field.name) for field in fields(request)}),
                    queue=QUEUE,
                    task=TASK,
                    lock=f"thread {state_key(request.workspace_id, request.thread_id)}",
                    worker_id=worker_id,
                    wait=wait,
                    most_waiting=MOST_WAITING,
                )
            assert row is not None
            if row["begun"] is None:
                if row["waiting"] is None:
                    raise ThreadBusy(f"{MOST_WAITING} questions of this conversation are waiting." if wait else None)
                return None
            self._held[request.run_id] = _Holding(row["begun"], 1, by_worker=False)
            return Lease(request, 1)
        except psycopg.errors.ForeignKeyViolation as error:
            # This process was away for so long that its worker id was deleted. The next heartbeat registers it again.
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
        shown: Shown | None = None,
        lineage: Lineage = NO_LINEAGE,
    ) -> bool:
        run_id = lease.request.run_id
        holding = self._held.get(run_id)
        async with open_session(self._pool, lease.request.workspace_id) as session:
            row = await session.fetch_one(
                _END,
                **list_columns(record)
                | {
                    "state": state,
                    "ended": write_json(ended),
                    "ended_id": ended_id,
                    "attempt": lease.attempt,
                    "by_worker": holding is not None and holding.by_worker,
                    "worker_id": self._presence.worker_id,
                    "queue": QUEUE,
                    "tape": tape,
                    "shown": None if shown is None else write_json(shown),
                    "documents": [used.document_id for used in lineage.documents],
                    "revisions": [used.revision for used in lineage.documents],
                    "documents_shown": [used.shown for used in lineage.documents],
                    "turns": list(lineage.turns),
                    "drew_on_turns": lineage.drew_on_turns,
                },
            )
        self._release(lease)
        return row is not None

    async def note_showing(self, lease: Lease, document_ids: Collection[str], turns: Collection[str]) -> None:
        async with open_session(self._pool, lease.request.workspace_id) as session:
            await session.execute(
                _NOTE_SHOWING,
                run_id=lease.request.run_id,
                attempt=lease.attempt,
                document_ids=sorted(document_ids),
                turns=sorted(turns),
            )

    async def hand_back(self, lease: Lease) -> None:
        holding = self._held.get(lease.request.run_id)
        if holding is None or holding.attempt != lease.attempt:
            return
        if holding.by_worker:
            # `_execute_job` tells procrastinate's worker to put the job back once `execute` returns.
            holding.handed_back = True
            return
        # If this statement fails, the next heartbeat finds a job that nobody here knows and hands it back.
        self._release(lease)
        async with open_session(self._pool, lease.request.workspace_id) as session:
            await session.fetch(HAND_BACK_JOBS, job_ids=[holding.job_id], worker_id=self._presence.worker_id)

    async def get(self, workspace_id: str, run_id: str) -> RunStatus | None:
        async with open_session(self._pool, workspace_id) as session:
            return _read_status(await session.fetch_one(_GET, run_id=run_id))

    async def list_unfinished(self, workspace_id: str, thread_id: str) -> list[RunStatus]:
        async with open_session(self._pool, workspace_id) as session:
            rows = await session.fetch(_LIST_UNFINISHED, thread_id=thread_id)
        return [status for row in rows if (status := _read_status(row))]

    async def list_turns(self, asker: Scope, thread_id: str, limit: int, before: str | None = None) -> list[RunStatus]:
        async with open_session(self._pool, asker.workspace_id) as session:
            rows = await session.fetch(
                _LIST_TURNS, thread_id=thread_id, limit=limit, before=before, groups=list_groups(asker)
            )
        return [status for row in reversed(rows) if (status := _read_status(row))]

    async def list_readable(self, asker: Scope, run_ids: Collection[str], *, steps: bool = False) -> Set[str]:
        if asker.groups is None or not run_ids:
            return set(run_ids)
        async with open_session(self._pool, asker.workspace_id) as session:
            rows = await session.fetch(_LIST_READABLE, run_ids=list(run_ids), groups=list_groups(asker), steps=steps)
        return {row["run_id"] for row in rows}

    async def request_stop(self, workspace_id: str, run_id: str) -> RunStatus | None:
        async with open_session(self._pool, workspace_id) as session:
            return _read_status(await session.fetch_one(_REQUEST_STOP, run_id=run_id))

    async def _execute_job(self, job_id: int, execute: Execute, workspace_id: str, run_id: str) -> float | None:
        async with open_session(self._pool, workspace_id) as session:
            row = await session.fetch_one(_BEGIN, run_id=run_id)
        if row is None:
            # The process that ended the run died before it finished the job; or the thread was deleted.
            return None
        lease = Lease(_read_request(row["request"]), row["attempt"], row["stop_requested"])
        if run_id in self._held:
            # This process was itself away for too long: its own earlier attempt has lost the lease.
            self._tell(self._on_lost, run_id)
        self._held[run_id] = holding = _Holding(job_id, lease.attempt, by_worker=True)
        try:
            await execute(lease)
            if holding.handed_back:
                return 0.0
            # If `execute` has returned without ending the run, execute it again.
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
        cursor = await connection.execute(_LIST_HELD, {"worker_ids": worker_ids, "queue": QUEUE})
        rows = {row["run_id"]: row for row in await cursor.fetchall()}
        for run_id, holding in expected.items():
            row = rows.get(run_id)
            if self._held.get(run_id) is not holding:
                continue  # it has ended in the meantime
            if row is None or row["attempt"] != holding.attempt:
                logger.warning("The lease of run %s is lost: another process executes the run.", run_id)
                del self._held[run_id]
                self._tell(self._on_lost, run_id)
            elif row["stop"]:
                self._tell(self._on_stop, run_id)
        # Jobs that nobody executes: the run was accepted, but the database's answer was lost on its way here.
        orphans = [
            row["job_id"]
            for run_id, row in rows.items()
            if row["worker_id"] == worker_ids[0] and run_id not in self._held and run_id not in self._accepting
        ]
        if orphans:
            await connection.execute(HAND_BACK_JOBS, {"job_ids": orphans, "worker_id": worker_ids[0]})


def _read_request(stored: dict[str, Any]) -> RunRequest:
    """Read a stored request, ignoring fields that only a newer version of askgraph knows."""
    known = {field.name for field in fields(RunRequest)}
    return RunRequest(**{name: value for name, value in stored.items() if name in known})


def _read_status(row: DictRow | None) -> RunStatus | None:
    return None if row is None else RunStatus(**row | {"request": _read_request(row["request"])})
