"""Erasing a document or a conversation from everything that is stored."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol
from uuid import UUID

ERASED = "[erased]"
"""Stands where something was erased from what stays."""


@dataclass(frozen=True, slots=True)
class Needles:
    """What must not be found any more."""

    workspace_id: str
    ids: tuple[str, ...]
    """Ids of the document, or of the threads."""
    sources: tuple[str, ...] = ()
    """The document's paths."""
    sentences: tuple[str, ...] = ()
    """A sample of what was said, without what other documents or conversations say too."""

    @property
    def texts(self) -> tuple[str, ...]:
        """What nobody writes by chance, so that it must stand nowhere."""
        return (*(name for name in self.ids if _is_uuid(name)), *self.sentences)

    @property
    def names(self) -> tuple[str, ...]:
        """The ids that clients chose. They may be words elsewhere, so that they must only name no thread any more."""
        return tuple(name for name in self.ids if not _is_uuid(name))


@dataclass(slots=True)
class Erasure:
    """The result: what was erased, and the proof that nothing is left."""

    needles: Needles
    rows: Counter[str] = field(default_factory=Counter)
    """Rows that were deleted or changed, by table; keys of the cache server under `cache`."""
    run_ids: frozenset[str] = frozenset()
    """Runs whose events have to go from the cache server."""
    searched: int = 0
    """Tables, and the keys of the cache server as one."""
    found: Counter[str] = field(default_factory=Counter)
    """Rows that still hold a needle, by table; files that do, by folder."""
    remarks: tuple[str, ...] = ()
    """What could not be searched, and how long it holds what was erased."""


Erasable = Literal["document", "thread"]


@dataclass(frozen=True, slots=True)
class PendingErasure:
    """An erasure that was begun and has not ended."""

    workspace_id: str
    kind: Erasable
    target: str
    run_ids: frozenset[str]


class Eraser(Protocol):
    """Erases from the database. Raises `DatabaseUnavailable`."""

    async def read_needles(self, workspace_id: str, document_id: str) -> Needles | None:
        """Return what identifies a document; None where there is none and none of this id was deleted."""
        ...

    async def erase_document(self, workspace_id: str, needles: Needles, *, dry_run: bool = False) -> Erasure:
        """Erase what is left of a document, whose own rows are deleted already by then, from what was made from it:
        runs, states and tapes; or only count it. Raises `ThreadBusy` while it is being answered in a conversation that
        was shown the document."""
        ...

    async def erase_thread(self, workspace_id: str, thread_id: str, *, dry_run: bool = False) -> Erasure:
        """Delete a thread and its branches, or only count what would go. Raises `UnknownThread`, and `ThreadBusy` while
        it is being answered in."""
        ...

    async def begin(self, workspace_id: str, document_id: str) -> None:
        """Note that the document is being erased, before anything of it is."""
        ...

    async def list_begun(self, workspace_id: str) -> frozenset[str]:
        """Return the runs that have begun and not ended. They may have read what is deleted by now."""
        ...

    async def end(self, workspace_id: str, kind: Erasable, target: str) -> None:
        """Take the note away. Erasing a thread makes one, too."""
        ...

    async def list_pending(self) -> Sequence[PendingErasure]:
        """Return what was begun and has not ended, in all workspaces."""
        ...

    async def search(self, needles: Needles) -> tuple[int, Mapping[str, int]]:
        """Search every table. Returns their number, and by table the rows that hold a needle."""
        ...


class CacheEraser(Protocol):
    """Erases from the cache server."""

    async def erase(self, workspace_id: str, run_ids: Sequence[str], *, dry_run: bool = False) -> int:
        """Delete the workspace's cached answers and the events of the runs, or only count them. Returns the number of
        keys."""
        ...

    async def search(self, needles: Needles) -> int | None:
        """Return the number of keys that hold a needle; None where the server does not answer."""
        ...


class FileEraser(Protocol):
    """Erases from the files of servers that this service runs itself."""

    remarks: Sequence[str]
    """What is not reached."""

    async def rewrite(self, kind: Erasable) -> None:
        """Rewrite the files without what was deleted of a document or a thread. Raises `DatabaseUnavailable`."""
        ...

    async def search(self, texts: Sequence[str]) -> Mapping[str, int]:
        """Return the number of files that hold one of the texts as it is, by folder."""
        ...


def _is_uuid(name: str) -> bool:
    try:
        UUID(name)
    except ValueError:
        return False
    return True
