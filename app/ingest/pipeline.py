"""Read, chunk, embed, store."""

import asyncio
import hashlib
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from app.ingest.chunking import split
from app.ingest.files import find_files, load, report_bad_name, report_failure
from app.ingest.metadata.sidecars import read_sidecar
from app.ingest.parser_workers import ParserWorkers
from app.ingest.preparation import prepare
from app.ingest.reading import MAX_BYTES, read_own_metadata
from domain.documents import (
    Arrival,
    Chunk,
    Document,
    DocumentReport,
    ParsedDocument,
    embedding_text,
    tell_unread,
)
from domain.errors import DocumentError, MetadataError, Superseded, Unavailable
from domain.library.ingestions import IngestionProgress
from domain.library.metadata import Metadata
from domain.library.storage import UNLIMITED, Incoming, StorageLimit
from domain.people.access import KEY_PREFIX
from domain.people.names import spell_name
from domain.ports.answers import AnswerCache
from domain.ports.documents import ChunkVectors, DocumentContent, DocumentStore, EmbeddingBacklog, PassageEncoder
from domain.ports.keys import KeyStore

BATCH = 32
"""Chunks handed to the embedder at once."""

WHOLE = 64
"""Limit, in chunks, up to which a document is stored with its embeddings, which takes about a second. A longer one is
stored first, so that its words find it at once, and embedded then."""

POLL_SECONDS = 0.05
"""Interval of looks at a document whose last chunks another worker embeds."""


class Ingestion:
    """Brings files into a workspace's library and removes them."""

    def __init__(
        self,
        store: DocumentStore,
        encoder: PassageEncoder,
        cache: AnswerCache,
        workers: ParserWorkers,
        *,
        backlog: EmbeddingBacklog | None = None,
        max_bytes: int = MAX_BYTES,
        limit: StorageLimit = UNLIMITED,
        keys: KeyStore | None = None,
    ) -> None:
        """Without a `backlog`, no document is stored before it is embedded. `limit` is that of each workspace; `keys`
        know those of their callers."""
        self._limit = limit
        self._keys = keys
        self._backlog = backlog
        self._store = store
        self._encoder = encoder
        self._cache = cache
        self._workers = workers
        self._max_bytes = max_bytes

    async def add(
        self,
        workspace_id: str,
        source: str,
        data: bytes,
        *,
        media_type: str | None = None,
        metadata: Metadata | None = None,
        sidecar: Metadata | None = None,
        groups: Sequence[str] | None = None,
        asking: frozenset[str] | None = None,
        moved_from: str | None = None,
        brought_by: str | None = None,
        arrival: Arrival | None = None,
        later: bool = False,
        on_stage: Callable[[IngestionProgress], None] = lambda _: None,
    ) -> DocumentReport:
        """Add a file, or replace the document of its name which whoever brings it may read (with the groups `asking`;
        None: all); only chunks that are not stored are embedded. With `later`, a worker embeds them, and the document
        is found by its words until then. Without an `arrival`, the file has arrived now. Where there is no document of
        its name, it is `moved_from`, the id of one that had another name, or that was deleted. It is stored for
        the caller who brought its content last (`brought_by`; None: a command).

        The document's metadata becomes what the file has in itself, with its `sidecar` and then `metadata` on top. With
        None, the metadata that was given before stays, and so do the groups. Content that the document has already is
        left alone: the report is ``unchanged``. Where only metadata or groups differ, only they are stored. The report
        of a file that cannot be read is ``failed``. It is ``superseded`` if a later file was stored for the same
        document meanwhile.

        Raises `DatabaseUnavailable`, `EmbedderUnavailable` and `Draining`.
        """
        source = spell_name(source)
        if refused := report_bad_name(source):
            return refused
        content_hash = hashlib.sha256(data).hexdigest()
        arrival = arrival or await self._store.number_arrival(workspace_id)
        sidecar = sidecar or {}
        try:
            existing = await self._store.find(workspace_id, source, asking=asking, groups=groups)
            if existing is None and moved_from is None and (written := unicodedata.normalize("NFD", source)) != source:
                # As 1.0.0 kept names that come from macOS.
                older = await self._store.find(workspace_id, written, asking=asking, groups=groups)
                moved_from = older.id if older else None
            if existing is None and moved_from is not None:
                existing = await self._store.get(workspace_id, moved_from)
            elif existing is not None and existing.content_hash == content_hash:
                own = await self._workers.run(
                    partial(read_own_metadata, source, data, media_type),
                    len(data),
                    owner=workspace_id,
                    is_short=True,
                )
                if report := await self._keep_known(workspace_id, existing, arrival, own | sidecar, metadata, groups):
                    await self._store.keep_original(workspace_id, content_hash, data)
                    return report
            replaces = existing.id if existing else None
            coming = Incoming(source, len(data), replaces, brought_by, arrival.number)
            room = await self.check_room(workspace_id, coming)
            parsed, chunks = await self._workers.run(
                partial(
                    prepare,
                    source,
                    data,
                    media_type=media_type,
                    max_bytes=self._max_bytes,
                ),
                len(data),
                lambda done, total: on_stage(IngestionProgress("reading", done, total)),
                owner=workspace_id,
            )
            on_stage(IngestionProgress("storing", 0, len(chunks)))
            content = DocumentContent(
                source,
                content_hash,
                parsed,
                chunks,
                {},
                arrival,
                parsed.metadata | sidecar,
                metadata,
                original=data,
                groups=None if groups is None else tuple(groups),
                asking=asking,
                moved_from=moved_from,
                brought_by=brought_by,
            )
            report = await self._keep(workspace_id, content, existing, later=later)
            return replace(report, note=" ".join(filter(None, (report.note, room))) or None)
        except DocumentError as error:
            return report_failure(source, error)

    async def check_room(self, workspace_id: str, file: Incoming) -> str | None:
        """Return a note where the workspace, or what the caller's key may have stored, is nearly full with the file.
        Raises `StorageFull` where there is no room for it, and `DatabaseUnavailable`."""
        caller, limits = file.brought_by, {"": self._limit}
        if self._keys and caller and (key := await self._keys.get(caller.removeprefix(KEY_PREFIX))):
            limits[caller] = StorageLimit(key.limits.max_documents, key.limits.max_stored_mb)
        notes = list[str | None]()
        for name, limit in limits.items():
            if limit != UNLIMITED:
                held = await self._store.measure(workspace_id, file, name)
                notes.append(limit.admit("Your key" if name else "This workspace", held, file.size))
        return " ".join(filter(None, notes)) or None

    async def add_parsed(
        self, workspace_id: str, source: str, parsed: ParsedDocument, content_hash: str
    ) -> DocumentReport:
        """Add a document that was read already, or replace what `source` held before. `content_hash` is the caller's:
        equal to that of `source` now, nothing is done.

        Raises `DatabaseUnavailable` and `EmbedderUnavailable`.
        """
        arrival = await self._store.number_arrival(workspace_id)
        existing = await self._store.find(workspace_id, source)
        if (
            existing is not None
            and existing.content_hash == content_hash
            and (report := await self._keep_known(workspace_id, existing, arrival, parsed.metadata, None, None))
        ):
            return report
        chunks = await asyncio.to_thread(split, parsed)
        content = DocumentContent(source, content_hash, parsed, chunks, {}, arrival, parsed.metadata)
        return await self._keep(workspace_id, content, existing)

    async def add_path(self, workspace_id: str, path: Path) -> list[DocumentReport]:
        """Add a file, or those of supported types in a folder. One that fails does not stop the others.

        Raises `DatabaseUnavailable` and `EmbedderUnavailable`.
        """
        found, _ = await asyncio.to_thread(find_files, path)
        return [
            each if isinstance(each, DocumentReport) else await self._add_file(workspace_id, each) for each in found
        ]

    async def embed_added(self, workspace_id: str, report: DocumentReport) -> DocumentReport:
        """Embed what was added `later` and is still to be embedded. Returns the report, with a note where that has to
        wait. Raises `DatabaseUnavailable`."""
        if self._backlog is None or not report.embedded or report.document_id is None:
            return report
        note = await self._embed_stored(workspace_id, report.document_id)
        return replace(report, note=" ".join(filter(None, (report.note, note))) or None)

    async def delete(self, workspace_id: str, document_id: str) -> bool:
        """Delete a document and forget the workspace's cached answers. Returns False if there is no such document.

        Raises `DatabaseUnavailable`.
        """
        deleted = await self._store.delete(workspace_id, document_id)
        if deleted:
            await self._cache.forget(workspace_id)
        return deleted

    async def _keep_known(
        self,
        workspace_id: str,
        known: Document,
        arrival: Arrival,
        metadata: Metadata,
        given: Metadata | None,
        groups: Sequence[str] | None,
    ) -> DocumentReport | None:
        """Return the report of content that `known` has already; None where the file has to be read after all."""
        report = DocumentReport(
            known.source, "unchanged", known.id, known.title, known.pages, known.chunks, unread=known.unread
        )
        if await self._store.confirm(workspace_id, known, arrival, metadata, given, groups):
            return report
        try:
            changed = await self._store.set_metadata(workspace_id, known, arrival, metadata, given, groups)
        except Superseded as error:
            return DocumentReport(known.source, "superseded", note=error.message)
        if changed is None:
            return None
        await self._cache.forget(workspace_id)
        what = "who may read it" if changed.metadata == known.metadata else "its metadata"
        return replace(report, status="updated", note=f"Only {what} has changed.")

    async def _keep(
        self,
        workspace_id: str,
        content: DocumentContent,
        existing: Document | None,
        *,
        later: bool = False,
    ) -> DocumentReport:
        """Embed and store the content, which comes without vectors."""
        source = content.source
        stored = await self._store.stored_hashes(workspace_id, existing.id) if existing else frozenset()
        new = [chunk for chunk in content.chunks if chunk.content_hash not in stored]
        count = len({chunk.content_hash for chunk in new})
        is_stored_first = self._backlog is not None and count > (0 if later else WHOLE)
        vectors = {} if is_stored_first else await self._embed(content.parsed, new)
        try:
            document, status = await self._store.replace(workspace_id, replace(content, embeddings=vectors))
        except Superseded as error:
            return DocumentReport(source, "superseded", note=error.message)
        if status != "added":
            await self._cache.forget(workspace_id)  # no cached answer quotes what the document no longer says
        notes = [_note_unread(document)]
        if content.groups is None and set(document.groups or ()) != set(existing.groups or () if existing else ()):
            notes.append(f"Only {', '.join(document.groups or ())} may read it.")
        if is_stored_first and not later:
            notes.append(await self._embed_stored(workspace_id, document.id))
        return DocumentReport(
            source=source,
            status=status,
            document_id=document.id,
            title=document.title,
            pages=document.pages,
            chunks=document.chunks,
            embedded=count,
            note=" ".join(filter(None, notes)) or None,
            unread=document.unread,
        )

    async def _add_file(self, workspace_id: str, file: Path) -> DocumentReport:
        try:
            data = await asyncio.to_thread(load, file, self._max_bytes)
            sidecar = await asyncio.to_thread(read_sidecar, file)
        except (DocumentError, MetadataError) as error:
            return report_failure(str(file), error)
        return await self.add(workspace_id, str(file), data, sidecar=sidecar)

    async def _embed_stored(self, workspace_id: str, document_id: str) -> str | None:
        """Embed the chunks of a stored document, together with the workers. Returns a note where that has to wait."""
        assert self._backlog is not None
        place = workspace_id, document_id
        try:
            while await self._backlog.count(*place):
                if not await self._backlog.embed_some_of(*place, self._encoder):
                    await asyncio.sleep(POLL_SECONDS)
        except Unavailable as error:
            return f"Its words find it; its meaning will, once it is embedded. {error.message}"
        return None

    async def _embed(self, parsed: ParsedDocument, chunks: Sequence[Chunk]) -> dict[str, ChunkVectors]:
        """Return the vectors by content hash. Text that the document repeats is embedded once."""
        # In a thread: spelling the 2,000 chunks of a table of 5,000 columns takes a second.
        texts = await asyncio.to_thread(_spell, parsed, chunks)
        hashes = list(texts)
        vectors: dict[str, ChunkVectors] = {}
        for first in range(0, len(hashes), BATCH):
            batch = hashes[first : first + BATCH]
            passages = [texts[content_hash] for content_hash in batch]
            vectors.update(zip(batch, await self._encoder.encode(passages), strict=True))
        return vectors


def _spell(parsed: ParsedDocument, chunks: Sequence[Chunk]) -> dict[str, str]:
    """Return the text that the embedding model reads of each chunk, by content hash."""
    return {
        chunk.content_hash: embedding_text(parsed.title, chunk.heading_path, chunk.text, chunk.lead) for chunk in chunks
    }


def _note_unread(document: Document) -> str | None:
    """Say what of the file was not read, and what to do about it; None where nothing is missing."""
    if not document.unread:
        return None
    option = "" if document.workspace_id == "default" else f" -w {document.workspace_id}"
    is_hidden = any(each["kind"] == "hidden word" for each in document.unread)
    more = f" `askgraph documents --unseen {document.id}{option}` shows the hidden words." if is_hidden else ""
    is_attached = any(each["kind"] == "attachment" for each in document.unread)
    remedy = " Save attached files and add them by themselves." if is_attached else ""
    return f"{tell_unread(document.unread)}{remedy}{more}"
