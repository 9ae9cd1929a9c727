"""Costs of answering."""

from typing import Annotated, Any

from fastapi import APIRouter, Query

from app.api.dependencies import CallerScope, RunLogDep, WorkspaceModesDep, needs
from app.api.schema.openapi import answer_with
from app.api.schema.responses import CostsBody
from app.history.costs import parse_since, read_costs
from domain.runs import CostKey

router = APIRouter(prefix="/api", tags=["costs"], route_class=needs("debug"))


@router.get("/costs", **answer_with(CostsBody, "The costs."))
async def get_costs(
    log: RunLogDep,
    known: WorkspaceModesDep,
    scope: CallerScope,
    since: Annotated[str, Query(description="A date, or a span such as `24h` or `7d`.")] = "7d",
    by: Annotated[CostKey, Query(description="What to sum up by.")] = "mode",
) -> dict[str, Any]:
    """Sum up the runs, calls, tokens and US dollars of the workspace. Assistants of other groups have no name."""
    costs = await read_costs(log, scope.workspace_id, parse_since(since), by)
    if by == "mode" and scope.groups is not None:
        names = {None, *await known.list_names(scope)}
        for each in costs["costs"]:
            each["name"] = each["name"] if (each["name"] or "").partition("@")[0] in names else None
    return costs
