"""The files from which documents were read."""

from collections.abc import AsyncIterator
from typing import Protocol


class OriginalStore(Protocol):
    """Files by the hash of their content. `DocumentStore` writes them together with their documents, and deletes those
    that no document needs any more.

    Raises `DatabaseUnavailable`.
    """

    async def measure(self, workspace_id: str, content_hash: str) -> int | None:
        """The size of the file in bytes; None where it is not kept."""
        ...

    def read(self, workspace_id: str, content_hash: str) -> AsyncIterator[bytes]:
        """The file in pieces. Ends early where it is deleted meanwhile."""
        ...
