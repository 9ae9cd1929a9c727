"""What `askgraph sync` last saw of the files of folders."""

from collections.abc import Collection
from dataclasses import asdict
from typing import LiteralString

from app.adapters.postgres.pool import Pool
from domain.library.synced import SyncedFile

_LIST: LiteralString = """
    SELECT folder, source, content_hash, stamp, document_id, mount FROM synced_files
    WHERE workspace_id = %(workspace_id)s AND (folder = %(folder)s OR source = ANY(%(sources)s))
"""

_PUT: LiteralString = """
    INSERT INTO synced_files (workspace_id, folder, source, content_hash, stamp, document_id, mount)
    VALUES (%(workspace_id)s, %(folder)s, %(source)s, %(content_hash)s, %(stamp)s, %(document_id)s, %(mount)s)
    ON CONFLICT (workspace_id, source) DO UPDATE SET
        folder = excluded.folder, content_hash = excluded.content_hash,
        stamp = excluded.stamp, document_id = excluded.document_id, mount = excluded.mount
"""

_DROP: LiteralString = "DELETE FROM synced_files WHERE workspace_id = %(workspace_id)s AND source = %(source)s"


class PostgresSyncedFiles:
    """Implements `SyncedFiles` in PostgreSQL."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def list(self, workspace_id: str, folder: str, sources: Collection[str]) -> dict[str, SyncedFile]:
        rows = await self._pool.fetch(workspace_id, _LIST, folder=folder, sources=[*sources])
        return {row["source"]: SyncedFile(**row) for row in rows}

    async def put(self, workspace_id: str, file: SyncedFile) -> None:
        await self._pool.execute(workspace_id, _PUT, **asdict(file))

    async def drop(self, workspace_id: str, source: str) -> None:
        await self._pool.execute(workspace_id, _DROP, source=source)
