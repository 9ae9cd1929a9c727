"""What answering has cost."""

from typing import Any

from fastapi import APIRouter

from app.api.dependencies import ServicesDep, Workspace
from app.runs.costs import parse_since, read_costs
from domain.runs import CostKey

router = APIRouter(prefix="/api", tags=["costs"])


@router.get("/costs")
async def get_costs(
    services: ServicesDep, since: str = "7d", by: CostKey = "mode", workspace: Workspace = "default"
) -> dict[str, Any]:
    """Runs, calls, tokens and US dollars of the workspace. `since` is a span such as `24h` or `7d`, or a date."""
    return await read_costs(services.runs, workspace, parse_since(since), by)
