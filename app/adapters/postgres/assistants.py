"""Assistants in PostgreSQL: a row a version."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import LiteralString
from uuid import UUID

from psycopg.errors import UniqueViolation
from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from app.adapters.postgres.pool import Pool, Session, open_session
from domain.assistants import MOST_ASSISTANTS, MOST_VERSIONS, Assistant, Draft, Setup
from domain.errors import AssistantError, NameTaken, UnknownAssistant

_COLUMNS: LiteralString = """
    assistant_id::text, version, name, description, setup, metadata, created_by, updated_at, (
        SELECT updated_at FROM assistants AS first
        WHERE first.workspace_id = assistants.workspace_id AND first.assistant_id = assistants.assistant_id
            AND first.version = 1
    ) AS created_at
"""

_SELECT: LiteralString = f"SELECT {_COLUMNS} FROM assistants WHERE workspace_id = %(workspace_id)s"
_VERSIONS: LiteralString = f"{_SELECT} AND assistant_id = %(assistant_id)s"

_FIND: LiteralString = f"""
    {_SELECT} AND assistant_id IN (
        SELECT assistant_id FROM assistants WHERE workspace_id = %(workspace_id)s AND current
            AND (assistant_id = %(assistant_id)s OR lower(name) = lower(%(name)s))
        -- An id goes before another assistant's name.
        ORDER BY (assistant_id = %(assistant_id)s) IS TRUE DESC LIMIT 1
    ) AND CASE WHEN %(version)s::int IS NULL THEN current ELSE version = %(version)s END
"""

_HOLD: LiteralString = "SELECT pg_advisory_xact_lock(hashtextextended('assistants ' || %(workspace_id)s, 0))"

_COUNT: LiteralString = """
    SELECT count(*) FILTER (WHERE current) AS assistants,
        coalesce(max(version) FILTER (WHERE assistant_id = %(assistant_id)s), 0) AS latest
    FROM assistants WHERE workspace_id = %(workspace_id)s
"""

_RETIRE: LiteralString = """
    UPDATE assistants SET current = false
    WHERE workspace_id = %(workspace_id)s AND assistant_id = %(assistant_id)s AND current
"""

_ADD: LiteralString = """
    INSERT INTO assistants (
        workspace_id, assistant_id, version, current, name, description, setup, metadata, created_by
    ) VALUES (
        %(workspace_id)s, %(assistant_id)s, %(version)s, true, %(name)s, %(description)s, %(setup)s, %(metadata)s,
        %(caller)s
    )
"""

_CHOOSE: LiteralString = """
    UPDATE assistants SET current = true
    WHERE workspace_id = %(workspace_id)s AND assistant_id = %(assistant_id)s AND version = %(version)s
"""

_DELETE: LiteralString = """
    DELETE FROM assistants WHERE workspace_id = %(workspace_id)s AND assistant_id = %(assistant_id)s
"""


class PostgresAssistantStore:
    """Implements `AssistantStore` in PostgreSQL."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def list(self, workspace_id: str) -> Sequence[Assistant]:
        async with open_session(self._pool, workspace_id) as session:
            return [_read(row) for row in await session.fetch(f"{_SELECT} AND current ORDER BY lower(name)")]

    async def find(self, workspace_id: str, name: str, version: int | None = None) -> Assistant | None:
        async with open_session(self._pool, workspace_id) as session:
            row = await session.fetch_one(_FIND, assistant_id=_read_id(name), name=name, version=version)
        return None if row is None else _read(row)

    async def list_versions(self, workspace_id: str, assistant_id: str) -> Sequence[Assistant]:
        async with open_session(self._pool, workspace_id) as session:
            rows = await session.fetch(f"{_VERSIONS} ORDER BY version DESC", assistant_id=_read_id(assistant_id))
        return [_read(row) for row in rows]

    async def add(self, workspace_id: str, assistant_id: str, draft: Draft, caller: str) -> Assistant:
        return await self._store(workspace_id, assistant_id, draft, caller, is_new=True)

    async def change(self, workspace_id: str, assistant_id: str, draft: Draft, caller: str) -> Assistant:
        return await self._store(workspace_id, assistant_id, draft, caller, is_new=False)

    async def _store(
        self, workspace_id: str, assistant_id: str, draft: Draft, caller: str, *, is_new: bool
    ) -> Assistant:
        async with self._change(workspace_id, draft.name) as session:
            count = await session.fetch_one(_COUNT, assistant_id=assistant_id)
            assert count is not None
            version = count["latest"] + 1
            if is_new and version > 1:
                raise NameTaken(f"There is an assistant {assistant_id!r} already.")
            if not is_new and version == 1:
                raise UnknownAssistant(f"There is no assistant {assistant_id!r} in this workspace.")
            if is_new and count["assistants"] >= MOST_ASSISTANTS:
                raise AssistantError(f"This workspace has {MOST_ASSISTANTS} assistants already. Delete one first.")
            if version > MOST_VERSIONS:
                raise AssistantError(f"This assistant has {MOST_VERSIONS:,} versions already. Make another one.")
            await session.execute(_RETIRE, assistant_id=assistant_id)
            await session.execute(
                _ADD,
                assistant_id=assistant_id,
                version=version,
                name=draft.name,
                description=draft.description,
                setup=Jsonb(draft.setup.model_dump(exclude_none=True)),
                metadata=Jsonb(draft.metadata),
                caller=caller,
            )
            row = await session.fetch_one(f"{_VERSIONS} ORDER BY version DESC LIMIT 1", assistant_id=assistant_id)
            assert row is not None
            return _read(row)

    async def choose(self, workspace_id: str, assistant_id: str, version: int) -> Assistant | None:
        chosen = await self.find(workspace_id, assistant_id, version)
        if chosen is None or chosen.assistant_id != assistant_id:
            return None
        async with self._change(workspace_id, chosen.name) as session:
            await session.execute(_RETIRE, assistant_id=assistant_id)
            await session.execute(_CHOOSE, assistant_id=assistant_id, version=version)
        return chosen

    async def delete(self, workspace_id: str, assistant_id: str) -> bool:
        async with open_session(self._pool, workspace_id) as session:
            return bool((await session.execute(_DELETE, assistant_id=_read_id(assistant_id))).rowcount)

    @asynccontextmanager
    async def _change(self, workspace_id: str, name: str) -> AsyncIterator[Session]:
        """Open a transaction in which nobody else changes the workspace's assistants."""
        try:
            async with open_session(self._pool, workspace_id, transaction=True) as session:
                await session.execute(_HOLD)
                yield session
        except UniqueViolation:
            raise NameTaken(f"Another assistant of this workspace has the name {name!r}.") from None


def _read_id(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def _read(row: DictRow) -> Assistant:
    return Assistant(**row | {"setup": Setup.model_validate(row["setup"])})
