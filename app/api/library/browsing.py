"""Looking through the library."""

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query

from app.api.dependencies import CallerScope, DocumentsDep, needs
from app.api.schema.descriptions import describe
from app.api.schema.openapi import answer_with
from app.api.schema.responses import LibraryBody
from app.api.schema.schemas import WhereQuery
from domain.library.browsing import Order, View
from domain.library.where import Where
from domain.scope import Scope

router = APIRouter(prefix="/api/library", tags=["documents"], route_class=needs("ask"))

_STORABLE = r"^[^\x00]*$"


@router.get("", **answer_with(LibraryBody, "A page of the library."))
async def browse_library(
    documents: DocumentsDep,
    scope: CallerScope,
    q: Annotated[str, Query(max_length=200, pattern=_STORABLE, description="Words in titles and sources.")] = "",
    where: WhereQuery = None,
    folder: Annotated[
        str, Query(max_length=1_100, pattern=_STORABLE, description="Only sources that begin so, such as `hr/`.")
    ] = "",
    sort: Annotated[Order, Query(description="The order of the documents.")] = "name",
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
    offset: Annotated[int, Query(ge=0, le=10_000_000, description="The `next` of the page before.")] = 0,
) -> dict[str, Any]:
    """List a page of the documents that the caller may read, with the folders and the metadata that narrow them down.
    Without words and a filter, what is in a folder's own folders is counted and not listed."""
    asker = Scope(scope.workspace_id, where=Where.parse_option(where), groups=scope.groups)
    # One more, to know whether any follow.
    found = await documents.browse(asker, View(q, folder, sort, limit + 1, offset))
    return {
        "all": found.all,
        "total": found.total,
        "folder": found.folder,
        "folders": [asdict(each) for each in found.folders],
        "choices": [asdict(each) for each in found.choices],
        "documents": [describe(each) for each in found.documents[:limit]],
        "next": offset + limit if len(found.documents) > limit else None,
    }
