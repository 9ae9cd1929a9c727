"""Conversations over HTTP: the list, and turns as their readers saw them."""

import json
from typing import Any

import httpx

from app.answering.records import make_shown
from app.answering.requests import Ask, collect
from app.wiring.services import Services
from domain.state import ExecutedStep
from tests.asking import QUESTION, ask

BATTERY = "How long does the battery of the Falke last?"


async def get(client: httpx.AsyncClient, path: str, **params: Any) -> Any:
    response = await client.get(path, params=params)
    assert response.status_code == 200, response.text
    return response.json()


async def test_a_turn_is_restored_as_it_was_shown(client: httpx.AsyncClient, services: Services) -> None:
    answer = (await client.post("/api/chat?stream=false", json={"question": QUESTION, "mode": "thorough"})).json()
    sources = answer.pop("sources")
    thread = await get(client, f"/api/threads/{answer['thread_id']}")
    [turn] = thread["turns"]
    assert (thread["title"], thread["next"]) == (QUESTION, None)
    assert (turn["question"], turn["mode"], turn["state"]) == (QUESTION, "thorough", "done")
    assert turn["ended"] == {"event": "done", **answer}
    cited = {citation["marker"] for citation in answer["citations"]}
    assert [source["marker"] for source in turn["sources"]] == [
        s["marker"] for s in sources if s["marker"] not in cited
    ]
    assert [step["node"] for step in turn["steps"]][:3] == ["route", "retrieve", "rerank"]
    assert {step["node"] for step in turn["steps"]} | {"total"} == answer["timings"].keys()
    # The same question from the cache begins a thread of its own, with the same sources.
    again = (await client.post("/api/chat?stream=false", json={"question": QUESTION, "mode": "thorough"})).json()
    assert again["cached"]
    [cached] = (await get(client, f"/api/threads/{again['thread_id']}"))["turns"]
    assert (cached["sources"], cached["steps"]) == (turn["sources"], [])


def test_what_was_withdrawn_is_kept() -> None:
    step = ExecutedStep(node="generate", ms=3.5, warnings=[], usage=[])
    shown = make_shown(
        [
            {"type": "content", "token": "It lasts "},
            {"type": "content", "token": "90 months."},
            {"type": "correction", "reason": "No source says so.", "answer": "", "citations": []},
            {"type": "content", "token": "x" * 3000},
            {"type": "correction", "reason": "restart", "answer": "14 months. [1]", "citations": []},
        ],
        [step],
        {"type": "error", "code": "timeout", "message": "", "retryable": True},
    )
    assert shown["corrections"] == [
        {"reason": "No source says so.", "withdrawn": "It lasts 90 months."},
        {"reason": "restart", "withdrawn": "x" * 2000},
        {"reason": "timeout", "withdrawn": "14 months. [1]"},
    ]
    assert shown["steps"] == [{"node": "generate", "ms": 3.5}]


async def test_forty_turns_are_light_and_come_in_pages(client: httpx.AsyncClient, services: Services) -> None:
    first = await ask(services)
    thread_id = first["thread_id"]
    async with services.make_run_manager() as turns:
        for number in range(39):
            await collect(await turns.ask(Ask(BATTERY if number % 2 else QUESTION, thread_id=thread_id)))
    path = f"/api/threads/{thread_id}"
    whole = await client.get(path, params={"limit": 40})
    assert len(whole.content) < 150_000
    page = await get(client, path)
    assert page["turns"] == whole.json()["turns"][20:]
    assert (await get(client, path, before=page["next"]))["turns"] == whole.json()["turns"][:20]
    assert (await client.get(path, params={"before": "made up"})).status_code == 422

    steps = (await get(client, f"{path}/history", limit=1000))["steps"]
    paged: list[Any] = []
    after = ""
    while after is not None:
        part = await get(client, f"{path}/history", limit=37, after=after)
        paged, after = paged + part["steps"], part["next"]
    assert paged == steps
    assert len(steps) > 100


async def test_conversations_are_listed_searched_and_named(client: httpx.AsyncClient) -> None:
    async def post(question: str) -> str:
        response = await client.post("/api/chat?stream=false", json={"question": question, "mode": "fast"})
        return str(response.json()["thread_id"])

    ids = [await post(question) for question in (QUESTION, BATTERY, QUESTION)]
    page = await get(client, "/api/threads", limit=2)
    assert [thread["thread_id"] for thread in page["threads"]] == ids[:0:-1]
    rest = await get(client, "/api/threads", limit=2, after=page["next"])
    assert ([thread["thread_id"] for thread in rest["threads"]], rest["next"]) == (ids[:1], None)
    assert rest["threads"][0] | {"created_at": "", "updated_at": ""} == {
        "thread_id": ids[0],
        "title": QUESTION,
        "created_at": "",
        "updated_at": "",
        "turns": 1,
        "running": None,
        "outdated": False,
    }
    renamed = await client.patch(f"/api/threads/{ids[0]}", json={"title": " <b>Rain\n\x01gauges "})
    assert renamed.json()["title"] == "<b>Rain gauges"
    assert [t["thread_id"] for t in (await get(client, "/api/threads", q="rain GAUGES"))["threads"]] == ids[:1]
    assert [t["thread_id"] for t in (await get(client, "/api/threads", q="battery"))["threads"]] == ids[1:2]
    for body in ({"title": ""}, {"title": "x" * 201}, {"title": "\x07"}):
        assert (await client.patch(f"/api/threads/{ids[0]}", content=json.dumps(body))).status_code == 422
    for after in ("x", "9" * 30, "-", "1-\x00"):
        assert (await client.get("/api/threads", params={"after": after})).status_code in (200, 400, 422)


async def test_readers_say_what_they_think_of_an_answer(client: httpx.AsyncClient) -> None:
    answer = (await client.post("/api/chat?stream=false", json={"question": QUESTION, "mode": "fast"})).json()
    path, thread = f"/api/runs/{answer['run_id']}/feedback", f"/api/threads/{answer['thread_id']}"
    assert (await client.put(path, json={"rating": "up"})).status_code == 200
    said = {"rating": "down", "reason": "incomplete", "comment": "<b>And the funnel?"}
    given = await client.put(path, json=said)
    assert given.json() == said | {"given_at": given.json()["given_at"]}
    assert (await get(client, thread))["turns"][0]["feedback"] == given.json()
    # An answer from the cache is a run of its own, also before it is in the log.
    again = (await client.post("/api/chat?stream=false", json={"question": QUESTION, "mode": "fast"})).json()
    assert again["cached"]
    assert (await client.put(f"/api/runs/{again['run_id']}/feedback", json={"rating": "up"})).status_code == 200
    for _ in range(2):
        assert (await client.delete(path)).status_code == 204
    assert (await get(client, thread))["turns"][0]["feedback"] is None
    for body in ({}, {"rating": "so-so"}, {"rating": "up", "reason": "ugly"}, {"rating": "up", "comment": "x" * 2001}):
        assert (await client.put(path, json=body)).status_code == 422
    assert (await client.put("/api/runs/none/feedback", json={"rating": "up"})).status_code == 404
