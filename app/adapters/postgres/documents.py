"""Documents and their chunks, written."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from hashlib import blake2b
from itertools import chain
from uuid import UUID, uuid5

from pgvector.psycopg import SparseVector  # type: ignore[import-untyped]
from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from app.adapters.postgres import queue_sql, sql, vector_index
from app.adapters.postgres.embedding_model import hold_index
from app.adapters.postgres.lexical import TERM_IDS, weigh_chunk
from app.adapters.postgres.library import parse_ids
from app.adapters.postgres.pool import Integers, Pool, Session, open_session
from app.adapters.postgres.vocabulary import list_words, update_vocabulary
from domain.documents import Arrival, Chunk, Document, embedding_text
from domain.errors import DatabaseUnavailable, Superseded, UnknownDocument
from domain.ports.documents import ChunkVectors, DocumentContent
from domain.ports.embedding import Embedder
from domain.scope import Scope

BATCH_CHUNKS = 2_000
"""How many chunks `load` writes in one transaction. The more, the fewer times the count of a common term is
updated."""

_Documents = list[Document]
"""Spelt out here, because within the store `list` is a method."""

Changing = Callable[[str], AbstractAsyncContextManager[None]]

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


@dataclass(frozen=True, slots=True)
class _Row:
    """A chunk and where it belongs."""

    document_id: UUID
    content: DocumentContent
    chunk: Chunk


class PostgresDocumentStore:
    """Documents and their chunks in PostgreSQL.

    Every change locks, in this order: the lease of what it stores and the index, to share; the documents' rows by
    ascending id; the frequencies of its terms by ascending id; the workspace's row. Changes of one document therefore
    follow each other, and none waits in a circle.
    """

    def __init__(
        self, pool: Pool, embedder: Embedder | None = None, changing: Changing = lambda _: nullcontext()
    ) -> None:
        """`embedder` makes the vectors that are stored. Without it, they are taken to be of the index. `changing` is
        entered around every change and its commit, with the workspace's id."""
        self._pool = pool
        self._changing = changing
        self._embedder = None if embedder is None else embedder.name
        self._indexes = vector_index.VectorIndexes(pool)

    def tend_indexes(self) -> None:
        """Have the vector indexes that an earlier process left unfinished built, in the background."""
        self._indexes.tend()

    async def wait_for_indexes(self) -> None:
        """Return once the vector indexes are as the changes so far call for. Searches need not wait: they compare every
        chunk until then."""
        await self._indexes.wait()

    async def close(self) -> None:
        """End the work on vector indexes; within seconds."""
        await self._indexes.close()

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

    async def number_arrival(self, workspace_id: str) -> Arrival:
        async with open_session(self._pool, workspace_id) as session:
            row = await session.fetch_one(sql.NUMBER_ARRIVAL)
        assert row is not None
        return Arrival(row["number"])

    async def confirm(self, workspace_id: str, document: Document, arrival: Arrival) -> bool:
        async with open_session(self._pool, workspace_id) as session:
            row = await session.fetch_one(
                sql.CONFIRM_DOCUMENT,
                document_ids=parse_ids([document.id]),
                content_hash=document.content_hash,
                arrival=arrival.number,
            )
        return row is not None

    async def replace(self, workspace_id: str, content: DocumentContent) -> Document:
        """As the port says. Raises `DatabaseUnavailable` where another change of the same document has meanwhile
        removed a chunk whose vectors the content counts on."""
        [document], index_is_due = await self._replace_batch(workspace_id, [content])
        if index_is_due:
            self._indexes.tend()
        return document

    async def load(self, workspace_id: str, contents: Iterable[DocumentContent]) -> _Documents:
        documents: _Documents = []
        batches = _make_batches(contents)

        async def write_batches() -> None:
            try:
                for batch in batches:
                    written, _ = await self._replace_batch(workspace_id, batch, is_load=True)
                    documents.extend(written)
            except BaseException:
                batches.close()  # the other writer stops after its batch
                raise

        # One prepares rows while the server stores what the other has sent.
        outcomes = await asyncio.gather(write_batches(), write_batches(), return_exceptions=True)
        for outcome in outcomes:
            if outcome is not None:
                raise outcome
        if documents:
            async with open_session(self._pool, workspace_id, transaction=True) as session:
                await session.execute(sql.INDEX_PENDING_TERMS)
            self._indexes.tend()
            await self._indexes.wait()
        return documents

    async def _replace_batch(
        self, workspace_id: str, batch: Sequence[DocumentContent], *, is_load: bool = False
    ) -> tuple[_Documents, bool]:
        """Replace several documents in one transaction; also says whether the workspace's vector index needs care."""
        contents = {document_id_of(workspace_id, content.source): content for content in batch}
        wanted = {
            chunk_id: _Row(document_id, content, chunk)
            for document_id, content in contents.items()
            for chunk_id, chunk in identify_chunks(document_id, content.chunks).items()
        }
        async with self._change(workspace_id) as session:
            for content in batch:
                await _hold_lease(session, content.arrival)
            await hold_index(session, self._embedder)
            if is_load:
                await session.execute(sql.ALLOW_LONG_PENDING_LIST)
            await session.execute(sql.CREATE_WORKSPACE)
            arrivals = [content.arrival and content.arrival.number for content in contents.values()]
            rows = await session.fetch(
                sql.UPSERT_DOCUMENTS,
                document_ids=list(contents),
                sources=[content.source for content in contents.values()],
                titles=[content.parsed.title for content in contents.values()],
                media_types=[content.parsed.media_type for content in contents.values()],
                content_hashes=[content.content_hash for content in contents.values()],
                pages=[content.parsed.pages for content in contents.values()],
                characters=[len(content.parsed.text) for content in contents.values()],
                chunks=[len(content.chunks) for content in contents.values()],
                texts=[content.parsed.text for content in contents.values()],
                arrivals=arrivals,
            )
            if len(rows) < len(contents):
                raise Superseded
            if await session.fetch_one(sql.FIND_DELETED, document_ids=list(contents), arrivals=arrivals) is not None:
                raise Superseded("This document was deleted after the file came. Add it again to have it back.")
            stored = await session.fetch(sql.STORED_CHUNKS, document_ids=list(contents))
            known = {row["chunk_id"] for row in stored}
            new = {chunk_id: row for chunk_id, row in wanted.items() if chunk_id not in known}
            gone = [chunk_id for chunk_id in known if chunk_id not in wanted]
            kept = [(chunk_id, row.chunk) for chunk_id, row in wanted.items() if chunk_id in known]
            vectors = await _find_vectors(session, new)
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
            changed_terms.update(await _load(session, new, vectors))
            words = await asyncio.to_thread(list_words, workspace_id, map(_text_of, new.values()))
            index_is_due = await _finish(session, changed_terms, words, chunks=len(new) - len(gone))
        documents = {row["document_id"]: _read_document(row) for row in rows}
        return [document for i in contents if (document := documents[i]) is not None], index_is_due

    async def delete(self, workspace_id: str, document_id: str) -> bool:
        ids = parse_ids([document_id])
        async with self._change(workspace_id) as session:
            await hold_index(session)
            if await session.fetch_one(sql.LOCK_DOCUMENT, document_ids=ids) is None:
                return False
            gone = [row["chunk_id"] for row in await session.fetch(sql.STORED_CHUNKS, document_ids=ids)]
            changed_terms = await _count_removed_terms(session, gone)
            await session.execute(sql.DELETE_DOCUMENT, document_ids=ids)
            index_is_due = await _finish(session, changed_terms, {}, chunks=-len(gone))
        if index_is_due:
            self._indexes.tend()
        return True

    async def clear(self, workspace_id: str) -> None:
        async with self._change(workspace_id) as session:
            await hold_index(session)
            for statement in sql.CLEAR_WORKSPACE:
                await session.execute(statement)
        self._indexes.tend()
        await self._indexes.wait()

    @asynccontextmanager
    async def _change(self, workspace_id: str) -> AsyncIterator[Session]:
        async with (
            self._changing(workspace_id),
            open_session(self._pool, workspace_id, transaction=True) as session,
        ):
            yield session

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
        states = sorted(
            (str(row["document_id"]), row["content_hash"], row["updated_at"].isoformat(), row["model"]) for row in rows
        )
        return f"documents {blake2b(repr(states).encode(), digest_size=16).hexdigest()}"


async def _hold_lease(session: Session, arrival: Arrival | None) -> None:
    """Keep the lease, if the file was read under one, until the change is committed."""
    if arrival is None or arrival.lease is None:
        return
    if await session.fetch_one(queue_sql.HOLD_LEASE, lease=arrival.lease) is None:
        raise Superseded


def _make_batches(contents: Iterable[DocumentContent]) -> Generator[list[DocumentContent]]:
    """Documents that are written together."""
    batch: list[DocumentContent] = []
    chunks = 0
    for content in contents:
        if batch and chunks + len(content.chunks) > BATCH_CHUNKS:
            yield batch
            batch, chunks = [], 0
        batch.append(content)
        chunks += len(content.chunks)
    if batch:
        yield batch


async def _find_vectors(session: Session, new: dict[UUID, _Row]) -> dict[UUID, ChunkVectors]:
    """Vectors of new chunks: those the caller gave, and those of a stored chunk that says the same, which is why the
    caller has not computed them."""
    vectors = {
        chunk_id: row.content.embeddings[row.chunk.content_hash]
        for chunk_id, row in new.items()
        if row.chunk.content_hash in row.content.embeddings
    }
    repeated = {chunk_id: row for chunk_id, row in new.items() if chunk_id not in vectors}
    if repeated:
        rows = await session.fetch(
            sql.READ_VECTORS,
            document_ids=list({row.document_id for row in repeated.values()}),
            content_hashes=list({row.chunk.content_hash for row in repeated.values()}),
        )
        found = {
            (row["document_id"], row["content_hash"]): ChunkVectors(row["embedding"], row["tokens"]) for row in rows
        }
        for chunk_id, row in repeated.items():
            if (place := (row.document_id, row.chunk.content_hash)) not in found:
                raise DatabaseUnavailable("The document was changed by somebody else at the same time. Try again.")
            vectors[chunk_id] = found[place]
    return vectors


async def _count_removed_terms(session: Session, chunk_ids: list[UUID]) -> Counter[int]:
    if not chunk_ids:
        return Counter()
    rows = await session.fetch(sql.COUNT_CHUNK_TERMS, chunk_ids=chunk_ids)
    return Counter({row["term"]: -row["chunks"] for row in rows})


async def _load(session: Session, new: dict[UUID, _Row], vectors: dict[UUID, ChunkVectors]) -> Counter[int]:
    """Write chunks that are not there yet; returns in how many of them each term stands."""
    workspace_id = session.workspace_id
    # In a thread, because a large document takes a second and others wait for the event loop.
    impacts = await asyncio.to_thread(_weigh, workspace_id, new)
    await session.copy(
        sql.COPY_CHUNKS,
        ["uuid", "text", "uuid", "text", "text[]", "text", "jsonb", "vector"],
        (
            (
                chunk_id,
                workspace_id,
                row.document_id,
                row.chunk.content_hash,
                list(row.chunk.heading_path),
                row.chunk.text,
                Jsonb(_describe(row)),
                vectors[chunk_id].embedding,
            )
            for chunk_id, row in new.items()
        ),
    )
    await session.copy(
        sql.COPY_PLACES,
        ["uuid", "text", "int4", "int4", "int4", "jsonb"],
        (
            (chunk_id, workspace_id, row.chunk.index, row.chunk.start, row.chunk.end, _write_lines(row.chunk))
            for chunk_id, row in new.items()
        ),
    )
    await session.copy(
        sql.COPY_TERMS,
        ["uuid", "text", "uuid", "int4[]", "sparsevec"],
        (
            (chunk_id, workspace_id, new[chunk_id].document_id, list(weights), SparseVector(weights, TERM_IDS))
            for chunk_id, weights in impacts.items()
        ),
    )
    await session.copy(
        sql.COPY_TOKENS,
        ["uuid", "text", "bytea"],
        ((chunk_id, workspace_id, tokens) for chunk_id in new if (tokens := vectors[chunk_id].tokens)),
    )
    return Counter(chain.from_iterable(impacts.values()))


def _describe(row: _Row) -> dict[str, str]:
    """What a chunk is embedded with and its row does not say otherwise; also for who reads the table with LangChain."""
    described = {"title": row.content.parsed.title, "source": row.content.source}
    return described | {"lead": row.chunk.lead} if row.chunk.lead else described


def _weigh(workspace_id: str, rows: dict[UUID, _Row]) -> dict[UUID, dict[int, float]]:
    return {chunk_id: weigh_chunk(workspace_id, _text_of(row)) for chunk_id, row in rows.items()}


def _text_of(row: _Row) -> str:
    return embedding_text(row.content.parsed.title, row.chunk.heading_path, row.chunk.text, row.chunk.lead)


async def _finish(session: Session, changed_terms: Counter[int], words: dict[str, int], *, chunks: int) -> bool:
    """Bring what is counted per workspace up to date. Last, because other changes of the workspace wait from here
    to the end of the transaction. Says whether the workspace's vector index needs care."""
    terms = sorted(term for term, change in changed_terms.items() if change)
    if terms:
        changes = Integers(changed_terms[term] for term in terms)
        await session.execute(sql.ADD_TERMS, terms=Integers(terms), changes=changes)
    await update_vocabulary(session, words, changed_terms)
    index = vector_index.name_index(session.workspace_id)
    row = await session.fetch_one(sql.ADVANCE_GENERATION, chunks=chunks, index=index)
    return row is not None and vector_index.is_due(row["chunks"], row["has_index"])


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
