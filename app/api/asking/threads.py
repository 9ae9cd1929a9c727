"""Threads: the list of conversations, their turns and saved states, and replays."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from app.api.asking.streams import locate, respond, stream_events
from app.api.dependencies import (
    CallerDep,
    CallerScope,
    FeedbackDep,
    HistoryDep,
    ReplayerDep,
    RunManagerDep,
    ThreadsDep,
    needs,
    read_services,
)
from app.api.schema import examples
from app.api.schema.descriptions import describe_conversation, describe_erasure, describe_turn
from app.api.schema.openapi import fail_with, respond_with, respond_with_run
from app.api.schema.responses import (
    AnswerBody,
    ConversationBody,
    ConversationListBody,
    ErasureBody,
    HistoryBody,
    ThreadBody,
)
from app.api.schema.schemas import ReplayRequest, ThreadId, TitleRequest
from app.workbench.replay.replay import Replay
from app.workbench.replay.strict_replay import StrictReplay

reading = APIRouter(prefix="/api/threads", tags=["threads"], route_class=needs("ask"))
router = APIRouter(prefix="/api/threads", tags=["threads"], route_class=needs("debug"))
erasing = APIRouter(prefix="/api/threads", tags=["threads"], route_class=needs("ask", "admin"))


@reading.get(
    "",
    response_model=None,
    responses=respond_with(ConversationListBody, examples.CONVERSATIONS, "The conversations.") | fail_with(),
)
async def list_threads(
    threads: ThreadsDep,
    caller: CallerDep,
    scope: CallerScope,
    q: Annotated[str, Query(max_length=200, description="Words in the title or a question.")] = "",
    mine: Annotated[bool, Query(description="Only those in which the caller has asked.")] = False,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    after: Annotated[str | None, Query(max_length=200, description="The `next` of the page before.")] = None,
) -> dict[str, Any]:
    """List the workspace's conversations that the caller may read, the latest first."""
    found, following = await threads.list(scope, limit, words=q, caller=caller.name if mine else None, after=after)
    return {"threads": [describe_conversation(thread) for thread in found], "next": following}


@reading.get(
    "/{thread_id}",
    response_model=None,
    responses=respond_with(ThreadBody, examples.THREAD, "The conversation.") | fail_with(404),
)
async def read_thread(
    thread_id: ThreadId,
    threads: ThreadsDep,
    feedback: FeedbackDep,
    scope: CallerScope,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
    before: Annotated[str | None, Query(max_length=200, description="The `next` of the page before.")] = None,
) -> dict[str, Any]:
    """Return the last turns of a conversation, with all that their readers saw; or the last before a turn."""
    thread, turns, earlier = await threads.read(scope, thread_id, limit, before)
    said = await feedback.read(scope.workspace_id, [turn.request.run_id for turn in turns])
    return {
        "thread_id": thread_id,
        "title": thread.title,
        "turns": [describe_turn(turn, said.get(turn.request.run_id)) for turn in turns],
        "next": earlier,
    }


@reading.patch(
    "/{thread_id}",
    response_model=None,
    responses=respond_with(ConversationBody, examples.CONVERSATION, "The conversation.") | fail_with(404),
)
async def rename_thread(
    thread_id: ThreadId, body: TitleRequest, threads: ThreadsDep, scope: CallerScope
) -> dict[str, Any]:
    """Name a conversation."""
    return describe_conversation(await threads.rename(scope, thread_id, body.title))


@reading.get(
    "/{thread_id}/history",
    response_model=None,
    responses=respond_with(HistoryBody, examples.HISTORY, "The steps.") | fail_with(404),
)
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


@erasing.delete(
    "/{thread_id}",
    response_model=None,
    responses=respond_with(ErasureBody, examples.ERASURE, "What was erased, and the proof.") | fail_with(404, 409),
)
async def forget_thread(thread_id: ThreadId, request: Request, caller: CallerDep, scope: CallerScope) -> dict[str, Any]:
    """Erase a thread with its branches: states, runs, tapes and cached answers. Search every table for it afterwards.
    What its runs cost stays known. Needs the right `admin`, unless nobody but the caller has asked in the thread."""
    services = read_services(request)
    await services.runs.threads.require_own(caller, scope, thread_id)
    return describe_erasure(await services.make_forgetting().forget_thread(scope.workspace_id, thread_id))


@router.post(
    "/{thread_id}/replay",
    responses=respond_with_run(AnswerBody, examples.ANSWER) | fail_with(404, 409, 502),
)
async def replay(
    thread_id: ThreadId,
    body: ReplayRequest,
    request: Request,
    caller: CallerDep,
    replayer: ReplayerDep,
    manager: RunManagerDep,
    stream: bool | None = None,
) -> Response:
    """Continue from a saved state, changed or not, in a new thread; or run a run again from its tape. Streams like
    `/api/chat`."""
    wanted = Replay(
        caller.enter(body.workspace),
        thread_id=thread_id,
        checkpoint_id=body.checkpoint_id,
        run_id=body.run_id,
        node=body.node,
        after=body.after,
        until=body.until,
        changes=body.set,
        mode=body.mode,
        tape=body.tape,
        caller=caller,
        groups=caller.groups,
    )
    replayed = await replayer.open(wanted)
    if isinstance(replayed, StrictReplay):
        return await respond(request, stream_events(replayed.run()), stream)
    return await respond(request, manager.follow(replayed), stream, headers=locate(replayed))
