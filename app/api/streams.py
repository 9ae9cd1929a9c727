"""A turn's events as server-sent events, or as one JSON answer."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any

import orjson
from fastapi import Request
from fastapi.responses import JSONResponse
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.responses import Response

from app.api.errors import error_body
from app.runs.turns import collect
from domain.events import Event, data_of

PING_SECONDS = 15
"""How often an idle stream sends a comment, so that proxies between do not close it."""


def wants_json(request: Request, stream: bool | None) -> bool:
    """`?stream=false` or `Accept: application/json` asks for one JSON answer."""
    if stream is not None:
        return not stream
    accept = request.headers.get("accept", "")
    return "application/json" in accept and "text/event-stream" not in accept


async def respond(request: Request, events: AsyncGenerator[Event], stream: bool | None) -> Response:
    """The response that the client asked for."""
    if not wants_json(request, stream):
        return EventSourceResponse(
            _encode(events), ping=PING_SECONDS, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        )
    ended, seen = await collect(events)
    if ended["type"] == "error":
        body = error_body(ended["code"], ended["message"], retryable=ended["retryable"])
        return JSONResponse(body, 503 if ended["retryable"] else 500)
    return JSONResponse(make_answer(ended, seen))


def make_answer(ended: Mapping[str, Any], seen: list[Event]) -> dict[str, Any]:
    """The JSON answer: what `done` carries, and the sources shown."""
    sources = next((event["citations"] for event in reversed(seen) if event["type"] == "sources"), [])
    return {key: value for key, value in ended.items() if key != "type"} | {"sources": sources}


async def _encode(events: AsyncGenerator[Event]) -> AsyncIterator[ServerSentEvent]:
    # Closing matters: a reader who leaves must free the graph run, not leave it to the garbage collector.
    async with aclosing(events) as open_events:
        number = 0
        async for event in open_events:
            number += 1
            yield ServerSentEvent(event=event["type"], data=orjson.dumps(data_of(event)).decode(), id=str(number))
