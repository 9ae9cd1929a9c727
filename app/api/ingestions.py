"""Files that were accepted and are read later."""

from typing import Any

from fastapi import APIRouter

from app.api import examples
from app.api.dependencies import IngestionsDep, Workspace, needs
from app.api.descriptions import describe_ingestion
from app.api.openapi import fail_with, respond_with
from app.api.responses import IngestionBody
from domain.errors import UnknownIngestion
from domain.ingestions import IngestionStatus

router = APIRouter(prefix="/api/ingestions", tags=["documents"], route_class=needs("ingest"))


@router.get(
    "/{ingestion_id}",
    response_model=None,
    responses=respond_with(IngestionBody, examples.INGESTION, "The ingestion's state.") | fail_with(404),
)
async def get_ingestion(ingestion_id: str, ingestions: IngestionsDep, workspace: Workspace) -> dict[str, Any]:
    """Return the state of a file's ingestion: queued, running, done or failed, and its report once it has ended."""
    return _describe(ingestion_id, await ingestions.get(workspace, ingestion_id))


@router.delete(
    "/{ingestion_id}",
    response_model=None,
    responses=respond_with(IngestionBody, examples.CANCELLED_INGESTION, "The ingestion's state now.") | fail_with(404),
)
async def cancel_ingestion(ingestion_id: str, ingestions: IngestionsDep, workspace: Workspace) -> dict[str, Any]:
    """Give up a file that waits or is being read. Nothing of it is stored. One that has ended stays as it is."""
    return _describe(ingestion_id, await ingestions.cancel(workspace, ingestion_id))


def _describe(ingestion_id: str, status: IngestionStatus | None) -> dict[str, Any]:
    if status is None:
        raise UnknownIngestion(f"There is no ingestion {ingestion_id!r} in this workspace.")
    return describe_ingestion(status)
