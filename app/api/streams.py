"""A turn's events as server-sent events, or as one JSON answer."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

import orjson
from fastapi import Request
from fastapi.responses import JSONResponse
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.responses import Response

from app.api.errors import respond_to, status_of_failure
from app.descriptions import describe_answer
from app.runs.turns import collect
from domain.events import Done, Event, Failed, data_of

GONE = 499
"""What nginx logs where the client closed the connection; nobody receives it."""

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
    followed = await _collect_while_connected(request, events)
    if followed is None:
        return Response(status_code=GONE)
    ended, seen = followed
    if ended["type"] == "error":
        status = status_of_failure(ended)
        return respond_to(ended["code"], ended["message"], retryable=ended["retryable"], status=status)
    return JSONResponse(describe_answer(ended, seen))


async def _collect_while_connected(
    request: Request, events: AsyncGenerator[Event]
) -> tuple[Done | Failed, list[Event]] | None:
    """The turn's end and all its events; None where the client left, which ends the run."""

    async def wait_until_left() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    following = asyncio.create_task(collect(events))
    leaving = asyncio.create_task(wait_until_left())
    try:
        await asyncio.wait({following, leaving}, return_when=asyncio.FIRST_COMPLETED)
        return following.result() if following.done() else None
    finally:
        for task in (following, leaving):
            task.cancel()
        await asyncio.gather(following, leaving, return_exceptions=True)


async def _encode(events: AsyncGenerator[Event]) -> AsyncIterator[ServerSentEvent]:
    # Closing matters: a reader who leaves must free the graph run, not leave it to the garbage collector.
    async with aclosing(events) as open_events:
        number = 0
        async for event in open_events:
            number += 1
            yield ServerSentEvent(event=event["type"], data=orjson.dumps(data_of(event)).decode(), id=str(number))
