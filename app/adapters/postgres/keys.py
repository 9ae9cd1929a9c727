"""API keys in PostgreSQL."""

from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import Any, LiteralString

from psycopg.rows import DictRow

from app.adapters.postgres.pool import ALL_WORKSPACES, Pool
from domain.people.access import ApiKey
from domain.people.limits import Limits

_COLUMNS: LiteralString = """
    key_id, name, rights, workspaces, groups, created_at, expires_at, revoked_at, last_used_at,
    requests_per_minute, runs, tokens_per_day, dollars_per_day, max_documents, max_stored_mb
"""

_ADD: LiteralString = """
    INSERT INTO api_keys (
        key_id, digest, name, workspaces, groups, rights, expires_at,
        requests_per_minute, runs, tokens_per_day, dollars_per_day, max_documents, max_stored_mb
    )
    VALUES (
        %(key_id)s, %(digest)s, %(name)s, %(workspaces)s, %(groups)s, %(rights)s, %(expires_at)s,
        %(requests_per_minute)s, %(runs)s, %(tokens_per_day)s, %(dollars_per_day)s, %(max_documents)s,
        %(max_stored_mb)s
    )
"""

_FIND: LiteralString = f"""
    WITH used AS (
        UPDATE api_keys SET last_used_at = now()
        WHERE digest = %(digest)s AND revoked_at IS NULL AND (expires_at IS NULL OR now() < expires_at)
          AND (last_used_at IS NULL OR last_used_at < now() - interval '1 minute')
    )
    SELECT {_COLUMNS} FROM api_keys WHERE digest = %(digest)s
"""

_CHANGE: LiteralString = """
    UPDATE api_keys SET
        name = %(name)s, workspaces = %(workspaces)s, groups = %(groups)s, rights = %(rights)s,
        requests_per_minute = %(requests_per_minute)s, runs = %(runs)s,
        tokens_per_day = %(tokens_per_day)s, dollars_per_day = %(dollars_per_day)s,
        max_documents = %(max_documents)s, max_stored_mb = %(max_stored_mb)s
    WHERE key_id = %(key_id)s AND revoked_at IS NULL RETURNING key_id
"""

_REVOKE: LiteralString = """
    UPDATE api_keys SET revoked_at = coalesce(revoked_at, now()) WHERE key_id = %(key_id)s RETURNING key_id
"""


_LIVE: LiteralString = "began_at > now() - interval '30 days'"

_BEGIN_SESSION: LiteralString = f"""
    WITH gone AS (DELETE FROM browser_sessions WHERE NOT {_LIVE})
    INSERT INTO browser_sessions (digest) VALUES (%(digest)s) RETURNING digest
"""


class PostgresKeyStore:
    """Implements `domain.ports.keys.KeyStore`."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def add(self, key: ApiKey, digest: bytes) -> None:
        await self._fetch(_ADD + " RETURNING key_id", digest=digest, **_write(key))

    async def find(self, digest: bytes) -> ApiKey | None:
        rows = await self._fetch(_FIND, digest=digest)
        return _read(rows[0]) if rows else None

    async def get(self, key_id: str) -> ApiKey | None:
        rows = await self._fetch(f"SELECT {_COLUMNS} FROM api_keys WHERE key_id = %(key_id)s", key_id=key_id)
        return _read(rows[0]) if rows else None

    async def list(self) -> list[ApiKey]:
        return [_read(row) for row in await self._fetch(f"SELECT {_COLUMNS} FROM api_keys ORDER BY created_at")]

    async def change(self, key: ApiKey) -> bool:
        return bool(await self._fetch(_CHANGE, **_write(key)))

    async def revoke(self, key_id: str) -> bool:
        return bool(await self._fetch(_REVOKE, key_id=key_id))

    async def begin_session(self, digest: bytes) -> None:
        await self._fetch(_BEGIN_SESSION, digest=digest)

    async def has_session(self, digest: bytes) -> bool:
        return bool(
            await self._fetch(f"SELECT FROM browser_sessions WHERE digest = %(digest)s AND {_LIVE}", digest=digest)
        )

    async def end_session(self, digest: bytes) -> None:
        await self._fetch("DELETE FROM browser_sessions WHERE digest = %(digest)s RETURNING digest", digest=digest)

    async def is_empty(self) -> bool:
        return not await self._fetch("SELECT 1 FROM api_keys LIMIT 1")

    async def _fetch(self, query: LiteralString, **params: Any) -> Sequence[DictRow]:
        return await self._pool.fetch(ALL_WORKSPACES, query, **params)


def _write(key: ApiKey) -> dict[str, Any]:
    values = asdict(key) | asdict(key.limits)
    del values["limits"]
    for name in ("workspaces", "groups", "rights"):
        values[name] = None if values[name] is None else sorted(values[name])
    return values


def _read(row: DictRow) -> ApiKey:
    sets = {name: None if row[name] is None else frozenset(row[name]) for name in ("workspaces", "groups", "rights")}
    limits = Limits(**{field.name: row.pop(field.name) for field in fields(Limits)})
    return ApiKey(**row | sets, limits=limits)
