"""Cached answers: counts, and why a question finds one or not."""

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query

from app.answering.cache_explanation import Explanation
from app.answering.cache_explanation import explain as explain_key
from app.answering.requests import Ask
from app.api.dependencies import AnswersDep, CallerScope, RunPartsDep, Workspace, needs
from app.api.schema.openapi import fail_with, respond_with
from app.api.schema.responses import CacheCountsBody
from app.api.schema.schemas import ThreadId, WhereQuery
from domain.library.where import Where
from domain.scope import Scope

router = APIRouter(prefix="/api/cache", tags=["cache"], route_class=needs("debug"))


@router.get(
    "",
    response_model=None,
    responses=respond_with(CacheCountsBody, "The counts.") | fail_with(),
)
async def counts(answers: AnswersDep, workspace: Workspace) -> dict[str, Any]:
    """Count the workspace's questions that found a cached answer (`hits`), that did not (`misses`), and those of the
    misses that shared another question's run (`shared`)."""
    return {"workspace": workspace, **asdict(await answers.count(workspace))}


@router.get(
    "/explain",
    response_model=None,
    responses=respond_with(Explanation, "The explanation.") | fail_with(404),
)
async def explain(
    question: str,
    parts: RunPartsDep,
    scope: CallerScope,
    mode: str = "standard",
    thread_id: ThreadId | None = None,
    document: Annotated[list[str] | None, Query(description="Answer from this document only; repeatable.")] = None,
    where: WhereQuery = None,
) -> Explanation:
    """Say whether the question would find a cached answer, and if not, how the nearest one differs."""
    return await explain_key(
        parts,
        Ask(
            question,
            Scope.within(scope.workspace_id, document, Where.parse_option(where), scope.groups),
            thread_id,
            mode,
        ),
    )
