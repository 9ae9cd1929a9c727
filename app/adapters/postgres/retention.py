"""Retention: delete whole threads, the steps and tapes of older runs, and what belongs to no thread.

A thread's row is locked first, in a statement of its own. What is decided afterwards holds, because accepting a run
locks the row too. Rows that another process has locked are skipped (docs/decisions/01-state-and-checkpoints.md).
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, LiteralString, NamedTuple

import psycopg
from psycopg.types.json import Jsonb

from app.adapters.postgres.documents.originals import DROP_UNNEEDED, LOCK_UNNEEDED
from app.adapters.postgres.pool import ALL_WORKSPACES, Pool, Session, open_session
from app.adapters.postgres.queue.leases import UNFINISHED
from domain.history.retention import Cuts, Policy, Pruned
from domain.ports.originals import OriginalStore

BATCH = 200
"""Number of threads that are deleted in one transaction."""

# The time before which the workspace of the table `row` keeps nothing.
_CUT: LiteralString = """
    CASE
        WHEN row.workspace_id = ANY (%(named)s::text[])
        THEN (%(cuts)s::timestamptz[])[array_position(%(named)s::text[], row.workspace_id)]
        ELSE %(default)s::timestamptz
    END
"""
_IN_SCOPE: LiteralString = "(%(only)s::text IS NULL OR row.workspace_id = %(only)s)"

# Nothing has happened in the thread since the cut.
_IS_PAST: LiteralString = f"""
    row.created_at < {_CUT} AND NOT EXISTS (
        SELECT FROM runs
        WHERE runs.workspace_id = row.workspace_id AND runs.thread_id = row.thread_id AND runs.started_at >= {_CUT}
    )
"""

_LOCK_PAST: LiteralString = f"""
    SELECT row.thread_id, row.workspace_id FROM threads AS row
    WHERE (row.workspace_id, row.thread_id) > (split_part(%(after)s, '/', 1), split_part(%(after)s, '/', 2))
        AND {_IN_SCOPE} AND {_IS_PAST}
    ORDER BY row.workspace_id, row.thread_id LIMIT %(batch)s
    FOR UPDATE SKIP LOCKED
"""

THESE: LiteralString = """
    (workspace_id, thread_id) IN (SELECT * FROM unnest(%(workspaces)s::text[], %(thread_ids)s::text[]))
"""
"""True for the threads with these `workspaces` and `thread_ids`."""

_KEEP_PAST: LiteralString = f"""
    SELECT row.thread_id, row.workspace_id FROM threads AS row
    WHERE {THESE} AND {_IS_PAST} AND NOT EXISTS (
        SELECT FROM accepted_runs
        WHERE accepted_runs.workspace_id = row.workspace_id AND accepted_runs.thread_id = row.thread_id
            AND {UNFINISHED}
    )
"""


def delete(table: LiteralString, where: LiteralString, sizes: LiteralString = "pg_column_size(row)") -> LiteralString:
    """Return a statement for `run` that deletes rows of a table. `sizes` is the size of one row in bytes."""
    return f"""
        WITH gone AS (DELETE FROM {table} AS row WHERE {where} RETURNING {sizes} AS size)
        SELECT count(*) AS rows, coalesce(sum(size), 0)::bigint AS bytes FROM gone
    """


def _delete_states(where: LiteralString) -> LiteralString:
    return f"""
        WITH gone AS (
            DELETE FROM state_packs AS row WHERE {where}
            RETURNING cardinality(checkpoints) AS states, pg_column_size(pack) AS size
        )
        SELECT coalesce(sum(states), 0)::bigint AS rows, coalesce(sum(size), 0)::bigint AS bytes FROM gone
    """


def _move_runs(where: LiteralString) -> LiteralString:
    # What costs are summed from is kept in `pruned_runs`.
    return f"""
        WITH gone AS (
            DELETE FROM runs AS row WHERE {where}
            RETURNING workspace_id, run_id, started_at, mode, cached, usage, pg_column_size(row) AS size
        ),
        kept AS (
            INSERT INTO pruned_runs SELECT workspace_id, run_id, started_at, mode, cached, usage FROM gone
            ON CONFLICT DO NOTHING
        )
        SELECT count(*) AS rows, coalesce(sum(size), 0)::bigint AS bytes FROM gone
    """


DELETE_TAPES: LiteralString = delete("tapes", THESE, "pg_column_size(tape)")
DELETE_RUNS: LiteralString = _move_runs(THESE)
DELETE_STATES: LiteralString = _delete_states(THESE)
DELETE_THREADS: LiteralString = delete("threads", THESE)

_HAS_NO_THREAD: LiteralString = """
    NOT EXISTS (SELECT FROM threads WHERE threads.workspace_id = row.workspace_id AND threads.thread_id = row.thread_id)
"""

# The thread of a state may be one that is being made.
_DELETE_ORPHANED_STATES: LiteralString = _delete_states(f"saved_at < now() - interval '1 hour' AND {_HAS_NO_THREAD}")
_DELETE_ORPHANED_RUNS: LiteralString = _move_runs(f"started_at < {_CUT} AND {_HAS_NO_THREAD}")

# The last state of a thread is what its next turn begins from.
_DELETE_OLD_STATES: LiteralString = _delete_states(f"""
    saved_at < %(steps)s AND {_IN_SCOPE} AND EXISTS (
        SELECT FROM state_packs AS later
        WHERE later.workspace_id = row.workspace_id AND later.thread_id = row.thread_id
            AND later.namespace = row.namespace AND later.number > row.number AND later.checkpoints <> '{{}}'
    )
""")

_DELETE_OLD_TAPES: LiteralString = delete(
    "tapes",
    f"""
    {_IN_SCOPE} AND EXISTS (
        SELECT FROM runs
        WHERE runs.workspace_id = row.workspace_id AND runs.run_id = row.run_id AND started_at < %(steps)s
    )
    """,
    "pg_column_size(tape)",
)

# Ingestions that have not ended have no `ended_at`, and are kept.
_DELETE_INGESTIONS: LiteralString = delete("ingestions", f"{_IN_SCOPE} AND ended_at < {_CUT}")

# A run that is being executed may quote a revision that was superseded meanwhile, hence the hour.
_DELETE_REVISIONS: LiteralString = f"""
    WITH cited AS MATERIALIZED (
        SELECT DISTINCT citation ->> 'document_id' AS document_id, citation ->> 'revision' AS revision
        FROM runs AS row CROSS JOIN LATERAL jsonb_array_elements(row.citations) AS citation
        WHERE {_IN_SCOPE} AND citation ? 'revision'
    ),
    gone AS (
        DELETE FROM document_revisions AS row
        WHERE {_IN_SCOPE} AND row.superseded_at < now() - interval '1 hour'
            AND NOT EXISTS (
                SELECT FROM cited
                WHERE cited.document_id = row.document_id::text AND cited.revision = row.revision::text
            )
        RETURNING pg_column_size(row.text) AS size
    )
    SELECT count(*) AS rows, coalesce(sum(size), 0)::bigint AS bytes FROM gone
"""


class Gone(NamedTuple):
    """Number and size of deleted rows."""

    rows: int
    bytes: int


async def run(session: Session, statement: LiteralString, **params: Any) -> Gone:
    """Run a statement that deletes rows and reports them."""
    row = await session.fetch_one(statement, **params)
    assert row is not None
    return Gone(**row)


class PostgresRetention:
    """Implements `Retention` in PostgreSQL."""

    def __init__(self, pool: Pool, originals: OriginalStore) -> None:
        self._pool = pool
        self._originals = originals

    async def read_policy(self) -> Policy | None:
        row = await self._pool.fetch_one(ALL_WORKSPACES, "SELECT policy FROM housekeeping")
        return Policy.of_days(**row["policy"]) if row and row["policy"] else None

    async def keep_policy(self, policy: Policy) -> None:
        await self._pool.execute(
            ALL_WORKSPACES, "UPDATE housekeeping SET policy = %(policy)s", policy=Jsonb(policy.as_days())
        )

    async def delete_threads(self, cuts: Cuts, *, after: str, dry_run: bool) -> tuple[Pruned, str | None]:
        pruned, last = Pruned(), None
        async with self._open(dry_run) as session:
            locked = await session.fetch(_LOCK_PAST, after=after, batch=BATCH, **_spread(cuts))
            if locked:
                last = "{workspace_id}/{thread_id}".format(**locked[-1])
                idle = await session.fetch(_KEEP_PAST, **name_threads(locked), **_spread(cuts))
                these = name_threads(idle)
                tapes = await run(session, DELETE_TAPES, **these)
                runs = await run(session, DELETE_RUNS, **these)
                states = await run(session, DELETE_STATES, **these)
                threads = await run(session, DELETE_THREADS, **these)
                freed = tapes.bytes + runs.bytes + states.bytes
                pruned = Pruned(threads.rows, runs.rows, tapes.rows, states.rows, bytes=freed)
        return pruned, last

    async def delete_steps(self, cuts: Cuts, *, dry_run: bool) -> Pruned:
        async with self._open(dry_run) as session:
            tapes = await run(session, _DELETE_OLD_TAPES, **_spread(cuts))
            states = await run(session, _DELETE_OLD_STATES, **_spread(cuts))
        return Pruned(tapes=tapes.rows, states=states.rows, bytes=tapes.bytes + states.bytes)

    async def delete_orphans(self, cuts: Cuts, *, dry_run: bool) -> Pruned:
        async with self._open(dry_run) as session:
            states = await run(session, _DELETE_ORPHANED_STATES)
            runs = await run(session, _DELETE_ORPHANED_RUNS, **_spread(cuts))
        return Pruned(runs=runs.rows, states=states.rows, bytes=runs.bytes + states.bytes)

    async def delete_ingestions(self, cuts: Cuts, *, dry_run: bool) -> Pruned:
        async with self._open(dry_run) as session:
            gone = await run(session, _DELETE_INGESTIONS, **_spread(cuts))
        return Pruned(ingestions=gone.rows, bytes=gone.bytes)

    async def delete_revisions(self, cuts: Cuts, *, dry_run: bool) -> Pruned:
        async with self._open(dry_run) as session:
            gone = await run(session, _DELETE_REVISIONS, **_spread(cuts))
            await session.execute(LOCK_UNNEEDED, only=cuts.workspace_id)
            files = await run(session, DROP_UNNEEDED, only=cuts.workspace_id)
        if not dry_run:
            await self._originals.erase_dropped()
        return Pruned(revisions=gone.rows, bytes=gone.bytes + files.bytes)

    @asynccontextmanager
    async def _open(self, dry_run: bool) -> AsyncIterator[Session]:
        """Open a transaction, which changes nothing if it is a dry run."""
        async with open_session(self._pool, ALL_WORKSPACES, transaction=True) as session:
            yield session
            if dry_run:
                raise psycopg.Rollback


def name_threads(threads: Sequence[Any]) -> dict[str, Any]:
    """Return the parameters of `THESE`."""
    return {
        "workspaces": [thread["workspace_id"] for thread in threads],
        "thread_ids": [thread["thread_id"] for thread in threads],
    }


def _spread(cuts: Cuts) -> dict[str, Any]:
    """Return the parameters of the conditions."""
    return {
        "default": cuts.default,
        "named": list(cuts.by_workspace),
        "cuts": list(cuts.by_workspace.values()),
        "only": cuts.workspace_id,
        "steps": cuts.steps,
    }
