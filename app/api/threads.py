"""Saved states: looking at them, and running on from them."""

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.api.dependencies import ServicesDep, TurnsDep, Workspace
from app.api.schemas import ReplayRequest, ThreadId
from app.api.streams import locate, number_events, respond
from app.runs.history import read_history
from app.runs.rehearsal import Rehearsal
from app.runs.replay import Replay, open_replay

router = APIRouter(prefix="/api/threads", tags=["threads"])


@router.get("/{thread_id}/history")
async def history(thread_id: ThreadId, services: ServicesDep, workspace: Workspace = "default") -> dict[str, Any]:
    """Every saved step of a thread, oldest first: its node, what it changed, its time, its checkpoint."""
    return {"thread_id": thread_id, "steps": await read_history(services, workspace, thread_id)}


@router.post("/{thread_id}/replay")
async def replay(
    thread_id: ThreadId,
    body: ReplayRequest,
    request: Request,
    services: ServicesDep,
    turns: TurnsDep,
    stream: bool | None = None,
) -> Response:
    """Run on from a saved state, changed or not, or run a run again on its tape. Streams like `/api/chat`; the branch
    is a new thread."""
    wanted = Replay(
        body.workspace,
        thread_id=thread_id,
        checkpoint_id=body.checkpoint_id,
        run_id=body.run_id,
        changes=body.set,
        mode=body.mode,
        tape=body.tape,
    )
    replayed = await open_replay(services, turns, wanted)
    if isinstance(replayed, Rehearsal):
        return await respond(request, number_events(replayed.run()), stream)
    return await respond(request, turns.follow(replayed), stream, headers=locate(replayed))
