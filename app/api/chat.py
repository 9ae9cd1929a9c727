"""Asking a question."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.api.dependencies import RunManagerDep
from app.api.schemas import ChatRequest
from app.api.streams import locate, respond

router = APIRouter(prefix="/api", tags=["chat"])


@router.post("/chat")
async def chat(body: ChatRequest, request: Request, manager: RunManagerDep, stream: bool | None = None) -> Response:
    """Ask a question. Streams server-sent events that end with `done` or `error`; with `?stream=false` or
    `Accept: application/json`, one JSON answer of the same content.

    The answer is written whether the client stays or not, unless `on_disconnect` says `cancel`; `Location` says where
    the run is, and `/events` below it goes on with the stream."""
    started = await manager.start(body.as_ask())

    async def stop() -> None:
        await manager.stop(started.workspace_id, started.run_id)

    return await respond(
        request,
        manager.follow(started),
        stream,
        headers=locate(started),
        on_leave=stop if body.on_disconnect == "cancel" else None,
    )
