"""The modes that a question can be asked in."""

from datetime import UTC, datetime, timedelta
from typing import Any

from fastapi import APIRouter, Request

from app.api.dependencies import CallerScope, RunLogDep, WorkspaceModesDep, needs, read_services
from app.api.schema.openapi import answer_with, list_of
from app.api.schema.responses import ModeBody
from domain.runs import Spending

MEASURED_FOR = timedelta(days=30)

router = APIRouter(prefix="/api/modes", tags=["chat"], route_class=needs("ask"))


@router.get("", **answer_with(list_of("modes", ModeBody), "The modes."))
async def list_modes(request: Request, known: WorkspaceModesDep, log: RunLogDep, scope: CallerScope) -> dict[str, Any]:
    """List the modes and the workspace's assistants with what a question costs in each: what those of the last 30 days
    have cost on average in the workspace, and the most that one may. Both are null where no language model is asked."""
    modes = {name: mode for name, mode in (await known.list(scope)).items() if "@" not in name}
    models = read_services(request).models.chat
    asking = {
        name for name, mode in modes.items() if models.choose(mode.models).large is not None and mode.budget.tokens != 0
    }
    by_mode: dict[str | None, Spending] = {}
    if asking:
        # Reads the records of a month, for which a page without a model need not wait.
        spent, _ = await log.sum_costs(scope.workspace_id, datetime.now(UTC) - MEASURED_FOR, "mode")
        by_mode = {each.name: each for each in spent}
    listed = [
        {
            "name": name,
            "verifies": mode.verify,
            "dollars": _average(by_mode.get(mode.name)) if name in asking else None,
            "most_dollars": mode.budget.dollars if name in asking else None,
        }
        for name, mode in modes.items()
    ]
    return {"modes": listed}


def _average(spent: Spending | None) -> float | None:
    """Return the dollars of a question that was not answered from the cache; None where none was asked, or a model's
    price is not known."""
    if spent is None or spent.unpriced or not spent.calls:
        return None
    return spent.cost / (spent.runs - spent.cached)
