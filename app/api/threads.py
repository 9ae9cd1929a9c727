"""Saved states: looking at them, and running on from them."""

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.api.dependencies import ServicesDep, TurnsDep, Workspace
from app.api.schemas import ReplayRequest, ThreadId
from app.api.streams import respond
from app.runs.history import read_history
from app.runs.replay import open_branch

router = APIRouter(prefix="/api/threads", tags=["threads"])


@router.get("/{thread_id}/history")
async def history(
    thread_id: ThreadId, services: ServicesDep, turns: TurnsDep, workspace: Workspace = "default"
) -> dict[str, Any]:
    """Every saved step of a thread, oldest first: its node, what it changed, its time, its checkpoint."""
    await turns.settle(thread_id)
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
    """Run on from a saved state, changed or not. Streams like `/api/chat`; the branch is a new thread."""
    await turns.settle(thread_id)
    branch = await open_branch(services, body.workspace, thread_id, body.checkpoint_id, body.set, body.mode)
    return await respond(request, turns.resume(branch), stream)
