"""How much a workspace may hold."""

from collections.abc import Iterator
from dataclasses import dataclass

from domain.errors import StorageFull

NEARLY_FULL = 0.9
"""Share of a limit from which whoever adds something is told."""


@dataclass(frozen=True, slots=True)
class Held:
    """The documents of a workspace, and the bytes of their files."""

    documents: int
    bytes: int


@dataclass(frozen=True, slots=True)
class StorageLimit:
    """What a workspace may hold; None: no limit."""

    documents: int | None = None
    bytes: int | None = None

    def admit(self, held: Held, size: int, *, is_new: bool) -> str | None:
        """Return a note where the workspace is nearly full with a file of `size` bytes. `is_new`: it is no new version
        of a document. Raises `StorageFull` where there is no room for it."""
        notes = list[str]()
        for most, before, amount, unit in self._compare(held, held.documents + is_new, held.bytes + size):
            if amount > max(most, before):
                raise StorageFull(f"This workspace may hold {most:,} {unit}, and has {before:,}. Delete some first.")
            if amount >= NEARLY_FULL * most:
                notes.append(f"The workspace holds {amount:,} of the {most:,} {unit} that it may.")
        return " ".join(notes) or None

    def _compare(self, held: Held, documents: int, size: int) -> Iterator[tuple[int, int, int, str]]:
        if self.documents is not None:
            yield self.documents, held.documents, documents, "documents"
        if self.bytes is not None:
            yield self.bytes, held.bytes, size, "bytes of files"


UNLIMITED = StorageLimit()
