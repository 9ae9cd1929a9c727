"""The files from which documents were read."""

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from domain.errors import MissingOriginal


class OriginalStore(Protocol):
    """Files by the hash of their content. `DocumentStore` writes them together with their documents, and deletes those
    that no document needs any more.

    Raises `DatabaseUnavailable` and `StorageUnavailable`.
    """

    async def measure(self, workspace_id: str, content_hash: str) -> int | None:
        """The size of the file in bytes; None where it is not kept."""

    def read(self, workspace_id: str, content_hash: str) -> AsyncIterator[bytes]:
        """The file in pieces. Ends early where it is deleted meanwhile."""

    async def erase_dropped(self, workspace_id: str | None = None) -> int:
        """Erase the files that no document needs any more and that could not be erased at once. Returns the number of
        those, of one workspace or of all (None), that still could not be."""


async def read_whole(originals: OriginalStore, workspace_id: str, content_hash: str) -> bytes:
    """Return a file. Raises `MissingOriginal` where it is not kept, or is deleted meanwhile, and what `read` raises."""
    size = await originals.measure(workspace_id, content_hash)
    content = b"".join([part async for part in originals.read(workspace_id, content_hash)])
    if not content or len(content) != size:
        raise MissingOriginal
    return content


class ObjectStorage(Protocol):
    """Objects by key, outside of the database.

    Raises `StorageUnavailable`.
    """

    async def check_access(self) -> None:
        """Write an object. Raises `ConfigurationError` where there is no such storage, or it refuses the key."""

    async def find_problem(self) -> str | None:
        """The problem in words, for health checks; None where the storage answers."""

    async def put(self, key: str, content: bytes) -> None:
        """Store an object, whole or not at all."""

    def read(self, key: str) -> AsyncIterator[bytes]:
        """The object in pieces; nothing where there is none."""

    async def delete(self, keys: Sequence[str]) -> None:
        """Delete these objects. One that is not there counts as deleted."""
