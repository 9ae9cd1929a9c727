"""Folders that a workspace is kept in step with."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal, Protocol

SyncAction = Literal["added", "changed", "moved", "removed", "failed"]


@dataclass(frozen=True, slots=True)
class SyncedFile:
    """A file as the last sync that saw it did."""

    folder: str
    """The address of the place that was synced. Of places that overlap, the one that saw the file last."""
    source: str
    """Its path, which is its document's source."""
    content_hash: str
    """SHA-256 of its content, in hex."""
    stamp: str
    """Size and time of the last change: while they are the same, so is the file."""
    document_id: str | None
    """Its document; None where it could not be read."""
    mount: str | None = None
    """The mounted folder that it is in, which may be away as a whole; None where it is in none."""


class SyncedFiles(Protocol):
    """The files of synced folders. Raises `DatabaseUnavailable`."""

    async def list(self, workspace_id: str, folder: str, sources: Collection[str]) -> dict[str, SyncedFile]:
        """Return the files of a folder, and those with these sources, by source."""

    async def put(self, workspace_id: str, file: SyncedFile) -> None:
        """Add a file, or replace what is known of it."""

    async def drop(self, workspace_id: str, source: str) -> None:
        """Forget a file."""
