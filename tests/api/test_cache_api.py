"""Cached answers over HTTP."""

from collections.abc import AsyncIterator

import httpx
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.requests import Request
from starlette.responses import Response

from app.serving.application import make_app
from app.wiring.services import Services
from askgraph.frames import read_frames
from tests.asking import QUESTION
from tests.http_client import open_client


async def refuse_without_key(request: Request, call_next: RequestResponseEndpoint) -> Response:
    if request.headers.get("authorization") != "Bearer key":
        return Response("Who are you?", 401)
    return await call_next(request)


async def test_a_cached_answer_is_given_behind_every_middleware(services: Services, library: dict[str, str]) -> None:
    app = make_app(services)
    app.add_middleware(BaseHTTPMiddleware, dispatch=refuse_without_key)
    key = {"Authorization": "Bearer key"}
    async with open_client(app) as client:
        for cached in (False, True):
            answer = await client.post("/api/chat?stream=false", json={"question": QUESTION}, headers=key)
            assert answer.json()["cached"] == cached
        for query in ("", "?stream=true", "?stream=false"):
            refused = await client.post(f"/api/chat{query}", json={"question": QUESTION})
            assert (refused.status_code, refused.text) == (401, "Who are you?")


async def test_hits_and_misses_are_counted(client: httpx.AsyncClient) -> None:
    for _ in range(2):
        assert (await client.post("/api/chat?stream=false", json={"question": QUESTION})).status_code == 200
    counts = (await client.get("/api/cache")).json()
    assert counts == {"workspace": "default", "hits": 1, "misses": 1, "shared": 0}
    assert (await client.get("/api/cache", params={"workspace": "other"})).json()["hits"] == 0


async def test_a_stored_answer_looks_like_that_of_a_run(client: httpx.AsyncClient) -> None:
    for path, headers in (("/api/chat?stream=false", {}), ("/api/chat", {"Accept": "application/json"})):
        first, again = [await client.post(path, json={"question": QUESTION}, headers=headers) for _ in range(2)]
        assert again.json()["cached"]
        assert again.json().keys() == first.json().keys()
        assert again.headers.keys() == first.headers.keys()
        assert again.headers["content-type"] == first.headers["content-type"]
        run = await client.get(again.headers["location"])
        assert (run.status_code, run.json()["run_id"]) == (200, again.headers["x-run-id"])
    streamed = await client.post("/api/chat", json={"question": QUESTION})
    assert streamed.headers["content-type"].startswith("text/event-stream")
    *_, last = read_frames([streamed.content])
    assert last.type == "done"


async def test_a_question_in_pieces_is_read_to_its_end(client: httpx.AsyncClient) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b'{"question": '
        yield f'"{QUESTION}"}}'.encode()

    for cached in (False, True):
        answer = await client.post(
            "/api/chat?stream=false", content=pieces(), headers={"Content-Type": "application/json"}
        )
        assert answer.json()["cached"] == cached
