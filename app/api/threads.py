"""Threads: their saved states, and replays."""

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.api import examples
from app.api.dependencies import (
    CallerDep,
    CallerScope,
    HistoryDep,
    ReplayerDep,
    RunManagerDep,
    needs,
    read_services,
)
from app.api.descriptions import describe_erasure
from app.api.openapi import fail_with, respond_with, respond_with_run
from app.api.responses import AnswerBody, ErasureBody, HistoryBody
from app.api.schemas import ReplayRequest, ThreadId
from app.api.streams import locate, respond, stream_events
from app.runs.replay import Replay
from app.runs.strict_replay import StrictReplay

reading = APIRouter(prefix="/api/threads", tags=["threads"], route_class=needs("ask"))
router = APIRouter(prefix="/api/threads", tags=["threads"], route_class=needs("debug"))
erasing = APIRouter(prefix="/api/threads", tags=["threads"], route_class=needs("admin"))


@reading.get(
    "/{thread_id}/history",
    response_model=None,
    responses=respond_with(HistoryBody, examples.HISTORY, "The steps.") | fail_with(404),
)
async def read_history(thread_id: ThreadId, history: HistoryDep, scope: CallerScope) -> dict[str, Any]:
    """List every saved step of a thread, oldest first: its node, what it changed, its time, its checkpoint."""
    return {"thread_id": thread_id, "steps": await history.read(scope.workspace_id, thread_id, scope.groups)}


@erasing.delete(
    "/{thread_id}",
    response_model=None,
    responses=respond_with(ErasureBody, examples.ERASURE, "What was erased, and the proof.") | fail_with(404, 409),
)
async def forget_thread(thread_id: ThreadId, request: Request, scope: CallerScope) -> dict[str, Any]:
    """Erase a thread with its branches: states, runs, tapes and cached answers. Search every table for it afterwards.
    What its runs cost stays known."""
    services = read_services(request)
    await services.runs.threads.require(scope.workspace_id, thread_id, scope.groups)
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
