"""How much a workspace, or the caller of a key in all of them, may hold."""

from dataclasses import dataclass

from domain.errors import StorageFull

NEARLY_FULL = 0.9
"""Share of a limit from which whoever adds something is told."""


@dataclass(frozen=True, slots=True)
class Incoming:
    """A file that is to be stored."""

    source: str
    size: int
    replaces: str | None
    """Id of the document whose content it becomes."""
    brought_by: str | None
    """The caller; None: a command."""
    arrival: int | None = None
    """None: it comes after all that waits."""


@dataclass(frozen=True, slots=True)
class Held:
    """The documents of a workspace or a caller, and the bytes of their files, with those that wait to be read."""

    documents: int
    bytes: int
    has_it: bool
    """Whether the document that the file replaces is one of them."""


@dataclass(frozen=True, slots=True)
class StorageLimit:
    """What a workspace or a caller may hold; None: no limit."""

    documents: int | None = None
    megabytes: int | None = None

    def admit(self, holder: str, held: Held, size: int) -> str | None:
        """Return a note where the holder is nearly full with a file of `size` bytes. Raises `StorageFull` where there
        is no room for it."""
        notes = list[str]()
        for most, before, amount, unit in (
            (self.documents, held.documents, held.documents + (not held.has_it), "documents"),
            (self.megabytes and self.megabytes * 1_000_000, held.bytes, held.bytes + size, "bytes of files"),
        ):
            if most and amount > max(most, before):
                raise StorageFull(f"{holder} may hold {most:,} {unit}, and has {before:,}. Delete some first.")
            if most and amount >= NEARLY_FULL * most:
                notes.append(f"{holder} holds {amount:,} of the {most:,} {unit} that it may.")
        return " ".join(notes) or None


UNLIMITED = StorageLimit()
