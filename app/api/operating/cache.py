"""How many questions find a cached answer."""

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter

from app.api.dependencies import AnswersDep, Workspace, needs
from app.api.schema.openapi import answer_with
from app.api.schema.responses import CacheCountsBody

router = APIRouter(prefix="/api/cache", tags=["cache"], route_class=needs("debug"))


@router.get("", **answer_with(CacheCountsBody, "The counts."))
async def counts(answers: AnswersDep, workspace: Workspace) -> dict[str, Any]:
    """Count the workspace's questions that found a cached answer (`hits`), and that did not (`misses`)."""
    return {"workspace": workspace, **asdict(await answers.count(workspace)), "shared": 0}
