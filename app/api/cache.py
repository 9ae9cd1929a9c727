"""Cached answers: counts, and why a question finds one or not."""

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query

from app.api.dependencies import AnswersDep, RunPartsDep, Workspace
from app.api.schemas import ThreadId
from app.runs.cache_explanation import Explanation
from app.runs.cache_explanation import explain as explain_key
from app.runs.requests import Ask

router = APIRouter(prefix="/api/cache", tags=["cache"])


@router.get("")
async def counts(answers: AnswersDep, workspace: Workspace = "default") -> dict[str, Any]:
    """Count the workspace's questions that found a cached answer (`hits`), that did not (`misses`), and those of the
    misses that shared another question's run (`shared`)."""
    return {"workspace": workspace, **asdict(await answers.count(workspace))}


@router.get("/explain")
async def explain(
    question: str,
    parts: RunPartsDep,
    workspace: Workspace = "default",
    mode: str = "standard",
    thread_id: ThreadId | None = None,
    document: Annotated[list[str] | None, Query(description="Answer from this document only; repeatable.")] = None,
) -> Explanation:
    """Say whether the question would find a cached answer, and if not, how the nearest one differs."""
    return await explain_key(
        parts, Ask(question, workspace, thread_id, None if document is None else tuple(document), mode)
    )
