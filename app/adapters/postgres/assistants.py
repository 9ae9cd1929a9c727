"""Assistants in PostgreSQL: a row a version."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, LiteralString
from uuid import UUID

from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from app.adapters.postgres.conversations.threads import list_groups
from app.adapters.postgres.pool import Pool, Session, open_session
from app.adapters.postgres.row_security import READABLE
from domain.assistants import MOST_ASSISTANTS, MOST_VERSIONS, Assistant, Draft, Setup
from domain.errors import AssistantError, NameTaken, UnknownAssistant
from domain.people.names import find_twin, fold_name
from domain.scope import Scope

_COLUMNS: LiteralString = """
    assistant_id::text, version, name, description, setup, metadata, groups, created_by, updated_at, (
        SELECT updated_at FROM assistants AS first
        WHERE first.workspace_id = assistants.workspace_id AND first.assistant_id = assistants.assistant_id
            AND first.version = 1
    ) AS created_at
"""

_SELECT: LiteralString = f"SELECT {_COLUMNS} FROM assistants WHERE workspace_id = %(workspace_id)s AND {READABLE}"
_VERSIONS: LiteralString = f"{_SELECT} AND assistant_id = %(assistant_id)s"

_FIND: LiteralString = f"""
    {_SELECT} AND assistant_id IN (
        SELECT assistant_id FROM assistants WHERE workspace_id = %(workspace_id)s AND {READABLE} AND current
            AND (assistant_id = %(assistant_id)s OR key = %(key)s)
        -- An id goes before another assistant's name.
        ORDER BY (assistant_id = %(assistant_id)s) IS TRUE DESC LIMIT 1
    ) AND CASE WHEN %(version)s::int IS NULL THEN current ELSE version = %(version)s END
"""

_HOLD: LiteralString = "SELECT pg_advisory_xact_lock(hashtextextended('assistants ' || %(workspace_id)s, 0))"

_COUNT: LiteralString = f"""
    SELECT count(*) FILTER (WHERE current) AS assistants,
        coalesce(max(version) FILTER (WHERE assistant_id = %(assistant_id)s), 0) AS latest,
        coalesce(bool_or({READABLE}) FILTER (WHERE assistant_id = %(assistant_id)s), false) AS readable
    FROM assistants WHERE workspace_id = %(workspace_id)s
"""

_LIST_NAMES: LiteralString = f"""
    SELECT name, {READABLE} AS is_known FROM assistants
    WHERE workspace_id = %(workspace_id)s AND current AND assistant_id != %(assistant_id)s ORDER BY key
"""

_RETIRE: LiteralString = f"""
    UPDATE assistants SET current = false, groups = coalesce(%(given)s::text[], groups)
    WHERE workspace_id = %(workspace_id)s AND {READABLE} AND assistant_id = %(assistant_id)s
"""

_ADD: LiteralString = """
    INSERT INTO assistants (
        workspace_id, assistant_id, version, current, name, key, description, setup, metadata, groups, created_by
    ) VALUES (
        %(workspace_id)s, %(assistant_id)s, %(version)s, true, %(name)s, %(key)s, %(description)s, %(setup)s,
        %(metadata)s, coalesce(%(given)s::text[], (
            SELECT groups FROM assistants
            WHERE workspace_id = %(workspace_id)s AND assistant_id = %(assistant_id)s LIMIT 1
        ), '{}'), %(caller)s
    )
"""

_CHOOSE: LiteralString = f"""
    UPDATE assistants SET current = true
    WHERE workspace_id = %(workspace_id)s AND {READABLE} AND assistant_id = %(assistant_id)s AND version = %(version)s
"""

_DELETE: LiteralString = (
    f"DELETE FROM assistants WHERE workspace_id = %(workspace_id)s AND {READABLE} AND assistant_id = %(assistant_id)s"
)


class PostgresAssistantStore:
    """Implements `AssistantStore` in PostgreSQL."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def list(self, asker: Scope) -> Sequence[Assistant]:
        rows = await self._pool.fetch(asker, f"{_SELECT} AND current ORDER BY key", groups=list_groups(asker))
        return [_read(row) for row in rows]

    async def find(self, asker: Scope, name: str, version: int | None = None) -> Assistant | None:
        key, groups = fold_name(name), list_groups(asker)
        row = await self._pool.fetch_one(
            asker, _FIND, assistant_id=_read_id(name), key=key, version=version, groups=groups
        )
        return None if row is None else _read(row)

    async def list_versions(self, asker: Scope, assistant_id: str) -> Sequence[Assistant]:
        named: dict[str, Any] = {"assistant_id": _read_id(assistant_id), "groups": list_groups(asker)}
        return [_read(row) for row in await self._pool.fetch(asker, f"{_VERSIONS} ORDER BY version DESC", **named)]

    async def add(self, asker: Scope, assistant_id: str, draft: Draft, caller: str) -> Assistant:
        return await self._store(asker, assistant_id, draft, caller, is_new=True)

    async def change(self, asker: Scope, assistant_id: str, draft: Draft, caller: str) -> Assistant:
        return await self._store(asker, assistant_id, draft, caller, is_new=False)

    async def _store(self, asker: Scope, assistant_id: str, draft: Draft, caller: str, *, is_new: bool) -> Assistant:
        async with self._change(asker, assistant_id, draft.name) as session:
            count = await session.fetch_one(_COUNT, assistant_id=assistant_id, groups=list_groups(asker))
            assert count is not None
            version = count["latest"] + 1
            if is_new and version > 1:
                raise NameTaken(f"There is an assistant {assistant_id!r} already.")
            if not is_new and not count["readable"]:
                raise UnknownAssistant(f"There is no assistant {assistant_id!r} in this workspace.")
            if is_new and count["assistants"] >= MOST_ASSISTANTS:
                raise AssistantError(f"This workspace has {MOST_ASSISTANTS} assistants already. Delete one first.")
            if version > MOST_VERSIONS:
                raise AssistantError(f"This assistant has {MOST_VERSIONS:,} versions already. Make another one.")
            await session.execute(_RETIRE, assistant_id=assistant_id, given=draft.groups, groups=list_groups(asker))
            await session.execute(
                _ADD,
                assistant_id=assistant_id,
                version=version,
                name=draft.name,
                key=fold_name(draft.name),
                description=draft.description,
                setup=Jsonb(draft.setup.model_dump(exclude_none=True)),
                metadata=Jsonb(draft.metadata),
                given=draft.groups,
                caller=caller,
            )
            row = await session.fetch_one(
                f"{_VERSIONS} ORDER BY version DESC LIMIT 1", assistant_id=assistant_id, groups=None
            )
            assert row is not None
            return _read(row)

    async def choose(self, asker: Scope, assistant_id: str, version: int) -> Assistant | None:
        chosen = await self.find(asker, assistant_id, version)
        if chosen is None or chosen.assistant_id != assistant_id:
            return None
        named: dict[str, Any] = {"assistant_id": assistant_id, "groups": list_groups(asker)}
        async with self._change(asker, assistant_id, chosen.name) as session:
            await session.execute(_RETIRE, given=None, **named)
            await session.execute(_CHOOSE, version=version, **named)
        return chosen

    async def delete(self, asker: Scope, assistant_id: str) -> bool:
        named: dict[str, Any] = {"assistant_id": _read_id(assistant_id), "groups": list_groups(asker)}
        return bool(await self._pool.execute(asker, _DELETE, **named))

    @asynccontextmanager
    async def _change(self, asker: Scope, assistant_id: str, name: str) -> AsyncIterator[Session]:
        """Open a transaction in which nobody else changes the workspace's assistants, all of which it sees. Raises
        `NameTaken` where the name looks like another's."""
        async with open_session(self._pool, asker.workspace_id, transaction=True) as session:
            await session.execute(_HOLD)
            rows = await session.fetch(_LIST_NAMES, assistant_id=assistant_id, groups=list_groups(asker))
            if twin := find_twin(name, [row["name"] for row in rows]):
                is_known = any(row["name"] == twin and row["is_known"] for row in rows)
                called = f" It is called {twin!r}." if is_known and name != twin else ""
                raise NameTaken(f"Another assistant of this workspace has the name {name!r}, or one like it.{called}")
            yield session


def _read_id(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def _read(row: DictRow) -> Assistant:
    return Assistant(**row | {"setup": Setup.model_validate(row["setup"])})
