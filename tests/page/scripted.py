"""A stand-in for the service that streams what a test tells it to, and the events to tell it."""

import asyncio
import json
from base64 import b64decode
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from playwright.async_api import Page
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from app.api import pages
from graphs.answer import STEPS
from tests.wire.serving import serve_app

Reply = list[bytes] | tuple[int, dict[str, Any]]
"""The pieces of a stream, or a status and a JSON body."""

WAIT = b"\0wait"
"""A piece that is never sent: nothing comes until the reader leaves, a run is stopped, or the test says `go_on`."""
PICTURE = b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGP4DwABAQEAsTj2FAAAAABJRU5ErkJggg==")
"""One white pixel."""
CUT = b"\0cut"
"""A piece that is never sent: the connection breaks. A stream without one ends cleanly where its pieces do. A browser
throws away what it has not read yet when a connection breaks: put `WAIT` before it."""


class Script:
    """Tells the stand-in what to reply, and what it saw."""

    address: str

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget what the test before said and did."""
        self.replies: list[Reply] = []
        self.turns: list[dict[str, Any]] | None = None
        """Of every thread; None: none is known."""
        self.documents: list[dict[str, Any]] = []
        self.choices: list[dict[str, Any]] = []
        self.looked: list[dict[str, str]] = []
        """What was looked for in the library."""
        self.blocks: list[dict[str, Any]] = []
        self.found: list[dict[str, Any]] = []
        """Where words stand, whichever are looked for."""
        self.refused = ""
        """Why no file is taken; empty: all are."""
        self.ingestions: list[dict[str, Any]] = []
        self.asked: list[str] = []
        self.bodies: list[dict[str, Any]] = []
        """Of the questions."""
        self.pace = 0.0
        """Seconds between the pieces of a stream."""
        self.feedback: list[dict[str, Any] | None] = []
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
        """The runs are r-1, r-2, ..., and the threads that they begin t-1, t-2, ..."""
        self.bodies.append(await request.json())
        self.asked.append(self.bodies[-1]["question"])
        begun = sum(not body["thread_id"] for body in self.bodies)
        headers = {"X-Run-Id": f"r-{len(self.asked)}", "X-Thread-Id": self.bodies[-1]["thread_id"] or f"t-{begun}"}
        return self._reply(request, headers)

    async def follow(self, request: Request) -> Response:
        self.came_back.append((request.path_params["run_id"], request.headers.get("Last-Event-ID")))
        return self._reply(request, {})

    async def stop(self, request: Request) -> Response:
        self.stopped.append(request.path_params["run_id"])
        self.go_on()
        return JSONResponse({})

    async def threads(self, request: Request) -> Response:
        entry = {"title": "A conversation", "updated_at": "2026-01-01T00:00:00+00:00", "turns": 1, "running": None}
        known = [] if self.turns is None else ["t-1", "t-2"]
        return JSONResponse({"threads": [{"thread_id": each, **entry} for each in known], "next": None})

    async def thread(self, request: Request) -> Response:
        if self.turns is None and request.path_params["thread_id"] in {f"t-{n + 1}" for n in range(len(self.bodies))}:
            return JSONResponse({"title": "", "turns": [], "next": None})
        if self.turns is None:
            return JSONResponse({"error": {"code": "unknown_thread", "message": "m", "retryable": False}}, 404)
        limit, before = (int(request.query_params.get(each, 1000)) for each in ("limit", "before"))
        turns = self.turns[:before]
        start = max(0, len(turns) - limit)
        return JSONResponse({"title": "A conversation", "turns": turns[start:], "next": str(start) if start else None})

    async def library(self, request: Request) -> Response:
        """All the documents, whatever is looked for: the real service is looked through elsewhere."""
        self.looked.append(dict(request.query_params))
        size = len(self.documents)
        page = {"all": size, "total": size, "folder": "", "folders": [], "choices": self.choices, "next": None}
        return JSONResponse({**page, "documents": self.documents})

    async def add(self, request: Request) -> Response:
        refused = [{"source": "a", "status": "failed", "error": self.refused}] if self.refused else []
        return JSONResponse({"documents": refused, "ingestions": []}, 422 if refused else 202)

    async def delete(self, request: Request) -> Response:
        self.documents = [each for each in self.documents if each["id"] != request.path_params["id"]]
        return Response(status_code=204)

    async def rate(self, request: Request) -> Response:
        if request.method == "DELETE":
            self.feedback.append(None)
            return Response(status_code=204)
        self.feedback.append(await request.json())
        return JSONResponse({**self.feedback[-1], "given_at": "2026-01-01T00:00:00+00:00"})  # type: ignore[dict-item]

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
            await asyncio.sleep(self.pace)


async def _wait_until_left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


@asynccontextmanager
async def serve_script() -> AsyncIterator[Script]:
    """Serve the page, and what its script says."""
    script = Script()

    def say(read: Callable[[], Any]) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            return JSONResponse(read())

        return answer

    async def page_image(request: Request) -> Response:
        return Response(PICTURE, media_type="image/png")

    app = FastAPI()
    app.include_router(pages.router)
    for path, answer, method in (
        ("/readyz", say(lambda: {"problem": None, "modes": ["fast", "standard", "thorough"], "sign_in": False}), "GET"),
        ("/api/session", say(lambda: {"name": "owner", "rights": ["admin", "ask", "debug", "ingest"]}), "GET"),
        (
            "/api/graph",
            say(lambda: {"steps": [{"name": name, "label": step.label} for name, step in STEPS.items()]}),
            "GET",
        ),
        ("/api/modes", say(lambda: {"modes": [mode("fast", 0.0042), mode("standard"), mode("thorough")]}), "GET"),
        ("/api/assistants", say(lambda: {"assistants": []}), "GET"),
        ("/api/workspaces", say(lambda: {"workspaces": []}), "GET"),
        ("/api/library", script.library, "GET"),
        ("/api/documents", script.add, "POST"),
        ("/api/documents/{id}", script.delete, "DELETE"),
        ("/api/documents/{id}", say(lambda: document("far", title="Further down")), "GET"),
        ("/api/documents/{id}/text", say(lambda: {"blocks": script.blocks}), "GET"),
        ("/api/documents/{id}/find", say(lambda: {"found": script.found}), "GET"),
        ("/api/documents/{id}/pages/{page}", page_image, "GET"),
        ("/api/ingestions", say(lambda: {"ingestions": script.ingestions}), "GET"),
        ("/api/chat", script.chat, "POST"),
        ("/api/runs/{run_id}/events", script.follow, "GET"),
        ("/api/runs/{run_id}/cancel", script.stop, "POST"),
        ("/api/runs/{run_id}/feedback", script.rate, "PUT"),
        ("/api/runs/{run_id}/feedback", script.rate, "DELETE"),
        ("/api/threads", script.threads, "GET"),
        ("/api/threads/{thread_id}", script.thread, "GET"),
    ):
        app.add_route(path, answer, methods=[method])
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
        "page": None,
        "boxes": [],
        "heading_path": ["Leave", "Annual"],
        "start": 0,
        "end": 10,
        "text": f"Passage {marker}.",
        "score": 0.9,
        **changes,
    }


def mode(name: str, dollars: float | None = None) -> dict[str, Any]:
    """A mode as the API lists it."""
    return {"name": name, "verifies": False, "dollars": dollars, "most_dollars": 0.05}


def claim(text: str, **changes: Any) -> dict[str, Any]:
    """A checked statement as the API sends it."""
    checked = {"markers": [1], "verdict": "supported", "reason": "", "score": 0.9}
    return {"text": text, "start": 0, "end": len(text), **checked, **changes}


def document(document_id: str, **changes: Any) -> dict[str, Any]:
    """A document of the library as the API lists it."""
    fields = {"title": "A document", "source": "a.md", "media_type": "text/markdown", "pages": None, "characters": 900}
    changed = "2026-01-01T00:00:00+00:00"
    return {"id": document_id, "chunks": 3, "to_embed": 0, "updated_at": changed, "groups": [], **fields, **changes}


def ingestion(ingestion_id: str, **changes: Any) -> dict[str, Any]:
    """A file on its way, or one that has ended."""
    fields = {"source": "a.md", "state": "running", "accepted_at": "2026-01-01T00:00:00+00:00", "report": None}
    ended = "2026-01-01T00:00:00+00:00" if changes.get("state") in ("done", "failed") else None
    return {"ingestion_id": ingestion_id, "ended_at": ended, "progress": None, **fields, **changes}


def done(answer: str, citations: list[dict[str, Any]], **changes: Any) -> bytes:
    """The event that ends a good stream."""
    fields = {
        "run_id": "r",
        "thread_id": "t-1",
        "answer": answer,
        "citations": citations,
        "outcome": "answered",
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


def turn(run_id: str, question: str, ended: bytes | None, **changes: Any) -> dict[str, Any]:
    """A turn as the API gives it back; `ended` is the event that ended it."""
    last = None
    if ended is not None:
        lines = dict(line.split(": ", 1) for line in ended.decode().strip().split("\r\n"))
        last = {"event": lines["event"], **json.loads(lines["data"])}
    return {
        "run_id": run_id,
        "question": question,
        "mode": "standard",
        "document_ids": None,
        "state": "running" if ended is None else "done",
        "ended": last,
        "sources": [],
        "steps": [],
        "corrections": [],
        "feedback": None,
        **changes,
    }


async def send(page: Page, question: str) -> None:
    """Type a question and send it."""
    await page.get_by_label("Question", exact=True).fill(question)
    await page.get_by_label("Question", exact=True).press("Enter")


async def ask(page: Page, question: str) -> None:
    """The same, and wait until its turn is over."""
    turns = await page.locator(".turn").count()
    await send(page, question)
    await page.locator(".turn.over").nth(turns).wait_for()
