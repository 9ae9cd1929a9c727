"""Asking."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.api.dependencies import TurnsDep
from app.api.schemas import ChatRequest
from app.api.streams import locate, respond
from app.runs.turns import Ask

router = APIRouter(prefix="/api", tags=["chat"])


@router.post("/chat")
async def chat(body: ChatRequest, request: Request, turns: TurnsDep, stream: bool | None = None) -> Response:
    """Ask a question. Streams server-sent events that end with `done` or `error`; with `?stream=false` or
    `Accept: application/json`, one JSON answer of the same content.

    The answer is written whether the client stays or not, unless `on_disconnect` says `cancel`; `Location` says where
    the run is, and `/events` below it goes on with the stream."""
    started = await turns.start(
        Ask(
            question=body.question,
            workspace_id=body.workspace,
            thread_id=body.thread_id,
            document_ids=None if body.document_ids is None else tuple(body.document_ids),
            mode=body.mode,
            when_busy=body.when_busy,
        )
    )

    async def stop() -> None:
        await turns.stop(started.workspace_id, started.run_id)

    return await respond(
        request,
        turns.follow(started),
        stream,
        headers=locate(started),
        on_leave=stop if body.on_disconnect == "cancel" else None,
    )
