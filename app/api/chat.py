"""Asking."""

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import APIRouter, Request
from fastapi.routing import APIRoute
from pydantic import ValidationError
from starlette.responses import Response

from app.api.dependencies import TurnsDep
from app.api.schemas import ChatRequest
from app.api.streams import STREAM_HEADERS, locate, respond, wants_json
from app.runs.recall import Recall
from app.runs.turns import Ask

_STREAM: dict[bytes, bool | None] = {b"": None, b"stream=true": True, b"stream=false": False}
"""What the query says of `stream`, in the usual words."""


class _RecallingRoute(APIRoute):
    """Gives a stored answer before anything else is made of the request, which takes several times as long."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_recalling(request: Request) -> Response:
            return await _recall(request) or await handle(request)

        return handle_recalling


router = APIRouter(prefix="/api", tags=["chat"], route_class=_RecallingRoute)


@router.post("/chat")
async def chat(body: ChatRequest, request: Request, turns: TurnsDep, stream: bool | None = None) -> Response:
    """Ask a question. Streams server-sent events that end with `done` or `error`; with `?stream=false` or
    `Accept: application/json`, one JSON answer of the same content.

    The answer is written whether the client stays or not, unless `on_disconnect` says `cancel`; `Location` says where
    the run is, and `/events` below it goes on with the stream."""
    started = await turns.start(_read_ask(body))

    async def stop() -> None:
        await turns.stop(started.workspace_id, started.run_id)

    return await respond(
        request,
        turns.follow(started),
        stream,
        headers=locate(started),
        on_leave=stop if body.on_disconnect == "cancel" else None,
    )


def _read_ask(body: ChatRequest) -> Ask:
    return Ask(
        question=body.question,
        workspace_id=body.workspace,
        thread_id=body.thread_id,
        document_ids=None if body.document_ids is None else tuple(body.document_ids),
        mode=body.mode,
        when_busy=body.when_busy,
    )


async def _recall(request: Request) -> Response | None:
    """The stored answer; None where there is none, or the request needs a closer look.

    Raises what `Turns.start` raises for the same question.
    """
    query: bytes = request.scope["query_string"]
    if query not in _STREAM or not request.headers.get("content-type", "").startswith("application/json"):
        return None
    try:
        body = ChatRequest.model_validate_json(await request.body())
    except ValidationError:
        return None
    recall: Recall = request.state.recall
    recalled = await recall.serve(_read_ask(body))
    if recalled is None:
        return None
    headers = locate(recalled)
    if wants_json(request, _STREAM[query]):
        return Response(recalled.as_json(), media_type="application/json", headers=headers)
    return Response(recalled.as_events(), media_type="text/event-stream", headers=headers | STREAM_HEADERS)
