"""Retention: delete whole threads, the steps of older runs, and what belongs to no thread.

A thread's row is locked first, in a statement of its own. What is decided afterwards holds, because accepting a run
locks the row too. Rows that another process has locked are skipped (docs/decisions/01-state-and-checkpoints.md).
"""

from datetime import UTC, datetime, timedelta
from typing import LiteralString
from uuid import UUID

import psycopg

from app.adapters.postgres.documents.originals import DROP_UNNEEDED, LOCK_UNNEEDED
from app.adapters.postgres.pool import ALL_WORKSPACES, Pool, open_session
from app.adapters.postgres.retention.deletion import (
    AFTER,
    CUT,
    DELETE_TAPES,
    IN_SCOPE,
    IS_IDLE,
    IS_PAST,
    THESE,
    delete,
    delete_states,
    name_threads,
    run,
    spread,
)
from app.adapters.postgres.retention.steps import KEEP_IDLE, LOCK_LONG, thin_thread
from domain.history.retention import Cuts, Pruned
from domain.ports.originals import OriginalStore
from domain.threads import state_key

BATCH = 200
"""Number of threads that are deleted in one transaction."""

ORPHANED = timedelta(hours=1)
"""Age at which states without a thread are deleted. An evaluation has such states while it asks its questions."""

_EPOCH = datetime(1582, 10, 15, tzinfo=UTC)

_LOCK_PAST: LiteralString = f"""
    SELECT workspace_id || '/' || thread_id AS key FROM threads AS thread
    WHERE {AFTER} AND {IN_SCOPE} AND {IS_PAST}
    ORDER BY workspace_id, thread_id LIMIT %(batch)s
    FOR UPDATE SKIP LOCKED
"""

_KEEP_PAST: LiteralString = f"""
    SELECT workspace_id || '/' || thread_id AS key FROM threads AS thread WHERE {THESE} AND {IS_PAST} AND {IS_IDLE}
"""


def _move_runs(which: LiteralString) -> LiteralString:
    # What costs are summed from is kept in `pruned_runs`.
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


DELETE_RUNS: LiteralString = _move_runs(THESE)

_DELETE_ORPHANED_RUNS: LiteralString = _move_runs(f"""
    started_at < {CUT.replace("{row}", "run")}
    AND NOT EXISTS (
        SELECT FROM threads WHERE threads.workspace_id = run.workspace_id AND threads.thread_id = run.thread_id
    )
""")

DELETE_THREADS: LiteralString = f"DELETE FROM threads WHERE {THESE}"


def _skip_through(table: LiteralString) -> LiteralString:
    # Looks once into the index for each thread; DISTINCT would read every row.
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
            WHERE NOT EXISTS (
                SELECT FROM threads
                WHERE (workspace_id, threads.thread_id)
                    = (split_part(known.thread_id, '/', 1), split_part(known.thread_id, '/', 2))
            )
            LIMIT %(batch)s
        )
    """


# Ingestions that have not ended have no `ended_at`, and are kept.
_DELETE_INGESTIONS: LiteralString = delete(
    "ingestions",
    "pg_column_size(row)",
    f"(%(only)s::text IS NULL OR row.workspace_id = %(only)s) AND ended_at < {CUT.replace('{row}', 'row')}",
)

# A run that is being executed may quote a revision that was superseded meanwhile, hence the hour.
_DELETE_REVISIONS: LiteralString = """
    WITH cited AS MATERIALIZED (
        SELECT DISTINCT citation ->> 'document_id' AS document_id, citation ->> 'revision' AS revision
        FROM runs CROSS JOIN LATERAL jsonb_array_elements(runs.citations) AS citation
        WHERE (%(only)s::text IS NULL OR runs.workspace_id = %(only)s) AND citation ? 'revision'
    ),
    gone AS (
        DELETE FROM document_revisions AS row
        WHERE (%(only)s::text IS NULL OR row.workspace_id = %(only)s) AND row.superseded_at < %(old)s
            AND NOT EXISTS (
                SELECT FROM cited
                WHERE cited.document_id = row.document_id::text AND cited.revision = row.revision::text
            )
        RETURNING pg_column_size(row.text) AS size
    )
    SELECT count(*) AS rows, coalesce(sum(size), 0)::bigint AS bytes FROM gone
"""

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


class PostgresRetention:
    """Implements `Retention` in PostgreSQL."""

    def __init__(self, pool: Pool, originals: OriginalStore) -> None:
        self._pool = pool
        self._originals = originals

    async def delete_threads(self, cuts: Cuts, *, after: str, dry_run: bool) -> tuple[Pruned, str | None]:
        pruned, last = Pruned(), None
        async with open_session(self._pool, ALL_WORKSPACES, transaction=True) as session:
            locked = [row["key"] for row in await session.fetch(_LOCK_PAST, after=after, batch=BATCH, **spread(cuts))]
            last = locked[-1] if locked else None
            idle = await session.fetch(_KEEP_PAST, **name_threads(locked), **spread(cuts))
            keys = [row["key"] for row in idle]
            tapes = await run(session, DELETE_TAPES, **name_threads(keys))
            runs = await run(session, DELETE_RUNS, **name_threads(keys))
            pruned = await delete_states(session, keys) + Pruned(
                threads=len(keys), runs=runs.rows, tapes=tapes.rows, bytes=runs.bytes + tapes.bytes
            )
            await session.execute(DELETE_THREADS, **name_threads(keys))
            if dry_run:
                raise psycopg.Rollback
        return pruned, last

    async def thin_threads(self, cuts: Cuts, steps_of: int, *, after: str, dry_run: bool) -> tuple[Pruned, str | None]:
        pruned, last = Pruned(), None
        async with open_session(self._pool, ALL_WORKSPACES, transaction=True) as session:
            thread = await session.fetch_one(LOCK_LONG, after=after, steps_of=steps_of, **spread(cuts))
            if thread is not None:
                workspace_id, thread_id = thread["workspace_id"], thread["thread_id"]
                last = state_key(workspace_id, thread_id)
                if await session.fetch_one(KEEP_IDLE, workspace=workspace_id, thread_id=thread_id) is not None:
                    pruned = await thin_thread(session, thread_id, workspace_id, thread["cut"])
            if dry_run:
                raise psycopg.Rollback
        return pruned, last

    async def delete_orphans(self, cuts: Cuts, *, after: str, dry_run: bool) -> tuple[Pruned, str | None]:
        pruned, last = Pruned(), None
        async with open_session(self._pool, ALL_WORKSPACES, transaction=True) as session:
            found = await session.fetch(_FIND_ORPHANS, after=after, batch=BATCH)
            last = found[-1]["thread_id"] if found else None
            old = datetime.now(UTC) - ORPHANED
            pruned = await delete_states(
                session,
                [row["thread_id"] for row in found if row["latest"] is None or _find_time(row["latest"]) < old],
            )
            if not after:
                runs = await run(session, _DELETE_ORPHANED_RUNS, **spread(cuts))
                pruned += Pruned(runs=runs.rows, bytes=runs.bytes)
            if dry_run:
                raise psycopg.Rollback
        return pruned, last

    async def delete_ingestions(self, cuts: Cuts, *, after: str, dry_run: bool) -> tuple[Pruned, str | None]:
        async with open_session(self._pool, ALL_WORKSPACES, transaction=True) as session:
            gone = await run(session, _DELETE_INGESTIONS, **spread(cuts))
            if dry_run:
                raise psycopg.Rollback
        return Pruned(ingestions=gone.rows, bytes=gone.bytes), None

    async def delete_revisions(self, cuts: Cuts, *, after: str, dry_run: bool) -> tuple[Pruned, str | None]:
        async with open_session(self._pool, ALL_WORKSPACES, transaction=True) as session:
            old = datetime.now(UTC) - ORPHANED
            gone = await run(session, _DELETE_REVISIONS, only=cuts.workspace_id, old=old)
            await session.execute(LOCK_UNNEEDED, only=cuts.workspace_id)
            files = await run(session, DROP_UNNEEDED, only=cuts.workspace_id)
            if dry_run:
                raise psycopg.Rollback
        if not dry_run:
            await self._originals.erase_dropped()
        return Pruned(revisions=gone.rows, bytes=gone.bytes + files.bytes), None


def _find_time(checkpoint_id: str) -> datetime:
    """Return when the checkpoint was made. Its id is a UUID of version 6 (RFC 9562, section 5.6), which counts steps of
    100 ns since 15 October 1582."""
    bits = UUID(checkpoint_id).int
    return _EPOCH + timedelta(microseconds=(bits >> 80 << 12 | bits >> 64 & 0xFFF) // 10)
