"""Access follows the documents of each turn, as they are now, in every way that leads to it."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
import pytest_asyncio

from app.access.authentication import Authenticator
from app.answering import run_execution
from app.serving.application import make_app
from app.wiring.services import Services
from app.workbench.fleet.fleet import Fleet
from domain.errors import Unauthenticated
from domain.people.access import Caller
from tests.http_client import open_client

SECRET = "K7391"
SAFE = "# Safe\n\n## Combination\nThe safe of the Tresor opens with the combination K7391.\n"
LAWN = "# Lawn\n\nThe lawn of the Kestrel is mown on Tuesdays.\n"
ASKED = "With which combination does the safe of the Tresor open?"
OTHER = "On which day is the lawn of the Kestrel mown?"


@dataclass
class Door:
    """The service, and who comes in."""

    client: httpx.AsyncClient
    services: Services
    caller: Caller = field(default_factory=lambda: Caller("ann"))
    is_out: bool = False

    def enter(self, name: str, *groups: str, **more: Any) -> None:
        self.caller = Caller(name, groups=frozenset(groups) if groups else None, **more)

    async def ask(self, question: str = ASKED, thread: str | None = None, **more: Any) -> dict[str, Any]:
        body = {"question": question, **more} | ({"thread_id": thread} if thread else {})
        response = await self.client.post("/api/chat?stream=false", json=body)
        assert response.status_code == 200, response.text
        answer: dict[str, Any] = response.json()
        return answer

    async def add(self, name: str, text: str, *groups: str) -> str:
        report = await self.services.library.ingestion.add("default", name, text.encode(), groups=list(groups) or None)
        return str(report.document_id)

    async def limit(self, document_id: str, *groups: str) -> None:
        response = await self.client.patch(f"/api/documents/{document_id}", json={"groups": list(groups)})
        assert response.status_code == 200, response.text

    async def read(self, method: str, path: str, **options: Any) -> tuple[int, str]:
        response = await self.client.request(method, path, **options)
        return response.status_code, response.text


@pytest_asyncio.fixture
async def door(services: Services, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Door]:
    async with open_client(make_app(services)) as client:
        door = Door(client, services)

        async def identify(authenticator: Authenticator, credential: str | None) -> Caller:
            if door.is_out:
                raise Unauthenticated
            return door.caller

        monkeypatch.setattr(Authenticator, "identify", identify)
        yield door


def list_ways(run: dict[str, Any], step: str) -> list[tuple[str, str, dict[str, Any]]]:
    """Every way that leads to a run or its thread."""
    run_id, thread = run["run_id"], run["thread_id"]
    agent = f"/langgraph/threads/{thread}"
    return [
        ("GET", f"/api/runs/{run_id}", {}),
        ("GET", f"/api/runs/{run_id}/events", {}),
        ("PUT", f"/api/runs/{run_id}/feedback", {"json": {"rating": "up"}}),
        ("POST", f"/api/runs/{run_id}/cancel", {}),
        ("GET", f"/api/runs/{run_id}/trace", {}),
        ("GET", f"/api/runs/{run_id}/states/generate", {}),
        ("GET", f"/api/runs/{run_id}/why", {}),
        ("GET", f"/api/runs/{run_id}/bundle", {}),
        ("POST", f"/api/runs/{run_id}/whatif", {"json": {}}),
        ("GET", f"/api/threads/{thread}", {}),
        ("GET", f"/api/threads/{thread}/history", {}),
        ("POST", f"/api/threads/{thread}/replay", {"json": {"run_id": run_id, "tape": "strict"}}),
        ("POST", f"/api/threads/{thread}/replay", {"json": {"run_id": run_id}}),
        ("POST", f"/api/threads/{thread}/replay", {"json": {"checkpoint_id": step}}),
        ("GET", agent, {}),
        ("GET", f"{agent}/state", {}),
        ("GET", f"{agent}/state/{step}", {}),
        ("GET", f"{agent}/history", {}),
        ("GET", f"{agent}/runs", {}),
        ("GET", f"{agent}/runs/{run_id}", {}),
        ("GET", f"{agent}/runs/{run_id}/join", {}),
        ("GET", f"{agent}/runs/{run_id}/stream", {}),
        (
            "POST",
            "/v1/responses",
            {"json": {"model": "fast", "input": "And?", "previous_response_id": f"resp_{run_id}"}},
        ),
    ]


async def test_who_may_not_read_a_document_today_reads_no_turn_that_used_it(door: Door) -> None:
    document = await door.add("safe.md", SAFE)
    await door.add("lawn.md", LAWN)
    door.enter("ann", "a")
    run = await door.ask()
    assert SECRET in run["answer"]
    thread = run["thread_id"]
    [*_, before, _] = await door.services.make_history_reader().read("default", thread)
    step = before["checkpoint_id"]
    for method, path, options in list_ways(run, step):
        status, text = await door.read(method, path, **options)
        assert status in (200, 202, 204), (path, text)
    door.enter("owner")
    await door.limit(document, "b")
    door.enter("new", "a")
    for method, path, options in list_ways(run, step):
        status, text = await door.read(method, path, **options)
        assert status == 404, (method, path, text)
        assert SECRET not in text
        assert "Tresor" not in text
    for path in ("/api/threads", "/api/threads?q=Tresor", "/api/runs", "/api/failures"):
        status, text = await door.read("GET", path)
        assert (status, "Tresor" in text) == (200, False), path
    status, text = await door.read("POST", "/langgraph/threads/search", json={})
    assert (status, text) == (200, "[]")
    # Who is in the group reads it, whoever asked.
    door.enter("ben", "b")
    assert SECRET in (await door.read("GET", f"/api/threads/{thread}"))[1]
    assert SECRET in (await door.read("GET", f"/langgraph/threads/{thread}/state"))[1]
    # And so do all once it is open again.
    door.enter("owner")
    await door.limit(document)
    door.enter("new", "a")
    assert SECRET in (await door.read("GET", f"/api/threads/{thread}"))[1]


async def test_a_colleague_with_wider_rights_does_not_lock_me_out(door: Door) -> None:
    await door.add("safe.md", SAFE, "b")
    await door.add("lawn.md", LAWN)
    door.enter("ann", "a", rights=frozenset({"ask", "debug"}))
    mine = await door.ask(OTHER)
    thread = mine["thread_id"]
    door.enter("ben", "b")
    theirs = await door.ask(ASKED, thread)
    assert SECRET in theirs["answer"]
    door.enter("ann", "a", rights=frozenset({"ask", "debug"}))
    read = json.loads((await door.read("GET", f"/api/threads/{thread}"))[1])
    assert [turn["run_id"] for turn in read["turns"]] == [mine["run_id"]]
    for path in (
        f"/api/threads/{thread}/history",
        f"/langgraph/threads/{thread}/state",
        f"/langgraph/threads/{thread}/history",
    ):
        status, text = await door.read("GET", path)
        assert (status, SECRET in text, "Tresor" in text) == (200, False, False), path
    # What I ask next knows nothing of the turn that I may not read.
    follow_up = await door.ask("And its combination?", thread)
    assert SECRET not in json.dumps(follow_up)
    assert "Tresor" not in json.dumps(follow_up)
    status, text = await door.read("GET", f"/api/runs/{follow_up['run_id']}/trace")
    assert (status, "Tresor" in text) == (200, False)
    assert (await door.read("DELETE", f"/api/threads/{thread}"))[0] == 200


async def test_what_a_follow_up_repeats_is_hidden_with_it(door: Door) -> None:
    document = await door.add("safe.md", SAFE)
    lawn = await door.add("lawn.md", LAWN)
    door.enter("ann", "a")
    first = await door.ask()
    thread = first["thread_id"]
    follow_up = await door.ask("And what is its colour?", thread)
    alone = await door.ask(OTHER, thread, document_ids=[lawn])
    assert "Tresor" in follow_up["standalone_question"]
    door.enter("owner")
    await door.limit(document, "b")
    door.enter("ann", "a")
    turns = json.loads((await door.read("GET", f"/api/threads/{thread}"))[1])["turns"]
    assert [turn["run_id"] for turn in turns] == [alone["run_id"]]
    # Its states hold the turns before it, so that its answer may be read and these not.
    assert (await door.read("GET", f"/api/runs/{alone['run_id']}"))[0] == 200
    assert (await door.read("GET", f"/api/runs/{alone['run_id']}/trace"))[0] == 404


async def test_groups_hold_for_each_revision(door: Door) -> None:
    document = await door.add("safe.md", SAFE, "b")
    door.enter("ben", "b")
    run = await door.ask()
    door.enter("owner")
    await door.add("safe.md", "# Safe\n\nThe safe of the Tresor is grey.\n")
    await door.limit(document)
    door.enter("new", "a")
    assert (await door.read("GET", f"/api/documents/{document}"))[0] == 200
    for path in ("", "/file", "/blocks"):
        status, text = await door.read("GET", f"/api/documents/{document}{path}?revision=1")
        assert (status, SECRET in text) == (404, False), path
    assert [
        each["revision"]
        for each in json.loads((await door.read("GET", f"/api/documents/{document}/revisions"))[1])["revisions"]
    ] == [2]
    assert (await door.read("GET", f"/api/runs/{run['run_id']}"))[0] == 404
    door.enter("ben", "b")
    assert SECRET in (await door.read("GET", f"/api/documents/{document}?revision=1"))[1]
    # A document that is gone keeps the groups that it had.
    door.enter("owner")
    assert (await door.read("DELETE", f"/api/documents/{document}"))[0] == 204
    for groups, status in ((["a"], 404), (["b"], 200)):
        door.enter("new", *groups)
        assert (await door.read("GET", f"/api/runs/{run['run_id']}"))[0] == status


async def test_a_run_under_way_is_hidden_with_what_its_conversation_holds(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_execution, "SHOWN_SECONDS", 0.02)
    safe = await door.add("safe.md", SAFE)
    await door.add("lawn.md", LAWN)
    door.enter("ann", "a")
    thread = (await door.ask())["thread_id"]
    queue, goes_on = door.services.runs.queue, asyncio.Event()
    end = queue.end

    async def end_later(*given: Any, **more: Any) -> bool:
        await goes_on.wait()
        return await end(*given, **more)

    monkeypatch.setattr(queue, "end", end_later)
    asking = asyncio.create_task(door.ask(OTHER, thread))

    async def wait_for(status: int) -> None:
        async with asyncio.timeout(5):
            while True:
                for run in await queue.list_unfinished("default", thread):
                    if (await door.read("GET", f"/api/runs/{run.request.run_id}"))[0] == status:
                        return
                await asyncio.sleep(0.02)

    try:
        await wait_for(200)
        await door.services.library.documents.set_groups("default", safe, ["b"])
        await wait_for(404)
    finally:
        goes_on.set()
        await asking


@pytest.mark.parametrize("change", ["groups", "key"])
async def test_a_replay_of_many_runs_ends_when_one_is_no_longer_for_its_reader(
    door: Door, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    begun = asyncio.Event()

    async def run(*given: Any, **more: Any) -> None:
        begun.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(Fleet, "run", run)
    safe = await door.add("safe.md", SAFE)
    door.enter("ann", "a")
    await door.ask()
    body = {"set": {"profile.rerank.keep": 1}}
    replaying = asyncio.create_task(door.read("POST", "/api/replays", json=body))
    async with asyncio.timeout(5):
        await begun.wait()
        await asyncio.sleep(0.1)
    assert not replaying.done()
    if change == "groups":
        await door.services.library.documents.set_groups("default", safe, ["b"])
    door.is_out = change == "key"
    # Cancels it where it takes longer.
    status, said = await asyncio.wait_for(replaying, 5)
    assert (status, "event: plan" in said, "event: report" in said) == (200, True, False)


async def test_what_a_colleague_did_is_theirs(door: Door) -> None:
    document = await door.add("safe.md", SAFE, "a", "b")
    ordinary = frozenset({"ask", "ingest", "debug"})
    door.enter("ann", "a", rights=ordinary)
    run = await door.ask()
    feedback = f"/api/runs/{run['run_id']}/feedback"
    assert (await door.read("PUT", feedback, json={"rating": "up"}))[0] == 200
    door.enter("ben", "b", rights=ordinary)
    assert (await door.read("PUT", feedback, json={"rating": "down"}))[0] == 403
    assert (await door.read("DELETE", feedback))[0] == 403
    assert (await door.read("POST", f"/api/runs/{run['run_id']}/cancel"))[0] == 403
    for groups in ([], ["b"]):
        assert (await door.read("PATCH", f"/api/documents/{document}", json={"groups": groups}))[0] == 403
    uploaded = {"files": ("safe.md", SAFE.encode())}
    assert (await door.read("POST", "/api/documents", files=uploaded, data={"groups": ["b"]}))[0] == 422
    assert (await door.read("PATCH", f"/api/documents/{document}", json={"groups": ["a"]}))[0] == 200
    door.enter("ann", "a", rights=ordinary)
    assert (await door.read("DELETE", feedback))[0] == 204
