"""The index of another embedding model, built beside the one in use."""

from collections.abc import AsyncIterator
from typing import Protocol
from uuid import UUID

from domain.ports.embedding import Vector


class NextIndex(Protocol):
    """Holds the vectors of one new model until it replaces the index in use.

    Every method can be repeated after a crash. Raises `DatabaseUnavailable`.
    """

    async def prepare(self) -> bool:
        """Create the new index, or continue the one of an earlier run. False if the index in use is of this model.

        Raises `ConfigurationError`.
        """
        ...

    async def count(self) -> tuple[int, int]:
        """Return how many chunks have their new vector, and how many chunks there are."""
        ...

    def read_missing(self, limit: int) -> AsyncIterator[dict[UUID, str]]:
        """Yield batches of at most `limit` chunks without a new vector: the text to embed by chunk id."""
        ...

    async def keep(self, vectors: dict[UUID, Vector]) -> None:
        """Store new vectors by chunk id."""
        ...

    async def build_indexes(self) -> None:
        """Index the new vectors for search."""
        ...

    async def switch(self) -> bool:
        """Replace the index in use. False if chunks that came meanwhile still lack their vector."""
        ...

    async def check_keys(self) -> None:
        """Validate the foreign keys of the new table."""
        ...
