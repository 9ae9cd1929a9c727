"""Files that were accepted, to be read and embedded later."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from domain.documents import DocumentReport

IngestionState = Literal["queued", "running", "done", "superseded", "failed", "cancelled"]
"""The last four are final. `superseded`: a later version of the document was stored first, and stays. `failed`: the
file did not become a document; its report says why."""


IngestionStage = Literal["waiting", "reading", "storing", "embedding", "done"]
"""`reading` counts pages, where the file has some; `embedding` counts chunks, and the document is found by its words
meanwhile. `done`: nothing is left to do, also where the file did not become a document."""


@dataclass(frozen=True, slots=True)
class IngestionProgress:
    """How far an ingestion has come."""

    stage: IngestionStage
    done: int = 0
    total: int | None = None
    """None where it is not known."""


@dataclass(frozen=True, slots=True)
class IngestionStatus:
    """The status of a file's ingestion."""

    ingestion_id: str
    workspace_id: str
    source: str
    state: IngestionState
    accepted_at: datetime
    ended_at: datetime | None = None
    report: DocumentReport | None = None
    """Set once the ingestion has ended."""
    groups: Sequence[str] | None = None
    """Those of the document that the file becomes; None: those that it has."""
    asking: frozenset[str] | None = None
    """Those of whoever brought the file; None: all."""
    progress: IngestionProgress = IngestionProgress("waiting")
    """Within a second or two."""
