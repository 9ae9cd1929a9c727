"""The queue of files that wait to be read."""

from collections.abc import Sequence
from typing import Protocol

from domain.ingestions import IngestionStatus


class IngestionQueue(Protocol):
    """Files that wait, or are read by some worker: those of one source in the order in which they came. What a
    worker reads whose file was meanwhile given to another is not stored. A file is kept until its ingestion has ended.
    Raises `DatabaseUnavailable`."""

    async def accept(
        self, workspace_id: str, source: str, content: bytes, media_type: str | None = None
    ) -> IngestionStatus:
        """Keep the file until a worker has read it."""
        ...

    async def get(self, workspace_id: str, ingestion_id: str) -> IngestionStatus | None: ...

    async def list(self, workspace_id: str, limit: int) -> Sequence[IngestionStatus]:
        """The latest, those that came last first."""
        ...
