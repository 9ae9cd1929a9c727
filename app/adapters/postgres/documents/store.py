"""The document store: documents, their chunks, and what is counted per workspace."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from hashlib import blake2b
from typing import LiteralString
from uuid import UUID, uuid4, uuid5

from psycopg.types.json import Jsonb

from app.adapters.postgres.documents.browsing import browse
from app.adapters.postgres.documents.catalog import DOCUMENT_COLUMNS, GET_CORPUS, PostgresDocumentCatalog, read_document
from app.adapters.postgres.documents.chunks import (
    ChunkRow,
    count_terms,
    delete_chunks,
    find_vectors,
    identify_chunks,
    insert_chunks,
    move_chunks,
    read_stored_chunks,
)
from app.adapters.postgres.documents.originals import (
    DROP_ALL,
    PostgresOriginals,
    add_original,
    drop_unneeded,
    hold_originals,
    list_needed,
)
from app.adapters.postgres.documents.revisions import keep_superseded
from app.adapters.postgres.library.ids import parse_ids
from app.adapters.postgres.library.vocabulary import update_vocabulary
from app.adapters.postgres.pool import ALL_WORKSPACES, Integers, Pool, Session, open_session, write_array
from app.adapters.postgres.queue.leases import HOLD_LEASE
from app.adapters.postgres.vectors import vector_index
from app.adapters.postgres.vectors.backlog import ASK_FOR_WORKER
from app.adapters.postgres.vectors.embedding_model import hold_index
from domain.documents import Arrival, Document, pick_named
from domain.errors import Superseded, UnknownDocument
from domain.library.browsing import Browsed, View
from domain.library.metadata import Metadata
from domain.ports.documents import DocumentContent, StoredAs
from domain.ports.embedding import Embedder
from domain.scope import Scope, admits

BATCH_CHUNKS = 2_000
"""Largest number of chunks that `load` writes in one transaction. The larger, the less often the count of a common term
is updated."""

_Documents = list[Document]
"""An alias, because within the store `list` is a method."""

Changing = Callable[[str], AbstractAsyncContextManager[None]]

_NAMESPACE = UUID("6f5d7a1e-5c0b-5b3e-9d58-0a6f3a3b8c11")

_CREATE_WORKSPACE: LiteralString = """
    INSERT INTO workspaces (workspace_id) VALUES (%(workspace_id)s) ON CONFLICT DO NOTHING
"""

_NUMBER_ARRIVAL: LiteralString = "SELECT nextval('arrivals') AS number"

_CONFIRM: LiteralString = """
    UPDATE documents SET arrival = greatest(arrival, %(arrival)s)
    WHERE workspace_id = %(workspace_id)s AND document_id = ANY(%(document_ids)s::uuid[])
        AND content_hash = %(content_hash)s AND (
            arrival > %(arrival)s OR metadata = %(metadata)s
            AND (%(groups)s::text[] IS NULL OR groups @> %(groups)s::text[] AND groups <@ %(groups)s::text[])
        )
    RETURNING document_id
"""

_HAS_CONTENT: LiteralString = """
    SELECT FROM documents WHERE workspace_id = %(workspace_id)s AND content_hash = %(content_hash)s LIMIT 1
"""

# What arrived earlier than what is stored changes nothing.
_SET_METADATA: LiteralString = f"""
    UPDATE documents SET metadata = %(metadata)s, groups = coalesce(%(groups)s::text[], groups), arrival = %(arrival)s,
        updated_at = clock_timestamp()
    WHERE workspace_id = %(workspace_id)s AND document_id = ANY(%(document_ids)s::uuid[])
        AND content_hash = %(content_hash)s AND arrival <= %(arrival)s
    RETURNING {DOCUMENT_COLUMNS}
"""

_SET_GROUPS: LiteralString = f"""
    UPDATE documents SET groups = %(groups)s, updated_at = clock_timestamp()
    WHERE workspace_id = %(workspace_id)s AND document_id = ANY(%(document_ids)s::uuid[])
    RETURNING {DOCUMENT_COLUMNS}
"""

# The lock that serialises files of one name, also where there is no document of it yet. The rows are taken in ascending
# order.
_HOLD_NAMES: LiteralString = """
    INSERT INTO document_marks AS mark (workspace_id, document_id, name, revision)
    SELECT workspace_id, name, name, forgotten_revision
    FROM workspaces, unnest(%(names)s::uuid[]) AS name
    WHERE workspace_id = %(workspace_id)s
    ORDER BY name
    ON CONFLICT (workspace_id, document_id) DO UPDATE SET revision = mark.revision
"""

_READ_MARKS: LiteralString = """
    SELECT document_id, name, revision, deleted, groups FROM document_marks
    WHERE workspace_id = %(workspace_id)s AND name = ANY(%(names)s::uuid[])
"""

_HOLD_MARK: LiteralString = """
    SELECT FROM document_marks WHERE workspace_id = %(workspace_id)s AND document_id = ANY(%(document_ids)s::uuid[])
    FOR UPDATE
"""

# The names are held. Content that arrived earlier than what is stored changes nothing; content without an arrival
# counts as arriving now. clock_timestamp, because now() is the start of the transaction, which may be before the change
# it had to wait for.
_UPSERT: LiteralString = f"""
    INSERT INTO documents
        (workspace_id, document_id, source, title, media_type, content_hash, pages, characters, chunks, text, arrival,
         metadata, revision, groups)
    SELECT %(workspace_id)s, n.document_id, n.source, n.title, n.media_type, n.content_hash, n.pages, n.characters,
        n.chunks, n.text, coalesce(n.arrival, nextval('arrivals')), n.metadata, n.revision,
        coalesce(
            n.groups::text[], (
                SELECT groups FROM documents AS old
                WHERE old.workspace_id = %(workspace_id)s AND old.document_id = n.document_id
            ), '{{}}'
        )
    FROM unnest(%(document_ids)s::uuid[], %(sources)s::text[], %(titles)s::text[], %(media_types)s::text[],
                %(content_hashes)s::text[], %(pages)s::int[], %(characters)s::int[], %(chunks)s::int[],
                %(texts)s::text[], %(arrivals)s::bigint[], %(metadata)s::jsonb[],
                %(revisions)s::int[], %(groups)s::text[])
        AS n (document_id, source, title, media_type, content_hash, pages, characters, chunks, text, arrival, metadata,
              revision, groups)
    ORDER BY n.document_id
    ON CONFLICT (workspace_id, document_id) DO UPDATE SET
        title = excluded.title, media_type = excluded.media_type, content_hash = excluded.content_hash,
        pages = excluded.pages, characters = excluded.characters, chunks = excluded.chunks, text = excluded.text,
        metadata = excluded.metadata, groups = excluded.groups,
        revision = excluded.revision,
        revised_at = CASE
            WHEN documents.content_hash = excluded.content_hash THEN documents.revised_at ELSE clock_timestamp()
        END,
        arrival = greatest(documents.arrival, excluded.arrival), updated_at = clock_timestamp()
    WHERE documents.arrival <= excluded.arrival OR cardinality(array_remove(%(arrivals)s::bigint[], NULL)) = 0
    RETURNING {DOCUMENT_COLUMNS}
"""

# Run before the upsert, to learn what it replaces. The same order of locks as the upsert's.
_LOCK_NAMED: LiteralString = f"""
    SELECT {DOCUMENT_COLUMNS} FROM documents
    WHERE workspace_id = %(workspace_id)s AND source = ANY(%(sources)s)
    ORDER BY document_id
    FOR UPDATE
"""

_LOCK: LiteralString = """
    SELECT source FROM documents
    WHERE workspace_id = %(workspace_id)s AND document_id = ANY(%(document_ids)s::uuid[])
    FOR UPDATE
"""

_USE_REVISIONS: LiteralString = """
    UPDATE document_marks AS mark SET revision = document.revision
    FROM documents AS document
    WHERE mark.workspace_id = %(workspace_id)s AND document.workspace_id = mark.workspace_id
        AND document.document_id = mark.document_id AND document.document_id = ANY(%(document_ids)s::uuid[])
"""

_DELETE: LiteralString = """
    WITH gone AS (
        DELETE FROM documents
        WHERE workspace_id = %(workspace_id)s AND document_id = ANY(%(document_ids)s::uuid[])
        RETURNING document_id, revision, groups
    )
    INSERT INTO document_marks AS mark (workspace_id, document_id, name, revision, deleted, groups)
    SELECT %(workspace_id)s, document_id, %(name)s, revision, nextval('arrivals'), groups FROM gone
    ON CONFLICT (workspace_id, document_id) DO UPDATE SET
        revision = excluded.revision, deleted = excluded.deleted, groups = excluded.groups
"""

# Chunks first: the cascade from a document would look for its chunks one by one.
_CLEAR_WORKSPACE: tuple[LiteralString, ...] = (
    "DELETE FROM chunks WHERE workspace_id = %(workspace_id)s",
    "DELETE FROM documents WHERE workspace_id = %(workspace_id)s",
    *DROP_ALL,
    "DELETE FROM term_frequencies WHERE workspace_id = %(workspace_id)s",
    "DELETE FROM vocabulary WHERE workspace_id = %(workspace_id)s",
    """UPDATE workspaces SET generation = generation + 1, corpus = gen_random_uuid(), chunks = 0
       WHERE workspace_id = %(workspace_id)s""",
)

# Includes the embedding model, because another model finds other chunks of the same documents.
_FINGERPRINT: LiteralString = """
    SELECT document_id, content_hash, updated_at, (SELECT name FROM embedding_model) AS model,
        (
            SELECT count(*) FROM chunks_to_embed AS c
            WHERE c.workspace_id = documents.workspace_id AND c.document_id = documents.document_id
        ) AS to_embed
    FROM documents
    WHERE workspace_id = %(workspace_id)s AND document_id = ANY(%(document_ids)s::uuid[])
"""

# `load` lets more terms wait, so that several times as many are indexed at once ...
_ALLOW_LONG_PENDING_LIST: LiteralString = "SET LOCAL gin_pending_list_limit = '4MB'"

# ... and indexes the rest at its end.
_INDEX_PENDING_TERMS: LiteralString = """
    SELECT gin_clean_pending_list(oid) FROM pg_class
    WHERE oid = 'chunk_terms_by_term'::regclass AND relkind = 'i'
       OR oid IN (SELECT inhrelid FROM pg_inherits WHERE inhparent = 'chunk_terms_by_term'::regclass)
"""

# The rows are updated in ascending order, so that two concurrent changes cannot deadlock.
_ADD_TERMS: LiteralString = """
    INSERT INTO term_frequencies AS f (workspace_id, term, chunks)
    SELECT %(workspace_id)s, term, change
    FROM unnest(%(terms)s::int[], %(changes)s::int[]) AS n (term, change)
    ON CONFLICT (workspace_id, term) DO UPDATE SET chunks = f.chunks + excluded.chunks
"""

_ADVANCE_GENERATION: LiteralString = """
    UPDATE workspaces SET generation = generation + 1, corpus = gen_random_uuid(), chunks = chunks + %(chunks)s
    WHERE workspace_id = %(workspace_id)s
    RETURNING chunks,
        EXISTS (SELECT FROM pg_index WHERE indexrelid = to_regclass(%(index)s) AND indisvalid) AS has_index
"""


def document_id_of(workspace_id: str, source: str) -> UUID:
    """Return the id of the document that somebody from whom nothing is hidden gives this name. It depends on workspace
    and source alone. Others get ids that nobody can guess, so that no id tells them that a name was taken."""
    return uuid5(_NAMESPACE, f"{workspace_id}\0{source}")


class PostgresDocumentStore(PostgresDocumentCatalog):
    """Implements `DocumentStore` in PostgreSQL.

    Every change takes its locks in this order: the lease of its file and the row of the embedding model (both shared),
    the documents' names and then their rows by ascending id, their files by ascending hash, the frequencies of its
    terms by ascending id, the workspace's row. Files of one name are therefore serialised, and no two changes deadlock.
    """

    def __init__(
        self,
        pool: Pool,
        embedder: Embedder | None = None,
        changing: Changing = lambda _: nullcontext(),
        originals: PostgresOriginals | None = None,
    ) -> None:
        """`embedder` is the model of the vectors that are stored; without one, any index is accepted. `changing` is
        entered with the workspace's id around every change and its commit. `originals` keeps the files; without it the
        database does."""
        super().__init__(pool)
        self._originals = originals or PostgresOriginals(pool)
        self._changing = changing
        self._embedder = None if embedder is None else embedder.name
        self._indexes = vector_index.VectorIndexes(pool)

    async def browse(self, asker: Scope, view: View) -> Browsed:
        async with open_session(self._pool, asker.workspace_id) as session:
            return await browse(session, asker, view)

    def tend_indexes(self) -> None:
        """Build, in the background, the vector indexes that an earlier process left unfinished."""
        self._indexes.tend()

    async def wait_for_indexes(self) -> None:
        """Wait for the vector indexes that the changes so far require. Searches need not wait: until then they compare
        every chunk."""
        await self._indexes.wait()

    async def close(self) -> None:
        """Stop the work on vector indexes, within seconds."""
        await self._indexes.close()

    async def stored_hashes(self, workspace_id: str, document_id: str) -> frozenset[str]:
        async with open_session(self._pool, workspace_id) as session:
            return frozenset((await read_stored_chunks(session, parse_ids([document_id]))).values())

    async def number_arrival(self, workspace_id: str) -> Arrival:
        async with open_session(self._pool, workspace_id) as session:
            row = await session.fetch_one(_NUMBER_ARRIVAL)
        assert row is not None
        return Arrival(row["number"])

    async def confirm(
        self,
        workspace_id: str,
        document: Document,
        arrival: Arrival,
        metadata: Metadata,
        groups: Sequence[str] | None = None,
    ) -> bool:
        async with open_session(self._pool, workspace_id) as session:
            row = await session.fetch_one(
                _CONFIRM,
                document_ids=parse_ids([document.id]),
                content_hash=document.content_hash,
                arrival=arrival.number,
                metadata=Jsonb(metadata),
                groups=None if groups is None else sorted(set(groups)),
            )
        return row is not None

    async def keep_original(self, workspace_id: str, content_hash: str, original: bytes) -> None:
        if await self._originals.measure(workspace_id, content_hash) is not None:
            return
        async with (
            self._originals.stage(workspace_id, {content_hash: original}) as staged,
            open_session(self._pool, workspace_id, transaction=True) as session,
        ):
            await hold_originals(session, [content_hash])
            if await session.fetch_one(_HAS_CONTENT, content_hash=content_hash) is not None:
                await add_original(session, content_hash, staged[content_hash])

    async def set_metadata(
        self,
        workspace_id: str,
        document: Document,
        arrival: Arrival,
        metadata: Metadata,
        groups: Sequence[str] | None = None,
    ) -> Document | None:
        async with self._change(workspace_id) as session:
            await _hold_lease(session, arrival)
            row = await session.fetch_one(
                _SET_METADATA,
                document_ids=parse_ids([document.id]),
                content_hash=document.content_hash,
                arrival=arrival.number,
                metadata=Jsonb(metadata),
                groups=None if groups is None else sorted(set(groups)),
            )
            if row is not None:
                await _finish(session, Counter(), {}, chunks=0)
        return read_document(row)

    async def set_groups(self, workspace_id: str, document_id: str, groups: Sequence[str]) -> Document | None:
        async with self._change(workspace_id) as session:
            row = await session.fetch_one(
                _SET_GROUPS, document_ids=parse_ids([document_id]), groups=sorted(set(groups))
            )
            if row is not None:
                # Cached answers are of another state of the workspace from now on.
                await _finish(session, Counter(), {}, chunks=0)
        return read_document(row)

    async def replace(self, workspace_id: str, content: DocumentContent) -> tuple[Document, StoredAs]:
        [stored], index_is_due = await self._replace_batch(workspace_id, [content])
        if index_is_due:
            self._indexes.tend()
        return stored

    async def load(self, workspace_id: str, contents: Iterable[DocumentContent]) -> _Documents:
        documents: _Documents = []
        batches = _make_batches(contents)

        async def write_batches() -> None:
            try:
                for batch in batches:
                    written, _ = await self._replace_batch(workspace_id, batch, is_load=True)
                    documents.extend(document for document, _ in written)
            except BaseException:
                batches.close()  # the other writer stops after its current batch
                raise

        # Two writers: one prepares rows while the server stores those of the other.
        outcomes = await asyncio.gather(write_batches(), write_batches(), return_exceptions=True)
        for outcome in outcomes:
            if outcome is not None:
                raise outcome
        if documents:
            # Only the owner of an index may do this.
            async with open_session(self._pool, ALL_WORKSPACES, transaction=True) as session:
                await session.execute(_INDEX_PENDING_TERMS)
            self._indexes.tend()
            await self._indexes.wait()
        return documents

    async def _replace_batch(
        self, workspace_id: str, batch: Sequence[DocumentContent], *, is_load: bool = False
    ) -> tuple[list[tuple[Document, StoredAs]], bool]:
        """Replace several documents in one transaction. Returns them with what became of each, and True if the vector
        index is to be built or dropped."""
        files = {each.content_hash: each.original for each in batch if each.original is not None}
        async with self._originals.stage(workspace_id, files) as staged, self._change(workspace_id) as session:
            for content in batch:
                await _hold_lease(session, content.arrival)
            await hold_index(session, self._embedder)
            if is_load:
                await session.execute(_ALLOW_LONG_PENDING_LIST)
            await session.execute(_CREATE_WORKSPACE)
            contents, before, revisions = await _find_places(session, batch)
            wanted = {
                chunk_id: ChunkRow(document_id, content, chunk)
                for document_id, content in contents.items()
                for chunk_id, chunk in identify_chunks(document_id, content.chunks).items()
            }
            replaced = {old.content_hash for old in before.values()}
            await keep_superseded(
                session, {document_id: content.content_hash for document_id, content in contents.items()}
            )
            arrivals = [content.arrival and content.arrival.number for content in contents.values()]
            rows = await session.fetch(
                _UPSERT,
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
                metadata=[Jsonb(content.metadata) for content in contents.values()],
                revisions=[
                    revisions[document_id] + (not old or old.content_hash != content.content_hash)
                    for document_id, content in contents.items()
                    for old in [before.get(document_id)]
                ],
                groups=[
                    None if content.groups is None else write_array(set(content.groups))
                    for content in contents.values()
                ],
            )
            if len(rows) < len(contents):
                # Of equal files that come at the same time, the last to come may be stored first.
                stored = [(old, _compare(old, contents[document_id])) for document_id, old in before.items()]
                if len(contents) == 1 and stored[0][1] == "unchanged":
                    return stored, False
                raise Superseded
            await session.execute(_USE_REVISIONS, document_ids=list(contents))
            await hold_originals(session, replaced | staged.keys())
            for content_hash, file in staged.items():
                await add_original(session, content_hash, file)
            await drop_unneeded(session, replaced)
            known = await read_stored_chunks(session, list(contents))
            new = {chunk_id: row for chunk_id, row in wanted.items() if chunk_id not in known}
            kept = {chunk_id: row.chunk for chunk_id, row in wanted.items() if chunk_id in known}
            gone = [chunk_id for chunk_id in known if chunk_id not in wanted]
            # Before the chunks that they may come from are deleted.
            vectors = await find_vectors(session, new, has_stored=bool(known))
            changed_terms = Counter[int]()
            changed_terms.subtract(await count_terms(session, gone))
            await delete_chunks(session, gone)
            await move_chunks(session, kept)
            added_terms, words = await insert_chunks(session, new, vectors)
            changed_terms.update(added_terms)
            is_embedded = len(vectors) == len(new)
            index_is_due = await _finish(session, changed_terms, words, chunks=len(new) - len(gone))
            if not is_embedded:
                await session.execute(ASK_FOR_WORKER)
        documents = {row["document_id"]: read_document(row) for row in rows}
        # An index is built faster than it grows, so it waits for the last embedding.
        stored = [
            (document, _compare(before.get(document_id), content))
            for document_id, content in contents.items()
            if (document := documents[document_id]) is not None
        ]
        return stored, index_is_due and is_embedded

    async def delete(self, workspace_id: str, document_id: str) -> bool:
        ids = parse_ids([document_id])
        async with self._change(workspace_id) as session:
            await hold_index(session)
            await session.execute(_HOLD_MARK, document_ids=ids)
            document = await session.fetch_one(_LOCK, document_ids=ids)
            if document is None:
                return False
            originals = await list_needed(session, ids)
            gone = list(await read_stored_chunks(session, ids))
            changed_terms = Counter[int]()
            changed_terms.subtract(await count_terms(session, gone))
            await session.execute(_DELETE, document_ids=ids, name=document_id_of(workspace_id, document["source"]))
            await hold_originals(session, originals)
            await drop_unneeded(session, originals)
            index_is_due = await _finish(session, changed_terms, {}, chunks=-len(gone))
        await self._originals.tidy()
        if index_is_due:
            self._indexes.tend()
        return True

    async def clear(self, workspace_id: str) -> None:
        async with self._change(workspace_id) as session:
            await hold_index(session)
            for statement in _CLEAR_WORKSPACE:
                await session.execute(statement)
        await self._originals.tidy()
        self._indexes.tend()
        await self._indexes.wait()

    @asynccontextmanager
    async def _change(self, workspace_id: str) -> AsyncIterator[Session]:
        async with (
            self._changing(workspace_id),
            open_session(self._pool, workspace_id, transaction=True) as session,
        ):
            yield session

    async def corpus_fingerprint(self, scope: Scope) -> str:
        async with open_session(self._pool, scope) as session:
            if scope.document_ids is None:
                # The state of the whole workspace, also for a filter: which documents pass it may change with any.
                row = await session.fetch_one(GET_CORPUS)
                return f"corpus {row['corpus'] if row else 'empty'}"
            rows = await session.fetch(_FINGERPRINT, document_ids=parse_ids(scope.document_ids))
        found = {row["document_id"] for row in rows}
        for document_id in scope.document_ids:
            if not found.intersection(parse_ids([document_id])):
                raise UnknownDocument(f"There is no document {document_id!r} in this workspace.")
        states = sorted(
            (str(row["document_id"]), row["content_hash"], row["updated_at"].isoformat(), row["model"], row["to_embed"])
            for row in rows
        )
        return f"documents {blake2b(repr(states).encode(), digest_size=16).hexdigest()}"


_Places = tuple[dict[UUID, DocumentContent], dict[UUID, Document], dict[UUID, int]]


async def _find_places(session: Session, batch: Sequence[DocumentContent]) -> _Places:
    """Hold the names of the contents. Return the contents by the ids of the documents that they become, what these
    documents are now, and the last revision of each. Raises `AmbiguousName`, and `Superseded` where the document was
    deleted later than its content came."""
    names = {document_id_of(session.workspace_id, content.source): content for content in batch}
    await session.execute(_HOLD_NAMES, names=list(names))
    named = defaultdict[str, list[Document]](list)
    for row in await session.fetch(_LOCK_NAMED, sources=[content.source for content in batch]):
        if document := read_document(row):
            named[document.source].append(document)
    marks = await session.fetch(_READ_MARKS, names=list(names))
    used = {row["document_id"]: row["revision"] for row in marks}
    deleted = defaultdict[UUID, list[tuple[list[str], int]]](list)
    for row in marks:
        deleted[row["name"]].append((row["groups"], row["deleted"]))
    contents, before, revisions = dict[UUID, DocumentContent](), dict[UUID, Document](), dict[UUID, int]()
    for name, content in names.items():
        asking, arrival = content.asking, content.arrival
        if arrival and any(arrival.number < at and admits(groups, asking) for groups, at in deleted[name]):
            raise Superseded("This document was deleted after the file came. Add it again to have it back.")
        if old := pick_named(named[content.source], asking, content.groups):
            document_id = UUID(old.id)
            before[document_id], revisions[document_id] = old, old.revision
        else:
            document_id = name if asking is None else uuid4()
            revisions[document_id] = used.get(document_id, 0)
        contents[document_id] = content
    return contents, before, revisions


async def _hold_lease(session: Session, arrival: Arrival | None) -> None:
    """If the file was read under a lease, hold that until the transaction ends. Raises `Superseded` if it is lost."""
    if arrival is None or arrival.attempt is None:
        return
    if await session.fetch_one(HOLD_LEASE, arrival=arrival.number, attempt=arrival.attempt) is None:
        raise Superseded


def _compare(old: Document | None, new: DocumentContent) -> StoredAs:
    """Say what the content is to what the document held."""
    if old is None:
        return "added"
    groups = old.groups or () if new.groups is None else new.groups
    is_same = (old.content_hash, old.metadata, set(old.groups or ())) == (new.content_hash, new.metadata, set(groups))
    return "unchanged" if is_same else "updated"


def _make_batches(contents: Iterable[DocumentContent]) -> Generator[list[DocumentContent]]:
    """Group the contents into batches of at most `BATCH_CHUNKS` chunks, or of one document."""
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


async def _finish(session: Session, changed_terms: Counter[int], words: dict[str, int], *, chunks: int) -> bool:
    """Update what is counted per workspace. Returns True if the vector index is to be built or dropped.

    Call this last: other changes of the workspace wait from here to the end of the transaction.
    """
    terms = sorted(term for term, change in changed_terms.items() if change)
    if terms:
        changes = Integers(changed_terms[term] for term in terms)
        await session.execute(_ADD_TERMS, terms=Integers(terms), changes=changes)
    await update_vocabulary(session, words, changed_terms)
    index = vector_index.name_index(session.workspace_id)
    row = await session.fetch_one(_ADVANCE_GENERATION, chunks=chunks, index=index)
    return row is not None and vector_index.is_due(row["chunks"], row["has_index"])
