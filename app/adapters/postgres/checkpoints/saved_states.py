"""Reads every saved state, one at a time, and says which cannot be read."""

from collections.abc import AsyncIterator, Mapping
from typing import Any, LiteralString

from langchain_core.runnables import RunnableConfig
from psycopg.rows import DictRow

from app.adapters.postgres.checkpoints.saver import PackedSaver
from app.adapters.postgres.pool import ALL_WORKSPACES, Pool, open_session, translated_errors
from domain.errors import DamagedState
from domain.history.retention import SavedState
from domain.threads import split_key, state_key

PAGE = 500
"""Number of checkpoints that are listed at once."""

_IN_SCOPE: LiteralString = """
    (%(within)s::text IS NULL OR thread_id = %(only)s || '/' || %(within)s)
    AND (%(only)s::text IS NULL OR starts_with(thread_id, %(only)s || '/'))
"""

_COUNT: LiteralString = f"SELECT count(*) AS states FROM checkpoints WHERE {_IN_SCOPE}"

_LIST: LiteralString = f"""
    SELECT thread_id, checkpoint_ns, checkpoint_id, metadata FROM checkpoints
    WHERE (thread_id, checkpoint_ns, checkpoint_id) > (%(thread_id)s, %(checkpoint_ns)s, %(checkpoint_id)s)
        AND {_IN_SCOPE}
    ORDER BY thread_id, checkpoint_ns, checkpoint_id LIMIT %(page)s
"""

_LIST_IDS: LiteralString = """
    SELECT checkpoint_id FROM checkpoints
    WHERE checkpoint_ns = '' AND checkpoint_id > %(after)s AND thread_id = %(key)s
    ORDER BY checkpoint_id LIMIT %(limit)s
"""


class PostgresSavedStates:
    """Implements `SavedStates`. The checkpoints are read through their saver."""

    def __init__(self, pool: Pool, saver: PackedSaver) -> None:
        self._pool = pool
        self._saver = saver

    async def count(self, workspace_id: str | None) -> int:
        async with open_session(self._pool, workspace_id or ALL_WORKSPACES) as session:
            row = await session.fetch_one(_COUNT, only=workspace_id, within=None)
        assert row is not None
        return int(row["states"])

    async def list_ids(self, workspace_id: str, thread_id: str, after: str, limit: int) -> list[str]:
        async with open_session(self._pool, workspace_id) as session:
            rows = await session.fetch(_LIST_IDS, key=state_key(workspace_id, thread_id), after=after, limit=limit)
        return [row["checkpoint_id"] for row in rows]

    async def read(self, workspace_id: str | None, thread_id: str | None = None) -> AsyncIterator[SavedState]:
        last: Mapping[str, Any] = {"thread_id": "", "checkpoint_ns": "", "checkpoint_id": ""}
        while True:
            place = {key: last[key] for key in ("thread_id", "checkpoint_ns", "checkpoint_id")}
            async with open_session(self._pool, workspace_id or ALL_WORKSPACES) as session:
                rows = await session.fetch(_LIST, only=workspace_id, within=thread_id, page=PAGE, **place)
            for row in rows:
                if (saved := await self._load(row)) is not None:
                    yield saved
            if len(rows) < PAGE:
                return
            last = rows[-1]

    async def _load(self, row: DictRow) -> SavedState | None:
        """Return the state, or None if it has been deleted in the meantime."""
        workspace_id, thread_id = split_key(row["thread_id"])
        place = {"thread_id": thread_id, "checkpoint_ns": row["checkpoint_ns"], "checkpoint_id": row["checkpoint_id"]}
        place |= {"workspace_id": workspace_id} if workspace_id else {}
        values: Mapping[str, Any] = {}
        unreadable = ""
        saver = self._saver.within(ALL_WORKSPACES)
        with translated_errors():
            try:
                found = await saver.aget_tuple(RunnableConfig(configurable=place))
            except DamagedState as damaged:
                unreadable = _describe(damaged.__cause__ or damaged)
            else:
                if found is None:
                    return None
                values = found.checkpoint["channel_values"]
        return SavedState(thread_id, row["checkpoint_id"], row["metadata"], values, unreadable)


def _describe(error: BaseException) -> str:
    """Describe an error of reading bytes. Its type is included, because the message alone says little."""
    return f"{type(error).__name__}: {error}"
