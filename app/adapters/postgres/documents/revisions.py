"""Superseded revisions of documents: their texts, and when they were current."""

from collections.abc import Collection, Sequence
from typing import LiteralString
from uuid import UUID

from app.adapters.postgres.library.ids import parse_ids
from app.adapters.postgres.pool import Session
from domain.documents import Revision

# The document's row is locked, so the revision is copied as it stands.
_KEEP: LiteralString = """
    INSERT INTO document_revisions
        (document_id, revision, workspace_id, content_hash, title, text, created_at, superseded_at, brought_by,
        sketch)
    SELECT old.document_id, old.revision, old.workspace_id, old.content_hash, old.title, old.text, old.revised_at,
        clock_timestamp(), old.brought_by, old.sketch
    FROM documents AS old
    WHERE old.workspace_id = %(workspace_id)s AND old.document_id = %(document_id)s
        AND old.content_hash <> %(content_hash)s
"""

_LIST: LiteralString = """
    SELECT revision, content_hash, title, length(text) AS characters, created_at, superseded_at
    FROM document_revisions
    WHERE workspace_id = %(workspace_id)s AND document_id = ANY(%(document_ids)s::uuid[])
        AND may_read(workspace_id, document_id::text, revision, %(groups)s)
    UNION ALL
    SELECT revision, content_hash, title, characters, revised_at, NULL FROM documents
    WHERE workspace_id = %(workspace_id)s AND document_id = ANY(%(document_ids)s::uuid[])
    ORDER BY revision DESC
"""

_READ: LiteralString = """
    SELECT text FROM document_revisions
    WHERE workspace_id = %(workspace_id)s AND document_id = ANY(%(document_ids)s::uuid[])
        AND revision = %(revision)s
    UNION ALL
    SELECT text FROM documents
    WHERE workspace_id = %(workspace_id)s AND document_id = ANY(%(document_ids)s::uuid[])
        AND revision = %(revision)s
"""


async def keep_superseded(session: Session, document_id: UUID, content_hash: str) -> None:
    """Copy the document, whose row is locked, unless its content stays the same."""
    await session.execute(_KEEP, document_id=document_id, content_hash=content_hash)


async def list_revisions(session: Session, document_id: str, groups: Collection[str] | None) -> Sequence[Revision]:
    """Return the document's revisions that are kept and that who asks with these groups may read, newest first."""
    asking = None if groups is None else list(groups)
    rows = await session.fetch(_LIST, document_ids=parse_ids([document_id]), groups=asking)
    return [Revision(**row) for row in rows]


async def read_text(session: Session, document_id: str, revision: int) -> str | None:
    """Return the text of a revision; None where it is not kept."""
    row = await session.fetch_one(_READ, document_ids=parse_ids([document_id]), revision=revision)
    return None if row is None else row["text"]
