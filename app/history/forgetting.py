"""Forgets a document or a thread everywhere, and proves it by searching for it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from domain.errors import UnknownDocument
from domain.history.erasure import CacheEraser, Eraser, Erasure
from domain.ports.originals import OriginalStore
from domain.ports.streams import RunStreams

CACHE = "cache"
"""The name of the cache server among the tables."""

FILES = "files in S3-compatible storage"
"""The name, among the tables, of files that could not be erased yet."""


@dataclass(frozen=True, slots=True)
class Forgetting:
    """Erases from the database and the cache server, in this order: what is erased there is not cached again."""

    eraser: Eraser
    cache: CacheEraser
    streams: RunStreams
    delete_document: Callable[[str, str], Awaitable[bool]]
    """Deletes a document with its chunks, its revisions and its file, by workspace and id."""
    originals: OriginalStore

    async def forget_document(self, workspace_id: str, document_id: str) -> Erasure:
        """Erase a document, and what runs, states, tapes and cached answers hold of it. The conversations stay, with a
        marker in the place of what they quoted.

        Raises `UnknownDocument` where there is none and nothing mentions it, and `DatabaseUnavailable`.
        """
        needles = await self.eraser.read_needles(workspace_id, document_id)
        if needles is None:
            raise UnknownDocument(f"There is no document {document_id!r} in this workspace.")
        deleted = await self.delete_document(workspace_id, document_id)
        erasure = await self.eraser.erase_document(workspace_id, document_id, needles)
        erasure.rows["documents"] += deleted
        await self._finish(workspace_id, erasure)
        if left := await self.originals.erase_dropped(workspace_id):
            erasure.found[FILES] = left
        return erasure

    async def forget_thread(self, workspace_id: str, thread_id: str) -> Erasure:
        """Delete a thread, its branches, and all that is stored of them. What their runs cost stays known.

        Raises `UnknownThread`, `ThreadBusy` while a question of the thread is being answered, and
        `DatabaseUnavailable`.
        """
        return await self._finish(workspace_id, await self.eraser.erase_thread(workspace_id, thread_id))

    async def _finish(self, workspace_id: str, erasure: Erasure) -> Erasure:
        # Events that wait to be written together would come after the others are gone.
        for run_id in erasure.run_ids:
            await self.streams.flush(run_id)
        erasure.rows[CACHE] += await self.cache.erase(workspace_id, list(erasure.run_ids), erasure.needles)
        tables, found = await self.eraser.search(erasure.needles)
        in_cache = await self.cache.search(erasure.needles)
        erasure.searched = tables + 1
        erasure.found.update({**found, CACHE: in_cache} if in_cache else found)
        return erasure
