"""The debugger: lists of runs, what happened in one, and what would have happened otherwise."""

from typing import Annotated, Any

from fastapi import APIRouter, Query

from app.api import examples
from app.api.dependencies import CallerScope, RunLogDep, needs
from app.api.openapi import fail_with, respond_with
from app.api.responses import RunListBody
from app.runs.run_list import list_runs
from domain.run_lists import MOST_RUNS

router = APIRouter(prefix="/api/runs", tags=["debugger"], route_class=needs("debug"))


@router.get(
    "",
    response_model=None,
    responses=respond_with(RunListBody, examples.RUN_LIST, "The runs.") | fail_with(),
)
async def list_all(
    log: RunLogDep,
    scope: CallerScope,
    since: str = "7d",
    where: Annotated[str | None, Query(description="Such as `outcome == abstained or retries > 0`.")] = None,
    limit: Annotated[int, Query(ge=1, le=MOST_RUNS)] = 50,
    after: Annotated[str | None, Query(description="The `next` of the page before.")] = None,
) -> dict[str, Any]:
    """List runs that have ended, newest first, a page at a time."""
    return await list_runs(log, scope, since=since, where=where, limit=limit, after=after)
