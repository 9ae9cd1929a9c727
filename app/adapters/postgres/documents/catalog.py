"""Reads documents, without what changing them takes: a command that lists documents starts in a tenth of the time."""

from collections.abc import Collection, Mapping, Sequence
from typing import LiteralString

from psycopg.rows import DictRow

from app.adapters.postgres.documents.revisions import list_revisions, read_text
from app.adapters.postgres.library.filters import PASSES_FILTER, write_paths
from app.adapters.postgres.library.ids import parse_ids
from app.adapters.postgres.pool import Pool, open_session
from app.adapters.postgres.row_security import READABLE
from domain.documents import Box, Document, Line, Place, Revision, pick_named
from domain.library.where import EVERYTHING, Where
from domain.scope import Scope

DOCUMENT_COLUMNS: LiteralString = (
    "document_id, workspace_id, source, title, media_type, content_hash, pages, characters, chunks, "
    "metadata, unread, created_at, updated_at, revision, revised_at, groups, "
    "(SELECT count(*) FROM chunks_to_embed AS c "
    "WHERE c.workspace_id = documents.workspace_id AND c.document_id = documents.document_id) AS to_embed"
)

_FIND: LiteralString = f"""
    SELECT {DOCUMENT_COLUMNS} FROM documents WHERE workspace_id = %(workspace_id)s AND source = %(source)s
"""

_FIND_GROUPS: LiteralString = """
    SELECT source, jsonb_agg(groups) AS of_each FROM documents
    WHERE workspace_id = %(workspace_id)s AND source = ANY(%(sources)s) GROUP BY source
"""

_GET: LiteralString = f"""
    SELECT {DOCUMENT_COLUMNS} FROM documents
    WHERE workspace_id = %(workspace_id)s AND document_id = ANY(%(document_ids)s::uuid[])
"""

_FIND_DELETED: LiteralString = """
    SELECT document_id::text FROM document_marks AS mark
    WHERE workspace_id = %(workspace_id)s AND content_hash = %(content_hash)s AND NOT EXISTS (
        SELECT FROM documents
        WHERE documents.workspace_id = mark.workspace_id AND documents.document_id = mark.document_id
    )
    ORDER BY deleted DESC LIMIT 1
"""

_READ_HASHES: LiteralString = f"""
    SELECT document_id::text, content_hash FROM documents
    WHERE workspace_id = %(workspace_id)s AND document_id = ANY(%(document_ids)s::uuid[]) AND {READABLE}
"""

_GET_TEXT: LiteralString = """
    SELECT text FROM documents
    WHERE workspace_id = %(workspace_id)s AND document_id = ANY(%(document_ids)s::uuid[])
"""

_GET_PLACES: LiteralString = """
    SELECT place.start_offset, place.end_offset, place.lines, chunk.heading_path
    FROM chunks AS chunk JOIN chunk_places AS place ON place.chunk_id = chunk.id
    WHERE chunk.workspace_id = %(workspace_id)s AND chunk.document_id = ANY(%(document_ids)s::uuid[])
    ORDER BY place.chunk_index
"""

_LIST: LiteralString = f"""
    SELECT {DOCUMENT_COLUMNS} FROM documents_of_workspace AS documents
    WHERE workspace_id = %(workspace_id)s AND {PASSES_FILTER} ORDER BY source, document_id
"""

GET_CORPUS: LiteralString = "SELECT generation, corpus FROM workspaces WHERE workspace_id = %(workspace_id)s"


class PostgresDocumentCatalog:
    """The part of `DocumentStore` that only reads."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def find(
        self,
        workspace_id: str,
        source: str,
        *,
        asking: frozenset[str] | None = None,
        groups: Collection[str] | None = None,
    ) -> Document | None:
        rows = await self._pool.fetch(workspace_id, _FIND, source=source)
        return pick_named([document for row in rows if (document := read_document(row))], asking, groups)

    async def find_groups(self, workspace_id: str, sources: Collection[str]) -> Mapping[str, Sequence[Sequence[str]]]:
        rows = await self._pool.fetch(workspace_id, _FIND_GROUPS, sources=list(sources))
        return {row["source"]: row["of_each"] for row in rows}

    async def get(self, workspace_id: str, document_id: str) -> Document | None:
        return read_document(await self._pool.fetch_one(workspace_id, _GET, document_ids=parse_ids([document_id])))

    async def find_deleted(self, workspace_id: str, content_hash: str) -> str | None:
        row = await self._pool.fetch_one(workspace_id, _FIND_DELETED, content_hash=content_hash)
        return None if row is None else row["document_id"]

    async def read_hashes(self, asker: Scope) -> Mapping[str, str]:
        groups = None if asker.groups is None else sorted(asker.groups)
        rows = await self._pool.fetch(
            asker, _READ_HASHES, document_ids=parse_ids(asker.document_ids or ()), groups=groups
        )
        return {row["document_id"]: row["content_hash"] for row in rows}

    async def get_text(self, workspace_id: str, document_id: str, revision: int | None = None) -> str | None:
        async with open_session(self._pool, workspace_id) as session:
            if revision is not None:
                return await read_text(session, document_id, revision)
            row = await session.fetch_one(_GET_TEXT, document_ids=parse_ids([document_id]))
        return row["text"] if row else None

    async def list_revisions(self, asker: Scope, document_id: str) -> Sequence[Revision]:
        async with open_session(self._pool, asker.workspace_id) as session:
            return await list_revisions(session, document_id, asker.groups)

    async def get_places(self, workspace_id: str, document_id: str) -> Sequence[Place]:
        rows = await self._pool.fetch(workspace_id, _GET_PLACES, document_ids=parse_ids([document_id]))
        return [
            Place(
                row["start_offset"], row["end_offset"], tuple(row["heading_path"]), tuple(map(read_line, row["lines"]))
            )
            for row in rows
        ]

    async def list(self, workspace_id: str, where: Where = EVERYTHING) -> Sequence[Document]:
        metadata, path = write_paths(where)
        rows = await self._pool.fetch(workspace_id, _LIST, prepare=False, metadata=metadata, path=path)
        return [document for row in rows if (document := read_document(row))]

    async def is_untouched(self, workspace_id: str) -> bool:
        row = await self._pool.fetch_one(workspace_id, GET_CORPUS)
        return row is None or row["generation"] == 0


def read_document(row: DictRow | None) -> Document | None:
    """Return the document of a row of `DOCUMENT_COLUMNS`, or None for no row."""
    if row is None:
        return None
    columns = dict(row)
    groups, unread = tuple(columns.pop("groups")), tuple(columns.pop("unread"))
    return Document(id=str(columns.pop("document_id")), groups=groups, unread=unread, **columns)


def read_line(line: Sequence[float]) -> Line:
    """Return a line from its form in the table `chunk_places`."""
    start, end, page, x, y, width, height, *confidence = line
    box = Box(x=x, y=y, width=width, height=height)
    if confidence:
        box["confidence"] = confidence[0]
    return Line(int(start), int(end), int(page), box)


def write_line(line: Line) -> list[float]:
    """Return the form of a line in the table `chunk_places`; how sure it is comes last, where it was recognised."""
    box = line.box
    place = [line.start, line.end, line.page, box["x"], box["y"], box["width"], box["height"]]
    return [*place, box["confidence"]] if "confidence" in box else place
