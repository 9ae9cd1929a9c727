"""A stand-in for the service that streams what a test tells it to, and the events to tell it."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from playwright.async_api import Page
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from app.serving.application import PAGE
from tests.wire.serving import serve_app

Reply = list[bytes] | tuple[int, dict[str, Any]]
"""The pieces of a stream, or a status and a JSON body."""

WAIT = b"\0wait"
"""A piece that is never sent: nothing comes until the reader leaves, a run is stopped, or the test says `go_on`."""
CUT = b"\0cut"
"""A piece that is never sent: the connection breaks. A stream without one ends cleanly where its pieces do. A browser
throws away what it has not read yet when a connection breaks: put `WAIT` before it."""


class Script:
    """Tells the stand-in what to reply, and what it saw."""

    def __init__(self) -> None:
        self.address = ""
        self.replies: list[Reply] = []
        self.steps: list[dict[str, Any]] | None = None
        """Of the thread's history; None: it is not known."""
        self.asked: list[str] = []
        self.came_back: list[tuple[str, str | None]] = []
        """The run that somebody wanted the rest of, and the last event seen of it."""
        self.stopped: list[str] = []
        self._going_on = asyncio.Event()

    async def __call__(self, *replies: Reply) -> str:
        """Reply so to the next questions, and to who comes back for the rest of an answer. Gives the address."""
        self.replies += replies
        return self.address

    def go_on(self) -> None:
        """Let the streams that wait go on."""
        self._going_on.set()
        self._going_on = asyncio.Event()

    async def chat(self, request: Request) -> Response:
        """The runs are r-1, r-2, ..., all of one thread."""
        self.asked.append((await request.json())["question"])
        headers = {"X-Run-Id": f"r-{len(self.asked)}", "X-Thread-Id": "t-1"}
        return self._reply(request, headers)

    async def follow(self, request: Request) -> Response:
        self.came_back.append((request.path_params["run_id"], request.headers.get("Last-Event-ID")))
        return self._reply(request, {})

    async def stop(self, request: Request) -> Response:
        self.stopped.append(request.path_params["run_id"])
        self.go_on()
        return JSONResponse({})

    async def history(self, request: Request) -> Response:
        if self.steps is None:
            return JSONResponse({"error": {"code": "unknown_thread", "message": "m", "retryable": False}}, 404)
        return JSONResponse({"steps": self.steps})

    def _reply(self, request: Request, headers: dict[str, str]) -> Response:
        reply = self.replies.pop(0)
        if isinstance(reply, tuple):
            return JSONResponse(reply[1], reply[0], {"Retry-After": "1"} if reply[0] == 503 else None)
        return StreamingResponse(self._send(request, reply), headers=headers, media_type="text/event-stream")

    async def _send(self, request: Request, pieces: list[bytes]) -> AsyncIterator[bytes]:
        for piece in pieces:
            if piece == CUT:
                raise ConnectionError
            if piece == WAIT:
                waiting = [asyncio.create_task(self._going_on.wait()), asyncio.create_task(_wait_until_left(request))]
                try:
                    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for task in waiting:
                        task.cancel()
                continue
            yield piece
            await asyncio.sleep(0)


async def _wait_until_left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


@asynccontextmanager
async def serve_script() -> AsyncIterator[Script]:
    """Serve the page, and what its script says."""
    script = Script()

    async def show_page(request: Request) -> Response:
        return FileResponse(PAGE)

    async def health(request: Request) -> Response:
        return JSONResponse({"status": "ok", "problem": None, "modes": ["fast", "standard", "thorough"]})

    async def documents(request: Request) -> Response:
        return JSONResponse({"documents": []})

    app = Starlette(
        routes=[
            Route("/", show_page),
            Route("/readyz", health),
            Route("/api/documents", documents),
            Route("/api/chat", script.chat, methods=["POST"]),
            Route("/api/runs/{run_id}/events", script.follow),
            Route("/api/runs/{run_id}/cancel", script.stop, methods=["POST"]),
            Route("/api/threads/{thread_id}/history", script.history),
        ]
    )
    async with serve_app(app) as script.address:
        yield script


def event(name: str, /, id: str = "", **data: Any) -> bytes:
    """One server-sent event as the API writes it."""
    named = f"id: {id}\r\n" if id else ""
    return f"{named}event: {name}\r\ndata: {json.dumps(data, ensure_ascii=False)}\r\n\r\n".encode()


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
    return event("done", "", **fields | changes)


async def send(page: Page, question: str) -> None:
    """Type a question and send it."""
    await page.get_by_label("Question").fill(question)
    await page.get_by_label("Question").press("Enter")


async def ask(page: Page, question: str) -> None:
    """The same, and wait until its turn is over."""
    turns = await page.locator(".turn").count()
    await send(page, question)
    await page.locator(".turn:not(.working)").nth(turns).wait_for()
