"""The queue of files to ingest."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Protocol

from domain.documents import Arrival, DocumentReport
from domain.library.ingestions import IngestionProgress, IngestionStatus
from domain.library.metadata import Metadata


class IngestionQueue(Protocol):
    """Files that wait for a worker or are being ingested. Files of one name from callers with the same groups are
    ingested in the order in which they came. A worker that has lost its file to another one stores nothing. A file is
    kept until its ingestion has ended.

    Raises `DatabaseUnavailable`.
    """

    async def accept(
        self,
        workspace_id: str,
        source: str,
        content: bytes,
        media_type: str | None = None,
        metadata: Metadata | None = None,
        groups: Sequence[str] | None = None,
        asking: frozenset[str] | None = None,
        sidecar: Metadata | None = None,
        moved_from: str | None = None,
        brought_by: str | None = None,
    ) -> IngestionStatus:
        """Store the file until a worker has ingested it. `asking`: the groups of whoever brings it; None: all.
        `moved_from`: the id of the document that it was under another name.
        `brought_by`: the caller."""

    async def get(self, workspace_id: str, ingestion_id: str) -> IngestionStatus | None: ...

    async def cancel(self, workspace_id: str, ingestion_id: str) -> IngestionStatus | None:
        """Give up an ingestion, also while its file is being read, and return its state then; None where there is none.
        An ingestion that has ended stays as it is."""

    async def list(self, workspace_id: str, limit: int, *, since: datetime | None = None) -> Sequence[IngestionStatus]:
        """Return the latest ingestions, newest first; of those that have ended only the ones that ended since then."""


class Ingest(Protocol):
    """Ingests a file, and tells `on_stage` how far it is. The report says what became of it, including why it is no
    document. Raises `Unavailable`."""

    async def __call__(
        self,
        workspace_id: str,
        source: str,
        data: bytes,
        *,
        media_type: str | None,
        metadata: Metadata | None,
        sidecar: Metadata,
        groups: Sequence[str] | None,
        asking: frozenset[str] | None,
        moved_from: str | None,
        brought_by: str | None,
        arrival: Arrival,
        on_stage: Callable[[IngestionProgress], None],
    ) -> DocumentReport: ...
