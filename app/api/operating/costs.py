"""Costs of answering."""

from typing import Annotated, Any

from fastapi import APIRouter, Query

from app.api.dependencies import RunLogDep, Workspace, needs
from app.api.schema.openapi import answer_with
from app.api.schema.responses import CostsBody
from app.history.costs import parse_since, read_costs
from domain.runs import CostKey

router = APIRouter(prefix="/api", tags=["costs"], route_class=needs("debug"))


@router.get("/costs", **answer_with(CostsBody, "The costs."))
async def get_costs(
    log: RunLogDep,
    workspace: Workspace,
    since: Annotated[str, Query(description="A date, or a span such as `24h` or `7d`.")] = "7d",
    by: Annotated[CostKey, Query(description="What to sum up by.")] = "mode",
) -> dict[str, Any]:
    """Sum up the runs, calls, tokens and US dollars of the workspace."""
    return await read_costs(log, workspace, parse_since(since), by)
