"""Searching and reading the table, for questions."""

import re
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, LiteralString
from zlib import crc32

from psycopg.rows import DictRow

from app.adapters.pgvectorstore.table import Table
from domain.documents import Box, DocumentList, DocumentText, Line, ListedDocument, Match, Passage, PassageList
from domain.ports.embedding import Vector
from domain.ports.library import TokenChunk
from domain.scope import Scope
from domain.text.blocks import Span
from domain.text.languages import Language

_TITLE_ROWS = 2_000
"""Rows that are searched for titles: no index leads to them."""

_APART = 1_000_000
"""Characters between the assumed starts of chunks whose place in their document is unknown, so that no two are taken
for neighbours."""


class PgVectorStoreLibrary:
    """A `Library` over the table.

    Lookups of titles, misspelt words and related words find nothing, because such a table has no index for them.
    """

    def __init__(self, table: Table) -> None:
        self._table = table

    async def search_dense(self, scope: Scope, embedding: Vector, limit: int) -> list[Match]:
        rows = await self._table.fetch(
            """
            SELECT {match}, {likeness}
            FROM {table} WHERE {in_scope} ORDER BY {embedding} {distance} %(query)s LIMIT %(limit)s
            """,
            scope,
            query=embedding,
            limit=limit,
        )
        if len(rows) < limit:
            # A scan of the vector index ends before it has found all rows of a small workspace: search those exactly.
            rows = await self._table.fetch(
                """
                WITH held AS MATERIALIZED (
                    SELECT {match}, {embedding} AS embedding
                    FROM {table} WHERE {in_scope}
                )
                SELECT chunk_id, document_id, 1 - (embedding {distance} %(query)s) AS score
                FROM held ORDER BY embedding {distance} %(query)s LIMIT %(limit)s
                """,
                scope,
                query=embedding,
                limit=limit,
            )
        return sorted(_read_matches(rows), key=lambda match: -match.score)

    async def search_lexical(self, scope: Scope, query: str, limit: int) -> list[Match]:
        which: LiteralString = "{words} @@ terms AND {in_scope} ORDER BY score DESC, {id} LIMIT %(limit)s"
        return await self._rank(scope, query, which, limit=limit)

    async def search_titled(self, scope: Scope, names: Sequence[str], embedding: Vector) -> list[Match]:
        return []

    async def suggest_words(
        self, scope: Scope, words: Sequence[str], unfinished: str | None, language: Language
    ) -> dict[str, str]:
        return {}

    async def score_dense(self, scope: Scope, embedding: Vector, chunk_ids: Sequence[str]) -> list[Match]:
        rows = await self._table.fetch(
            """
            SELECT {match}, {likeness}
            FROM {table} WHERE {chosen}
            """,
            scope,
            query=embedding,
            chunk_ids=chunk_ids,
        )
        return _read_matches(rows)

    async def score_lexical(self, scope: Scope, query: str, chunk_ids: Sequence[str]) -> list[Match]:
        return await self._rank(scope, query, "{chosen}", chunk_ids=chunk_ids)

    async def _rank(self, scope: Scope, query: str, which: LiteralString, **parameters: Any) -> list[Match]:
        if self._table.mapping.words is None:
            return []
        rows = await self._table.fetch(
            f"""
            SELECT {{match}}, ts_rank_cd({{words}}, terms, 1 /* of two texts the shorter is the better */) AS score
            FROM {{table}}, {{asked}} AS terms
            WHERE {which}
            """,
            scope,
            query=query.replace("\0", " "),
            **parameters,
        )
        return _read_matches(rows)

    async def score_related(
        self, scope: Scope, query: str, examples: Mapping[str, float], chunk_ids: Sequence[str]
    ) -> list[Match]:
        return []

    async def read_passages(self, scope: Scope, chunk_ids: Sequence[str]) -> list[Passage]:
        rows = await self._table.fetch(f"{_PASSAGES} WHERE {{chosen}}", scope, chunk_ids=chunk_ids)
        found = {row["chunk_id"]: self._read_passage(row) for row in rows}
        return [found[chunk_id] for chunk_id in chunk_ids if chunk_id in found]

    async def read_around(self, scope: Scope, chunk_ids: Sequence[str], before: int, after: int) -> list[Passage]:
        if self._table.mapping.position is None:
            return await self.read_passages(scope, chunk_ids)
        rows = await self._table.fetch(
            f"""
            WITH chosen AS MATERIALIZED (SELECT {{document}} AS document, {{position}} AS place
                                         FROM {{table}} WHERE {{chosen}})
            {_PASSAGES} WHERE {{in_scope}} AND {{document}} = ANY (SELECT document FROM chosen)
                AND EXISTS (SELECT FROM chosen WHERE document = {{document}}
                            AND {{position}} BETWEEN place - %(before)s AND place + %(after)s)
            """,
            scope,
            chunk_ids=chunk_ids,
            before=before,
            after=after,
        )
        return [self._read_passage(row) for row in rows]

    async def count_unembedded(self, scope: Scope) -> int:
        return 0

    async def list_recent(self, scope: Scope, limit: int) -> list[ListedDocument]:
        return list((await self.list_documents(scope, limit)).documents)

    async def list_documents(self, scope: Scope, limit: int) -> DocumentList:
        rows = await self._table.fetch(
            """
            SELECT document_id, min(title) AS title, count(*) OVER () AS total FROM (
                SELECT {document} AS document_id, {title} AS title FROM {table} WHERE {in_scope} LIMIT %(looked_at)s
            ) AS first_rows GROUP BY document_id ORDER BY document_id LIMIT %(limit)s
            """,
            scope,
            looked_at=_TITLE_ROWS,
            limit=limit,
        )
        listed = tuple(ListedDocument(row["document_id"], row["title"], row["document_id"]) for row in rows)
        return DocumentList(listed, rows[0]["total"] if rows else 0)

    async def read_outline(self, scope: Scope, document_id: str, limit: int, span: Span | None = None) -> list[Passage]:
        rows = await self._table.fetch(
            f"{_PASSAGES} WHERE {{in_scope}} AND {{document}} = %(outlined)s"
            " ORDER BY {position}, {id} LIMIT %(limit)s",
            scope,
            outlined=document_id,
            # Not every table says where its chunks stand, and as text where it does.
            limit=limit if span is None else None,
        )
        passages = [self._read_passage(row) for row in rows]
        return [p for p in passages if span is None or (p.start < span[1] and span[0] < p.end)][:limit]

    async def find_text(self, scope: Scope, text: str, limit: int) -> PassageList:
        rows = await self._table.fetch(
            f"{_PASSAGES} WHERE {{in_scope}} AND strpos(lower({{content}}), lower(%(text)s)) > 0"
            " ORDER BY {document}, {position}, {id}",
            scope,
            text=text,
        )
        return PassageList(tuple(map(self._read_passage, rows[:limit])), len(rows))

    async def read_texts(self, scope: Scope, document_ids: Sequence[str]) -> list[DocumentText]:
        rows = await self._table.fetch(
            """
            SELECT {document} AS document_id, {title} AS title, {content} AS content, {start} AS start
            FROM {table} WHERE {in_scope} AND {document} = ANY(%(asked)s)
            """,
            scope,
            asked=list(document_ids),
        )
        return [
            DocumentText(each, min(row["title"] for row in chunks), each, self._join(chunks))
            for each in dict.fromkeys(document_ids)
            if (chunks := [row for row in rows if row["document_id"] == each])
        ]

    @staticmethod
    def _join(rows: Sequence[DictRow]) -> str:
        """Return the text of a document's chunks; nothing where it is not known where each stands."""
        known = sorted((start, row["content"]) for row in rows if (start := _read_whole(row["start"])) is not None)
        if len(known) < len(rows):
            return ""
        text = ""
        for start, content in known:
            gap = start - len(text)
            text += "\n" * gap + content if gap >= 0 else content[-gap:]
        return text

    async def read_tokens(self, scope: Scope, chunk_ids: Sequence[str]) -> dict[str, bytes]:
        """Return nothing: the table has no token vectors, so late interaction runs the model on every passage."""
        return {}

    async def read_token_chunks(self, scope: Scope, places: Sequence[tuple[str, int, int]]) -> list[TokenChunk]:
        """Return nothing, like `read_tokens`."""
        return []

    def _read_passage(self, row: DictRow) -> Passage:
        position = row["position"] or 0
        start = _read_whole(row["start"])
        if start is None:
            # Unknown. Two chunks that are no neighbours must not look like neighbours.
            start = _APART * (position if row["position"] is not None else crc32(row["chunk_id"].encode()))
        page = _read_whole(row["page"])
        # A box without extent gives the page and no place on it.
        nowhere = Box(x=0.0, y=0.0, width=0.0, height=0.0)
        number = None if page is None else page + 1 - self._table.mapping.first_page
        return Passage(
            chunk_id=row["chunk_id"],
            chunk_index=position,
            document_id=row["document_id"],
            title=row["title"],
            text=row["content"],
            start=start,
            end=start + len(row["content"]),
            heading_path=tuple(heading for heading in row["headings"] if heading),
            lines=() if number is None else (Line(start, start, number, nowhere),),
            source=row["document_id"],
        )


_PASSAGES: LiteralString = """
    SELECT {match}, {title} AS title, {content} AS content,
        {headings} AS headings, {page} AS page, {start} AS start, {position} AS position
    FROM {table}
"""


def _read_matches(rows: Sequence[DictRow]) -> list[Match]:
    """Convert rows to matches, without those of zero vectors, which have no cosine similarity."""
    matches = [Match(row["chunk_id"], row["document_id"], float(row["score"])) for row in rows]
    return [match for match in matches if isfinite(match.score)]


def _read_whole(text: str | None) -> int | None:
    return int(text) if text is not None and re.fullmatch(r"[0-9]{1,9}", text) else None
