"""The files from which documents were read, by the hash of their content: in the database in parts, or as objects in
S3-compatible storage.

Who keeps or drops a file holds a lock of its hash until the end of the transaction. Otherwise one could drop it while
another adds a document that needs it.

The database knows every object before it is written and until after it was deleted. An object is `pending` until the
transaction of its document makes it `kept`, and `dropped` when no document needs it; then it is deleted, at once or,
where the storage does not answer, by the hourly housekeeping. Files stay where they are when the setting changes.
"""

import logging
import re
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import LiteralString
from uuid import UUID, uuid4

from app.adapters.postgres.pool import ALL_WORKSPACES, Pool, Session, open_session
from domain.errors import AskgraphError, StorageUnavailable
from domain.ports.originals import ObjectStorage

logger = logging.getLogger("askgraph.originals")

PART_BYTES = 2**20
"""Size of a part. What a download holds in memory, and what one statement writes."""

ABANDONED = timedelta(hours=1)
"""Age at which an object whose document was never stored is deleted: its process died."""

_BATCH = 100
"""Objects that are deleted in one transaction, which the server ends after a minute without a statement."""

_HOLD: LiteralString = """
    SELECT pg_advisory_xact_lock(hashtextextended(%(workspace_id)s || ' original ' || %(content_hash)s, 0))
"""

_HAS: LiteralString = """
    SELECT FROM originals WHERE workspace_id = %(workspace_id)s AND content_hash = %(content_hash)s
    UNION ALL
    SELECT FROM original_objects
    WHERE workspace_id = %(workspace_id)s AND content_hash = %(content_hash)s AND state = 'kept'
    LIMIT 1
"""

_ADD_PART: LiteralString = """
    INSERT INTO originals (workspace_id, content_hash, part, bytes)
    VALUES (%(workspace_id)s, %(content_hash)s, %(part)s, %(bytes)s)
"""

_IS_UNNEEDED: LiteralString = """
            NOT EXISTS (
                SELECT FROM documents AS document
                WHERE document.workspace_id = original.workspace_id AND document.content_hash = original.content_hash
            )
            AND NOT EXISTS (
                SELECT FROM document_revisions AS revision
                WHERE revision.workspace_id = original.workspace_id AND revision.content_hash = original.content_hash
            )
"""

_DROP: LiteralString = f"""
    WITH dropped AS (
        UPDATE original_objects AS original SET state = 'dropped'
        WHERE workspace_id = %(workspace_id)s AND content_hash = %(content_hash)s AND state = 'kept' AND {_IS_UNNEEDED}
    )
    DELETE FROM originals AS original
    WHERE workspace_id = %(workspace_id)s AND content_hash = %(content_hash)s AND {_IS_UNNEEDED}
"""

_LIST_NEEDED: LiteralString = """
    SELECT content_hash FROM documents
    WHERE workspace_id = %(workspace_id)s AND document_id = ANY(%(document_ids)s::uuid[])
    UNION
    SELECT content_hash FROM document_revisions
    WHERE workspace_id = %(workspace_id)s AND document_id = ANY(%(document_ids)s::uuid[])
"""

LOCK_UNNEEDED: LiteralString = f"""
    SELECT pg_advisory_xact_lock(hashtextextended(gone.workspace_id || ' original ' || gone.content_hash, 0))
    FROM (
        SELECT DISTINCT workspace_id, content_hash FROM (
            SELECT workspace_id, content_hash FROM originals
            UNION ALL
            SELECT workspace_id, content_hash FROM original_objects WHERE state = 'kept'
        ) AS original
        WHERE (%(only)s::text IS NULL OR workspace_id = %(only)s)
            AND {_IS_UNNEEDED}
        ORDER BY workspace_id, content_hash
    ) AS gone
"""
"""Hold the files that neither a document nor a revision needs, of one workspace (`only`) or of all. What is found is
checked again by `DROP_UNNEEDED`, in a statement of its own."""

DROP_UNNEEDED: LiteralString = f"""
    WITH gone AS (
        DELETE FROM originals AS original
        WHERE (%(only)s::text IS NULL OR workspace_id = %(only)s)
            AND {_IS_UNNEEDED}
        RETURNING octet_length(bytes) AS size
    ),
    dropped AS (
        UPDATE original_objects AS original SET state = 'dropped'
        WHERE (%(only)s::text IS NULL OR workspace_id = %(only)s) AND state = 'kept'
            AND {_IS_UNNEEDED}
        RETURNING size
    )
    SELECT count(*) AS rows, coalesce(sum(size), 0)::bigint AS bytes
    FROM (SELECT size FROM gone UNION ALL SELECT size FROM dropped) AS file
"""

DROP_ALL: tuple[LiteralString, ...] = (
    "DELETE FROM originals WHERE workspace_id = %(workspace_id)s",
    "UPDATE original_objects SET state = 'dropped' WHERE workspace_id = %(workspace_id)s AND state = 'kept'",
)
"""Drop the files of a workspace whose documents are deleted."""

_ANNOUNCE: LiteralString = """
    INSERT INTO original_objects (key, workspace_id, content_hash, size)
    VALUES (%(key)s, %(workspace_id)s, %(content_hash)s, %(size)s)
"""

_KEEP: LiteralString = """
    UPDATE original_objects SET state = 'kept'
    WHERE workspace_id = %(workspace_id)s AND key = %(key)s AND state = 'pending'
    RETURNING key
"""

_GIVE_UP: LiteralString = """
    UPDATE original_objects SET state = 'dropped'
    WHERE workspace_id = %(workspace_id)s AND key = ANY(%(keys)s::text[]) AND state = 'pending'
"""

_TAKE_DROPPED: LiteralString = """
    SELECT key FROM original_objects
    WHERE state <> 'kept' AND (state = 'dropped' OR created_at < %(abandoned)s) AND key > %(after)s
    ORDER BY key LIMIT %(batch)s
    FOR UPDATE SKIP LOCKED
"""

_FORGET: LiteralString = "DELETE FROM original_objects WHERE key = ANY(%(keys)s::text[])"

_COUNT_DROPPED: LiteralString = """
    SELECT count(*) AS files FROM original_objects
    WHERE state = 'dropped' AND (%(only)s::text IS NULL OR workspace_id = %(only)s)
"""

_FIND_OBJECT: LiteralString = """
    SELECT key, size FROM original_objects
    WHERE workspace_id = %(workspace_id)s AND content_hash = %(content_hash)s AND state = 'kept'
"""

_MEASURE: LiteralString = """
    SELECT sum(octet_length(bytes))::bigint AS size FROM originals
    WHERE workspace_id = %(workspace_id)s AND content_hash = %(content_hash)s
"""

_READ_PART: LiteralString = """
    SELECT bytes FROM originals
    WHERE workspace_id = %(workspace_id)s AND content_hash = %(content_hash)s AND part = %(part)s
"""


@dataclass(frozen=True, slots=True)
class Staged:
    """A file that is to be kept with its document."""

    content: bytes
    key: str | None
    """Key of the object that holds it already; None: it goes into the database."""


class PostgresOriginals:
    """Implements `OriginalStore` in PostgreSQL, and in `storage` where one is given."""

    def __init__(self, pool: Pool, storage: ObjectStorage | None = None) -> None:
        self._pool = pool
        self._storage = storage

    async def measure(self, workspace_id: str, content_hash: str) -> int | None:
        async with open_session(self._pool, workspace_id) as session:
            row = await session.fetch_one(_FIND_OBJECT, content_hash=content_hash)
            row = row or await session.fetch_one(_MEASURE, content_hash=content_hash)
        return None if row is None else row["size"]

    async def read(self, workspace_id: str, content_hash: str) -> AsyncIterator[bytes]:
        row = await self._pool.fetch_one(workspace_id, _FIND_OBJECT, content_hash=content_hash)
        if row is not None:
            async for piece in self._get_storage().read(row["key"]):
                yield piece
            return
        part = 0
        # No connection is held while the client takes a part.
        while (content := await self._read_part(workspace_id, content_hash, part)) is not None:
            yield content
            part += 1

    async def erase_dropped(self, workspace_id: str | None = None) -> int:
        after: str | None = ""
        while after is not None and self._storage is not None:
            try:
                after = await self._erase_batch(self._storage, after)
            except StorageUnavailable as error:
                logger.warning("Files that no document needs are erased later: %s", error.message)
                break
        row = await self._pool.fetch_one(ALL_WORKSPACES, _COUNT_DROPPED, only=workspace_id)
        return 0 if row is None else int(row["files"])

    async def tidy(self) -> None:
        """Erase what a change that is committed has dropped. What is left undone here, the housekeeping does."""
        if self._storage is not None:
            with suppress(AskgraphError):
                await self.erase_dropped()

    @asynccontextmanager
    async def stage(self, workspace_id: str, files: Mapping[str, bytes]) -> AsyncIterator[Mapping[str, Staged]]:
        """Bring files, by the hash of their content, to where they are to be kept, before the transaction that keeps
        them. Files that were not kept or were dropped in the meantime are erased at the end.

        Raises `StorageUnavailable`.
        """
        if self._storage is None:
            yield {content_hash: Staged(content, None) for content_hash, content in files.items()}
            return
        keys = {content_hash: _make_key(workspace_id, content_hash) for content_hash in files}
        try:
            for content_hash, content in files.items():
                key = keys[content_hash]
                await self._pool.execute(workspace_id, _ANNOUNCE, key=key, content_hash=content_hash, size=len(content))
                await self._storage.put(key, content)
            yield {content_hash: Staged(content, keys[content_hash]) for content_hash, content in files.items()}
        finally:
            with suppress(AskgraphError):  # the housekeeping gives up what is left
                await self._pool.execute(workspace_id, _GIVE_UP, keys=list(keys.values()))
            await self.tidy()

    async def _erase_batch(self, storage: ObjectStorage, after: str) -> str | None:
        """Erase the next objects after a key. Returns the last of them; None at the end."""
        async with open_session(self._pool, ALL_WORKSPACES, transaction=True) as session:
            rows = await session.fetch(
                _TAKE_DROPPED, abandoned=datetime.now(UTC) - ABANDONED, after=after, batch=_BATCH
            )
            keys = [row["key"] for row in rows]
            await storage.delete(keys)
            await session.execute(_FORGET, keys=keys)
        return keys[-1] if keys else None

    async def _read_part(self, workspace_id: str, content_hash: str, part: int) -> bytes | None:
        row = await self._pool.fetch_one(workspace_id, _READ_PART, content_hash=content_hash, part=part)
        return None if row is None else bytes(row["bytes"])

    def _get_storage(self) -> ObjectStorage:
        if self._storage is None:
            raise StorageUnavailable("This file is in S3-compatible storage, which ASKGRAPH_ORIGINALS does not name.")
        return self._storage


async def hold_originals(session: Session, hashes: Iterable[str]) -> None:
    """Keep others from adding or dropping these files until the transaction ends."""
    for content_hash in sorted(set(hashes)):
        await session.execute(_HOLD, content_hash=content_hash)


async def add_original(session: Session, content_hash: str, file: Staged) -> None:
    """Keep a file that `hold_originals` holds, unless it is kept already.

    Raises `StorageUnavailable` where its object was taken for abandoned.
    """
    if await session.fetch_one(_HAS, content_hash=content_hash) is not None:
        return
    if file.key is not None:
        if await session.fetch_one(_KEEP, key=file.key) is None:
            raise StorageUnavailable
        return
    content = file.content
    for part, start in enumerate(range(0, len(content), PART_BYTES)):
        await session.execute(
            _ADD_PART, content_hash=content_hash, part=part, bytes=content[start : start + PART_BYTES]
        )


async def list_needed(session: Session, document_ids: Sequence[UUID]) -> set[str]:
    """Return the hashes of the files of these documents and of their revisions."""
    rows = await session.fetch(_LIST_NEEDED, document_ids=list(document_ids))
    return {row["content_hash"] for row in rows}


async def drop_unneeded(session: Session, hashes: Iterable[str]) -> None:
    """Delete those of the files, which `hold_originals` holds, that neither a document nor a revision needs."""
    for content_hash in sorted(set(hashes)):
        await session.execute(_DROP, content_hash=content_hash)


def _make_key(workspace_id: str, content_hash: str) -> str:
    """Return a key that is never used again. Workspace and hash are in it for people who look into the bucket."""
    return f"{re.sub(r'[^A-Za-z0-9_-]', '_', workspace_id)[:100]}/{content_hash}-{uuid4().hex}"
