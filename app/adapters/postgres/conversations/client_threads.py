"""Notes of clients about threads, and the branches in which threads go on."""

from collections.abc import Mapping, Sequence
from typing import Any, LiteralString

from psycopg.types.json import Jsonb

from app.adapters.postgres.conversations.threads import OPEN, list_groups
from app.adapters.postgres.pool import Pool, open_session
from app.adapters.postgres.queue.leases import UNFINISHED
from domain.errors import InputError
from domain.history.client_threads import MOST_EMPTY, ClientThread, ThreadBranch, ThreadOrder
from domain.scope import Scope

_CREATE: LiteralString = """
    INSERT INTO threads (thread_id, workspace_id, groups, asked_by, client_metadata)
    VALUES (%(thread_id)s, %(workspace_id)s, '{}', ARRAY[%(caller)s], %(metadata)s)
    ON CONFLICT DO NOTHING
    RETURNING thread_id
"""

_COUNT_EMPTY: LiteralString = """
    SELECT count(*) AS number FROM threads
    WHERE workspace_id = %(workspace_id)s AND asked = '' AND client_metadata IS NOT NULL
        AND asked_by = ARRAY[%(caller)s]
"""

_NOTE: LiteralString = """
    UPDATE threads SET client_metadata = coalesce(client_metadata, '{}') || %(metadata)s, updated_at = now()
    WHERE workspace_id = %(workspace_id)s AND thread_id = %(thread_id)s
"""

_BRANCH: LiteralString = """
    UPDATE threads SET branch_of = %(thread_id)s, branched_at = %(checkpoint_id)s
    WHERE workspace_id = %(workspace_id)s AND thread_id = %(branch_id)s
"""

_THREAD: LiteralString = f"""
    SELECT thread.thread_id, thread.created_at, thread.updated_at, coalesce(client_metadata, '{{}}') AS metadata,
        EXISTS (
            SELECT FROM threads AS part JOIN accepted_runs AS run USING (workspace_id, thread_id)
            WHERE workspace_id = thread.workspace_id AND thread.thread_id IN (part.thread_id, part.branch_of)
                AND {UNFINISHED}
        ) AS busy,
        ARRAY(
            SELECT ARRAY[branch.thread_id, branch.branched_at] FROM threads AS branch
            WHERE branch.workspace_id = thread.workspace_id AND branch.branch_of = thread.thread_id
            ORDER BY branch.created_at
        ) AS branches
    FROM threads AS thread
    WHERE thread.workspace_id = %(workspace_id)s
"""

_READ: LiteralString = f"{_THREAD} AND thread.thread_id = %(thread_id)s"

_SEARCH: LiteralString = f"""
    SELECT * FROM (
        {_THREAD} AND thread.branch_of IS NULL
            AND (asked <> '' OR client_metadata IS NOT NULL)
            AND coalesce(client_metadata, '{{}}') @> %(metadata)s
            AND (%(ids)s::text[] IS NULL OR thread.thread_id = ANY(%(ids)s::text[]))
            AND {OPEN}
    ) AS found
    WHERE %(busy)s::boolean IS NULL OR busy = %(busy)s
"""

_ORDERS: dict[ThreadOrder, LiteralString] = {
    "thread_id": "thread_id",
    "status": "NOT busy",
    "created_at": "created_at",
    "updated_at": "updated_at",
}


class PostgresClientThreads:
    """Implements `ClientThreads` in PostgreSQL."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def create(self, workspace_id: str, thread_id: str, metadata: Mapping[str, Any], caller: str) -> bool:
        async with open_session(self._pool, workspace_id) as session:
            empty = await session.fetch_one(_COUNT_EMPTY, caller=caller)
            if empty is not None and empty["number"] >= MOST_EMPTY:
                raise InputError(
                    f"You have made {MOST_EMPTY:,} threads in which nothing was asked. Ask in them, or delete some."
                )
            created = await session.fetch_one(
                _CREATE, thread_id=thread_id, metadata=Jsonb(dict(metadata)), caller=caller
            )
        return created is not None

    async def note(self, workspace_id: str, thread_id: str, metadata: Mapping[str, Any]) -> None:
        await self._pool.execute(workspace_id, _NOTE, thread_id=thread_id, metadata=Jsonb(dict(metadata)))

    async def branch(self, workspace_id: str, thread_id: str, branch_id: str, checkpoint_id: str) -> None:
        await self._pool.execute(
            workspace_id, _BRANCH, thread_id=thread_id, branch_id=branch_id, checkpoint_id=checkpoint_id
        )

    async def read(self, workspace_id: str, thread_id: str) -> ClientThread | None:
        row = await self._pool.fetch_one(workspace_id, _READ, thread_id=thread_id)
        return None if row is None else _make(row)

    async def search(
        self,
        asker: Scope,
        metadata: Mapping[str, Any],
        ids: Sequence[str] | None,
        busy: bool | None,
        limit: int,
        offset: int,
        order: ThreadOrder = "updated_at",
        *,
        ascending: bool = False,
    ) -> list[ClientThread]:
        direction: LiteralString = "ASC" if ascending else "DESC"
        rows = await self._pool.fetch(
            asker.workspace_id,
            f"{_SEARCH} ORDER BY {_ORDERS[order]} {direction}, thread_id {direction} LIMIT %(limit)s OFFSET %(offset)s",
            metadata=Jsonb(dict(metadata)),
            ids=None if ids is None else list(ids),
            groups=list_groups(asker),
            busy=busy,
            limit=limit,
            offset=offset,
        )
        return [_make(row) for row in rows]


def _make(row: Mapping[str, Any]) -> ClientThread:
    return ClientThread(**dict(row) | {"branches": [ThreadBranch(*branch) for branch in row["branches"]]})
