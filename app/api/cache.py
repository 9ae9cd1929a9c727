"""Looking at stored answers."""

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query

from app.api.dependencies import ServicesDep, Workspace
from app.api.schemas import ThreadId
from app.runs.explaining import Explanation
from app.runs.explaining import explain as explain_key
from app.runs.turns import Ask
from domain.scope import Scope

router = APIRouter(prefix="/api/cache", tags=["cache"])


@router.get("")
async def counts(services: ServicesDep, workspace: Workspace = "default") -> dict[str, Any]:
    """How often the workspace's questions found their answer stored, did not, and shared a run that was under way."""
    return {"workspace": workspace, **asdict(await services.answers.count(workspace))}


@router.get("/explain")
async def explain(
    question: str,
    services: ServicesDep,
    workspace: Workspace = "default",
    mode: str = "standard",
    thread_id: ThreadId | None = None,
    document: Annotated[list[str] | None, Query(description="Answer from this document only; repeatable.")] = None,
) -> Explanation:
    """Whether the question would find a stored answer; and where not, what differs from the nearest one."""
    return await explain_key(services, Ask(question, Scope.within(workspace, document), thread_id, mode))
