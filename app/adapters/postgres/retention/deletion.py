"""Shared parts of the deletions: conditions on threads, and statements that report what they deleted.

The parameters of the conditions are those that `spread` returns.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, LiteralString

from app.adapters.postgres.pool import Session
from app.adapters.postgres.queue.leases import UNFINISHED
from domain.history.retention import Cuts, Pruned
from domain.threads import split_key

CUT: LiteralString = """
    CASE
        WHEN {row}.workspace_id = ANY (%(named)s::text[])
        THEN (%(cuts)s::timestamptz[])[array_position(%(named)s::text[], {row}.workspace_id)]
        ELSE %(default)s::timestamptz
    END
"""
"""The time before which the workspace of the table `{row}` keeps nothing."""

CUT_OF_THREAD: LiteralString = CUT.replace("{row}", "thread")

IN_SCOPE: LiteralString = "(%(only)s::text IS NULL OR thread.workspace_id = %(only)s)"
"""True if the deletion includes the thread's workspace."""

AFTER: LiteralString = """
    (thread.workspace_id, thread.thread_id) > (split_part(%(after)s, '/', 1), split_part(%(after)s, '/', 2))
"""
"""True if the thread comes after the one with this key."""

IS_PAST: LiteralString = f"""
    thread.created_at < {CUT_OF_THREAD}
    AND NOT EXISTS (
        SELECT FROM runs
        WHERE runs.workspace_id = thread.workspace_id AND runs.thread_id = thread.thread_id
            AND runs.started_at >= {CUT_OF_THREAD}
    )
"""
"""True if nothing has happened in the thread since the cut."""

IS_IDLE: LiteralString = f"""
    NOT EXISTS (
        SELECT FROM accepted_runs
        WHERE accepted_runs.workspace_id = thread.workspace_id AND accepted_runs.thread_id = thread.thread_id
            AND {UNFINISHED}
    )
"""
"""True if no run of the thread is queued or running."""


def delete(table: LiteralString, sizes: LiteralString, where: LiteralString) -> LiteralString:
    """Return a statement for `run` that deletes rows of a table. `sizes` is the size of one row in bytes."""
    return f"""
        WITH gone AS (DELETE FROM {table} AS row WHERE {where} RETURNING {sizes} AS size)
        SELECT count(*) AS rows, coalesce(sum(size), 0)::bigint AS bytes FROM gone
    """


CHECKPOINT_SIZE: LiteralString = "pg_column_size(checkpoint) + pg_column_size(metadata)"
BLOB_SIZE: LiteralString = "coalesce(pg_column_size(blob), 0)"

THESE: LiteralString = """
    (workspace_id, thread_id) IN (SELECT * FROM unnest(%(workspaces)s::text[], %(thread_ids)s::text[]))
"""
"""True for the threads that `name_threads` names."""
_THESE: LiteralString = "thread_id = ANY (%(keys)s)"

DELETE_TAPES: LiteralString = delete("tapes", "pg_column_size(tape)", THESE)
_DELETE_CHECKPOINTS: LiteralString = delete("checkpoints", CHECKPOINT_SIZE, _THESE)
_DELETE_BLOBS: LiteralString = delete("checkpoint_blobs", BLOB_SIZE, _THESE)
_DELETE_WRITES: LiteralString = delete("checkpoint_writes", BLOB_SIZE, _THESE)


@dataclass(frozen=True, slots=True)
class Gone:
    """Number and size of deleted rows."""

    rows: int
    bytes: int


def spread(cuts: Cuts) -> dict[str, Any]:
    """Return the parameters of the conditions."""
    return {
        "default": cuts.default,
        "named": list(cuts.by_workspace),
        "cuts": list(cuts.by_workspace.values()),
        "only": cuts.workspace_id,
    }


async def run(session: Session, statement: LiteralString, **params: Any) -> Gone:
    """Run a statement that deletes rows and reports them."""
    row = await session.fetch_one(statement, **params)
    assert row is not None
    return Gone(**row)


def name_threads(keys: Sequence[str]) -> dict[str, Any]:
    """Return the parameters of `THESE`, for threads named by their keys (`domain.threads`)."""
    places = [split_key(key) for key in keys]
    return {"workspaces": [place[0] for place in places], "thread_ids": [place[1] for place in places]}


async def delete_states(session: Session, keys: Sequence[str]) -> Pruned:
    """Delete all saved states of the threads with these keys."""
    states = await run(session, _DELETE_CHECKPOINTS, keys=list(keys))
    blobs = await run(session, _DELETE_BLOBS, keys=list(keys))
    writes = await run(session, _DELETE_WRITES, keys=list(keys))
    return add_up(states, blobs, writes)


def add_up(states: Gone, blobs: Gone, writes: Gone) -> Pruned:
    """Return the report of deleted states, from the rows of LangGraph's three tables."""
    return Pruned(states=states.rows, values=blobs.rows + writes.rows, bytes=states.bytes + blobs.bytes + writes.bytes)
