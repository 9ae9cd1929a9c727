"""Read, chunk, embed, store."""

import asyncio
import hashlib
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

from app.ingest.chunking import OVERLAP, SIZE, split
from app.ingest.files import find_files, load, report_bad_name, report_failure
from app.ingest.reading import MAX_BYTES, read_document
from domain.documents import Arrival, Chunk, Document, DocumentReport, IngestReport, ParsedDocument, embedding_text
from domain.errors import DocumentError, Superseded
from domain.ports.answers import AnswerCache
from domain.ports.documents import ChunkVectors, DocumentContent, DocumentStore, PassageEncoder

BATCH = 32
"""Chunks handed to the embedder at once."""

AT_ONCE = 2
"""Files of a folder that are in work: while one is read or stored, the other is embedded, which is nine tenths of the
work."""


Progress = Callable[[str, int, int], None]
"""Called with the source, how many of its new chunks are embedded, and how many there are."""


class Ingestion:
    """Brings files into a workspace's library and removes them."""

    def __init__(
        self,
        store: DocumentStore,
        encoder: PassageEncoder,
        cache: AnswerCache,
        *,
        chunk_size: int = SIZE,
        chunk_overlap: int = OVERLAP,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self._store = store
        self._encoder = encoder
        self._cache = cache
        self._chunk_size = chunk_size
        self._chunk_overlap = chunk_overlap
        self._max_bytes = max_bytes

    async def add(
        self,
        workspace_id: str,
        source: str,
        data: bytes,
        *,
        media_type: str | None = None,
        arrival: Arrival | None = None,
        progress: Progress | None = None,
    ) -> DocumentReport:
        """Add a file, or replace what `source` held before; only chunks that are not stored are embedded. Unless
        `arrival` says when it came, it comes now.

        Content that is known already, from this source or another, is left alone: the report is ``unchanged`` and
        names the document that has it. A file that cannot be read gives a report with status ``failed``; one of whose
        source a later file was stored meanwhile, ``superseded``.

        Raises `DatabaseUnavailable` and `EmbedderUnavailable`.
        """
        if refused := report_bad_name(source):
            return refused
        content_hash = hashlib.sha256(data).hexdigest()
        arrival = arrival or await self._store.number_arrival(workspace_id)
        existing = await self._store.find(workspace_id, source)
        # a source whose content has changed is updated even to what another source says: its old text must go
        known = existing or await self._store.find_by_hash(workspace_id, content_hash)
        if (
            known is not None
            and known.content_hash == content_hash
            and (known is not existing or await self._store.confirm(workspace_id, known, arrival))
        ):
            note = None if known.source == source else f"The library has the same content as {known.source}."
            return DocumentReport(source, "unchanged", known.id, known.title, known.pages, known.chunks, note=note)
        try:
            parsed, chunks = await asyncio.to_thread(self._prepare, source, data, media_type)
        except DocumentError as error:
            return report_failure(source, error)
        return await self._keep(workspace_id, source, content_hash, arrival, parsed, chunks, existing, progress)

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
            and await self._store.confirm(workspace_id, existing, arrival)
        ):
            return DocumentReport(source, "unchanged", existing.id, existing.title, existing.pages, existing.chunks)
        chunks = await asyncio.to_thread(self._split, parsed)
        return await self._keep(workspace_id, source, content_hash, arrival, parsed, chunks, existing, None)

    async def add_paths(
        self,
        workspace_id: str,
        paths: Sequence[Path | str],
        *,
        progress: Progress | None = None,
    ) -> IngestReport:
        """Add files, and folders with all that is in them.

        In folders, hidden files and files of types that are not supported are passed over; a file named in `paths`
        must be supported. A file that fails does not stop the others.

        Raises `DatabaseUnavailable` and `EmbedderUnavailable`.
        """
        started = time.perf_counter()
        files: list[Path | DocumentReport] = []
        passed_over = 0
        for path in paths:
            found, others = await asyncio.to_thread(find_files, Path(path))
            files += found
            passed_over += others
        reports = await self._add_files(workspace_id, list(dict.fromkeys(files)), progress)
        return IngestReport(reports, round(time.perf_counter() - started, 3), passed_over)

    async def delete(self, workspace_id: str, document_id: str) -> bool:
        """Whether there was such a document. Cached answers of the workspace are forgotten.

        Raises `DatabaseUnavailable`.
        """
        deleted = await self._store.delete(workspace_id, document_id)
        if deleted:
            await self._cache.forget(workspace_id)
        return deleted

    async def _keep(
        self,
        workspace_id: str,
        source: str,
        content_hash: str,
        arrival: Arrival,
        parsed: ParsedDocument,
        chunks: Sequence[Chunk],
        existing: Document | None,
        progress: Progress | None,
    ) -> DocumentReport:
        stored = await self._store.stored_hashes(workspace_id, existing.id) if existing else frozenset()
        new = [chunk for chunk in chunks if chunk.content_hash not in stored]
        vectors = await self._embed(source, parsed, new, progress)
        content = DocumentContent(source, content_hash, parsed, chunks, vectors, arrival)
        try:
            document = await self._store.replace(workspace_id, content)
        except Superseded as error:
            return DocumentReport(source, "superseded", note=error.message)
        if existing is not None:
            await self._cache.forget(workspace_id)  # no cached answer quotes what the document no longer says
        return DocumentReport(
            source=source,
            status="updated" if existing else "added",
            document_id=document.id,
            title=document.title,
            pages=document.pages,
            chunks=document.chunks,
            embedded=len(vectors),
        )

    async def _add_files(
        self, workspace_id: str, files: Sequence[Path | DocumentReport], progress: Progress | None
    ) -> list[DocumentReport]:
        """The report of each, in order."""
        free = asyncio.Semaphore(AT_ONCE)
        # Files that say the same take turns, so that the first of them is the one that is kept.
        turns: defaultdict[bytes, asyncio.Lock] = defaultdict(asyncio.Lock)

        async def add(path: Path, data: bytes) -> DocumentReport:
            try:
                async with turns[hashlib.sha256(data).digest()]:
                    return await self.add(workspace_id, str(path), data, progress=progress)
            finally:
                free.release()

        async def begin(file: Path | DocumentReport) -> DocumentReport | asyncio.Task[DocumentReport]:
            if isinstance(file, DocumentReport):
                return file
            await free.acquire()
            try:
                data = await asyncio.to_thread(load, file, self._max_bytes)
            except DocumentError as error:
                free.release()
                return report_failure(str(file), error)
            return group.create_task(add(file, data))

        try:
            async with asyncio.TaskGroup() as group:
                begun = [await begin(file) for file in files]
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from errors
        return [outcome if isinstance(outcome, DocumentReport) else outcome.result() for outcome in begun]

    def _prepare(self, source: str, data: bytes, media_type: str | None) -> tuple[ParsedDocument, list[Chunk]]:
        parsed = read_document(source, data, media_type=media_type, max_bytes=self._max_bytes)
        return parsed, self._split(parsed)

    def _split(self, parsed: ParsedDocument) -> list[Chunk]:
        return split(parsed, size=self._chunk_size, overlap=self._chunk_overlap)

    async def _embed(
        self, source: str, parsed: ParsedDocument, chunks: Sequence[Chunk], progress: Progress | None
    ) -> dict[str, ChunkVectors]:
        """Vectors by content hash; what the document says repeatedly is embedded once."""
        texts = {
            chunk.content_hash: embedding_text(parsed.title, chunk.heading_path, chunk.text, chunk.lead)
            for chunk in chunks
        }
        hashes = list(texts)
        vectors: dict[str, ChunkVectors] = {}
        for first in range(0, len(hashes), BATCH):
            batch = hashes[first : first + BATCH]
            passages = [texts[content_hash] for content_hash in batch]
            vectors.update(zip(batch, await self._encoder.encode(passages), strict=True))
            if progress is not None:
                progress(source, len(vectors), len(hashes))
        return vectors
