"""What became of files that were taken in and are read later."""

from typing import Any

from fastapi import APIRouter

from app.api.dependencies import ServicesDep, Workspace
from app.descriptions import describe_ingestion
from domain.errors import UnknownIngestion

router = APIRouter(prefix="/api/ingestions", tags=["documents"])


@router.get("/{ingestion_id}")
async def get_ingestion(ingestion_id: str, services: ServicesDep, workspace: Workspace = "default") -> dict[str, Any]:
    """How the ingestion of a file stands: queued, running, done or failed, and its report once it has ended."""
    status = await services.ingestions.get(workspace, ingestion_id)
    if status is None:
        raise UnknownIngestion(f"There is no ingestion {ingestion_id!r} in this workspace.")
    return describe_ingestion(status)
