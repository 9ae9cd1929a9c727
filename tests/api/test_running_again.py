"""Every way to run something again, tried by five callers: each reads with their own rights of now, at most those of
whoever asked."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

import httpx
import pytest
import pytest_asyncio

from app.access import authentication
from app.access.keys import make_key
from app.answering.requests import Ask, collect, read_events
from app.serving.application import make_app
from app.wiring.services import Services
from domain.people.access import ApiKey
from domain.runs import RunRequest
from domain.scope import Scope
from domain.state import blank_question, merge_state
from tests.http_client import open_client

pytestmark = pytest.mark.asyncio(loop_scope="module")

QUESTION = "On which day is the lawn of the Kestrel mown?"
SECRET_QUESTION = "Which number opens the vault of the Kestrel?"
SECRET = "K7731"
"""Stands in a document of the group `board`, which comes after the questions, and in no id, which has no K."""
RESTRICTED = (
    f"# Lawn of the Kestrel\n\nThe lawn of the Kestrel is mown on Tuesday, says number {SECRET} of the board.\n\n"
    f"## Vault\n\nThe number {SECRET} opens the vault of the Kestrel.\n"
)

BOARD = frozenset({"board"})
CALLERS = {
    "board": ApiKey("", "board", frozenset({"ask", "ingest", "debug"}), frozenset({"mine"}), BOARD),
    "staff": ApiKey("", "staff", frozenset({"ask", "debug"}), frozenset({"mine"}), frozenset({"staff"})),
    "no group": ApiKey("", "no group", frozenset({"ask", "debug"}), frozenset({"mine"}), frozenset()),
    "no debug": ApiKey("", "no debug", frozenset({"ask"}), frozenset({"mine"})),
    "reduced": ApiKey("", "reduced", frozenset({"ask", "debug"}), frozenset({"mine"}), BOARD),
}
"""Keys, as they were made. That of `reduced` is taken out of the board after its question."""
ASKERS = ("reduced", "everything", "staff")
"""Who asked first. What `staff` has asked tells nobody the secret: its rights did not reach as far."""


@dataclass(frozen=True)
class Way:
    """A way to run again. `$run`, `$thread` and `$checkpoint` stand for ids; `$branch` and `$head` for a branch that the
    board has made of the run with the secret question, and for its checkpoint."""

    path: str
    body: dict[str, Any]
    needs_debug: bool = True
    of_board: bool = False
    """True for what the board has made, and has then been told the secret by."""
    of_many: bool = False
    """True where all runs are tried, whoever asked them."""
    finds: bool = True
    """True where it tells those who may read it the secret."""


SET = {"set": {"standalone_question": SECRET_QUESTION, "query": SECRET_QUESTION}}
REPLAY, GO_ON = "/api/threads/$thread/replay?stream=false", "/langgraph/threads/$thread/runs/wait"
WAYS = {
    "from the start": Way(REPLAY, {"run_id": "$run", "set": {"question": SECRET_QUESTION}}),
    "from a step": Way(REPLAY, {"run_id": "$run", "node": "retrieve", **SET}),
    "after a step": Way(REPLAY, {"run_id": "$run", "after": "route", **SET}),
    "from a checkpoint": Way(REPLAY, {"checkpoint_id": "$checkpoint", **SET}),
    "in another mode": Way(REPLAY, {"run_id": "$run", "mode": "fast", "set": {"question": SECRET_QUESTION}}),
    "with the tape": Way(REPLAY, {"run_id": "$run", "node": "retrieve", "tape": "fill", **SET}),
    "as it was": Way(REPLAY, {"run_id": "$run"}),
    "strictly": Way(REPLAY, {"run_id": "$run", "tape": "strict"}, finds=False),
    "what if": Way("/api/runs/$run/whatif", {"sets": [SET["set"]]}),
    "many, searched anew": Way("/api/replays", {"search_anew": True, "where": ["outcome == answered"]}, of_many=True),
    "many, with a knob": Way("/api/replays", {"set": {"profile.retrieval.candidates": 19}}, of_many=True),
    "LangGraph, from a checkpoint": Way(GO_ON, {"assistant_id": "standard", "checkpoint_id": "$checkpoint"}),
    "LangGraph, a question at a checkpoint": Way(
        GO_ON,
        {"assistant_id": "standard", "checkpoint_id": "$checkpoint", "input": {"question": SECRET_QUESTION}},
        needs_debug=False,
    ),
    "LangGraph, a branch of somebody": Way(
        GO_ON, {"assistant_id": "standard", "checkpoint_id": "$head"}, of_board=True
    ),
    "a branch of somebody": Way("/api/threads/$branch/replay?stream=false", {"checkpoint_id": "$head"}, of_board=True),
    "a further question": Way(
        "/api/chat?stream=false", {"question": SECRET_QUESTION, "thread_id": "$thread"}, needs_debug=False
    ),
}


@dataclass
class Served:
    """The service, with a run of each asker, and a client for each caller."""

    services: Services
    client: httpx.AsyncClient
    tokens: dict[str, str] = field(default_factory=dict)
    keys: dict[str, ApiKey] = field(default_factory=dict)
    ids: dict[str, dict[str, str]] = field(default_factory=dict)

    async def make(self, key: ApiKey) -> None:
        self.keys[key.name], self.tokens[key.name] = await make_key(self.services.keys, key)

    async def post(self, name: str, path: str, body: dict[str, Any]) -> httpx.Response:
        return await self.client.post(path, json=body, headers={"Authorization": f"Bearer {self.tokens[name]}"})

    async def try_way(self, way: Way, name: str, asker: str) -> httpx.Response:
        ids = self.ids[asker]
        path, body = way.path, dict(way.body)
        for kind, value in ids.items():
            path = path.replace(f"${kind}", value)
            body = {key: value if each == f"${kind}" else each for key, each in body.items()}
        return await self.post(name, path, body)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def served(module_services: Services) -> AsyncIterator[Served]:
    await module_services.library.ingestion.add(
        "mine", "lawn.md", b"# Lawn\n\nThe lawn of the Kestrel is mown on Tuesday."
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(authentication, "TRUSTED_SECONDS", 0)
        async with open_client(make_app(module_services)) as client:
            served = Served(module_services, client)
            for key in (*CALLERS.values(), replace(CALLERS["board"], name="everything", groups=None)):
                await served.make(key)
            for asker in ASKERS:
                asked = (await served.post(asker, "/api/chat?stream=false", {"question": QUESTION})).json()
                thread = asked["thread_id"]
                steps = await module_services.make_history_reader().read("mine", thread)
                checkpoint = next(step["checkpoint_id"] for step in steps if step["node"] == "route")
                changed = {"values": SET["set"], "checkpoint_id": checkpoint}
                made = (await served.post("board", f"/langgraph/threads/{thread}/state", changed)).json()
                head = made["checkpoint"]["checkpoint_id"]
                graph_thread = await module_services.runs.client_threads.read("mine", thread)
                assert graph_thread is not None
                served.ids[asker] = {
                    "run": asked["run_id"],
                    "thread": thread,
                    "checkpoint": checkpoint,
                    "branch": graph_thread.head,
                    "head": head,
                }
            await module_services.keys.change(replace(served.keys["reduced"], groups=frozenset({"staff"})))
            await module_services.library.ingestion.add("mine", "vault.md", RESTRICTED.encode(), groups=["board"])
            yield served


@pytest.mark.parametrize("way", WAYS)
async def test_who_runs_again_reads_with_their_own_rights(served: Served, way: str) -> None:
    tried, wrong = WAYS[way], []
    for name in CALLERS:
        for asker in ASKERS:
            response = await served.try_way(tried, name, asker)
            expected = 200, tried.finds and (name == "board" and (asker != "staff" or tried.of_many))
            if name == "no debug":
                expected = (403, False) if tried.needs_debug else (200, True)
            elif name == "board" and not tried.needs_debug:
                expected = 200, True
            elif name != "board" and asker != "staff" and tried.of_board:
                expected = 404, False
            if (response.status_code, SECRET in response.text) != expected:
                wrong.append((name, asker, expected, response.status_code, response.text[:200]))
    assert wrong == []


async def test_what_read_the_secret_is_not_run_again_by_those_who_may_not_read_it(served: Served) -> None:
    # In another mode than the cache has it.
    question = {"question": SECRET_QUESTION, "mode": "fast"}
    asked = (await served.post("board", "/api/chat?stream=false", question)).json()
    assert SECRET in asked["answer"]
    thread = asked["thread_id"]
    steps = await served.services.make_history_reader().read("mine", thread)
    checkpoint = next(step["checkpoint_id"] for step in steps if step["node"] == "route")
    served.ids["secret"] = {"run": asked["run_id"], "thread": thread, "checkpoint": checkpoint}
    for way, tried in WAYS.items():
        for name in ("staff", "no group", "reduced"):
            if not tried.of_board:
                response = await served.try_way(tried, name, "secret")
                assert SECRET not in response.text
                assert response.status_code == (200 if tried.of_many else 404), (way, name)


RECOVERED = ("waited", "had begun", "had begun a branch")


@pytest.mark.parametrize("recovered", RECOVERED)
@pytest.mark.parametrize("now", ["as before", "reduced", "in another workspace", "revoked"])
async def test_a_run_that_nobody_waits_for_has_the_rights_of_its_asker_now(
    served: Served, recovered: str, now: str
) -> None:
    services = served.services
    key = replace(CALLERS["board"], name=f"{recovered}, {now}")
    await served.make(key)
    # Its answer is in the cache, for those with its rights.
    asked = await served.post(key.name, "/api/chat?stream=false", {"question": SECRET_QUESTION})
    assert SECRET in asked.json()["answer"]
    key = served.keys[key.name]
    run_id, thread_id = str(uuid4()), str(uuid4())
    ask = Ask(SECRET_QUESTION, Scope("mine", groups=key.groups), caller=key.as_caller())
    turn = ask.as_turn(run_id, services.modes["standard"])
    request = RunRequest(run_id, thread_id, "mine", turn, begins_thread=True, caller=ask.caller.name)
    if recovered == "had begun a branch":
        request = replace(request, forked_from={"thread_id": "t", "run_id": "", "checkpoint_id": "c", "changed": []})
    lease = await services.runs.queue.accept(request, wait=False)
    assert lease is not None
    if recovered != "waited":
        state = merge_state(turn, {**blank_question(), "answer": f"The number {SECRET}"})
        await services.runs.states.write(thread_id, state, attempt=1)
        await services.runs.states.flush("mine", thread_id)
    match now:
        case "reduced":
            await services.keys.change(replace(key, groups=frozenset({"staff"})))
        case "in another workspace":
            await services.keys.change(replace(key, workspaces=frozenset({"theirs"})))
        case "revoked":
            await services.keys.revoke(key.key_id)
    await services.runs.queue.hand_back(lease)
    async with services.make_run_manager() as manager:
        await manager.work()
        ended, events = await collect(read_events(await manager.follow_run("mine", run_id)))
    shown = str([event for event in events if event["type"] != "correction"])
    assert (SECRET in shown) == (now == "as before")
    if now in ("revoked", "in another workspace") or (now == "reduced" and recovered != "waited"):
        assert ended["type"] == "error"
        assert ended["code"] == ("unknown_workspace" if now == "in another workspace" else "forbidden")
    else:
        assert ended["type"] == "done"
