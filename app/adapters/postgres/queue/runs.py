"""The queue of runs (docs/decisions/03-runs-and-streams.md).

A run is a row with its lease (`leases`). `place` is its number in its thread, given under the lock of the thread's row:
of the runs of a thread that have not ended, the first may be executed, and the others wait. A run that need not wait is
stored as one that this process executes already.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence, Set
from contextlib import asynccontextmanager, suppress
from dataclasses import fields
from datetime import timedelta
from typing import Any, LiteralString

from psycopg.rows import DictRow

from app.adapters.postgres.conversations.run_log import INSERT_RUN, list_columns
from app.adapters.postgres.conversations.threads import MAY_READ, MERGED_CALLERS, MOST_ASKED, list_groups
from app.adapters.postgres.pool import ALL_WORKSPACES, QUERY_SECONDS, Pool, open_session, write_json
from app.adapters.postgres.queue import leases
from app.adapters.postgres.queue.leases import CHANNEL, MAY_BE_TAKEN, UNFINISHED
from app.adapters.postgres.queue.worker import Connection, Perform, Pulse, Task, Worker
from domain.errors import AskgraphError, ThreadBusy
from domain.events import Done, Failed
from domain.history.lineage import NO_LINEAGE, Lineage
from domain.runs import Lease, RunRecord, RunRequest, RunState, RunStatus, Shown
from domain.scope import Scope

logger = logging.getLogger("askgraph.queue")

TASK: LiteralString = "runs"

DRAIN_SECONDS = 5.0
"""Time that runs taken from the queue get to finish when the process shuts down."""

MOST_WAITING = 32
"""Number of runs that may wait for another run of their thread. As the runs of a process are limited, this limits the
queue as well."""

# See `conversations.threads`. Locks the thread's row until the transaction ends.
_CLAIM: LiteralString = f"""
    INSERT INTO threads (thread_id, workspace_id, asked, groups, asked_by)
    VALUES (%(thread_id)s, %(workspace_id)s, %(asked)s, %(groups)s, ARRAY[%(caller)s])
    ON CONFLICT (workspace_id, thread_id) DO UPDATE SET
        asked = left(concat_ws(E'\\n', nullif(threads.asked, ''), nullif(excluded.asked, '')), {MOST_ASKED}),
        updated_at = now(),
        asked_by = {MERGED_CALLERS}
"""

# A statement of its own, because it has to see what others stored before the thread was locked. Returns nothing where
# the run would have to wait and is not to.
_ACCEPT: LiteralString = f"""
    INSERT INTO accepted_runs (workspace_id, run_id, thread_id, request, place, accepted_at, state, attempt, started_at,
        claimed_until)
    SELECT %(workspace_id)s, %(run_id)s, %(thread_id)s, %(request)s, last + 1, moment, begun.*
    FROM (
        SELECT clock_timestamp() AS moment,
            coalesce((
                SELECT max(place) FROM accepted_runs
                WHERE workspace_id = %(workspace_id)s AND thread_id = %(thread_id)s
            ), 0) AS last,
            (
                SELECT count(*) FROM accepted_runs
                WHERE workspace_id = %(workspace_id)s AND thread_id = %(thread_id)s AND {UNFINISHED}
            ) AS before
    ) AS thread, LATERAL (
        SELECT 'running', 1, moment, moment + %(lease)s WHERE before = 0
        UNION ALL
        SELECT 'queued', 0, NULL, '-infinity'
        WHERE before BETWEEN 1 AND CASE WHEN %(wait)s THEN %(most_waiting)s ELSE 0 END
    ) AS begun (state, attempt, started_at, claimed_until)
    RETURNING accepted_runs.state
"""

# Of a thread that nobody else knows yet there is nothing to see.
_BEGIN: LiteralString = f"WITH claimed AS ({_CLAIM}) {_ACCEPT}"

_TAKE: LiteralString = f"""
    WITH next AS (
        SELECT workspace_id, run_id FROM accepted_runs AS run
        WHERE {MAY_BE_TAKEN} AND NOT EXISTS (
            SELECT FROM accepted_runs AS earlier
            WHERE earlier.workspace_id = run.workspace_id AND earlier.thread_id = run.thread_id
                AND earlier.place < run.place AND {UNFINISHED}
        )
        ORDER BY accepted_at LIMIT 1
        FOR UPDATE SKIP LOCKED
    )
    UPDATE accepted_runs AS run
    SET state = 'running', attempt = attempt + 1, started_at = now(), claimed_until = now() + %(lease)s
    FROM next WHERE run.workspace_id = next.workspace_id AND run.run_id = next.run_id
    RETURNING request, attempt, stop_requested
"""

_HELD: LiteralString = """
    unnest(%(workspace_ids)s::text[], %(run_ids)s::text[], %(attempts)s::integer[])
        AS held (workspace_id, run_id, attempt)
"""

# A row that somebody has locked is left out: the others must not wait for it. Returns what is still held.
_EXTEND: LiteralString = f"""
    WITH free AS (
        SELECT workspace_id, run_id FROM accepted_runs AS run JOIN {_HELD} USING (workspace_id, run_id, attempt)
        WHERE state = 'running'
        FOR UPDATE OF run SKIP LOCKED
    ),
    extended AS (
        UPDATE accepted_runs AS run SET claimed_until = now() + %(lease)s
        FROM free WHERE run.workspace_id = free.workspace_id AND run.run_id = free.run_id
    )
    SELECT run_id, stop_requested FROM accepted_runs JOIN {_HELD} USING (workspace_id, run_id, attempt)
    WHERE {UNFINISHED}
"""

_HAND_BACK: LiteralString = f"""
    WITH back AS (
        UPDATE accepted_runs AS run SET state = 'queued', claimed_until = now() + %(pause)s
        FROM {_HELD}
        WHERE run.workspace_id = held.workspace_id AND run.run_id = held.run_id AND run.attempt = held.attempt
            AND state = 'running'
        RETURNING run.run_id
    )
    SELECT pg_notify('{CHANNEL}', '{TASK}')::text FROM back LIMIT 1
"""

# The attempt is the fencing token. What earlier attempts had read still stands in `showing`, as it was before.
_END: LiteralString = f"""
    WITH ended AS (
        UPDATE accepted_runs
        SET state = %(state)s, ended = %(ended)s, ended_id = %(ended_id)s, ended_at = now(), shown = %(shown)s,
            showing = '{{}}'
        WHERE workspace_id = %(workspace_id)s AND run_id = %(run_id)s
            AND attempt = %(attempt)s AND {UNFINISHED}
        RETURNING thread_id, run_id
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
            UNION ALL
            SELECT unnest(showing), 0, false FROM accepted_runs
            WHERE workspace_id = %(workspace_id)s AND run_id = %(run_id)s AND attempt > 1
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
        SELECT pg_notify('{CHANNEL}', '{TASK}')::text FROM accepted_runs AS next
        WHERE next.workspace_id = %(workspace_id)s AND next.thread_id = ended.thread_id
            AND next.run_id <> ended.run_id AND {UNFINISHED}
        LIMIT 1
    ) AS announced
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

# A run whose claim has run out is executed by nobody.
_STATUS: LiteralString = """
    request, CASE WHEN state = 'running' AND claimed_until < now() THEN 'queued' ELSE state END AS state, attempt,
    accepted_at, started_at, ended_at, ended, ended_id, stop_requested, shown
"""

_GET: LiteralString = f"""
    SELECT {_STATUS} FROM accepted_runs WHERE workspace_id = %(workspace_id)s AND run_id = %(run_id)s
"""

_LIST_UNFINISHED: LiteralString = f"""
    SELECT {_STATUS} FROM accepted_runs
    WHERE workspace_id = %(workspace_id)s AND thread_id = %(thread_id)s AND {UNFINISHED}
    ORDER BY place
"""

_LIST_TURNS: LiteralString = f"""
    SELECT {_STATUS} FROM accepted_runs AS run
    WHERE workspace_id = %(workspace_id)s AND thread_id = %(thread_id)s AND {MAY_READ} AND (
        %(before)s::text IS NULL OR place < (
            SELECT place FROM accepted_runs WHERE workspace_id = %(workspace_id)s AND run_id = %(before)s
        )
    )
    ORDER BY place DESC LIMIT %(limit)s
"""

_LIST_READABLE: LiteralString = """
    SELECT run_id FROM unnest(%(run_ids)s::text[]) AS wanted (run_id)
    WHERE CASE WHEN %(steps)s THEN may_read_steps(%(workspace_id)s, run_id, %(groups)s) AND NOT EXISTS (
            -- Its prompts hold the instructions of its assistant.
            SELECT FROM runs JOIN assistants AS asked USING (workspace_id)
            WHERE workspace_id = %(workspace_id)s AND runs.run_id = wanted.run_id
                AND mode = asked.name || '@' || asked.version
                AND asked.groups <> '{}' AND NOT asked.groups && %(groups)s
        )
        ELSE may_read_run(%(workspace_id)s, run_id, %(groups)s) END
"""

_REQUEST_STOP: LiteralString = f"""
    UPDATE accepted_runs SET stop_requested = stop_requested OR {UNFINISHED}
    WHERE workspace_id = %(workspace_id)s AND run_id = %(run_id)s
    RETURNING {_STATUS}
"""

Execute = Callable[[Lease], Awaitable[None]]


class PostgresRunQueue:
    """Implements `RunQueue` in PostgreSQL."""

    def __init__(self, pool: Pool, database_url: str, more: Sequence[Task] = ()) -> None:
        """`more` are further tasks of a worker, besides executing runs."""
        self._pool = pool
        self._more = more
        self._pulse = Pulse(database_url, [self._extend, *(task.extend for task in more if task.extend)])
        self._held: dict[str, Lease] = {}
        self._on_stop: Callable[[str], None] | None = None
        self._on_lost: Callable[[str], None] | None = None
        self._worker: Worker | None = None

    async def close(self) -> None:
        """Hand back what this process still holds."""
        await self._pulse.close()
        # If the database is gone, the claims run out.
        with suppress(AskgraphError):
            await self._hand_back(list(self._held.values()))

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
        self._pulse.begin()
        runs = Task(TASK, concurrency, lambda rescue: self._take(execute, rescue))
        self._worker = worker = Worker(self._pulse, [runs, *self._more])
        try:
            yield
        finally:
            await worker.close(drain_seconds)

    def stop_taking(self) -> None:
        if self._worker is not None:
            self._worker.stop()

    async def accept(self, request: RunRequest, *, wait: bool) -> Lease | None:
        self._pulse.begin()
        values: dict[str, Any] = {
            "run_id": request.run_id,
            "thread_id": request.thread_id,
            "asked": "" if request.forked_from is not None else request.turn["question"],
            "groups": request.turn["scope"].get("groups"),
            "caller": request.caller,
            "request": write_json({field.name: getattr(request, field.name) for field in fields(request)}),
            "lease": leases.LEASE,
            "wait": wait,
            "most_waiting": MOST_WAITING,
        }
        begins = request.begins_thread
        async with (
            open_session(self._pool, request.workspace_id, transaction=not begins) as session,
            asyncio.timeout(QUERY_SECONDS),
        ):
            if not begins:
                await session.execute(_CLAIM, **values)
            row = await session.fetch_one(_BEGIN if begins else _ACCEPT, **values)
            if row is None:
                # The thread stays as it was.
                raise ThreadBusy(f"{MOST_WAITING} questions of this conversation are waiting." if wait else None)
        if row["state"] == "queued":
            return None
        self._held[request.run_id] = lease = Lease(request, 1)
        return lease

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
        row = await self._pool.fetch_one(
            lease.request.workspace_id,
            _END,
            **list_columns(record)
            | {
                "state": state,
                "ended": write_json(ended),
                "ended_id": ended_id,
                "attempt": lease.attempt,
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
        await self._pool.execute(
            lease.request.workspace_id,
            _NOTE_SHOWING,
            run_id=lease.request.run_id,
            attempt=lease.attempt,
            document_ids=sorted(document_ids),
            turns=sorted(turns),
        )

    async def hand_back(self, lease: Lease) -> None:
        # If the statement fails, the claim runs out.
        self._release(lease)
        await self._hand_back([lease])

    async def get(self, workspace_id: str, run_id: str) -> RunStatus | None:
        return _read_status(await self._pool.fetch_one(workspace_id, _GET, run_id=run_id))

    async def list_unfinished(self, workspace_id: str, thread_id: str) -> list[RunStatus]:
        rows = await self._pool.fetch(workspace_id, _LIST_UNFINISHED, thread_id=thread_id)
        return [status for row in rows if (status := _read_status(row))]

    async def list_turns(self, asker: Scope, thread_id: str, limit: int, before: str | None = None) -> list[RunStatus]:
        rows = await self._pool.fetch(
            asker.workspace_id, _LIST_TURNS, thread_id=thread_id, limit=limit, before=before, groups=list_groups(asker)
        )
        return [status for row in reversed(rows) if (status := _read_status(row))]

    async def list_readable(self, asker: Scope, run_ids: Collection[str], *, steps: bool = False) -> Set[str]:
        if asker.groups is None or not run_ids:
            return set(run_ids)
        rows = await self._pool.fetch(
            asker.workspace_id, _LIST_READABLE, run_ids=list(run_ids), groups=list_groups(asker), steps=steps
        )
        return {row["run_id"] for row in rows}

    async def request_stop(self, workspace_id: str, run_id: str) -> RunStatus | None:
        return _read_status(await self._pool.fetch_one(workspace_id, _REQUEST_STOP, run_id=run_id))

    async def _take(self, execute: Execute, rescue: bool) -> Perform | None:
        row = await self._pool.fetch_one(ALL_WORKSPACES, _TAKE, rescue=rescue, lease=leases.LEASE)
        if row is None:
            return None
        lease = Lease(_read_request(row["request"]), row["attempt"], row["stop_requested"], unattended=True)
        run_id = lease.request.run_id
        if lease.attempt > 1:
            logger.info("Run %s begins again: attempt %d.", run_id, lease.attempt)
        if run_id in self._held:
            # This process was itself away for too long: its own earlier attempt has lost the lease.
            self._tell(self._on_lost, run_id)
        self._held[run_id] = lease
        return lambda: self._execute(execute, lease)

    async def _execute(self, execute: Execute, lease: Lease) -> None:
        """Execute the run, and hand it back where `execute` has neither ended it nor handed it back itself."""
        pause = leases.RETRY_SECONDS
        try:
            await execute(lease)
        except asyncio.CancelledError:
            pause = 0
            raise
        finally:
            if self._release(lease):
                with suppress(AskgraphError):
                    await self._hand_back([lease], pause)

    async def _hand_back(self, held: Sequence[Lease], pause: float = 0) -> None:
        if held:
            await self._pool.execute(ALL_WORKSPACES, _HAND_BACK, **_name(held), pause=timedelta(seconds=pause))

    @staticmethod
    def _tell(listener: Callable[[str], None] | None, run_id: str) -> None:
        if listener is not None:
            listener(run_id)

    def _release(self, lease: Lease) -> bool:
        """Hold this lease no longer. Returns False where it was not held."""
        held = self._held.get(lease.request.run_id)
        if held is None or held.attempt != lease.attempt:
            return False
        del self._held[lease.request.run_id]
        return True

    async def _extend(self, connection: Connection) -> None:
        expected = dict(self._held)
        if not expected:
            return
        cursor = await connection.execute(_EXTEND, _name(expected.values()) | {"lease": leases.LEASE})
        rows = {row["run_id"]: row for row in await cursor.fetchall()}
        for run_id, lease in expected.items():
            if self._held.get(run_id) is not lease:
                continue  # it has ended in the meantime
            if run_id not in rows:
                logger.warning("The lease of run %s is lost: another process executes the run.", run_id)
                del self._held[run_id]
                self._tell(self._on_lost, run_id)
            elif rows[run_id]["stop_requested"]:
                self._tell(self._on_stop, run_id)


def _name(held: Collection[Lease]) -> dict[str, Any]:
    """Return the parameters of `_HELD`."""
    return {
        "workspace_ids": [lease.request.workspace_id for lease in held],
        "run_ids": [lease.request.run_id for lease in held],
        "attempts": [lease.attempt for lease in held],
    }


def _read_request(stored: dict[str, Any]) -> RunRequest:
    """Read a stored request, ignoring fields that only a newer version of askgraph knows."""
    known = {field.name for field in fields(RunRequest)}
    return RunRequest(**{name: value for name, value in stored.items() if name in known})


def _read_status(row: DictRow | None) -> RunStatus | None:
    return None if row is None else RunStatus(**row | {"request": _read_request(row["request"])})
