"""The audit log in PostgreSQL."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import LiteralString

from app.adapters.postgres.pool import ALL_WORKSPACES, Pool, borrow, translated_errors
from domain.history.erasure import ERASED
from domain.people.audit import AuditEntry

_ADD: LiteralString = """
    INSERT INTO audit_log (caller, action, targets, status, workspace_id, address)
    VALUES (%(caller)s, %(action)s, %(targets)s, %(status)s, %(workspace_id)s, %(address)s)
"""

_LIST: LiteralString = """
    SELECT caller, action, targets, status, workspace_id, address, at FROM audit_log
    WHERE at >= %(since)s ORDER BY at DESC, entry_id DESC LIMIT %(limit)s
"""

_ERASE: LiteralString = """
    UPDATE audit_log SET targets = ARRAY(
        SELECT CASE WHEN name = ANY(%(names)s::text[]) THEN %(erased)s ELSE name END
        FROM unnest(targets) WITH ORDINALITY AS target (name, place) ORDER BY place
    )
    WHERE workspace_id = %(workspace_id)s AND targets && %(names)s::text[]
"""


class PostgresAuditLog:
    """Implements `domain.people.audit.AuditLog`."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def add(self, entry: AuditEntry) -> None:
        with translated_errors():
            async with borrow(self._pool, ALL_WORKSPACES) as connection:
                await connection.execute(_ADD, asdict(entry) | {"targets": list(entry.targets)})

    async def list(self, since: datetime, limit: int) -> Sequence[AuditEntry]:
        with translated_errors():
            async with borrow(self._pool, ALL_WORKSPACES) as connection:
                cursor = await connection.execute(_LIST, {"since": since, "limit": limit})
                rows = await cursor.fetchall()
        return [AuditEntry(**row | {"targets": tuple(row["targets"])}) for row in rows]

    async def delete_before(self, cut: datetime) -> None:
        with translated_errors():
            async with borrow(self._pool, ALL_WORKSPACES) as connection:
                await connection.execute("DELETE FROM audit_log WHERE at < %s", (cut,))


async def erase_from_audit(pool: Pool, workspace_id: str, names: Sequence[str], *, dry_run: bool = False) -> int:
    """Erase these names of documents from entries of the workspace, or only count those. Returns the number of entries.
    Who did what when stays.

    Raises `DatabaseUnavailable`.
    """
    with translated_errors():
        async with borrow(pool, ALL_WORKSPACES) as connection, connection.transaction(force_rollback=dry_run):
            values = {"workspace_id": workspace_id, "names": list(names), "erased": ERASED}
            return (await connection.execute(_ERASE, values)).rowcount
