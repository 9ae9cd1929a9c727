"""Writing chunks: their rows, places, terms and token vectors, and the counts kept of them."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from struct import pack
from typing import LiteralString
from uuid import UUID, uuid5

from psycopg.types.json import Jsonb

from app.adapters.postgres.documents.catalog import write_line
from app.adapters.postgres.library.bm25 import TERM_IDS, TermIds, weigh_chunk
from app.adapters.postgres.library.vocabulary import list_words
from app.adapters.postgres.pool import Session, write_json
from domain.documents import Chunk, embedding_text
from domain.ports.documents import ChunkVectors, DocumentContent

ROUND = 64
"""Number of a document's chunks that are embedded before other documents have their turn."""

PART = 1_000
"""Number of chunks whose terms are found and copied at once."""

_Analysed = tuple[list[tuple[UUID, str, UUID, list[int], bytes]], Counter[int], dict[str, int]]
"""Rows of `chunk_terms`, the number of them that hold each term, and their words, each with the id of its term."""

_STORED_CHUNKS: LiteralString = """
    SELECT id AS chunk_id, content_hash FROM chunks
    WHERE workspace_id = %(workspace_id)s AND document_id = ANY(%(document_ids)s::uuid[])
"""

_READ_VECTORS: LiteralString = """
    SELECT DISTINCT ON (c.content_hash) c.content_hash, c.embedding, coalesce(t.tokens, '') AS tokens,
        coalesce(t.places, '') AS places
    FROM chunks c LEFT JOIN chunk_tokens t ON t.chunk_id = c.id
    WHERE c.workspace_id = %(workspace_id)s AND c.document_id = %(document_id)s
      AND c.content_hash = ANY(%(content_hashes)s::text[]) AND c.embedding IS NOT NULL
"""

# The chunk's place, terms and token vectors are deleted with it.
_DELETE_CHUNKS: LiteralString = """
    DELETE FROM chunks WHERE workspace_id = %(workspace_id)s AND id = ANY(%(chunk_ids)s::uuid[])
"""

_MOVE_CHUNKS: LiteralString = """
    UPDATE chunk_places AS p
    SET chunk_index = n.chunk_index, start_offset = n.start_offset, end_offset = n.end_offset, lines = n.lines
    FROM unnest(%(chunk_ids)s::uuid[], %(indexes)s::int[], %(starts)s::int[], %(ends)s::int[], %(lines)s::jsonb[])
        AS n (chunk_id, chunk_index, start_offset, end_offset, lines)
    WHERE p.workspace_id = %(workspace_id)s AND p.chunk_id = n.chunk_id
      AND (p.chunk_index, p.start_offset, p.end_offset, p.lines)
          IS DISTINCT FROM (n.chunk_index, n.start_offset, n.end_offset, n.lines)
"""

_COPY_CHUNKS: LiteralString = """
    COPY chunks (id, workspace_id, document_id, content_hash, heading_path, content, metadata, embedding)
    FROM STDIN WITH (FORMAT binary)
"""

_COPY_PLACES: LiteralString = """
    COPY chunk_places (chunk_id, workspace_id, chunk_index, start_offset, end_offset, lines)
    FROM STDIN WITH (FORMAT binary)
"""

_COPY_TERMS: LiteralString = """
    COPY chunk_terms (chunk_id, workspace_id, document_id, terms, impacts) FROM STDIN WITH (FORMAT binary)
"""

_COPY_TOKENS: LiteralString = """
    COPY chunk_tokens (chunk_id, workspace_id, tokens, places) FROM STDIN WITH (FORMAT binary)
"""

_COPY_TO_EMBED: LiteralString = """
    COPY chunks_to_embed (chunk_id, workspace_id, document_id, round) FROM STDIN WITH (FORMAT binary)
"""

_COUNT_CHUNK_TERMS: LiteralString = """
    SELECT term, count(*) AS chunks
    FROM chunk_terms, unnest(terms) AS term
    WHERE workspace_id = %(workspace_id)s AND chunk_id = ANY(%(chunk_ids)s::uuid[])
    GROUP BY term
"""


def identify_chunks(document_id: UUID, chunks: Iterable[Chunk]) -> dict[UUID, Chunk]:
    """Return the chunks by id.

    The id depends on the document, on the chunk's content, and on how many earlier chunks of the document have the same
    content. It does not depend on the chunk's position.
    """
    seen: Counter[str] = Counter()
    identified = {}
    for chunk in chunks:
        identified[uuid5(document_id, f"{chunk.content_hash}\0{seen[chunk.content_hash]}")] = chunk
        seen[chunk.content_hash] += 1
    return identified


async def read_stored_chunks(session: Session, document_ids: list[UUID]) -> dict[UUID, str]:
    """Return the content hashes of the documents' chunks by chunk id."""
    rows = await session.fetch(_STORED_CHUNKS, document_ids=document_ids)
    return {row["chunk_id"]: row["content_hash"] for row in rows}


async def find_vectors(
    session: Session, document_id: UUID, content: DocumentContent, new: dict[UUID, Chunk], *, has_stored: bool
) -> dict[UUID, ChunkVectors]:
    """Return the vectors of new chunks: those that come with the content, else those of a stored chunk of the document
    with the same content, if it `has_stored` chunks. Chunks without either are left out."""
    found = dict(content.embeddings)
    wanted = {chunk.content_hash for chunk in new.values()} - found.keys()
    if has_stored and wanted:
        rows = await session.fetch(_READ_VECTORS, document_id=document_id, content_hashes=list(wanted))
        found |= {row["content_hash"]: ChunkVectors(row["embedding"], row["tokens"], row["places"]) for row in rows}
    return {chunk_id: found[chunk.content_hash] for chunk_id, chunk in new.items() if chunk.content_hash in found}


async def count_terms(session: Session, chunk_ids: list[UUID]) -> Counter[int]:
    """Count the chunks that hold each term."""
    if not chunk_ids:
        return Counter()
    rows = await session.fetch(_COUNT_CHUNK_TERMS, chunk_ids=chunk_ids)
    return Counter({row["term"]: row["chunks"] for row in rows})


async def delete_chunks(session: Session, chunk_ids: list[UUID]) -> None:
    """Delete the chunks."""
    if chunk_ids:
        await session.execute(_DELETE_CHUNKS, chunk_ids=chunk_ids)


async def move_chunks(session: Session, kept: dict[UUID, Chunk]) -> None:
    """Store the places of chunks that are stored already, where they have changed."""
    if kept:
        await session.execute(
            _MOVE_CHUNKS,
            chunk_ids=list(kept),
            indexes=[chunk.index for chunk in kept.values()],
            starts=[chunk.start for chunk in kept.values()],
            ends=[chunk.end for chunk in kept.values()],
            lines=[_write_lines(chunk) for chunk in kept.values()],
        )


async def insert_chunks(
    session: Session,
    document_id: UUID,
    content: DocumentContent,
    new: dict[UUID, Chunk],
    vectors: dict[UUID, ChunkVectors],
) -> tuple[Counter[int], dict[str, int]]:
    """Store new chunks; those without vectors are to be embedded later. Returns the number of them that hold each
    term, and their words, each with the id of its term."""
    rows = list(new.items())
    terms = Counter[int]()
    words: dict[str, int] = {}

    def analyse(first: int) -> asyncio.Task[_Analysed]:
        # In a thread, so that others have their turn.
        part = rows[first : first + PART]
        work = asyncio.to_thread(_analyse, session.workspace_id, document_id, content.parsed.title, part)
        return asyncio.create_task(work)

    coming = analyse(0)
    try:
        async with session.copying():
            await _copy_rows(session, document_id, content, new, vectors)
            for first in range(0, len(rows), PART):
                written, counted, found = await coming
                coming = analyse(first + PART)  # while the server takes this part
                terms.update(counted)
                words |= found
                await session.copy(_COPY_TERMS, ["uuid", "text", "uuid", "int4[]", "bytea"], written)
    finally:
        coming.cancel()
    return terms, words


async def _copy_rows(
    session: Session,
    document_id: UUID,
    content: DocumentContent,
    new: dict[UUID, Chunk],
    vectors: dict[UUID, ChunkVectors],
) -> None:
    """Copy all rows of the chunks but their terms."""
    workspace_id = session.workspace_id
    await session.copy(
        _COPY_CHUNKS,
        ["uuid", "text", "uuid", "text", "text[]", "text", "jsonb", "vector"],
        (
            (
                chunk_id,
                workspace_id,
                document_id,
                chunk.content_hash,
                list(chunk.heading_path),
                chunk.text,
                write_json(_describe(content, chunk)),
                vectors[chunk_id].embedding if chunk_id in vectors else None,
            )
            for chunk_id, chunk in new.items()
        ),
    )
    await session.copy(
        _COPY_PLACES,
        ["uuid", "text", "int4", "int4", "int4", "jsonb"],
        (
            (chunk_id, workspace_id, chunk.index, chunk.start, chunk.end, _write_lines(chunk))
            for chunk_id, chunk in new.items()
        ),
    )
    await session.copy(
        _COPY_TOKENS,
        ["uuid", "text", "bytea", "bytea"],
        (
            (chunk_id, workspace_id, stored.tokens, stored.places)
            for chunk_id, stored in vectors.items()
            if stored.tokens
        ),
    )
    if len(vectors) < len(new):
        await session.copy(
            _COPY_TO_EMBED,
            ["uuid", "text", "uuid", "int4"],
            (
                (chunk_id, workspace_id, document_id, chunk.index // ROUND)
                for chunk_id, chunk in new.items()
                if chunk_id not in vectors
            ),
        )


def _analyse(workspace_id: str, document_id: UUID, title: str, chunks: Sequence[tuple[UUID, Chunk]]) -> _Analysed:
    ids = TermIds(workspace_id)
    written, counted = [], Counter[int]()
    for chunk_id, chunk in chunks:
        impacts = weigh_chunk(ids, embedding_text(title, chunk.heading_path, chunk.text, chunk.lead))
        counted.update(impacts.keys())
        # As pgvector reads a sparsevec. Its own class sorts and checks, which takes four times as long.
        size = len(impacts)
        vector = pack(f">3i{size}i{size}f", TERM_IDS, size, 0, *impacts, *impacts.values())
        written.append((chunk_id, workspace_id, document_id, list(impacts), vector))
    return written, counted, list_words(workspace_id, ids)


def _describe(content: DocumentContent, chunk: Chunk) -> dict[str, str]:
    """Return the chunk's metadata, which re-embedding needs and which readers of the table with LangChain see."""
    described = {"title": content.parsed.title, "source": content.source}
    return described | {"lead": chunk.lead} if chunk.lead else described


def _write_lines(chunk: Chunk) -> Jsonb:
    return write_json([write_line(line) for line in chunk.lines])
