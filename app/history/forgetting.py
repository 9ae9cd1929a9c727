"""Forgets a document or a thread everywhere, and proves it by searching for it."""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from time import monotonic

from app.history.threads import Threads
from domain.documents import Document
from domain.errors import AskgraphError, UnknownDocument, UnknownThread
from domain.history.erasure import CacheEraser, Erasable, Eraser, Erasure, FileEraser, Found, Needles
from domain.people.names import find_nearest
from domain.ports.documents import DocumentCatalog
from domain.ports.originals import OriginalStore
from domain.ports.streams import RunStreams
from domain.scope import Scope

logger = logging.getLogger("askgraph.forgetting")

BUSY_SECONDS = 60.0
"""Longest wait for the end of runs that may have read the document."""

BUSY = "conversations in which a question is still being answered: forget it again after that"
"""The name, among the tables, of what was waited for in vain."""

CACHE = "cache"
"""The name of the cache server among the tables."""

FILES = "files in S3-compatible storage"
"""The name, among the tables, of files that could not be erased yet."""


UNKNOWN = "Its text is not known any more, so that only its id was looked for."
"""What is remarked of a document that was deleted or forgotten before."""


@dataclass(frozen=True, slots=True)
class Forgetting:
    """Erases from the database and the cache server, in this order: what is erased there is not cached again."""

    eraser: Eraser
    cache: CacheEraser
    streams: RunStreams
    delete_document: Callable[[str, str], Awaitable[bool]]
    """Deletes a document with its chunks, its revisions and its file, by workspace and id."""
    documents: DocumentCatalog
    threads: Threads
    originals: OriginalStore
    files: FileEraser

    async def forget_document(
        self, workspace_id: str, document_id: str, *, asking: frozenset[str] | None = None, dry_run: bool = False
    ) -> Erasure:
        """Erase a document, and what runs, states, tapes and cached answers hold of it. The conversations stay, with a
        notice in the place of what they quoted. With `dry_run`, only count what would go. May be repeated, also for a
        document that is deleted or forgotten.

        Raises `UnknownDocument` where there is none and was none that a caller of these groups may read, and
        `DatabaseUnavailable`. What was begun goes on at the next start.
        """
        needles = await self.eraser.read_needles(workspace_id, document_id, asking)
        if needles is None:
            raise await explain_unknown(self.documents, Scope(workspace_id, groups=asking), document_id)
        if dry_run:
            erasure = Erasure(needles)
            await self.eraser.erase_document(erasure, dry_run=True)
            erasure.rows["documents"] += await self.documents.get(workspace_id, document_id) is not None
            return await self._count_cached(workspace_id, erasure)
        await self.eraser.begin(needles)
        return await self._erase_document(Erasure(needles))

    async def forget_thread(self, workspace_id: str, thread_id: str, *, dry_run: bool = False) -> Erasure:
        """Delete a thread, its branches, and all that is stored of them. What their runs cost stays known. With
        `dry_run`, only count what would go.

        Raises `UnknownThread`, `ThreadBusy` while a question of the thread is being answered, and
        `DatabaseUnavailable`.
        """
        try:
            erasure = await self.eraser.erase_thread(workspace_id, thread_id, dry_run=dry_run)
        except UnknownThread:
            raise await self.threads.explain_unknown(Scope(workspace_id), thread_id) from None
        if dry_run:
            return await self._count_cached(workspace_id, erasure)
        return await self._finish(erasure, "thread", thread_id)

    async def resume(self) -> None:
        """Go on with what was begun by processes that died. What fails is logged, and tried again at the next start."""
        try:
            for kind, begun in await self.eraser.list_pending():
                await self._resume(kind, begun)
        except AskgraphError as error:
            logger.error("What was to be forgotten is not yet, and is tried again at the next start: %s", error.message)

    async def _resume(self, kind: Erasable, begun: Erasure) -> None:
        workspace_id, target = begun.needles.workspace_id, begun.needles.ids[0]
        if kind == "document":
            needles = await self.eraser.read_needles(workspace_id, target) or begun.needles
            erasure = await self._erase_document(replace(begun, needles=needles))
        else:
            # Its rows went in the transaction that noted it.
            erasure = await self._finish(begun, kind, target)
        said = logger.error if erasure.found else logger.info
        said("Went on to forget the %s %s. Left: %s", kind, target, dict(erasure.found) or "nothing")

    async def _erase_document(self, erasure: Erasure) -> Erasure:
        workspace_id, [document_id] = erasure.needles.workspace_id, erasure.needles.ids
        # Deleting the document drops the cached answers, too, without counting them.
        erasure.rows[CACHE] = await self.cache.erase(workspace_id, [])
        erasure.rows["documents"] = await self.delete_document(workspace_id, document_id)
        # What these have read is known once they have ended.
        begun = await self.eraser.list_begun(workspace_id)
        until = monotonic() + BUSY_SECONDS
        found: Sequence[Found] = ()
        while True:
            begun &= await self.eraser.list_begun(workspace_id)
            busy = await self.eraser.erase_document(erasure, found, is_last=not begun) or len(begun)
            before, found = found, ()
            if not busy:
                # What somebody has typed or named, meanwhile too, or what an earlier version has recorded of no run.
                _, found = await self.eraser.search(erasure.needles)
            # What is found is erased once, however long it took to find it.
            if (monotonic() > until and (busy or before)) or (not busy and (not found or found == before)):
                break
            await asyncio.sleep(0.2)
        if busy:
            erasure.found[BUSY] = busy
        await self._finish(erasure, "document", document_id)
        if erased := await self.originals.erase_dropped(workspace_id):
            erasure.found[FILES] = erased
        return erasure

    async def _count_cached(self, workspace_id: str, erasure: Erasure) -> Erasure:
        erasure.rows[CACHE] += await self.cache.erase(workspace_id, list(erasure.run_ids), dry_run=True)
        return erasure

    async def _finish(self, erasure: Erasure, kind: Erasable, target: str) -> Erasure:
        # Events that wait to be written together would come after the others are gone.
        for run_id in erasure.run_ids:
            await self.streams.flush(run_id)
        needles = erasure.needles
        erasure.rows[CACHE] += await self.cache.erase(needles.workspace_id, list(erasure.run_ids))
        await self.files.rewrite(kind)
        tables, found = await self.eraser.search(needles)
        in_cache = await self.cache.search(needles)
        erasure.searched = tables + 1
        for each in found:
            erasure.found[str(each)] += each.rows
        if in_cache is None:
            erasure.found[f"{CACHE}, which does not answer"] = 1
        elif in_cache:
            erasure.found[CACHE] = in_cache
        is_left = kind == "document" and bool(erasure.found)
        erasure.found.update(await self.files.search(needles.sentences))
        # Until here another process could have gone on with what is noted; after this, it has only to end it.
        await self.eraser.settle(kind, target, needles, is_left=is_left)
        if not is_left:
            await self.files.rewrite(None)
            await self.eraser.end(needles.workspace_id, kind, target)
        is_known = kind == "thread" or needles.text
        erasure.remarks = (*self.files.remarks, *(() if is_known else (UNKNOWN,)))
        return erasure


async def find_deletable(documents: DocumentCatalog, asker: Scope, document_id: str) -> Document:
    """Return the document. Raises `UnknownDocument`, which says what may have been meant, where there is none that the
    asker may read; and `DatabaseUnavailable`."""
    document = await documents.get(asker.workspace_id, document_id)
    if document is None or not asker.admits(document.groups):
        raise await explain_unknown(documents, asker, document_id)
    return document


def count_deletion(document: Document) -> Erasure:
    """Return what deleting the document would take away."""
    needles = Needles(document.workspace_id, (document.id,), (document.source,))
    return Erasure(needles, Counter(documents=1, chunks=document.chunks))


async def explain_unknown(documents: DocumentCatalog, asker: Scope, wanted: str) -> UnknownDocument:
    """Make the error for an id that names no document: those whose id, path or title is nearest may be meant."""
    readable = [each for each in await documents.list(asker.workspace_id) if asker.admits(each.groups)]
    nearest = find_nearest(wanted, [name for each in readable for name in (each.title, each.source, each.id)])
    named = [each for each in readable if nearest in (each.title, each.source, each.id)][:3]
    meant = f" Did you mean {' or '.join(f'{each.id} ({each.source})' for each in named)}?" if nearest else ""
    return UnknownDocument(f"There is no document {wanted!r} in this workspace.{meant}")
