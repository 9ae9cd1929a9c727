"""Reads every saved state, one at a time, and says which cannot be read."""

from collections.abc import AsyncIterator, Mapping
from typing import Any, LiteralString

from langchain_core.runnables import RunnableConfig

from app.adapters.postgres.checkpoints.saver import PackedSaver
from app.adapters.postgres.pool import ALL_WORKSPACES, Pool
from domain.errors import DamagedState
from domain.history.retention import SavedState

PAGE = 100
"""Number of packs that are listed at once."""

_COUNT: LiteralString = """
    SELECT coalesce(sum(cardinality(checkpoints)), 0) AS states FROM state_packs
    WHERE %(only)s::text IS NULL OR workspace_id = %(only)s
"""

_LIST: LiteralString = """
    SELECT workspace_id, thread_id, number, namespace, run_id, checkpoints FROM state_packs
    WHERE (workspace_id, thread_id, number) > (%(after)s, %(after_thread)s, %(after_number)s)
        AND (%(only)s::text IS NULL OR workspace_id = %(only)s)
        AND (%(within)s::text IS NULL OR thread_id = %(within)s)
    ORDER BY workspace_id, thread_id, number LIMIT %(page)s
"""

_LIST_IDS: LiteralString = """
    WITH saved AS (
        SELECT id, number, position FROM state_packs CROSS JOIN unnest(checkpoints) WITH ORDINALITY AS c (id, position)
        WHERE workspace_id = %(workspace_id)s AND thread_id = %(thread_id)s AND namespace = ''
    )
    SELECT id FROM saved
    WHERE %(after)s = '' OR (number, position) > (SELECT number, position FROM saved WHERE id = %(after)s)
    ORDER BY number, position LIMIT %(limit)s
"""


class PostgresSavedStates:
    """Implements `SavedStates`. The checkpoints are read through their saver."""

    def __init__(self, pool: Pool, saver: PackedSaver) -> None:
        self._pool = pool
        self._saver = saver

    async def count(self, workspace_id: str | None) -> int:
        [row] = await self._pool.fetch(workspace_id or ALL_WORKSPACES, _COUNT, only=workspace_id)
        return int(row["states"])

    async def list_ids(self, workspace_id: str, thread_id: str, after: str, limit: int) -> list[str]:
        rows = await self._pool.fetch(workspace_id, _LIST_IDS, thread_id=thread_id, after=after, limit=limit)
        return [row["id"] for row in rows]

    async def read(self, workspace_id: str | None, thread_id: str | None = None) -> AsyncIterator[SavedState]:
        last: Mapping[str, Any] = {"workspace_id": "", "thread_id": "", "number": 0}
        while True:
            rows = await self._pool.fetch(
                workspace_id or ALL_WORKSPACES,
                _LIST,
                only=workspace_id,
                within=thread_id,
                page=PAGE,
                after=last["workspace_id"],
                after_thread=last["thread_id"],
                after_number=last["number"],
            )
            for row in rows:
                for checkpoint_id in row["checkpoints"]:
                    if (saved := await self._load(row, checkpoint_id)) is not None:
                        yield saved
            if len(rows) < PAGE:
                return
            last = rows[-1]

    async def _load(self, row: Mapping[str, Any], checkpoint_id: str) -> SavedState | None:
        """Return the state, or None if it has been deleted in the meantime."""
        place = {key: row[key] for key in ("workspace_id", "thread_id")} | {"checkpoint_id": checkpoint_id}
        try:
            found = await self._saver.aget_tuple(RunnableConfig(configurable=place))
        except DamagedState as damaged:
            error = damaged.__cause__ or damaged
            # Its type is included, because the message alone says little.
            unreadable = f"{type(error).__name__}: {error}"
            return SavedState(row["thread_id"], checkpoint_id, {"run_id": row["run_id"]}, {}, unreadable)
        if found is None:
            return None
        return SavedState(row["thread_id"], checkpoint_id, found.metadata, found.checkpoint["channel_values"], "")
