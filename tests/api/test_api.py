"""The HTTP API in process, on real storage."""

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

import httpx
import psycopg
import pytest
from fastapi import Request

from app.api.asking.streams import respond, stream_events
from app.serving.application import make_app
from app.settings import Settings
from app.wiring.services import Services, open_services
from askgraph.frames import read_frames
from domain.errors import DatabaseUnavailable
from domain.events import Event, Failed
from tests.asking import ask, list_thread, with_models
from tests.http_client import run_app
from tests.wire.openai import serve_openai

QUESTION = {"question": "How long is the warranty of the Falke?"}


def parse_events(body: str) -> list[tuple[str, str, dict[str, Any]]]:
    return [(frame.id, frame.type, json.loads(frame.data)) for frame in read_frames([body.encode()])]


async def test_chat_streams_numbered_events_that_end_with_done(client: httpx.AsyncClient) -> None:
    response = await client.post("/api/chat", json=QUESTION)
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/event-stream")
    events = parse_events(response.text)
    assert [number for number, _, _ in events] == [f"1-{n}" for n in range(1, len(events) + 1)]
    assert events[-1][1] == "done"
    assert "36 months" in events[-1][2]["answer"]
    assert {name for _, name, _ in events} >= {"thinking", "sources", "content", "citation", "done"}


REFUSED = [
    ({"question": ""}, 422, "question_error", "empty"),
    ({"question": "x" * 2001}, 422, "question_error", "2,000"),
    ({"question": 7}, 422, "invalid_request", "string"),
    ({}, 422, "invalid_request", "question"),
    (QUESTION | {"threshold": 1.5}, 422, "invalid_request", "threshold"),
    (QUESTION | {"limit": 0}, 422, "invalid_request", "limit"),
    (QUESTION | {"mode": "nonsense"}, 422, "unknown_mode", "standard"),
    (QUESTION | {"document_ids": ["nonsense"]}, 404, "unknown_document", "nonsense"),
    (QUESTION | {"document_ids": []}, 422, "invalid_request", "document_ids"),
    (QUESTION | {"thread_id": "../etc"}, 422, "invalid_request", "thread_id"),
    (QUESTION | {"workspace": "a b"}, 422, "invalid_request", "workspace"),
    (QUESTION | {"typo": 1}, 422, "invalid_request", "typo"),
    (QUESTION | {"filter": "team=legal"}, 422, "invalid_request", "filter"),
    (QUESTION | {"filter": {"team": {"like": "x"}}}, 422, "filter_error", "Use eq, in"),
    (QUESTION | {"filter": {"team": None}}, 422, "filter_error", "'team' has a value"),
]
"""Body, and the status, code and part of the message that it gets."""


async def test_bad_requests_are_refused_with_what_is_wrong(client: httpx.AsyncClient) -> None:
    for body, status, code, says in REFUSED:
        response = await client.post("/api/chat", json=body)
        error = response.json()["error"]
        assert (response.status_code, error["code"]) == (status, code), body
        assert says in error["message"]


async def test_a_filter_travels_from_the_request_to_the_answer(client: httpx.AsyncClient) -> None:
    for team, months in (("legal", 7), ("hr", 11)):
        files = [("files", (f"{team}.md", f"# Notice\n\nThe notice period is {months} months.\n".encode()))]
        metadata = json.dumps({"team": team, "year": 2000 + months})
        response = await client.post(
            "/api/documents", files=files, params={"workspace": "w"}, data={"metadata": metadata}
        )
        assert response.status_code == 200, response.text
    listed = (await client.get("/api/documents", params={"workspace": "w", "where": "year>2010"})).json()["documents"]
    assert [(d["source"], d["metadata"]) for d in listed] == [("hr.md", {"team": "hr", "year": 2011})]
    body = {"question": "How long is the notice period?", "workspace": "w"}
    for wanted, months in (
        ({"team": "legal"}, 7),
        ({"year": {"gte": 2010}}, 11),
        ({"path": {"prefix": "hr"}, "team": {"in": ["hr", "legal"]}}, 11),
    ):
        answer = (await client.post("/api/chat", json=body | {"filter": wanted}, params={"stream": "false"})).json()
        assert f"{months} months" in answer["answer"]
        assert {c["source"] for c in answer["citations"]} == {"legal.md" if months == 7 else "hr.md"}
    for where in ("team", "team=legal or team=hr"):
        refused = await client.get("/api/documents", params={"workspace": "w", "where": where})
        assert (refused.status_code, refused.json()["error"]["code"]) == (422, "filter_error")


async def test_metadata_that_cannot_be_stored_is_refused(client: httpx.AsyncClient) -> None:
    for metadata, says in (("{", "is not JSON"), ("[]", "JSON object"), ('{"team": null}', "'team' needs text")):
        files = [("files", ("a.md", b"# A\n\nText.\n"))]
        response = await client.post(
            "/api/documents", files=files, params={"workspace": "w"}, data={"metadata": metadata}
        )
        error = response.json()["error"]
        assert (response.status_code, error["code"]) == (422, "metadata_error")
        assert says in error["message"]
    assert (await client.get("/api/documents", params={"workspace": "w"})).json()["documents"] == []


async def test_an_upload_is_refused_as_a_whole_only_while_nothing_is_stored(
    client: httpx.AsyncClient, database_url: str
) -> None:
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        await connection.execute(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
            "$$BEGIN RAISE EXCEPTION 'no space left' USING ERRCODE = 'disk_full'; END$$"
        )
        await connection.execute(
            "CREATE TRIGGER refuse BEFORE INSERT ON documents FOR EACH ROW WHEN (new.source LIKE 'full%') "
            "EXECUTE FUNCTION refuse()"
        )
    before = (await client.get("/api/documents")).json()
    full, fits = [("files", (name, b"Some text.", "text/plain")) for name in ("full.txt", "fits.txt")]
    refused = await client.post("/api/documents", files=[full, fits])
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "database_full")
    assert (await client.get("/api/documents")).json() == before
    taken = await client.post("/api/documents", files=[fits, full])
    assert taken.status_code == 200
    assert [(each["status"], each["code"]) for each in taken.json()["documents"]] == [
        ("added", None), ("failed", "database_full"),
    ]  # fmt: skip


async def test_only_failing_files_give_an_error_status(client: httpx.AsyncClient) -> None:
    response = await client.post("/api/documents", files=[("files", ("empty.txt", b"", "text/plain"))])
    assert response.status_code == 422
    assert response.json()["documents"][0]["code"] == "empty_document"


async def test_a_file_with_an_unusable_name_does_not_hide_what_became_of_the_others(client: httpx.AsyncClient) -> None:
    # Written by hand, because clients leave out or escape such names.
    names = ["good.txt", "", "x" * 300 + ".txt", "a\x01b.txt", "folder/last.txt"]
    parts = [
        f'--limit\r\nContent-Disposition: form-data; name="files"; filename="{name}"\r\n'
        f"Content-Type: text/plain\r\n\r\nThe Drossel sonde number {number} weighs 412 grams.\r\n"
        for number, name in enumerate(names)
    ]
    response = await client.post(
        "/api/documents",
        content="".join([*parts, "--limit--\r\n"]),
        headers={"Content-Type": "multipart/form-data; boundary=limit"},
    )
    assert response.status_code == 200
    reports = response.json()["documents"]
    assert [d["status"] for d in reports] == ["added", "failed", "failed", "failed", "added"]
    assert [d["source"] for d in (reports[0], reports[-1])] == ["good.txt", "last.txt"]
    for report, says in zip(reports[1:4], ("without a name", "255", "control character U+0001"), strict=True):
        assert says in report["error"]


@pytest.mark.parametrize(
    ("failed", "status"),
    [
        (("database_unavailable", True), 503),
        (("model_timeout", True), 503),
        (("model_rejected_key", False), 502),
        (("context_too_long", False), 502),
        (("unknown_document", False), 404),
        (("question_error", False), 422),
        (("timeout", True), 503),
        (("internal_error", False), 500),
    ],
)
async def test_a_failed_turn_as_json_has_the_status_of_its_error(failed: tuple[str, bool], status: int) -> None:
    code, retryable = failed

    async def fail() -> AsyncGenerator[Event]:
        yield Failed(type="error", code=code, message="It failed.", retryable=retryable)

    response = await respond(Request({"type": "http", "headers": []}), stream_events(fail()), stream=False)
    assert response.status_code == status
    assert ("Retry-After" in response.headers) == retryable
    body = {"code": code, "message": "It failed.", "retryable": retryable}
    assert json.loads(bytes(response.body)) == {"error": body}


async def test_a_run_is_repeated_on_its_tape(client: httpx.AsyncClient) -> None:
    answer = (await client.post("/api/chat?stream=false", json=QUESTION)).json()
    path = f"/api/threads/{answer['thread_id']}/replay"
    steps = (await client.get(f"/api/threads/{answer['thread_id']}/history")).json()["steps"]
    again = (await client.post(f"{path}?stream=false", json={"run_id": answer["run_id"], "tape": "strict"})).json()
    assert again.pop("comparison") == {"run_id": answer["run_id"], "identical": True, "differences": []}
    assert {**again, "timings": {}} == {**answer, "timings": {}}
    rerank = next(step["checkpoint_id"] for step in steps if step["node"] == "rerank")
    response = await client.post(path, json={"checkpoint_id": rerank, "tape": "strict"})
    kinds = [event[1] for event in parse_events(response.text)]
    assert kinds[-2:] == ["comparison", "done"]
    changed = {"checkpoint_id": rerank, "tape": "strict", "set": {"corrected_question": "How heavy is the Falke?"}}
    [*_, (_, kind, data)] = parse_events((await client.post(path, json=changed)).text)
    assert (kind, data["code"]) == ("error", "not_on_tape")
    asked = {"question": "And of the Amsel?", "thread_id": answer["thread_id"]}
    await client.post("/api/chat?stream=false", json=asked)
    steps = (await client.get(f"/api/threads/{answer['thread_id']}/history")).json()["steps"]
    follow_up = next(step["checkpoint_id"] for step in reversed(steps) if step["node"] == "route")
    for body, status, code in (
        ({}, 422, "state_error"),
        ({"run_id": "unknown"}, 404, "unknown_run"),
        ({"run_id": answer["run_id"], "tape": "loose"}, 422, "invalid_request"),
        ({"run_id": answer["run_id"], "checkpoint_id": follow_up}, 422, "state_error"),
    ):
        refused = await client.post(path, json=body)
        assert (refused.status_code, refused.json()["error"]["code"]) == (status, code)


async def test_the_graph_is_drawn(client: httpx.AsyncClient) -> None:
    mermaid = await client.get("/api/graph")
    assert "reformulate" in mermaid.text
    assert (await client.get("/api/graph?format=gif")).status_code == 422


async def test_health_says_what_runs(client: httpx.AsyncClient) -> None:
    response = await client.get("/readyz")
    assert response.status_code == 200
    body = response.json()
    assert (body["status"], body["database"], body["cache"]) == ("ok", "up", "up")
    assert body["models"] == "none"
    assert body["modes"][:3] == ["fast", "standard", "thorough"]
    assert body["ms"]["database"] > 0
    assert body["runs"] == {"running": 0, "waiting": 0, "most": 256, "saturated": False}
    assert (await client.get("/healthz")).json() == {"status": "ok"}


async def test_metrics_tell_of_an_outage(client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: object) -> None:
        raise DatabaseUnavailable

    monkeypatch.setattr("app.api.dependencies.identify", fail)
    response = await client.get("/metrics")
    assert (response.status_code, response.text) == (200, "askgraph_database_up 0.0\n")


async def test_metrics_count_runs_as_their_records_do(client: httpx.AsyncClient) -> None:
    async def read() -> dict[str, float]:
        text = (await client.get("/metrics")).text
        return {
            name: float(value) for line in text.splitlines() if line[0] != "#" for name, value in [line.rsplit(" ", 1)]
        }

    before = await read()
    answered = 'askgraph_runs_total{cached="false",mode="fast",outcome="answered"}'
    assert (await client.post("/api/chat?stream=false", json=QUESTION | {"mode": "fast"})).status_code == 200
    now = await read()
    assert now[answered] == before.get(answered, 0) + 1
    retrieved = 'askgraph_step_seconds_count{node="retrieve"}'
    assert now[retrieved] == before.get(retrieved, 0) + 1
    assert (now["askgraph_runs_limit"], now["askgraph_database_up"]) == (256, 1)
    assert now['askgraph_queue_waiting{queue="runs"}'] == now['askgraph_queue_oldest_seconds{queue="ingestions"}'] == 0


async def test_unknown_paths_and_methods_have_the_same_error_shape(client: httpx.AsyncClient) -> None:
    assert (await client.get("/nonsense")).json()["error"]["code"] == "not_found"
    assert (await client.put("/api/chat")).json()["error"]["code"] == "method_not_allowed"


async def test_two_files_of_one_name_do_not_replace_each_other(client: httpx.AsyncClient) -> None:
    files = [
        ("files", ("x/README.md", b"# One\n\nThe first.", "text/markdown")),
        ("files", ("y/README.md", b"# Two\n\nThe second.", "text/markdown")),
    ]
    report = (await client.post("/api/documents", files=files)).json()
    assert [d["status"] for d in report["documents"]] == ["added", "failed"]


def post_to(path: str, query: bytes = b"") -> dict[str, Any]:
    """The scope of a request, for a client that leaves when the test wants it."""
    headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
    given = {"path": path, "raw_path": path.encode(), "query_string": query, "headers": headers}
    return {"type": "http", "http_version": "1.1", "method": "POST", **given}


LEFT = {"thread_id": "left"}
PROMPT = {"role": "user", "content": QUESTION["question"]}


@pytest.mark.parametrize(
    ("path", "body", "state", "ttft"),
    [
        ("/api/chat", QUESTION | LEFT | {"on_disconnect": "cancel"}, "stopped", 60),
        ("/api/chat", QUESTION | LEFT | {"on_disconnect": "continue"}, "done", 0),
        ("/v1/chat/completions", {"model": "fast", "messages": [PROMPT], "metadata": LEFT}, "stopped", 60),
        ("/v1/responses", {"model": "fast", "input": [PROMPT], "metadata": LEFT}, "stopped", 60),
    ],
)
async def test_a_client_that_leaves_a_json_answer_stops_its_run_where_that_is_said(
    settings: Settings, library: dict[str, str], path: str, body: dict[str, Any], state: str, ttft: float
) -> None:
    messages = iter([body])

    async def receive() -> dict[str, Any]:
        if message := next(messages, None):
            return {"type": "http.request", "body": json.dumps(message).encode(), "more_body": False}
        # Until the run is under way, or over already.
        while not (  # noqa: ASYNC110 - what is waited for happens in the database
            await services.runs.queue.list_unfinished("default", "left") or await list_thread(services, "left")
        ):
            await asyncio.sleep(0.001)
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        pass

    scope = post_to(path, b"stream=false")
    async with serve_openai(ttft=ttft) as server, open_services(with_models(settings, server)) as services:
        async with run_app(make_app(services)) as app:
            await app(scope, receive, send)
        (run,) = await list_thread(services, "left")
        status = await services.runs.queue.get("default", run.run_id)
        assert status is not None
        assert status.state == state


async def test_what_if_ends_with_its_client(services: Services, library: dict[str, str]) -> None:
    done = await ask(services)
    messages = iter([{"type": "http.request", "body": b"{}", "more_body": False}])
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        if message := next(messages, None):
            return message
        while not services.admission.running:  # noqa: ASYNC110 - until the variants are being tried
            await asyncio.sleep(0.001)
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = post_to(f"/api/runs/{done['run_id']}/whatif")
    async with run_app(make_app(services)) as app:
        await app(scope, receive, send)
        assert (sent[0]["status"], services.admission.running) == (499, 0)


async def test_costs_are_those_of_the_workspace(client: httpx.AsyncClient) -> None:
    await client.post("/api/chat?stream=false", json=QUESTION)
    for _ in range(50):  # the record is written after the answer
        costs = (await client.get("/api/costs", params={"since": "1h"})).json()
        if costs["total"]["runs"]:
            break
        await asyncio.sleep(0.05)
    assert [(spent["name"], spent["runs"], spent["calls"]) for spent in costs["costs"]] == [("standard", 1, 0)]
    assert costs["total"]["cost"] == 0
    others = await client.get("/api/costs", params={"workspace": "legal", "by": "model"})
    assert others.json()["costs"] == []
    refused = await client.get("/api/costs", params={"since": "soon"})
    assert refused.status_code == 422
    assert "is no time" in refused.json()["error"]["message"]
    assert (await client.get("/api/costs", params={"by": "colour"})).status_code == 422


async def test_nothing_follows_the_last_event_of_a_run(client: httpx.AsyncClient) -> None:
    asked = await client.post("/api/chat", json={"question": "How long is the warranty of the Falke?"})
    ids = [line.removeprefix("id:").strip() for line in asked.text.splitlines() if line.startswith("id:")]
    path = f"/api/runs/{asked.headers['X-Run-Id']}/events"
    assert (await client.get(path, headers={"Last-Event-ID": ids[-1]})).status_code == 204
    before = await client.get(path, headers={"Last-Event-ID": ids[-2]})
    assert before.status_code == 200
    assert ids[-1] in before.text
    assert (await client.get(path, headers={"Last-Event-ID": "last"})).status_code == 422


async def test_a_link_that_runs_a_script_reaches_nobody_in_an_answer(client: httpx.AsyncClient) -> None:
    text = (
        b"# Kranich\n\nThe warranty of the Kranich lasts 31 months, [claim it](javascript:alert(1)) in the shop.\n\n"
        b"# Uhu\n\n```\nThe warranty of the Uhu lasts 29 months, <javascript:alert(2)> says so, see [r](vbscript:x).\n```\n"
    )
    await client.post("/api/documents", files={"files": ("links.md", text)})
    for name, months in (("Kranich", "31"), ("Uhu", "29")):
        question = {"question": f"How long is the warranty of the {name}?"}
        answer = (await client.post("/api/chat?stream=false", json=question)).json()["answer"]
        assert months in answer
        assert "script:" not in answer
