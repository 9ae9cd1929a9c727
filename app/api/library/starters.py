"""Questions to begin with."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request

from app.api.dependencies import CallerScope, get_caller, needs, read_services
from app.api.schema.openapi import answer_with, list_of
from app.starters import MOST

router = APIRouter(prefix="/api/starters", tags=["documents"], route_class=needs("ask"))


@router.get("", **answer_with(list_of("questions", str), "The questions."))
async def list_starters(
    request: Request,
    scope: CallerScope,
    limit: Annotated[int, Query(ge=1, le=MOST, description="Questions to return.")] = MOST,
) -> dict[str, Any]:
    """Propose questions that the newest documents answer, each of another one, in its language. All were asked without
    a language model and answered surely, from where the document says it; where none was, there are none."""
    services = read_services(request)
    asked = await services.starters.find(
        scope, lambda: services.begin_work(get_caller(request), 0), services.make_context
    )
    return {"questions": asked[:limit]}
