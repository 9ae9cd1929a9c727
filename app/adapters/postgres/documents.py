"""Documents and their chunks, written."""

from collections import Counter
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from uuid import UUID, uuid5

from pgvector.psycopg import SparseVector  # type: ignore[import-untyped]
from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from app.adapters.postgres import sql
from app.adapters.postgres.lexical import TERM_IDS, weigh_chunk
from app.adapters.postgres.library import parse_ids
from app.adapters.postgres.pool import Pool, Session, open_session
from domain.documents import Chunk, Document, ParsedDocument, Scope, embedding_text
from domain.errors import DatabaseUnavailable, UnknownDocument
from domain.ports import ChunkVectors

_NAMESPACE = UUID("6f5d7a1e-5c0b-5b3e-9d58-0a6f3a3b8c11")


def document_id_of(workspace_id: str, source: str) -> UUID:
    """A document keeps its id for as long as its workspace and source stay the same."""
    return uuid5(_NAMESPACE, f"{workspace_id}\0{source}")


def identify_chunks(document_id: UUID, chunks: Iterable[Chunk]) -> dict[UUID, Chunk]:
    """The chunks by id. The id depends on the document, on what the chunk says, and on how many before it in the
    document say the same; not on where it stands."""
    seen: Counter[str] = Counter()
    identified = {}
    for chunk in chunks:
        identified[uuid5(document_id, f"{chunk.content_hash}\0{seen[chunk.content_hash]}")] = chunk
        seen[chunk.content_hash] += 1
    return identified


class PostgresDocumentStore:
    """Documents and their chunks in PostgreSQL.

    Every change locks, in this order: the document's row, the frequencies of its terms by ascending id, the
    workspace's row. Changes of one document therefore follow each other, and none waits in a circle.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def find(self, workspace_id: str, source: str) -> Document | None:
        async with open_session(self._pool, workspace_id) as session:
            return _read_document(await session.fetch_one(sql.FIND_DOCUMENT, source=source))

    async def find_by_hash(self, workspace_id: str, content_hash: str) -> Document | None:
        async with open_session(self._pool, workspace_id) as session:
            return _read_document(await session.fetch_one(sql.FIND_DOCUMENT_BY_HASH, content_hash=content_hash))

    async def get(self, workspace_id: str, document_id: str) -> Document | None:
        async with open_session(self._pool, workspace_id) as session:
            return _read_document(await session.fetch_one(sql.GET_DOCUMENT, document_ids=parse_ids([document_id])))

    async def get_text(self, workspace_id: str, document_id: str) -> str | None:
        async with open_session(self._pool, workspace_id) as session:
            row = await session.fetch_one(sql.GET_TEXT, document_ids=parse_ids([document_id]))
        return row["text"] if row else None

    async def list(self, workspace_id: str) -> Sequence[Document]:
        async with open_session(self._pool, workspace_id) as session:
            rows = await session.fetch(sql.LIST_DOCUMENTS)
        return [document for row in rows if (document := _read_document(row))]

    async def stored_hashes(self, workspace_id: str, document_id: str) -> frozenset[str]:
        async with open_session(self._pool, workspace_id) as session:
            rows = await session.fetch(sql.STORED_CHUNKS, document_ids=parse_ids([document_id]))
        return frozenset(row["content_hash"] for row in rows)

    async def replace(
        self,
        workspace_id: str,
        source: str,
        content_hash: str,
        parsed: ParsedDocument,
        chunks: Sequence[Chunk],
        embeddings: dict[str, ChunkVectors],
    ) -> Document:
        """As the port says. Raises `DatabaseUnavailable` where another change of the same document has meanwhile
        removed a chunk that `embeddings` counts on."""
        document_id = document_id_of(workspace_id, source)
        wanted = identify_chunks(document_id, chunks)
        async with open_session(self._pool, workspace_id, transaction=True) as session:
            await session.execute(sql.CREATE_WORKSPACE)
            row = await session.fetch_one(
                sql.UPSERT_DOCUMENT,
                document_id=document_id,
                source=source,
                title=parsed.title,
                media_type=parsed.media_type,
                content_hash=content_hash,
                pages=parsed.pages,
                characters=len(parsed.text),
                chunks=len(wanted),
                text=parsed.text,
            )
            stored = {
                row["chunk_id"]: row["content_hash"]
                for row in await session.fetch(sql.STORED_CHUNKS, document_ids=[document_id])
            }
            new = {chunk_id: chunk for chunk_id, chunk in wanted.items() if chunk_id not in stored}
            gone = [chunk_id for chunk_id in stored if chunk_id not in wanted]
            kept = [(chunk_id, chunk) for chunk_id, chunk in wanted.items() if chunk_id in stored]
            vectors = embeddings | await _read_repeated(session, document_id, new, embeddings)
            changed_terms = await _count_removed_terms(session, gone)
            if gone:
                await session.execute(sql.DELETE_CHUNKS, chunk_ids=gone)
            if kept:
                await session.execute(
                    sql.MOVE_CHUNKS,
                    chunk_ids=[chunk_id for chunk_id, _ in kept],
                    indexes=[chunk.index for _, chunk in kept],
                    starts=[chunk.start for _, chunk in kept],
                    ends=[chunk.end for _, chunk in kept],
                    lines=[_write_lines(chunk) for _, chunk in kept],
                )
            changed_terms.update(await _load(session, document_id, source, parsed.title, new, vectors))
            await _finish(session, changed_terms, chunks=len(new) - len(gone))
        document = _read_document(row)
        assert document is not None  # an upsert returns its row
        return document

    async def delete(self, workspace_id: str, document_id: str) -> bool:
        ids = parse_ids([document_id])
        async with open_session(self._pool, workspace_id, transaction=True) as session:
            if await session.fetch_one(sql.LOCK_DOCUMENT, document_ids=ids) is None:
                return False
            gone = [row["chunk_id"] for row in await session.fetch(sql.STORED_CHUNKS, document_ids=ids)]
            changed_terms = await _count_removed_terms(session, gone)
            await session.execute(sql.DELETE_DOCUMENT, document_ids=ids)
            await _finish(session, changed_terms, chunks=-len(gone))
        return True

    async def is_untouched(self, workspace_id: str) -> bool:
        async with open_session(self._pool, workspace_id) as session:
            row = await session.fetch_one(sql.GET_CORPUS)
        return row is None or row["generation"] == 0

    async def corpus_fingerprint(self, scope: Scope) -> str:
        async with open_session(self._pool, scope.workspace_id) as session:
            if scope.document_ids is None:
                row = await session.fetch_one(sql.GET_CORPUS)
                return f"corpus {row['corpus'] if row else 'empty'}"
            rows = await session.fetch(sql.FINGERPRINT_DOCUMENTS, document_ids=parse_ids(scope.document_ids))
        found = {row["document_id"] for row in rows}
        for document_id in scope.document_ids:
            if not found.intersection(parse_ids([document_id])):
                raise UnknownDocument(f"There is no document {document_id!r} in this workspace.")
        states = sorted((str(row["document_id"]), row["content_hash"], row["updated_at"].isoformat()) for row in rows)
        return f"documents {blake2b(repr(states).encode(), digest_size=16).hexdigest()}"


async def _read_repeated(
    session: Session, document_id: UUID, new: dict[UUID, Chunk], embeddings: dict[str, ChunkVectors]
) -> dict[str, ChunkVectors]:
    """Vectors of new chunks that say the same as a stored one, which is why the caller has not computed them."""
    missing = {chunk.content_hash for chunk in new.values()} - embeddings.keys()
    if not missing:
        return {}
    rows = await session.fetch(sql.READ_VECTORS, document_id=document_id, content_hashes=sorted(missing))
    found = {row["content_hash"]: ChunkVectors(row["embedding"], row["tokens"]) for row in rows}
    if missing - found.keys():
        raise DatabaseUnavailable("The document was changed by somebody else at the same time. Try again.")
    return found


async def _count_removed_terms(session: Session, chunk_ids: list[UUID]) -> Counter[int]:
    if not chunk_ids:
        return Counter()
    rows = await session.fetch(sql.COUNT_CHUNK_TERMS, chunk_ids=chunk_ids)
    return Counter({row["term"]: -row["chunks"] for row in rows})


async def _load(
    session: Session,
    document_id: UUID,
    source: str,
    title: str,
    new: dict[UUID, Chunk],
    vectors: dict[str, ChunkVectors],
) -> Counter[int]:
    """Write chunks that are not there yet; returns in how many of them each term stands."""
    workspace_id = session.workspace_id
    impacts = {
        chunk_id: weigh_chunk(workspace_id, embedding_text(title, chunk.heading_path, chunk.text))
        for chunk_id, chunk in new.items()
    }
    metadata = Jsonb({"title": title, "source": source})
    await session.copy(
        sql.COPY_CHUNKS,
        ["uuid", "text", "uuid", "text", "text[]", "text", "jsonb", "vector"],
        [
            (
                chunk_id,
                workspace_id,
                document_id,
                chunk.content_hash,
                list(chunk.heading_path),
                chunk.text,
                metadata,
                vectors[chunk.content_hash].embedding,
            )
            for chunk_id, chunk in new.items()
        ],
    )
    await session.copy(
        sql.COPY_PLACES,
        ["uuid", "text", "int4", "int4", "int4", "jsonb"],
        [
            (chunk_id, workspace_id, chunk.index, chunk.start, chunk.end, _write_lines(chunk))
            for chunk_id, chunk in new.items()
        ],
    )
    await session.copy(
        sql.COPY_TERMS,
        ["uuid", "text", "uuid", "int4[]", "sparsevec"],
        [
            (chunk_id, workspace_id, document_id, list(weights), SparseVector(weights, TERM_IDS))
            for chunk_id, weights in impacts.items()
        ],
    )
    await session.copy(
        sql.COPY_TOKENS,
        ["uuid", "text", "bytea"],
        [
            (chunk_id, workspace_id, tokens)
            for chunk_id, chunk in new.items()
            if (tokens := vectors[chunk.content_hash].tokens)
        ],
    )
    return Counter(term for weights in impacts.values() for term in weights)


async def _finish(session: Session, changed_terms: Counter[int], *, chunks: int) -> None:
    """Bring what is counted per workspace up to date. Last, because other changes of the workspace wait from here
    to the end of the transaction."""
    terms = sorted(term for term, change in changed_terms.items() if change)
    if terms:
        await session.execute(sql.ADD_TERMS, terms=terms, changes=[changed_terms[term] for term in terms])
    await session.execute(sql.ADVANCE_GENERATION, chunks=chunks)


def _write_lines(chunk: Chunk) -> Jsonb:
    return Jsonb(
        [
            [line.start, line.end, line.page, line.box["x"], line.box["y"], line.box["width"], line.box["height"]]
            for line in chunk.lines
        ]
    )


def _read_document(row: DictRow | None) -> Document | None:
    if row is None:
        return None
    return Document(
        id=str(row["document_id"]),
        workspace_id=row["workspace_id"],
        source=row["source"],
        title=row["title"],
        media_type=row["media_type"],
        content_hash=row["content_hash"],
        pages=row["pages"],
        characters=row["characters"],
        chunks=row["chunks"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
    )
