"""Asking a question."""

from functools import partial

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.api.asking.streams import locate, respond
from app.api.dependencies import begins_run, get_caller, get_run_manager, needs
from app.api.schema.openapi import fail_with, respond_with_run
from app.api.schema.schemas import ChatRequest
from askgraph import models

router = APIRouter(prefix="/api", tags=["chat"], route_class=needs("ask"))


@router.post("/chat", responses=respond_with_run(models.Answer) | fail_with(404, 409, 502))
@begins_run
async def chat(
    body: ChatRequest,
    request: Request,
    stream: bool | None = None,
) -> Response:
    """Ask a question. Streams server-sent events that end with `done` or `error`; with `?stream=false` or
    `Accept: application/json`, one JSON answer of the same content.

    The answer is written whether the client stays or not, unless `on_disconnect` is `cancel`. `Location` is the address
    of the run; `/events` below it continues the stream."""
    manager = get_run_manager(request)
    run = await manager.start(body.as_ask(get_caller(request)))
    on_leave = partial(manager.stop, run.workspace_id, run.run_id) if body.on_disconnect == "cancel" else None
    return await respond(request, manager.follow(run), stream, headers=locate(run), on_leave=on_leave)
