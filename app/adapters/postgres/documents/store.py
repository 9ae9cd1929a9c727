"""The document store: documents, their chunks, and what is counted per workspace."""

import asyncio
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from typing import Any, LiteralString
from uuid import UUID, uuid4, uuid5

from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from app.adapters.postgres.documents.browsing import browse
from app.adapters.postgres.documents.catalog import DOCUMENT_COLUMNS, GET_CORPUS, PostgresDocumentCatalog, read_document
from app.adapters.postgres.documents.chunks import (
    count_terms,
    delete_chunks,
    find_vectors,
    identify_chunks,
    insert_chunks,
    move_chunks,
    read_stored_chunks,
)
from app.adapters.postgres.documents.frequencies import TermChanges
from app.adapters.postgres.documents.originals import (
    DROP_ALL,
    PostgresOriginals,
    add_original,
    drop_unneeded,
    hold_originals,
    list_needed,
)
from app.adapters.postgres.documents.restricted import check_spelling, restrict, write_numbers
from app.adapters.postgres.documents.revisions import keep_superseded
from app.adapters.postgres.library.ids import parse_ids
from app.adapters.postgres.library.vocabulary import update_vocabulary
from app.adapters.postgres.pool import ALL_WORKSPACES, Pool, Session, open_session
from app.adapters.postgres.queue.leases import HOLD_LEASE, UNFINISHED
from app.adapters.postgres.vectors import vector_index
from app.adapters.postgres.vectors.backlog import ASK_FOR_WORKER
from app.adapters.postgres.vectors.embedding_model import hold_index
from domain.documents import Arrival, Document, pick_named
from domain.errors import NameTaken, Superseded, UnknownDocument
from domain.library.browsing import Browsed, View
from domain.library.metadata import Metadata
from domain.library.storage import Held, Incoming
from domain.people.names import find_twin
from domain.ports.documents import DocumentContent, StoredAs
from domain.ports.embedding import Embedder
from domain.scope import DEFAULT_SCOPE, Scope, admits
from domain.text.sketch import sketch

_NAMESPACE = UUID("6f5d7a1e-5c0b-5b3e-9d58-0a6f3a3b8c11")

_CREATE_WORKSPACE: LiteralString = """
    INSERT INTO workspaces (workspace_id) VALUES (%(workspace_id)s) ON CONFLICT DO NOTHING
"""

_NUMBER_ARRIVAL: LiteralString = "SELECT nextval('arrivals') AS number"

# What people gave the document: now, or before. Of one that is older than this column, what its file does not say.
_GIVEN: LiteralString = """
    coalesce(
        %(given)s::jsonb, documents.given,
        documents.metadata - ARRAY(SELECT jsonb_object_keys(%(metadata)s::jsonb)) - 'file_date'::text
    )
"""

_CONFIRM: LiteralString = f"""
    UPDATE documents SET arrival = greatest(arrival, %(arrival)s),
        given = CASE WHEN arrival > %(arrival)s THEN given ELSE {_GIVEN} END
    WHERE workspace_id = %(workspace_id)s AND document_id = ANY(%(document_ids)s::uuid[])
        AND content_hash = %(content_hash)s AND (
            arrival > %(arrival)s OR metadata = %(metadata)s::jsonb || {_GIVEN}
            AND (%(groups)s::text[] IS NULL OR groups @> %(groups)s::text[] AND groups <@ %(groups)s::text[])
        )
    RETURNING document_id
"""

_HAS_CONTENT: LiteralString = """
    SELECT FROM documents WHERE workspace_id = %(workspace_id)s AND content_hash = %(content_hash)s LIMIT 1
"""

# What arrived earlier than what is stored changes nothing.
_SET_METADATA: LiteralString = f"""
    UPDATE documents SET metadata = %(metadata)s::jsonb || {_GIVEN}, given = {_GIVEN},
        groups = coalesce(%(groups)s::text[], groups), arrival = %(arrival)s, updated_at = clock_timestamp()
    WHERE workspace_id = %(workspace_id)s AND document_id = ANY(%(document_ids)s::uuid[])
        AND content_hash = %(content_hash)s AND arrival <= %(arrival)s
    RETURNING {DOCUMENT_COLUMNS}
"""

_SET_GROUPS: LiteralString = f"""
    UPDATE documents SET groups = %(groups)s, updated_at = clock_timestamp()
    WHERE workspace_id = %(workspace_id)s AND document_id = ANY(%(document_ids)s::uuid[])
    RETURNING {DOCUMENT_COLUMNS}
"""

# The lock that serialises files of one name, also where there is no document of it yet.
_ADD_NAME: LiteralString = """
    INSERT INTO document_marks (workspace_id, document_id, name, revision)
    SELECT workspace_id, %(name)s::uuid, %(name)s::uuid, forgotten_revision
    FROM workspaces WHERE workspace_id = %(workspace_id)s
    ON CONFLICT (workspace_id, document_id) DO NOTHING
"""
_HOLD_NAME: LiteralString = """
    SELECT FROM document_marks
    WHERE workspace_id = %(workspace_id)s AND document_id = ANY(
        ARRAY[%(name)s::uuid] || %(moved_from)s::uuid[] || ARRAY(
            SELECT document_id FROM documents WHERE workspace_id = %(workspace_id)s AND source = %(source)s
        )
    )
    ORDER BY document_id FOR UPDATE
"""

# The mark of a document goes with it. Its old name keeps its groups, for a file that comes there later.
_LEAVE_NAME: LiteralString = """
    WITH left_behind AS (
        UPDATE document_marks SET name = %(name)s
        WHERE workspace_id = %(workspace_id)s AND document_id = %(document_id)s AND name <> %(name)s
    )
    INSERT INTO document_marks (workspace_id, document_id, name, revision, groups)
    SELECT %(workspace_id)s, gen_random_uuid(), %(old_name)s, 0, %(groups)s::text[] WHERE %(groups)s::text[] <> '{}'
"""

_RENAME_CHUNKS: LiteralString = """
    UPDATE chunks SET metadata = metadata || jsonb_build_object('source', %(source)s::text)
    WHERE workspace_id = %(workspace_id)s AND document_id = %(document_id)s
"""

_READ_MARKS: LiteralString = """
    SELECT document_id, name, revision, deleted, groups, given, NOT EXISTS (
        SELECT FROM documents
        WHERE documents.workspace_id = mark.workspace_id AND documents.document_id = mark.document_id
    ) AS is_free
    FROM document_marks AS mark
    WHERE workspace_id = %(workspace_id)s AND (name = %(name)s OR document_id = ANY(%(moved_from)s::uuid[]))
"""

_HOLD_MARK: LiteralString = """
    SELECT FROM document_marks WHERE workspace_id = %(workspace_id)s AND document_id = ANY(%(document_ids)s::uuid[])
    FOR UPDATE
"""

# The name is held. Content that arrived earlier than what is stored changes nothing; content without an arrival counts
# as arriving now. clock_timestamp, because now() is the start of the transaction, which may be before the change it had
# to wait for.
_UPSERT: LiteralString = f"""
    INSERT INTO documents
        (workspace_id, document_id, source, title, media_type, content_hash, pages, characters, chunks, text, arrival,
         metadata, given, unread, revision, groups, brought_by, sketch)
    VALUES (
        %(workspace_id)s, %(document_id)s, %(source)s, %(title)s, %(media_type)s, %(content_hash)s, %(pages)s::int,
        %(characters)s, %(chunks)s, %(text)s, coalesce(%(arrival)s::bigint, nextval('arrivals')),
        %(metadata)s::jsonb || coalesce(%(given)s::jsonb, %(had)s), coalesce(%(given)s::jsonb, %(had)s), %(unread)s,
        %(revision)s, %(groups)s, %(brought_by)s, %(sketch)s
    )
    ON CONFLICT (workspace_id, document_id) DO UPDATE SET
        former = documents.former || array_remove(ARRAY[documents.source], excluded.source),
        source = excluded.source, title = excluded.title, media_type = excluded.media_type,
        content_hash = excluded.content_hash, pages = excluded.pages, characters = excluded.characters,
        chunks = excluded.chunks, text = excluded.text, unread = excluded.unread,
        metadata = %(metadata)s::jsonb || {_GIVEN}, given = {_GIVEN},
        groups = excluded.groups, revision = excluded.revision, brought_by = excluded.brought_by,
        sketch = excluded.sketch,
        revised_at = CASE
            WHEN documents.content_hash = excluded.content_hash THEN documents.revised_at ELSE clock_timestamp()
        END,
        arrival = greatest(documents.arrival, excluded.arrival), updated_at = clock_timestamp()
    WHERE documents.arrival <= excluded.arrival OR %(arrival)s::bigint IS NULL
    RETURNING {DOCUMENT_COLUMNS}
"""

# Run before the upsert, to learn what it replaces. The same order of locks as the upsert's.
_LOCK_NAMED: LiteralString = f"""
    SELECT {DOCUMENT_COLUMNS} FROM documents
    WHERE workspace_id = %(workspace_id)s AND (source = %(source)s OR document_id = ANY(%(moved_from)s::uuid[]))
    ORDER BY document_id
    FOR UPDATE
"""

_LOCK: LiteralString = """
    SELECT source, groups FROM documents
    WHERE workspace_id = %(workspace_id)s AND document_id = ANY(%(document_ids)s::uuid[])
    FOR UPDATE
"""

_USE_REVISION: LiteralString = """
    UPDATE document_marks SET revision = %(revision)s
    WHERE workspace_id = %(workspace_id)s AND document_id = %(document_id)s
"""

_DELETE: LiteralString = """
    WITH gone AS (
        DELETE FROM documents
        WHERE workspace_id = %(workspace_id)s AND document_id = ANY(%(document_ids)s::uuid[])
        RETURNING document_id, revision, groups, given, content_hash, sketch
    )
    INSERT INTO document_marks AS mark
        (workspace_id, document_id, name, revision, deleted, groups, given, content_hash, sketch)
    SELECT %(workspace_id)s, document_id, %(name)s, revision, nextval('arrivals'), groups, given, content_hash, sketch
    FROM gone
    ON CONFLICT (workspace_id, document_id) DO UPDATE SET
        name = excluded.name, revision = excluded.revision, deleted = excluded.deleted, groups = excluded.groups,
        given = excluded.given, content_hash = excluded.content_hash, sketch = excluded.sketch
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


# What one workspace holds, or what a caller brought to all of them.
_IS_COUNTED: LiteralString = (
    "CASE WHEN %(caller)s = '' THEN workspace_id = %(workspace_id)s ELSE brought_by = %(caller)s END"
)

_MEASURE: LiteralString = f"""
    WITH mine AS (SELECT workspace_id, document_id, source, content_hash, arrival FROM documents WHERE {_IS_COUNTED}),
    waiting AS (
        SELECT workspace_id, source, octet_length(content) AS size FROM ingestions
        WHERE {_IS_COUNTED} AND {UNFINISHED} AND (%(arrival)s::bigint IS NULL OR arrival < %(arrival)s)
            AND (workspace_id, arrival) NOT IN (SELECT workspace_id, arrival FROM mine)  -- stored just now
    ),
    coming AS (
        SELECT workspace_id, source FROM waiting EXCEPT SELECT workspace_id, source FROM mine
        EXCEPT VALUES (%(within)s::text, %(source)s::text)
    ),
    file AS (
        SELECT workspace_id, content_hash FROM mine UNION
        SELECT workspace_id, content_hash FROM document_revisions WHERE {_IS_COUNTED}
    ),
    part AS (
        SELECT size FROM waiting UNION ALL
        SELECT octet_length(bytes) FROM originals JOIN file USING (workspace_id, content_hash) UNION ALL
        SELECT size FROM original_objects JOIN file USING (workspace_id, content_hash) WHERE state = 'kept'
    )
    SELECT (SELECT count(*) FROM mine) + (SELECT count(*) FROM coming) AS documents,
        (SELECT coalesce(sum(size), 0)::bigint FROM part) AS bytes,
        EXISTS (SELECT FROM mine WHERE document_id = %(replaces)s::uuid) AS has_it
"""


class PostgresDocumentStore(PostgresDocumentCatalog):
    """Implements `DocumentStore` in PostgreSQL.

    Every change takes its locks in this order: the lease of its file and the row of the embedding model (both shared),
    the documents' name and then their rows by ascending id, their files by ascending hash, the frequencies of its terms
    by ascending id, the workspace's row. Files of one name are therefore serialised, and no two changes deadlock.
    """

    def __init__(
        self,
        pool: Pool,
        embedder: Embedder | None = None,
        originals: PostgresOriginals | None = None,
    ) -> None:
        """`embedder` is the model of the vectors that are stored; without one, any index is accepted. `originals`
        keeps the files; without it the database does."""
        super().__init__(pool)
        self._originals = originals or PostgresOriginals(pool)
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
        row = await self._pool.fetch_one(workspace_id, _NUMBER_ARRIVAL)
        assert row is not None
        return Arrival(row["number"])

    async def confirm(
        self,
        workspace_id: str,
        document: Document,
        arrival: Arrival,
        metadata: Metadata,
        given: Metadata | None = None,
        groups: Sequence[str] | None = None,
    ) -> bool:
        row = await self._pool.fetch_one(
            workspace_id, _CONFIRM, **_spell_metadata(document, arrival, metadata, given, groups)
        )
        return row is not None

    async def measure(self, workspace_id: str, file: Incoming, caller: str = "") -> Held:
        row = await self._pool.fetch_one(
            ALL_WORKSPACES if caller else workspace_id, _MEASURE, **asdict(file), within=workspace_id, caller=caller
        )
        assert row is not None
        return Held(**row)

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
        given: Metadata | None = None,
        groups: Sequence[str] | None = None,
    ) -> Document | None:
        async with open_session(self._pool, workspace_id, transaction=True) as session:
            await _hold_lease(session, arrival)
            await check_spelling(session, groups or ())
            before = await session.fetch_one(_LOCK, document_ids=parse_ids([document.id]))
            row = await session.fetch_one(_SET_METADATA, **_spell_metadata(document, arrival, metadata, given, groups))
            if row is not None:
                await _finish(session, await _move_terms(session, before, row), {})
        return read_document(row)

    async def set_groups(self, workspace_id: str, document_id: str, groups: Sequence[str]) -> Document | None:
        async with open_session(self._pool, workspace_id, transaction=True) as session:
            await check_spelling(session, groups)
            before = await session.fetch_one(_LOCK, document_ids=parse_ids([document_id]))
            row = await session.fetch_one(
                _SET_GROUPS, document_ids=parse_ids([document_id]), groups=sorted(set(groups))
            )
            if row is not None:
                # Cached answers are of another state of the workspace from now on.
                await _finish(session, await _move_terms(session, before, row), {})
        return read_document(row)

    async def replace(self, workspace_id: str, content: DocumentContent) -> tuple[Document, StoredAs]:
        files = {} if content.original is None else {content.content_hash: content.original}
        runs = await asyncio.to_thread(sketch, content.parsed.text)
        async with (
            self._originals.stage(workspace_id, files) as staged,
            open_session(self._pool, workspace_id, transaction=True) as session,
        ):
            await _hold_lease(session, content.arrival)
            await hold_index(session, self._embedder)
            is_new = bool((await session.execute(_CREATE_WORKSPACE)).rowcount)
            shipped = DEFAULT_SCOPE.workspace_id
            if is_new and workspace_id != shipped and find_twin(workspace_id, [shipped]):
                raise NameTaken(f"The workspace {workspace_id!r} looks like {shipped!r}. Give it another name.")
            place = await _find_place(session, content)
            document_id, old = place.document_id, place.old
            groups = place.groups if content.groups is None else content.groups
            await check_spelling(session, groups)
            if content.groups is None and content.brought_by is None:
                groups = await restrict(session, runs, groups)
            await keep_superseded(session, document_id, content.content_hash)
            row = await session.fetch_one(
                _UPSERT,
                document_id=document_id,
                source=content.source,
                title=content.parsed.title,
                media_type=content.parsed.media_type,
                content_hash=content.content_hash,
                pages=content.parsed.pages,
                characters=len(content.parsed.text),
                chunks=len(content.chunks),
                text=content.parsed.text,
                arrival=content.arrival and content.arrival.number,
                metadata=Jsonb(content.metadata),
                given=None if content.given is None else Jsonb(content.given),
                had=Jsonb(place.given),
                unread=Jsonb(content.parsed.unread),
                revision=place.revision,
                groups=sorted(set(groups)),
                brought_by=content.brought_by,
                sketch=write_numbers(runs),
            )
            document = read_document(row)
            if document is None:
                # Of equal files that come at the same time, the last to come may be stored first.
                if old is not None and old.content_hash == content.content_hash:
                    return old, "unchanged"
                raise Superseded
            await session.execute(_USE_REVISION, document_id=document_id, revision=place.revision)
            if old is not None and old.source != content.source:
                await session.execute(
                    _LEAVE_NAME,
                    document_id=document_id,
                    name=document_id_of(workspace_id, content.source),
                    old_name=document_id_of(workspace_id, old.source),
                    groups=list(old.groups or ()),
                )
                await session.execute(_RENAME_CHUNKS, document_id=document_id, source=content.source)
            replaced = set() if old is None else {old.content_hash}
            await hold_originals(session, replaced | staged.keys())
            for content_hash, file in staged.items():
                await add_original(session, content_hash, file)
            await drop_unneeded(session, replaced)
            wanted = identify_chunks(document_id, content.chunks)
            known = await read_stored_chunks(session, [document_id])
            new = {chunk_id: chunk for chunk_id, chunk in wanted.items() if chunk_id not in known}
            gone = [chunk_id for chunk_id in known if chunk_id not in wanted]
            # Before the chunks that they may come from are deleted.
            vectors = await find_vectors(session, document_id, content, new, has_stored=bool(known))
            changes = TermChanges()
            had, has = (old and old.groups) or (), document.groups or ()
            changes.add(had, await count_terms(session, gone), len(gone), -1)
            if set(had) != set(has):
                kept = [chunk_id for chunk_id in known if chunk_id in wanted]
                changes.move(had, has, await count_terms(session, kept), len(kept))
            await delete_chunks(session, gone)
            await move_chunks(session, {chunk_id: chunk for chunk_id, chunk in wanted.items() if chunk_id in known})
            added_terms, words = await insert_chunks(session, document_id, content, new, vectors)
            changes.add(has, added_terms, len(new))
            index_is_due = await _finish(session, changes, words)
            is_embedded = len(vectors) == len(new)
            if not is_embedded:
                await session.execute(ASK_FOR_WORKER)
        # An index is built faster than it grows, so it waits for the last embedding.
        if index_is_due and is_embedded:
            self._indexes.tend()
        return document, _compare(old, document)

    async def delete(self, workspace_id: str, document_id: str) -> bool:
        ids = parse_ids([document_id])
        async with open_session(self._pool, workspace_id, transaction=True) as session:
            await hold_index(session)
            await session.execute(_HOLD_MARK, document_ids=ids)
            document = await session.fetch_one(_LOCK, document_ids=ids)
            if document is None:
                return False
            originals = await list_needed(session, ids)
            gone = list(await read_stored_chunks(session, ids))
            changes = TermChanges()
            changes.add(document["groups"], await count_terms(session, gone), len(gone), -1)
            await session.execute(_DELETE, document_ids=ids, name=document_id_of(workspace_id, document["source"]))
            await hold_originals(session, originals)
            await drop_unneeded(session, originals)
            index_is_due = await _finish(session, changes, {})
        await self._originals.tidy()
        if index_is_due:
            self._indexes.tend()
        return True

    async def clear(self, workspace_id: str) -> None:
        async with open_session(self._pool, workspace_id, transaction=True) as session:
            await hold_index(session)
            for statement in _CLEAR_WORKSPACE:
                await session.execute(statement)
        await self._originals.tidy()
        self._indexes.tend()
        await self._indexes.wait()

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


@dataclass(frozen=True, slots=True)
class _Place:
    """The document that a content becomes."""

    document_id: UUID
    old: Document | None
    """What it is now."""
    revision: int
    """The number of the revision that the content is."""
    groups: Sequence[str] = ()
    """Those that it has, or had when it was deleted."""
    given: Metadata = field(default_factory=dict)
    """What people had given it when it was deleted."""


async def _find_place(session: Session, content: DocumentContent) -> _Place:
    """Hold the content's name, and find the document of this name. Raises `AmbiguousName`, and `Superseded` where the
    document was deleted later than its content came."""
    name = document_id_of(session.workspace_id, content.source)
    moved_from = parse_ids([content.moved_from or ""])
    await session.execute(_ADD_NAME, name=name)
    await session.execute(_HOLD_NAME, name=name, source=content.source, moved_from=moved_from)
    rows = await session.fetch(_LOCK_NAMED, source=content.source, moved_from=moved_from)
    found = [document for document in map(read_document, rows) if document is not None]
    marks = await session.fetch(_READ_MARKS, name=name, moved_from=moved_from)
    asking, arrival = content.asking, content.arrival
    if arrival and any(arrival.number < mark["deleted"] and admits(mark["groups"], asking) for mark in marks):
        raise Superseded("This document was deleted after the file came. Add it again to have it back.")
    named = [document for document in found if document.source == content.source]
    moved = next((document for document in found if document.id == content.moved_from), None)
    if old := pick_named(named, asking, content.groups) or moved:
        return _Place(UUID(old.id), old, old.revision + (old.content_hash != content.content_hash), old.groups or ())
    gone = [mark for mark in marks if mark["is_free"] and (asking is None or mark["deleted"])]
    gone = [mark for mark in gone if admits(mark["groups"], asking)]
    # The last that was deleted under this name, else the one it was moved from, else what left the name behind.
    if was := max(
        gone, key=lambda mark: (mark["name"] == name and mark["deleted"], mark["deleted"], mark["groups"]), default=None
    ):
        return _Place(was["document_id"], None, was["revision"] + 1, was["groups"], was["given"] or {})
    return _Place(uuid4(), None, 1)


async def _hold_lease(session: Session, arrival: Arrival | None) -> None:
    """If the file was read under a lease, hold that until the transaction ends. Raises `Superseded` if it is lost."""
    if arrival is None or arrival.attempt is None:
        return
    if await session.fetch_one(HOLD_LEASE, arrival=arrival.number, attempt=arrival.attempt) is None:
        raise Superseded


def _spell_metadata(
    document: Document, arrival: Arrival, metadata: Metadata, given: Metadata | None, groups: Sequence[str] | None
) -> dict[str, Any]:
    """Return the parameters of `_CONFIRM` and `_SET_METADATA`."""
    return {
        "document_ids": parse_ids([document.id]),
        "content_hash": document.content_hash,
        "arrival": arrival.number,
        "metadata": Jsonb(metadata),
        "given": None if given is None else Jsonb(given),
        "groups": None if groups is None else sorted(set(groups)),
    }


def _compare(old: Document | None, new: Document) -> StoredAs:
    """Say what the document is to what it was."""
    if old is None:
        return "added"
    is_same = (old.source, old.content_hash, old.metadata, set(old.groups or ())) == (
        new.source,
        new.content_hash,
        new.metadata,
        set(new.groups or ()),
    )
    return "unchanged" if is_same else "updated"


async def _move_terms(session: Session, before: DictRow | None, now: DictRow) -> TermChanges:
    """Return what changes of the terms' numbers where a document has other groups than before."""
    changes = TermChanges()
    if before is not None and set(before["groups"]) != set(now["groups"]):
        chunk_ids = list(await read_stored_chunks(session, [now["document_id"]]))
        changes.move(before["groups"], now["groups"], await count_terms(session, chunk_ids), len(chunk_ids))
    return changes


async def _finish(session: Session, changes: TermChanges, words: dict[str, int]) -> bool:
    """Update what is counted per workspace. Returns True if the vector index is to be built or dropped.

    Call this last: other changes of the workspace wait from here to the end of the transaction.
    """
    await changes.store(session)
    await update_vocabulary(session, words, changes.list_fewer())
    index = vector_index.name_index(session.workspace_id)
    row = await session.fetch_one(_ADVANCE_GENERATION, chunks=changes.chunks, index=index)
    return row is not None and vector_index.is_due(row["chunks"], row["has_index"])
