"""Deleting what is not kept any more: whole threads, and the steps of their older runs.

A thread's row is locked first, in a statement of its own; what is decided afterwards holds, because accepting a run
locks the row too. Rows that another process has locked are passed over (docs/decisions/01-state-and-checkpoints.md).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, LiteralString
from uuid import UUID

import psycopg

from app.adapters.postgres.pool import Pool, Session, open_session
from app.adapters.postgres.queue.leases import UNFINISHED
from domain.retention import Cuts, Pruned

BATCH = 200
"""Threads whose rows go in one transaction."""

ORPHANED = timedelta(hours=1)
"""For how long states without a thread are left alone: those of an evaluation have none while it asks."""

_EPOCH = datetime(1582, 10, 15, tzinfo=UTC)

_CUT: LiteralString = """
    CASE
        WHEN {row}.workspace_id = ANY (%(named)s::text[])
        THEN (%(cuts)s::timestamptz[])[array_position(%(named)s::text[], {row}.workspace_id)]
        ELSE %(default)s::timestamptz
    END
"""
_CUT_OF_THREAD: LiteralString = _CUT.replace("{row}", "thread")
_CUT_OF_RUN: LiteralString = _CUT.replace("{row}", "run")

_IN_SCOPE: LiteralString = "(%(only)s::text IS NULL OR thread.workspace_id = %(only)s)"

_IS_PAST: LiteralString = f"""
    thread.created_at < {_CUT_OF_THREAD}
    AND NOT EXISTS (
        SELECT FROM runs
        WHERE runs.workspace_id = thread.workspace_id AND runs.thread_id = thread.thread_id
            AND runs.started_at >= {_CUT_OF_THREAD}
    )
"""

_IS_IDLE: LiteralString = f"""
    NOT EXISTS (
        SELECT FROM accepted_runs
        WHERE accepted_runs.thread_id = thread.thread_id AND {UNFINISHED}
    )
"""

_LOCK_PAST: LiteralString = f"""
    SELECT thread_id FROM threads AS thread
    WHERE thread_id > %(after)s AND {_IN_SCOPE} AND {_IS_PAST}
    ORDER BY thread_id LIMIT %(batch)s
    FOR UPDATE SKIP LOCKED
"""

_KEEP_PAST: LiteralString = f"""
    SELECT thread_id FROM threads AS thread
    WHERE thread_id = ANY (%(thread_ids)s) AND {_IS_PAST} AND {_IS_IDLE}
"""


def _move_runs(which: LiteralString) -> LiteralString:
    return f"""
        WITH gone AS (
            DELETE FROM runs AS run WHERE {which}
            RETURNING workspace_id, run_id, started_at, mode, cached, usage, pg_column_size(run) AS size
        ),
        kept AS (
            INSERT INTO pruned_runs SELECT workspace_id, run_id, started_at, mode, cached, usage FROM gone
            ON CONFLICT DO NOTHING
        )
        SELECT count(*) AS rows, coalesce(sum(size), 0)::bigint AS bytes FROM gone
    """


_DELETE_RUNS = _move_runs("""
    (workspace_id, thread_id) IN (SELECT workspace_id, thread_id FROM threads WHERE thread_id = ANY (%(thread_ids)s))
""")
_DELETE_ORPHANED_RUNS = _move_runs(f"""
    started_at < {_CUT_OF_RUN} AND NOT EXISTS (SELECT FROM threads WHERE threads.thread_id = run.thread_id)
""")


def _delete(table: LiteralString, sizes: LiteralString, where: LiteralString) -> LiteralString:
    return f"""
        WITH gone AS (DELETE FROM {table} AS row WHERE {where} RETURNING {sizes} AS size)
        SELECT count(*) AS rows, coalesce(sum(size), 0)::bigint AS bytes FROM gone
    """


_CHECKPOINT: LiteralString = "pg_column_size(checkpoint) + pg_column_size(metadata)"
_BLOB: LiteralString = "coalesce(pg_column_size(blob), 0)"
_THESE: LiteralString = "thread_id = ANY (%(thread_ids)s)"

_DELETE_CHECKPOINTS = _delete("checkpoints", _CHECKPOINT, _THESE)
_DELETE_BLOBS = _delete("checkpoint_blobs", _BLOB, _THESE)
_DELETE_WRITES = _delete("checkpoint_writes", _BLOB, _THESE)
_DELETE_TAPES = _delete("tapes", "pg_column_size(tape)", _THESE)
_DELETE_THREADS: LiteralString = "DELETE FROM threads WHERE thread_id = ANY (%(thread_ids)s)"

# --- the steps of older runs

_LOCK_LONG: LiteralString = f"""
    SELECT thread.thread_id, thread.workspace_id, until.cut
    FROM threads AS thread CROSS JOIN LATERAL (
        SELECT greatest(
            {_CUT_OF_THREAD},
            (
                SELECT started_at FROM runs
                WHERE runs.workspace_id = thread.workspace_id AND runs.thread_id = thread.thread_id
                ORDER BY started_at DESC OFFSET %(steps_of)s - 1 LIMIT 1
            )
        ) AS cut
    ) AS until
    WHERE thread_id > %(after)s AND {_IN_SCOPE} AND NOT coalesce({_IS_PAST}, false)
        AND EXISTS (
            SELECT FROM runs
            WHERE runs.workspace_id = thread.workspace_id AND runs.thread_id = thread.thread_id
                AND started_at >= thread.thinned_until AND started_at < until.cut
        )
    ORDER BY thread_id LIMIT 1
    FOR UPDATE OF thread SKIP LOCKED
"""

_KEEP_IDLE: LiteralString = f"SELECT FROM threads AS thread WHERE thread_id = %(thread_id)s AND {_IS_IDLE}"

_LIST_STEPS: LiteralString = """
    SELECT checkpoint_id, run.run_id, started_at < %(cut)s AS is_past
    FROM checkpoints LEFT JOIN runs AS run
        ON run.workspace_id = %(workspace)s AND run.thread_id = checkpoints.thread_id
            AND run.run_id = metadata ->> 'run_id'
    WHERE checkpoints.thread_id = %(thread_id)s AND checkpoint_ns = ''
    ORDER BY checkpoint_id DESC
"""

# The versions of values that only states which go refer to. By EXCEPT, because a join of a long thread's states with
# its values is planned badly.
_DELETE_UNUSED_BLOBS: LiteralString = f"""
    WITH used AS MATERIALIZED (
        SELECT DISTINCT checkpoint_id = ANY (%(gone)s) AS goes, value.key, value.value
        FROM checkpoints CROSS JOIN LATERAL jsonb_each_text(checkpoint -> 'channel_versions') AS value
        WHERE thread_id = %(thread_id)s AND checkpoint_ns = ''
    ),
    unused AS MATERIALIZED (
        SELECT key, value FROM used WHERE goes EXCEPT SELECT key, value FROM used WHERE NOT goes
    ),
    gone AS (
        DELETE FROM checkpoint_blobs USING unused
        WHERE thread_id = %(thread_id)s AND checkpoint_ns = '' AND channel = unused.key AND version = unused.value
        RETURNING {_BLOB} AS size
    )
    SELECT count(*) AS rows, coalesce(sum(size), 0)::bigint AS bytes FROM gone
"""

_OF_STEPS: LiteralString = "thread_id = %(thread_id)s AND checkpoint_ns = '' AND checkpoint_id = ANY (%(gone)s)"
_DELETE_STEPS = _delete("checkpoints", _CHECKPOINT, _OF_STEPS)
_DELETE_STEPS_WRITES = _delete("checkpoint_writes", _BLOB, _OF_STEPS)

# What is left of a run follows what is left of the run before.
_MARK_FINAL: LiteralString = """
    UPDATE checkpoints SET
        parent_checkpoint_id = final.parent,
        metadata = CASE WHEN final.is_thinned THEN metadata || '{"thinned": true}' ELSE metadata END
    FROM unnest(%(finals)s::text[], %(parents)s::text[], %(thinned)s::boolean[]) AS final (id, parent, is_thinned)
    WHERE thread_id = %(thread_id)s AND checkpoint_ns = '' AND checkpoint_id = final.id
        AND (final.is_thinned OR parent_checkpoint_id IS DISTINCT FROM final.parent)
"""

_DELETE_OLD_TAPES: LiteralString = """
    WITH gone AS (
        DELETE FROM tapes USING runs
        WHERE runs.workspace_id = %(workspace)s AND runs.thread_id = %(thread_id)s AND started_at < %(cut)s
            AND tapes.workspace_id = runs.workspace_id AND tapes.run_id = runs.run_id
        RETURNING pg_column_size(tape) AS size
    )
    SELECT count(*) AS rows, coalesce(sum(size), 0)::bigint AS bytes FROM gone
"""

_NOTE_THINNED: LiteralString = "UPDATE threads SET thinned_until = %(cut)s WHERE thread_id = %(thread_id)s"

# --- what belongs to no thread


def _skip_through(table: LiteralString) -> LiteralString:
    # One look into the index for each thread, where DISTINCT would read every row.
    return f"""
        (
            WITH RECURSIVE known AS (
                (SELECT thread_id FROM {table} WHERE thread_id > %(after)s ORDER BY thread_id LIMIT 1)
                UNION ALL
                SELECT (
                    SELECT row.thread_id FROM {table} AS row WHERE row.thread_id > known.thread_id
                    ORDER BY row.thread_id LIMIT 1
                )
                FROM known WHERE known.thread_id IS NOT NULL
            )
            SELECT thread_id FROM known
            WHERE NOT EXISTS (SELECT FROM threads WHERE threads.thread_id = known.thread_id)
            LIMIT %(batch)s
        )
    """


# Those that have not ended have no time of their end.
_DELETE_INGESTIONS: LiteralString = _delete(
    "ingestions",
    "pg_column_size(row)",
    f"(%(only)s::text IS NULL OR row.workspace_id = %(only)s) AND ended_at < {_CUT.replace('{row}', 'row')}",
)

_FIND_ORPHANS: LiteralString = f"""
    SELECT thread_id, (
        SELECT max(checkpoint_id) FROM checkpoints WHERE checkpoints.thread_id = orphan.thread_id
    ) AS latest
    FROM (
        {_skip_through("checkpoints")}
        UNION {_skip_through("checkpoint_blobs")}
        UNION {_skip_through("checkpoint_writes")}
    ) AS orphan
    WHERE thread_id IS NOT NULL
    ORDER BY thread_id LIMIT %(batch)s
"""


@dataclass(frozen=True, slots=True)
class _Gone:
    rows: int
    bytes: int


class PostgresRetention:
    """Deletes threads, states, runs and tapes from PostgreSQL."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def delete_threads(self, cuts: Cuts, *, after: str, dry_run: bool) -> tuple[Pruned, str | None]:
        pruned, last = Pruned(), None
        async with open_session(self._pool, "", transaction=True) as session:
            locked = [
                row["thread_id"] for row in await session.fetch(_LOCK_PAST, after=after, batch=BATCH, **_spread(cuts))
            ]
            last = locked[-1] if locked else None
            idle = await session.fetch(_KEEP_PAST, thread_ids=locked, **_spread(cuts))
            thread_ids = [row["thread_id"] for row in idle]
            tapes = await _run(session, _DELETE_TAPES, thread_ids=thread_ids)
            runs = await _run(session, _DELETE_RUNS, thread_ids=thread_ids)
            pruned = await _delete_states(session, thread_ids) + Pruned(
                threads=len(thread_ids), runs=runs.rows, tapes=tapes.rows, bytes=runs.bytes + tapes.bytes
            )
            await session.execute(_DELETE_THREADS, thread_ids=thread_ids)
            if dry_run:
                raise psycopg.Rollback
        return pruned, last

    async def thin_threads(self, cuts: Cuts, steps_of: int, *, after: str, dry_run: bool) -> tuple[Pruned, str | None]:
        pruned, last = Pruned(), None
        async with open_session(self._pool, "", transaction=True) as session:
            thread = await session.fetch_one(_LOCK_LONG, after=after, steps_of=steps_of, **_spread(cuts))
            if thread is not None:
                last = thread["thread_id"]
                if await session.fetch_one(_KEEP_IDLE, thread_id=last) is not None:
                    pruned = await _thin(session, last, thread["workspace_id"], thread["cut"])
            if dry_run:
                raise psycopg.Rollback
        return pruned, last

    async def delete_orphans(self, cuts: Cuts, *, after: str, dry_run: bool) -> tuple[Pruned, str | None]:
        pruned, last = Pruned(), None
        async with open_session(self._pool, "", transaction=True) as session:
            found = await session.fetch(_FIND_ORPHANS, after=after, batch=BATCH)
            last = found[-1]["thread_id"] if found else None
            old = datetime.now(UTC) - ORPHANED
            pruned = await _delete_states(
                session,
                [row["thread_id"] for row in found if row["latest"] is None or _find_time(row["latest"]) < old],
            )
            if not after:
                runs = await _run(session, _DELETE_ORPHANED_RUNS, **_spread(cuts))
                pruned += Pruned(runs=runs.rows, bytes=runs.bytes)
            if dry_run:
                raise psycopg.Rollback
        return pruned, last

    async def delete_ingestions(self, cuts: Cuts, *, after: str, dry_run: bool) -> tuple[Pruned, str | None]:
        async with open_session(self._pool, "", transaction=True) as session:
            gone = await _run(session, _DELETE_INGESTIONS, **_spread(cuts))
            if dry_run:
                raise psycopg.Rollback
        return Pruned(ingestions=gone.rows, bytes=gone.bytes), None


def _find_time(checkpoint_id: str) -> datetime:
    """When the checkpoint was made, which its id says: LangGraph's are UUIDs of version 6 (RFC 9562, section 5.6), a
    count of 100 ns since 15 October 1582."""
    bits = UUID(checkpoint_id).int
    return _EPOCH + timedelta(microseconds=(bits >> 80 << 12 | bits >> 64 & 0xFFF) // 10)


def _spread(cuts: Cuts) -> dict[str, Any]:
    return {
        "default": cuts.default,
        "named": list(cuts.by_workspace),
        "cuts": list(cuts.by_workspace.values()),
        "only": cuts.workspace_id,
    }


async def _run(session: Session, statement: LiteralString, **params: Any) -> _Gone:
    row = await session.fetch_one(statement, **params)
    assert row is not None
    return _Gone(**row)


async def _delete_states(session: Session, thread_ids: Sequence[str]) -> Pruned:
    states = await _run(session, _DELETE_CHECKPOINTS, thread_ids=list(thread_ids))
    blobs = await _run(session, _DELETE_BLOBS, thread_ids=list(thread_ids))
    writes = await _run(session, _DELETE_WRITES, thread_ids=list(thread_ids))
    return _add_up(states, blobs, writes)


async def _thin(session: Session, thread_id: str, workspace_id: str, cut: datetime) -> Pruned:
    """Keep, of each run that is past, the last state."""
    gone: dict[str, str | None] = {}
    finals: dict[str, str | None] = {}
    seen: set[str | None] = set()
    run_id: str | None = None
    is_past = False
    for step in await session.fetch(_LIST_STEPS, thread_id=thread_id, workspace=workspace_id, cut=cut):
        # Whether a state is past is its run's to say: the times in checkpoints' ids go ahead of the clock in a process
        # that went on from one of another whose clock is ahead. A branch begins with states of no run: they are of the
        # one that follows, as are those of a run that was never recorded.
        if step["run_id"] is not None:
            run_id, is_past = step["run_id"], step["is_past"]
        if is_past:
            (gone if run_id in seen else finals)[step["checkpoint_id"]] = run_id
        seen.add(run_id)
    tapes = await _run(session, _DELETE_OLD_TAPES, workspace=workspace_id, thread_id=thread_id, cut=cut)
    blobs = await _run(session, _DELETE_UNUSED_BLOBS, thread_id=thread_id, gone=list(gone))
    writes = await _run(session, _DELETE_STEPS_WRITES, thread_id=thread_id, gone=list(gone))
    states = await _run(session, _DELETE_STEPS, thread_id=thread_id, gone=list(gone))
    thinned = set(gone.values())
    await session.execute(
        _MARK_FINAL,
        thread_id=thread_id,
        finals=list(finals),
        parents=[*list(finals)[1:], None],
        thinned=[run_id in thinned for run_id in finals.values()],
    )
    await session.execute(_NOTE_THINNED, thread_id=thread_id, cut=cut)
    return _add_up(states, blobs, writes) + Pruned(thinned=1, tapes=tapes.rows, bytes=tapes.bytes)


def _add_up(states: _Gone, blobs: _Gone, writes: _Gone) -> Pruned:
    return Pruned(states=states.rows, values=blobs.rows + writes.rows, bytes=states.bytes + blobs.bytes + writes.bytes)
