"""Thinning: delete the steps of a thread's older runs, keeping the final state of each."""

from datetime import datetime
from typing import Any, LiteralString

from app.adapters.postgres.pool import Session
from app.adapters.postgres.retention.deletion import (
    AFTER,
    BLOB_SIZE,
    CHECKPOINT_SIZE,
    CUT_OF_THREAD,
    IN_SCOPE,
    IS_IDLE,
    IS_PAST,
    add_up,
    delete,
    run,
)
from domain.history.retention import Pruned
from domain.threads import state_key

# Locks the next thread that has runs to thin. Its own cut is later than the workspace's if it has many recent runs.
LOCK_LONG: LiteralString = f"""
    SELECT thread.thread_id, thread.workspace_id, until.cut
    FROM threads AS thread CROSS JOIN LATERAL (
        SELECT greatest(
            {CUT_OF_THREAD},
            (
                SELECT started_at FROM runs
                WHERE runs.workspace_id = thread.workspace_id AND runs.thread_id = thread.thread_id
                ORDER BY started_at DESC OFFSET %(steps_of)s - 1 LIMIT 1
            )
        ) AS cut
    ) AS until
    WHERE {AFTER} AND {IN_SCOPE} AND NOT coalesce({IS_PAST}, false)
        AND EXISTS (
            SELECT FROM runs
            WHERE runs.workspace_id = thread.workspace_id AND runs.thread_id = thread.thread_id
                AND started_at >= thread.thinned_until AND started_at < until.cut
        )
    ORDER BY thread.workspace_id, thread.thread_id LIMIT 1
    FOR UPDATE OF thread SKIP LOCKED
"""

KEEP_IDLE: LiteralString = f"""
    SELECT FROM threads AS thread WHERE workspace_id = %(workspace)s AND thread_id = %(thread_id)s AND {IS_IDLE}
"""

_LIST_STEPS: LiteralString = """
    SELECT checkpoint_id, run.run_id, started_at < %(cut)s AS is_past
    FROM checkpoints LEFT JOIN runs AS run
        ON run.workspace_id = %(workspace)s AND run.thread_id = %(thread_id)s AND run.run_id = metadata ->> 'run_id'
    WHERE checkpoints.thread_id = %(key)s AND checkpoint_ns = ''
    ORDER BY checkpoint_id DESC
"""

# Deletes the values that only deleted states refer to. EXCEPT, because the planner handles a join of a long thread's
# states with its values badly.
_DELETE_UNUSED_BLOBS: LiteralString = f"""
    WITH used AS MATERIALIZED (
        SELECT DISTINCT checkpoint_id = ANY (%(gone)s) AS goes, value.key, value.value
        FROM checkpoints CROSS JOIN LATERAL jsonb_each_text(checkpoint -> 'channel_versions') AS value
        WHERE thread_id = %(key)s AND checkpoint_ns = ''
    ),
    unused AS MATERIALIZED (
        SELECT key, value FROM used WHERE goes EXCEPT SELECT key, value FROM used WHERE NOT goes
    ),
    gone AS (
        DELETE FROM checkpoint_blobs USING unused
        WHERE thread_id = %(key)s AND checkpoint_ns = '' AND channel = unused.key AND version = unused.value
        RETURNING {BLOB_SIZE} AS size
    )
    SELECT count(*) AS rows, coalesce(sum(size), 0)::bigint AS bytes FROM gone
"""

_OF_STEPS: LiteralString = "thread_id = %(key)s AND checkpoint_ns = '' AND checkpoint_id = ANY (%(gone)s)"
_DELETE_STEPS = delete("checkpoints", CHECKPOINT_SIZE, _OF_STEPS)
_DELETE_STEPS_WRITES = delete("checkpoint_writes", BLOB_SIZE, _OF_STEPS)

# Makes the final state of each run the successor of the final state of the run before.
_MARK_FINAL: LiteralString = """
    UPDATE checkpoints SET
        parent_checkpoint_id = final.parent,
        metadata = CASE WHEN final.is_thinned THEN metadata || '{"thinned": true}' ELSE metadata END
    FROM unnest(%(finals)s::text[], %(parents)s::text[], %(thinned)s::boolean[]) AS final (id, parent, is_thinned)
    WHERE thread_id = %(key)s AND checkpoint_ns = '' AND checkpoint_id = final.id
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

_NOTE_THINNED: LiteralString = """
    UPDATE threads SET thinned_until = %(cut)s WHERE workspace_id = %(workspace)s AND thread_id = %(thread_id)s
"""


async def thin_thread(session: Session, thread_id: str, workspace_id: str, cut: datetime) -> Pruned:
    """Keep only the last state of each run that started before the cut, and delete its tape. The thread is locked."""
    place: dict[str, Any] = {
        "workspace": workspace_id,
        "thread_id": thread_id,
        "key": state_key(workspace_id, thread_id),
    }
    gone: dict[str, str | None] = {}
    finals: dict[str, str | None] = {}
    seen: set[str | None] = set()
    run_id: str | None = None
    is_past = False
    for step in await session.fetch(_LIST_STEPS, **place, cut=cut):
        # The run's start decides whether a state is past, because the times in checkpoint ids may be ahead of the
        # clock (`saver._advance_ids_beyond`). States without a recorded run, such as the first of a branch, belong to
        # the run that follows.
        if step["run_id"] is not None:
            run_id, is_past = step["run_id"], step["is_past"]
        if is_past:
            (gone if run_id in seen else finals)[step["checkpoint_id"]] = run_id
        seen.add(run_id)
    tapes = await run(session, _DELETE_OLD_TAPES, **place, cut=cut)
    blobs = await run(session, _DELETE_UNUSED_BLOBS, **place, gone=list(gone))
    writes = await run(session, _DELETE_STEPS_WRITES, **place, gone=list(gone))
    states = await run(session, _DELETE_STEPS, **place, gone=list(gone))
    thinned = set(gone.values())
    await session.execute(
        _MARK_FINAL,
        **place,
        finals=list(finals),
        parents=[*list(finals)[1:], None],
        thinned=[run_id in thinned for run_id in finals.values()],
    )
    await session.execute(_NOTE_THINNED, **place, cut=cut)
    return add_up(states, blobs, writes) + Pruned(thinned=1, tapes=tapes.rows, bytes=tapes.bytes)
