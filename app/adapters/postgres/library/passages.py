"""Reading chunks: their text, neighbours, embeddings and token vectors, and the titles of documents."""

from collections.abc import Iterable, Sequence
from typing import Any, LiteralString

import orjson
from psycopg.rows import DictRow

from app.adapters.postgres.documents.catalog import read_line
from app.adapters.postgres.library.filters import FilteredDocuments
from app.adapters.postgres.library.ids import join_ids, parse_ids, split_ids
from app.adapters.postgres.pool import Pool, open_session
from domain.documents import DocumentList, DocumentText, ListedDocument, Passage, PassageList
from domain.ports.library import TokenChunk
from domain.scope import Scope
from domain.text.blocks import Span

_COLUMNS: LiteralString = (
    "c.id::text AS chunk_id, c.document_id::text, c.content, c.heading_path, d.title, d.source, d.revision, "
    "d.revised_at, d.content_hash AS of_content, p.chunk_index, p.start_offset, p.end_offset, p.lines::text, "
    "c.metadata ->> 'lead' AS lead, left(d.metadata ->> 'date', 40) AS dated"
)

_READ_PASSAGES: LiteralString = f"""
    SELECT {_COLUMNS}
    FROM chunks c
    JOIN chunk_places p ON p.chunk_id = c.id
    JOIN documents d ON d.workspace_id = c.workspace_id AND d.document_id = c.document_id
    WHERE c.workspace_id = %(workspace_id)s AND c.id = ANY(%(chunk_ids)s::uuid[])
"""

# The chunks of the documents in scope.
_IN_SCOPE: LiteralString = """
    FROM documents d
    JOIN chunks c ON c.workspace_id = %(workspace_id)s AND c.document_id = d.document_id
    JOIN chunk_places p ON p.chunk_id = c.id
    WHERE d.workspace_id = %(workspace_id)s
      AND (%(document_ids)s::uuid[] IS NULL OR d.document_id = ANY(%(document_ids)s::uuid[]))
"""

_READ_AROUND: LiteralString = f"""
    WITH named AS MATERIALIZED (
        SELECT c.document_id, p.chunk_index
        FROM chunks c JOIN chunk_places p ON p.chunk_id = c.id
        WHERE c.workspace_id = %(workspace_id)s AND c.id = ANY(%(chunk_ids)s::uuid[])
    )
    SELECT {_COLUMNS} {_IN_SCOPE} AND d.document_id IN (SELECT document_id FROM named)
      AND EXISTS (
          SELECT FROM named n
          WHERE n.document_id = c.document_id
            AND p.chunk_index BETWEEN n.chunk_index - %(before)s AND n.chunk_index + %(after)s
      )
"""

_COUNT_UNEMBEDDED: LiteralString = """
    SELECT count(DISTINCT document_id) AS documents FROM chunks_to_embed
    WHERE workspace_id = %(workspace_id)s
      AND (%(document_ids)s::uuid[] IS NULL OR document_id = ANY(%(document_ids)s::uuid[]))
"""

_LIST_RECENT: LiteralString = """
    SELECT document_id, title, source FROM documents
    WHERE workspace_id = %(workspace_id)s
      AND (%(document_ids)s::uuid[] IS NULL OR document_id = ANY(%(document_ids)s::uuid[]))
    ORDER BY updated_at DESC, document_id
    LIMIT %(limit)s
"""

_LIST_DOCUMENTS: LiteralString = """
    SELECT document_id, title, source, count(*) OVER () AS total FROM documents
    WHERE workspace_id = %(workspace_id)s
      AND (%(document_ids)s::uuid[] IS NULL OR document_id = ANY(%(document_ids)s::uuid[]))
    ORDER BY source
    LIMIT %(limit)s
"""

_READ_OUTLINE: LiteralString = f"""
    SELECT {_COLUMNS} {_IN_SCOPE} AND d.document_id = ANY(%(outlined)s::uuid[])
      AND (%(start)s::int IS NULL OR p.start_offset < %(end)s::int AND p.end_offset > %(start)s::int)
    ORDER BY p.chunk_index
    LIMIT %(limit)s
"""

_FIND_TEXT: LiteralString = f"""
    SELECT {_COLUMNS}, count(*) OVER () AS total {_IN_SCOPE} AND strpos(lower(c.content), lower(%(text)s)) > 0
    ORDER BY d.source, p.chunk_index
    LIMIT %(limit)s
"""

_READ_TEXTS: LiteralString = """
    SELECT document_id::text AS id, title, source, text FROM documents
    WHERE workspace_id = %(workspace_id)s AND document_id = ANY(%(asked)s::uuid[])
      AND (%(document_ids)s::uuid[] IS NULL OR document_id = ANY(%(document_ids)s::uuid[]))
"""

_READ_TOKENS: LiteralString = """
    SELECT chunk_id, tokens FROM chunk_tokens
    WHERE workspace_id = %(workspace_id)s AND chunk_id = ANY(%(chunk_ids)s::uuid[])
"""

# All chunks of a document are found by an index; their places decide.
_READ_TOKEN_CHUNKS: LiteralString = """
    SELECT DISTINCT ON (c.id) c.document_id, c.content, c.heading_path, c.metadata ->> 'title' AS title,
        c.metadata ->> 'lead' AS lead, p.start_offset, t.tokens, coalesce(t.places, '') AS places
    FROM unnest(%(document_ids)s::uuid[], %(starts)s::int[], %(ends)s::int[]) AS asked (document_id, start, ends)
    JOIN chunks c ON c.workspace_id = %(workspace_id)s AND c.document_id = asked.document_id
    JOIN chunk_places p ON p.chunk_id = c.id AND p.start_offset < asked.ends AND p.end_offset > asked.start
    JOIN chunk_tokens t ON t.chunk_id = c.id
"""


class PassageReader:
    """The part of `Library` that reads what is stored of chunks and documents."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._filtered = FilteredDocuments()

    async def read_passages(self, scope: Scope, chunk_ids: Sequence[str]) -> list[Passage]:
        async with open_session(self._pool, scope) as session:
            rows = await session.fetch(_READ_PASSAGES, chunk_ids=join_ids(chunk_ids))
            document_ids = await self._filtered.find(session, scope)
        allowed = None if document_ids is None else split_ids(document_ids)
        found = {row["chunk_id"]: row for row in rows if allowed is None or row["document_id"] in allowed}
        asked = map(str, parse_ids(chunk_ids))
        return [_read_passage(row) for row in (found.get(chunk_id) for chunk_id in asked) if row is not None]

    async def read_around(self, scope: Scope, chunk_ids: Sequence[str], before: int, after: int) -> list[Passage]:
        rows = await self._fetch(scope, _READ_AROUND, chunk_ids=join_ids(chunk_ids), before=before, after=after)
        return [_read_passage(row) for row in rows]

    async def count_unembedded(self, scope: Scope) -> int:
        [row] = await self._fetch(scope, _COUNT_UNEMBEDDED)
        return int(row["documents"])

    async def list_recent(self, scope: Scope, limit: int) -> list[ListedDocument]:
        return _read_listed(await self._fetch(scope, _LIST_RECENT, limit=limit))

    async def list_documents(self, scope: Scope, limit: int) -> DocumentList:
        rows = await self._fetch(scope, _LIST_DOCUMENTS, limit=limit)
        return DocumentList(tuple(_read_listed(rows)), rows[0]["total"] if rows else 0)

    async def read_outline(self, scope: Scope, document_id: str, limit: int, span: Span | None = None) -> list[Passage]:
        start, end = span or (None, None)
        outlined = parse_ids([document_id])
        rows = await self._fetch(scope, _READ_OUTLINE, outlined=outlined, limit=limit, start=start, end=end)
        return [_read_passage(row) for row in rows]

    async def find_text(self, scope: Scope, text: str, limit: int) -> PassageList:
        rows = await self._fetch(scope, _FIND_TEXT, text=text, limit=limit)
        return PassageList(tuple(map(_read_passage, rows)), rows[0]["total"] if rows else 0)

    async def read_texts(self, scope: Scope, document_ids: Sequence[str]) -> list[DocumentText]:
        rows = await self._fetch(scope, _READ_TEXTS, asked=join_ids(document_ids))
        found = {row["id"]: DocumentText(**row) for row in rows}
        return [found[each] for each in dict.fromkeys(document_ids) if each in found]

    async def _fetch(self, scope: Scope, statement: LiteralString, **parameters: Any) -> list[DictRow]:
        """Fetch rows of the documents in scope."""
        async with open_session(self._pool, scope) as session:
            document_ids = await self._filtered.find(session, scope)
            return await session.fetch(statement, document_ids=document_ids, **parameters)

    async def read_tokens(self, scope: Scope, chunk_ids: Sequence[str]) -> dict[str, bytes]:
        rows = await self._pool.fetch(scope, _READ_TOKENS, chunk_ids=join_ids(chunk_ids))
        return {str(row["chunk_id"]): row["tokens"] for row in rows}

    async def read_token_chunks(self, scope: Scope, places: Sequence[tuple[str, int, int]]) -> list[TokenChunk]:
        known = [(ids[0], start, end) for document_id, start, end in places if (ids := parse_ids([document_id]))]
        rows = await self._pool.fetch(
            scope,
            _READ_TOKEN_CHUNKS,
            document_ids=[document_id for document_id, _, _ in known],
            starts=[start for _, start, _ in known],
            ends=[end for _, _, end in known],
        )
        return [
            TokenChunk(
                document_id=str(row["document_id"]),
                start=row["start_offset"],
                text=row["content"],
                title=row["title"],
                heading_path=tuple(row["heading_path"]),
                lead=row["lead"] or "",
                tokens=row["tokens"],
                places=row["places"],
            )
            for row in rows
        ]


def _read_passage(row: DictRow) -> Passage:
    return Passage(
        chunk_id=row["chunk_id"],
        chunk_index=row["chunk_index"],
        document_id=row["document_id"],
        title=row["title"],
        text=row["content"],
        start=row["start_offset"],
        end=row["end_offset"],
        heading_path=tuple(row["heading_path"]),
        lines=tuple(read_line(line) for line in orjson.loads(row["lines"])),
        source=row["source"],
        revision=row["revision"],
        updated_at=row["revised_at"].isoformat(timespec="seconds"),
        content_hash=row["of_content"],
        lead=row["lead"] or "",
        dated=row["dated"] or "",
    )


def _read_listed(rows: Iterable[DictRow]) -> list[ListedDocument]:
    return [ListedDocument(str(row["document_id"]), row["title"], row["source"]) for row in rows]
