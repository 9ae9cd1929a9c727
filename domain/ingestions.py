"""Files that were taken in, to be read and embedded later."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from domain.documents import DocumentReport

IngestionState = Literal["queued", "running", "done", "superseded", "failed"]
"""The last three are ends. `superseded`: a later version of the document was stored first, and stays. `failed`: the
file did not become a document; its report says why."""


@dataclass(frozen=True, slots=True)
class IngestionStatus:
    """How the ingestion of a file stands."""

    ingestion_id: str
    workspace_id: str
    source: str
    state: IngestionState
    accepted_at: datetime
    ended_at: datetime | None = None
    report: DocumentReport | None = None
    """Once it has ended."""


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
