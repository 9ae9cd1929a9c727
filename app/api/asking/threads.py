"""Threads: the list of conversations, their turns and saved states."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request

from app.api.dependencies import (
    CallerDep,
    CallerScope,
    DocumentsDep,
    DryRun,
    FeedbackDep,
    HistoryDep,
    ThreadsDep,
    needs,
    read_services,
)
from app.api.schema.descriptions import describe, describe_erasure, describe_turn
from app.api.schema.openapi import answer_with
from app.api.schema.responses import HistoryBody
from app.api.schema.schemas import ThreadId, TitleRequest
from app.history.since import tell_since
from askgraph import models

reading = APIRouter(prefix="/api/threads", tags=["threads"], route_class=needs("ask"))
erasing = APIRouter(prefix="/api/threads", tags=["threads"], route_class=needs("ask", "admin"))


@reading.get("", **answer_with(models.ThreadList, "The conversations."))
async def list_threads(
    threads: ThreadsDep,
    caller: CallerDep,
    scope: CallerScope,
    q: Annotated[str, Query(max_length=200, description="Words in the title, a question or an answer.")] = "",
    mine: Annotated[bool, Query(description="Only those in which the caller has asked.")] = False,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    after: Annotated[str | None, Query(max_length=200, description="The `next` of the page before.")] = None,
) -> dict[str, Any]:
    """List the workspace's conversations that the caller may read, the latest first."""
    found, following = await threads.list(scope, limit, words=q, caller=caller.name if mine else None, after=after)
    return {"threads": [describe(thread) for thread in found], "next": following}


@reading.get("/{thread_id}", **answer_with(models.Thread, "The conversation.", 404))
async def read_thread(
    thread_id: ThreadId,
    threads: ThreadsDep,
    feedback: FeedbackDep,
    documents: DocumentsDep,
    scope: CallerScope,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
    before: Annotated[str | None, Query(max_length=200, description="The `next` of the page before.")] = None,
) -> dict[str, Any]:
    """Return the last turns of a conversation, with all that their readers saw; or the last before a turn. A citation
    whose document was changed or deleted later says so in `since`."""
    thread, found, earlier = await threads.read(scope, thread_id, limit, before)
    turns = await tell_since(documents, scope.workspace_id, found)
    said = await feedback.read(scope.workspace_id, [turn.request.run_id for turn in turns])
    return {
        "thread_id": thread_id,
        "title": thread.title,
        "turns": [describe_turn(turn, said.get(turn.request.run_id)) for turn in turns],
        "next": earlier,
    }


@reading.patch("/{thread_id}", **answer_with(models.ThreadSummary, "The conversation.", 404))
async def rename_thread(
    thread_id: ThreadId, body: TitleRequest, threads: ThreadsDep, scope: CallerScope
) -> dict[str, Any]:
    """Name a conversation."""
    return describe(await threads.rename(scope, thread_id, body.title))


@reading.get("/{thread_id}/history", **answer_with(HistoryBody, "The steps.", 404))
async def read_history(
    thread_id: ThreadId,
    history: HistoryDep,
    scope: CallerScope,
    limit: Annotated[int, Query(ge=1, le=1000)] = 1000,
    after: Annotated[str, Query(max_length=200, description="The `next` of the page before.")] = "",
    run_id: Annotated[str | None, Query(max_length=200, description="Only the steps of this run.")] = None,
) -> dict[str, Any]:
    """List saved steps of a thread, oldest first: its node, what it changed, its time, its checkpoint."""
    steps, following = await history.read_page(scope.workspace_id, thread_id, scope.groups, limit=limit, after=after)
    steps = [step for step in steps if run_id in (None, step["run_id"])]
    return {"thread_id": thread_id, "steps": steps, "next": following}


@erasing.delete("/{thread_id}", **answer_with(models.Erasure, "What was erased, and the proof.", 404, 409))
async def forget_thread(
    thread_id: ThreadId, request: Request, caller: CallerDep, scope: CallerScope, dry_run: DryRun
) -> dict[str, Any]:
    """Erase a thread with its branches: states, runs, tapes and cached answers. Search every table for it afterwards.
    What its runs cost stays known. Needs the right `admin`, unless the caller has begun the thread."""
    services = read_services(request)
    await services.runs.threads.require_own(caller, scope, thread_id)
    forgetting = services.make_forgetting()
    return describe_erasure(await forgetting.forget_thread(scope.workspace_id, thread_id, dry_run=dry_run))
