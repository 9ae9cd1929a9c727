"""Cached answers over HTTP."""

import httpx

from askgraph.frames import read_frames
from tests.asking import QUESTION


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
