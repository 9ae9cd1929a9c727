"""Erasing a document or a conversation from everything that is stored."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal, NamedTuple, Protocol
from uuid import UUID

ERASED = "[erased]"
"""Stands where something was erased from what stays."""


def write_notice() -> str:
    """Return what stands in the place of an answer that is erased today."""
    return f"[Erased on {datetime.now(UTC).date()}: this answer drew on a document that was forgotten.]"


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
    tokens: tuple[str, ...] = ()
    """The same of its numbers and codes, where it has no sentences. They count where they stand alone."""
    text: str = ""
    """All of the document's words, as `domain.history.repeats` reads them: with its title and metadata, and the
    questions that are proposed of it."""

    @property
    def texts(self) -> tuple[str, ...]:
        """What nobody writes by chance, so that it must stand nowhere."""
        return (*(name for name in self.ids if _is_uuid(name)), *self.sentences)

    @property
    def names(self) -> tuple[str, ...]:
        """The ids that clients chose. They may be words elsewhere, so that they must only name no thread any more."""
        return tuple(name for name in self.ids if not _is_uuid(name))

    @property
    def pattern(self) -> str | None:
        """A regular expression, of Python and of PostgreSQL, for the tokens."""
        return rf"(?<![\w.])(?:{'|'.join(map(re.escape, self.tokens))})(?!\w)" if self.tokens else None

    def are_in(self, held: bytes) -> bool:
        """Return True where one of the texts or tokens stands in it."""
        return any(text.encode() in held for text in self.texts) or bool(
            self.pattern and re.search(self.pattern.encode(), held)
        )


class Found(NamedTuple):
    """Rows of a table, of one run or thread where it says so, that hold a needle or consist of the document's words."""

    table: str
    run_id: str | None
    thread_id: str | None
    rows: int
    repeated: tuple[str, ...] = ()
    """What of them stands in the document."""

    def __str__(self) -> str:
        of = f", run {self.run_id}" if self.run_id else f", thread {self.thread_id}" if self.thread_id else ""
        return self.table + of


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
    """Rows that still hold a needle, by table and run; files that do, by folder."""
    remarks: tuple[str, ...] = ()
    """What could not be searched, and how long it holds what was erased."""


Erasable = Literal["document", "thread"]


class Eraser(Protocol):
    """Erases from the database. Raises `DatabaseUnavailable`."""

    async def read_needles(
        self, workspace_id: str, document_id: str, asking: frozenset[str] | None = None
    ) -> Needles | None:
        """Return what identifies a document; None where there is none, and none of this id was deleted or forgotten,
        that callers of these groups may read."""

    async def erase_document(
        self, erasure: Erasure, found: Sequence[Found] = (), *, is_last: bool = True, dry_run: bool = False
    ) -> int:
        """Erase what is left of a document, whose own rows are deleted already by then, from what was made from it:
        runs, states and tapes; and what a search has found. Or only count it. Conversations in which a question is
        being answered stay as they are; returns how many. What says which runs read the document goes last."""

    async def erase_thread(self, workspace_id: str, thread_id: str, *, dry_run: bool = False) -> Erasure:
        """Delete a thread and its branches, or only count what would go. Raises `UnknownThread`, and `ThreadBusy` while
        it is being answered in."""

    async def begin(self, needles: Needles) -> None:
        """Note that the document is being erased, and what is looked for, before anything of it is."""

    async def list_begun(self, workspace_id: str) -> frozenset[str]:
        """Return the runs that have begun and not ended. They may have read what is deleted by now."""

    async def settle(self, kind: Erasable, target: str, needles: Needles, *, is_left: bool) -> None:
        """Drop what was looked for, as nothing was found. The note stays until `end`. Where something of a document
        `is_left`, keep it for when erasing is repeated."""

    async def end(self, workspace_id: str, kind: Erasable, target: str) -> None:
        """Take the note away; of a document a digest stays. Erasing a thread makes a note, too."""

    async def list_pending(self) -> Sequence[tuple[Erasable, Erasure]]:
        """Return what was begun and has not ended, in all workspaces, with the runs known so far and what is looked
        for."""

    async def search(self, needles: Needles) -> tuple[int, Sequence[Found]]:
        """Search every table, in the rows of the workspace and those of none; and what people wrote for words of the
        document that no other of the workspace has. Returns the number of tables, too."""


class CacheEraser(Protocol):
    """Erases from the cache server."""

    async def erase(self, workspace_id: str, run_ids: Sequence[str], *, dry_run: bool = False) -> int:
        """Delete the workspace's cached answers and the events of the runs, or only count them. Returns the number of
        keys."""

    async def search(self, needles: Needles) -> int | None:
        """Return the number of keys that hold a needle; None where the server does not answer."""


class FileEraser(Protocol):
    """Erases from the files of servers that this service runs itself."""

    remarks: Sequence[str]
    """What is not reached."""

    async def rewrite(self, kind: Erasable | None) -> None:
        """Rewrite the files without what was deleted of a document or a thread; None: of the notes of erasures. Raises
        `DatabaseUnavailable`."""

    async def search(self, texts: Sequence[str]) -> Mapping[str, int]:
        """Return the number of files that hold one of the texts as it is, by folder."""


def _is_uuid(name: str) -> bool:
    try:
        UUID(name)
    except ValueError:
        return False
    return True
