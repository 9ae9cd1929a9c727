"""Files that were accepted and are read later."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Query

from app.api.dependencies import CallerScope, DocumentsDep, IngestionsDep, needs
from app.api.schema.descriptions import describe_ingestion
from app.api.schema.openapi import answer_with, list_of
from askgraph import models
from domain.errors import UnknownIngestion
from domain.library.ingestions import IngestionStatus
from domain.ports.documents import DocumentStore
from domain.ports.ingestions import IngestionQueue
from domain.scope import Scope, admits

SHOWN_FOR = timedelta(hours=1)
"""Time after its end for which an ingestion is listed."""

router = APIRouter(prefix="/api/ingestions", tags=["documents"], route_class=needs("ingest"))


@router.get("", **answer_with(list_of("ingestions", models.Ingestion), "The ingestions."))
async def list_ingestions(
    ingestions: IngestionsDep,
    documents: DocumentsDep,
    scope: CallerScope,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> dict[str, Any]:
    """List the files that wait or are being read, and those that have ended in the last hour, the latest first."""
    found = await ingestions.list(scope.workspace_id, limit, since=datetime.now(UTC) - SHOWN_FOR)
    return {"ingestions": [describe_ingestion(each) for each in await _pick_open(documents, scope, found)]}


@router.get("/{ingestion_id}", **answer_with(models.Ingestion, "The ingestion's state.", 404))
async def get_ingestion(
    ingestion_id: str, ingestions: IngestionsDep, documents: DocumentsDep, scope: CallerScope
) -> dict[str, Any]:
    """Return the state of a file's ingestion: queued, running, done or failed, and its report once it has ended."""
    return describe_ingestion(await _find(ingestions, documents, scope, ingestion_id))


@router.delete("/{ingestion_id}", **answer_with(models.Ingestion, "The ingestion's state now.", 404))
async def cancel_ingestion(
    ingestion_id: str, ingestions: IngestionsDep, documents: DocumentsDep, scope: CallerScope
) -> dict[str, Any]:
    """Give up a file that waits or is being read. Nothing of it is stored. One that has ended stays as it is."""
    status = await _find(ingestions, documents, scope, ingestion_id)
    return describe_ingestion(await ingestions.cancel(scope.workspace_id, ingestion_id) or status)


async def _find(
    ingestions: IngestionQueue, documents: DocumentStore, scope: Scope, ingestion_id: str
) -> IngestionStatus:
    """Raises `UnknownIngestion` where there is none whose document the caller may read."""
    status = await ingestions.get(scope.workspace_id, ingestion_id)
    if status is None or not await _pick_open(documents, scope, [status]):
        raise UnknownIngestion(f"There is no ingestion {ingestion_id!r} in this workspace.")
    return status


async def _pick_open(
    documents: DocumentStore, scope: Scope, found: Sequence[IngestionStatus]
) -> Sequence[IngestionStatus]:
    """Return those of which the caller may read the document that the file becomes, and whichever it may replace."""
    if scope.groups is None or not found:
        return found
    known = await documents.find_groups(scope.workspace_id, {each.source for each in found})
    return [
        each
        for each in found
        if scope.admits(each.groups or ())
        and all(scope.admits(groups) for groups in known.get(each.source, ()) if admits(groups, each.asking))
    ]
