"""A stand-in for the service that streams what a test tells it to, and the events to tell it."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from playwright.async_api import Page
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from app.main import PAGE
from tests.wire.serving import serve_app

Reply = list[bytes] | tuple[int, dict[str, Any]]
"""The pieces of a stream, or a status and a JSON body."""
Script = Callable[..., Awaitable[str]]

WAIT = b"\0wait"
"""A piece that is never sent: the stream stays open until the reader leaves."""


@asynccontextmanager
async def serve_script() -> AsyncIterator[Script]:
    """Serve the page, and answer each question with the next reply that the given function was called with. The
    function returns the address."""
    replies: list[Reply] = []

    async def chat(request: Request) -> Response:
        reply = replies.pop(0)
        if isinstance(reply, tuple):
            return JSONResponse(reply[1], reply[0])

        async def send() -> AsyncIterator[bytes]:
            for piece in reply:
                if piece == WAIT:
                    await request.receive()
                    return
                yield piece
                await asyncio.sleep(0)

        return StreamingResponse(send(), media_type="text/event-stream")

    async def show_page(request: Request) -> Response:
        return FileResponse(PAGE)

    async def health(request: Request) -> Response:
        return JSONResponse({"status": "ok", "problem": None, "modes": ["fast", "standard", "thorough"]})

    async def documents(request: Request) -> Response:
        return JSONResponse({"documents": []})

    app = Starlette(
        routes=[
            Route("/", show_page),
            Route("/healthz", health),
            Route("/api/documents", documents),
            Route("/api/chat", chat, methods=["POST"]),
        ]
    )
    async with serve_app(app) as address:

        async def script(*given: Reply) -> str:
            replies.extend(given)
            return address

        yield script


def event(name: str, **data: Any) -> bytes:
    """One server-sent event as the API writes it."""
    return f"event: {name}\r\ndata: {json.dumps(data, ensure_ascii=False)}\r\n\r\n".encode()


def citation(marker: int, **changes: Any) -> dict[str, Any]:
    """A citation as the API sends it."""
    return {
        "marker": marker,
        "document_id": "d",
        "title": f"Document {marker}",
        "chunk_id": f"c{marker}",
        "chunk_index": 0,
        "page": 4,
        "bbox": None,
        "heading_path": ["Leave", "Annual"],
        "start": 0,
        "end": 10,
        "text": f"Passage {marker}.",
        "score": 0.9,
        **changes,
    }


def done(answer: str, citations: list[dict[str, Any]], **changes: Any) -> bytes:
    """The event that ends a good stream."""
    fields = {
        "run_id": "r",
        "thread_id": "t-1",
        "answer": answer,
        "citations": citations,
        "route": "needs_retrieval",
        "mode": "standard",
        "confidence": 0.9,
        "verification": {"status": "skipped", "claims": []},
        "cached": False,
        "usage": [],
        "cost": None,
        "timings": {"total": 12.0},
        "warnings": [],
        "trace_url": None,
    }
    return event("done", **fields | changes)


async def ask(page: Page, question: str) -> None:
    """Type a question, send it, and wait until its turn is over."""
    turns = await page.locator(".turn").count()
    await page.get_by_label("Question").fill(question)
    await page.get_by_label("Question").press("Enter")
    await page.locator(".turn:not(.working)").nth(turns).wait_for()
