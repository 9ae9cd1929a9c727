"""The files from which documents were read, in parts, by the hash of their content.

Who keeps or drops a file holds a lock of its hash until the end of the transaction. Otherwise one could drop it while
another adds a document that needs it.
"""

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import LiteralString
from uuid import UUID

from app.adapters.postgres.pool import Pool, Session, open_session

PART_BYTES = 2**20
"""Size of a part. What a download holds in memory, and what one statement writes."""

_HOLD: LiteralString = """
    SELECT pg_advisory_xact_lock(hashtextextended(%(workspace_id)s || ' original ' || %(content_hash)s, 0))
"""

_HAS: LiteralString = """
    SELECT FROM originals WHERE workspace_id = %(workspace_id)s AND content_hash = %(content_hash)s LIMIT 1
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
        SELECT DISTINCT workspace_id, content_hash FROM originals AS original
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
    )
    SELECT count(*) AS rows, coalesce(sum(size), 0)::bigint AS bytes FROM gone
"""

_MEASURE: LiteralString = """
    SELECT sum(octet_length(bytes))::bigint AS size FROM originals
    WHERE workspace_id = %(workspace_id)s AND content_hash = %(content_hash)s
"""

_READ_PART: LiteralString = """
    SELECT bytes FROM originals
    WHERE workspace_id = %(workspace_id)s AND content_hash = %(content_hash)s AND part = %(part)s
"""


class PostgresOriginals:
    """Implements `OriginalStore` in PostgreSQL."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def measure(self, workspace_id: str, content_hash: str) -> int | None:
        async with open_session(self._pool, workspace_id) as session:
            row = await session.fetch_one(_MEASURE, content_hash=content_hash)
        return None if row is None else row["size"]

    async def read(self, workspace_id: str, content_hash: str) -> AsyncIterator[bytes]:
        part = 0
        # No connection is held while the client takes a part.
        while (content := await self._read_part(workspace_id, content_hash, part)) is not None:
            yield content
            part += 1

    async def _read_part(self, workspace_id: str, content_hash: str, part: int) -> bytes | None:
        async with open_session(self._pool, workspace_id) as session:
            row = await session.fetch_one(_READ_PART, content_hash=content_hash, part=part)
        return None if row is None else bytes(row["bytes"])


async def hold_originals(session: Session, hashes: Iterable[str]) -> None:
    """Keep others from adding or dropping these files until the transaction ends."""
    for content_hash in sorted(set(hashes)):
        await session.execute(_HOLD, content_hash=content_hash)


async def add_original(session: Session, content_hash: str, content: bytes) -> None:
    """Keep a file that `hold_originals` holds, unless it is kept already."""
    if await session.fetch_one(_HAS, content_hash=content_hash) is not None:
        return
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
