"""Every endpoint, those of the OpenAPI document and of other protocols, tried with another workspace's ids and without the right that it needs."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast
from uuid import uuid4

import httpx
import pytest
import pytest_asyncio
from fastapi.routing import APIRoute

from app.access.authentication import Authenticator
from app.answering.requests import Ask, collect
from app.serving.application import DIALECTS, ROUTERS, make_app
from app.wiring.services import Services
from domain.assistants import Draft
from domain.people.access import OWNER, RIGHTS, Caller, Right
from domain.ports.question_sets import SetQuestion
from domain.scope import Scope
from tests.http_client import describe_api, open_client

SECRET = "The vault of the Kestrel opens with the number K7731."
"""Said in another workspace, and in a document of a group that the caller is not in."""
LAWN = "What does the lawn of the Kestrel need?"
HARMLESS = "The lawn of the Kestrel is mown on Tuesdays."

OPEN: dict[str, int] = {
    "get /healthz": 200,
    "get /readyz": 200,
    "get /api/session": 200,
    "post /api/session": 422,
    "delete /api/session": 204,
    "get /api/session/sign-in": 404,
    "get /api/session/callback": 404,
    **{f"get /.well-known/oauth-protected-resource{path}": 404 for path in ("", "/mcp")},
    "post /register": 404,
    **{f"{method} /v1/{{path:path}}": 404 for method in ("get", "post", "delete")},
}
"""Endpoints that need no right and concern no workspace, with the status that anybody gets."""


@dataclass(frozen=True)
class Endpoint:
    """A request to an endpoint. `$document`, `$run`, `$thread`, `$checkpoint`, `$ingestion` and `$assistant` stand for
    ids, and `$workspace` for the workspace that is named."""

    right: Right
    body: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of httpx's `request`."""
    ids: tuple[str, ...] = ()
    """The ids in it. Without any, the endpoint lists or counts what is in the workspace."""
    instead: frozenset[Right] = frozenset()
    """Rights that do as well."""


IN_WORKSPACE = {"params": {"workspace": "$workspace"}}
AGENT_RUN = {"json": {"assistant_id": "fast", "input": {"question": LAWN}}}

ENDPOINTS: dict[str, Endpoint] = {
    "post /api/chat": Endpoint(
        "ask",
        {
            "json": {"question": "How is the vault opened?", "document_ids": ["$document"], "workspace": "$workspace"},
            "params": {"stream": "false"},
        },
        ("document",),
    ),
    "get /api/cache": Endpoint("debug", IN_WORKSPACE),
    "get /api/runs/{run_id}": Endpoint("ask", IN_WORKSPACE, ("run",)),
    "get /api/runs/{run_id}/events": Endpoint("ask", IN_WORKSPACE, ("run",)),
    "post /api/runs/{run_id}/cancel": Endpoint("ask", IN_WORKSPACE, ("run",)),
    "put /api/runs/{run_id}/feedback": Endpoint("ask", IN_WORKSPACE | {"json": {"rating": "up"}}, ("run",)),
    "delete /api/runs/{run_id}/feedback": Endpoint("ask", IN_WORKSPACE, ("run",)),
    "get /api/runs": Endpoint("debug", IN_WORKSPACE),
    "get /api/runs/{run_id}/trace": Endpoint("debug", IN_WORKSPACE, ("run",)),
    "get /api/runs/{run_id}/why": Endpoint("debug", IN_WORKSPACE, ("run",)),
    "post /api/runs/{run_id}/whatif": Endpoint("debug", IN_WORKSPACE | {"json": {}}, ("run",)),
    "get /api/runs/{run_id}/diff/{other_id}": Endpoint("debug", IN_WORKSPACE, ("run",)),
    "get /api/runs/{run_id}/bundle": Endpoint("debug", IN_WORKSPACE, ("run",)),
    "get /api/failures": Endpoint("debug", IN_WORKSPACE),
    "get /api/figures": Endpoint("debug", IN_WORKSPACE),
    "get /api/runs/{run_id}/states/{step}": Endpoint("debug", IN_WORKSPACE, ("run",)),
    "post /api/replays": Endpoint("debug", IN_WORKSPACE | {"json": {"set": {"profile.rerank.keep": 1}}}),
    "post /api/replays/plan": Endpoint("debug", IN_WORKSPACE | {"json": {"set": {"profile.rerank.keep": 1}}}),
    "get /api/sets": Endpoint("debug", IN_WORKSPACE),
    "put /api/sets/{set_name}/questions/{run_id}": Endpoint(
        "debug", IN_WORKSPACE | {"json": {"question": "Is it open?", "answers": ["K7731"]}}, ("run",)
    ),
    "delete /api/sets/{set_name}/questions/{run_id}": Endpoint("debug", IN_WORKSPACE, ("set", "run")),
    "post /api/sets/{set_name}/runs": Endpoint("debug", IN_WORKSPACE | {"json": {}}, ("set",)),
    "get /api/documents": Endpoint("ask", IN_WORKSPACE),
    "get /api/documents/{document_id}": Endpoint("ask", IN_WORKSPACE, ("document",)),
    "get /api/documents/{document_id}/revisions": Endpoint("ask", IN_WORKSPACE, ("document",)),
    "get /api/documents/{document_id}/unseen": Endpoint("ingest", IN_WORKSPACE, ("document",)),
    "get /api/documents/{document_id}/file": Endpoint("ask", IN_WORKSPACE, ("document",)),
    "get /api/documents/{document_id}/pages/{number}.{kind}": Endpoint("ask", IN_WORKSPACE, ("document",)),
    "get /api/documents/{document_id}/text": Endpoint("ask", IN_WORKSPACE, ("document",)),
    "get /api/documents/{document_id}/find": Endpoint(
        "ask", {"params": {"words": "vault", "workspace": "$workspace"}}, ("document",)
    ),
    "get /api/library": Endpoint("ask", IN_WORKSPACE),
    "get /api/starters": Endpoint("ask", IN_WORKSPACE),
    "get /api/search": Endpoint("ask", {"params": {"question": "How is the vault opened?", "workspace": "$workspace"}}),
    "post /api/documents": Endpoint(
        "ingest", {"files": {"files": ("note.md", b"# Note\n\nNothing.")}, "params": {"workspace": "$workspace"}}
    ),
    "patch /api/documents/{document_id}": Endpoint("ingest", IN_WORKSPACE | {"json": {"groups": []}}, ("document",)),
    "delete /api/documents/{document_id}": Endpoint("ingest", IN_WORKSPACE, ("document",)),
    "get /api/ingestions": Endpoint("ingest", IN_WORKSPACE),
    "get /api/ingestions/{ingestion_id}": Endpoint("ingest", IN_WORKSPACE, ("ingestion",)),
    "get /api/threads": Endpoint("ask", IN_WORKSPACE),
    "get /api/threads/{thread_id}": Endpoint("ask", IN_WORKSPACE, ("thread",)),
    "patch /api/threads/{thread_id}": Endpoint("ask", IN_WORKSPACE | {"json": {"title": "Mine"}}, ("thread",)),
    "get /api/threads/{thread_id}/history": Endpoint("ask", IN_WORKSPACE, ("thread",)),
    "delete /api/threads/{thread_id}": Endpoint("ask", IN_WORKSPACE, ("thread",), frozenset({"admin"})),
    "post /api/threads/{thread_id}/replay": Endpoint(
        "debug", {"json": {"checkpoint_id": "$checkpoint", "workspace": "$workspace"}}, ("thread", "checkpoint")
    ),
    "get /api/workspaces": Endpoint("ask"),
    "get /api/modes": Endpoint("ask", IN_WORKSPACE),
    "get /api/assistants": Endpoint("ask", IN_WORKSPACE),
    "post /api/assistants": Endpoint(
        "ingest", IN_WORKSPACE | {"json": {"name": "new", "document_ids": ["$document"]}}, ("document",)
    ),
    "get /api/assistants/{assistant_id}": Endpoint("ask", IN_WORKSPACE, ("assistant",)),
    "put /api/assistants/{assistant_id}": Endpoint("ingest", IN_WORKSPACE | {"json": {"name": "desk"}}, ("assistant",)),
    "get /api/assistants/{assistant_id}/versions": Endpoint("ask", IN_WORKSPACE, ("assistant",)),
    "put /api/assistants/{assistant_id}/version": Endpoint(
        "ingest", IN_WORKSPACE | {"json": {"version": 1}}, ("assistant",)
    ),
    "delete /api/assistants/{assistant_id}": Endpoint("ingest", IN_WORKSPACE, ("assistant",)),
    "get /api/graph": Endpoint("ask", instead=frozenset({"debug"})),
    "delete /api/ingestions/{ingestion_id}": Endpoint("ingest", IN_WORKSPACE, ("ingestion",)),
    "get /v1/models": Endpoint("ask"),
    "get /v1/models/{name}": Endpoint("ask"),
    "post /v1/embeddings": Endpoint("ask", {"json": {"input": "vault", "model": "local"}}),
    "post /v1/completions": Endpoint(
        "ask", {"json": {"model": "standard", "prompt": LAWN, "metadata": {"workspace": "$workspace"}}}
    ),
    "post /v1/chat/completions": Endpoint(
        "ask",
        {
            "json": {
                "model": "standard",
                "messages": [{"role": "user", "content": LAWN}],
                "metadata": {"workspace": "$workspace"},
            }
        },
    ),
    **{f"get /ollama{path}": Endpoint("ask") for path in ("", "/api/version", "/api/tags", "/api/ps")},
    **{f"{method} /ollama/{{path:path}}": Endpoint("ask") for method in ("get", "post", "delete")},
    "post /ollama/api/show": Endpoint("ask", {"json": {"model": "fast"}}),
    "post /ollama/api/generate": Endpoint("ask", {"json": {"model": "fast", "prompt": LAWN, "stream": False}}),
    "post /ollama/api/chat": Endpoint(
        "ask", {"json": {"model": "fast", "messages": [{"role": "user", "content": LAWN}], "stream": False}}
    ),
    "post /v1/responses": Endpoint(
        "ask",
        {
            "json": {
                "model": "standard",
                "input": LAWN,
                "metadata": {"workspace": "$workspace"},
            }
        },
    ),
    "post /api/ui/chat": Endpoint(
        "ask",
        {
            "json": {
                "id": "chat",
                "messages": [
                    {"role": "user", "parts": [{"type": "text", "text": "What does the Kestrel's lawn need?"}]}
                ],
                "workspace": "$workspace",
            }
        },
    ),
    "post /ag-ui": Endpoint(
        "ask",
        IN_WORKSPACE
        | {
            "json": {
                "threadId": "t",
                "runId": "r",
                "messages": [{"id": "1", "role": "user", "content": LAWN}],
            }
        },
    ),
    "get /api/ui/chat/{chat_id}/stream": Endpoint("ask", IN_WORKSPACE),
    # Tools say by themselves what is unknown: tests/protocols/test_mcp_dialect.py.
    "post /mcp": Endpoint("ask", {"json": {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}}),
    "get /langgraph/ok": Endpoint("ask"),
    **{f"{method} /langgraph/{{path:path}}": Endpoint("ask") for method in ("get", "post", "put", "patch", "delete")},
    "get /langgraph/info": Endpoint("ask"),
    "post /langgraph/assistants/search": Endpoint("ask", IN_WORKSPACE | {"json": {}}),
    "post /langgraph/assistants/count": Endpoint("ask", IN_WORKSPACE | {"json": {}}),
    "post /langgraph/assistants": Endpoint(
        "ingest",
        IN_WORKSPACE | {"json": {"graph_id": "fast", "context": {"document_ids": ["$document"]}}},
        ("document",),
    ),
    "get /langgraph/assistants/{assistant_id}": Endpoint("ask", IN_WORKSPACE, ("assistant",)),
    "patch /langgraph/assistants/{assistant_id}": Endpoint("ingest", IN_WORKSPACE | {"json": {}}, ("assistant",)),
    "delete /langgraph/assistants/{assistant_id}": Endpoint("ingest", IN_WORKSPACE, ("assistant",)),
    "post /langgraph/assistants/{assistant_id}/versions": Endpoint("ask", IN_WORKSPACE | {"json": {}}, ("assistant",)),
    "post /langgraph/assistants/{assistant_id}/latest": Endpoint(
        "ingest", IN_WORKSPACE | {"json": {"version": 1}}, ("assistant",)
    ),
    **{
        f"get /langgraph/assistants/{{assistant_id}}/{part}": Endpoint("ask", IN_WORKSPACE, ("assistant",))
        for part in ("graph", "schemas", "subgraphs")
    },
    "post /langgraph/threads": Endpoint("ask", IN_WORKSPACE | {"json": {}}),
    "post /langgraph/threads/search": Endpoint("ask", IN_WORKSPACE | {"json": {}}),
    "get /langgraph/threads/{thread_id}": Endpoint("ask", IN_WORKSPACE, ("thread",)),
    "patch /langgraph/threads/{thread_id}": Endpoint("ask", IN_WORKSPACE | {"json": {"metadata": {}}}, ("thread",)),
    "delete /langgraph/threads/{thread_id}": Endpoint("ask", IN_WORKSPACE, ("thread",), frozenset({"admin"})),
    "get /langgraph/threads/{thread_id}/state": Endpoint("ask", IN_WORKSPACE, ("thread",)),
    "post /langgraph/threads/{thread_id}/state": Endpoint("ask", IN_WORKSPACE | {"json": {}}, ("thread",)),
    "get /langgraph/threads/{thread_id}/state/{checkpoint_id}": Endpoint("ask", IN_WORKSPACE, ("thread", "checkpoint")),
    "post /langgraph/threads/{thread_id}/state/checkpoint": Endpoint(
        "ask", IN_WORKSPACE | {"json": {"checkpoint": {"checkpoint_id": "$checkpoint"}}}, ("thread", "checkpoint")
    ),
    "get /langgraph/threads/{thread_id}/history": Endpoint("ask", IN_WORKSPACE, ("thread",)),
    "post /langgraph/threads/{thread_id}/history": Endpoint("ask", IN_WORKSPACE | {"json": {}}, ("thread",)),
    "post /langgraph/runs": Endpoint("ask", IN_WORKSPACE | AGENT_RUN),
    "post /langgraph/runs/stream": Endpoint("ask", IN_WORKSPACE | AGENT_RUN),
    "post /langgraph/runs/wait": Endpoint("ask", IN_WORKSPACE | AGENT_RUN),
    "post /langgraph/threads/{thread_id}/runs": Endpoint("ask", IN_WORKSPACE | AGENT_RUN, ("thread",)),
    "post /langgraph/threads/{thread_id}/runs/stream": Endpoint("ask", IN_WORKSPACE | AGENT_RUN, ("thread",)),
    "post /langgraph/threads/{thread_id}/runs/wait": Endpoint("ask", IN_WORKSPACE | AGENT_RUN, ("thread",)),
    # Makes a thread of any id that is free, as runs do that are asked to.
    "post /langgraph/threads/{thread_id}/commands": Endpoint(
        "ask", IN_WORKSPACE | {"json": {"id": 1, "method": "run.start", "params": AGENT_RUN["json"]}}
    ),
    "post /langgraph/threads/{thread_id}/stream/events": Endpoint(
        "ask", IN_WORKSPACE | {"json": {"channels": ["values"]}}, ("thread",)
    ),
    "get /langgraph/threads/{thread_id}/runs": Endpoint("ask", IN_WORKSPACE, ("thread",)),
    "get /langgraph/threads/{thread_id}/runs/{run_id}": Endpoint("ask", IN_WORKSPACE, ("thread", "run")),
    "get /langgraph/threads/{thread_id}/runs/{run_id}/join": Endpoint("ask", IN_WORKSPACE, ("thread", "run")),
    "get /langgraph/threads/{thread_id}/runs/{run_id}/stream": Endpoint("ask", IN_WORKSPACE, ("thread", "run")),
    "post /langgraph/threads/{thread_id}/runs/{run_id}/cancel": Endpoint("ask", IN_WORKSPACE, ("thread", "run")),
    "post /langgraph/runs/cancel": Endpoint(
        "ask", IN_WORKSPACE | {"json": {"thread_id": "$thread", "run_ids": ["$run"]}}, ("thread", "run")
    ),
    "get /api/costs": Endpoint("debug", IN_WORKSPACE),
    "get /metrics": Endpoint("debug"),
    "get /api/keys": Endpoint("admin"),
    "post /api/keys": Endpoint("admin", {"json": {"name": "Ann"}}),
    "put /api/keys/{key_id}": Endpoint("admin", {"json": {"name": "Ann"}}),
    "delete /api/keys/{key_id}": Endpoint("admin"),
    "get /api/retention": Endpoint("admin"),
    "put /api/retention": Endpoint("admin", {"json": {"days": 90, "steps_days": 30, "dry_run": True}}),
    "get /api/models": Endpoint("admin"),
    "post /api/models": Endpoint("admin", {"json": {"name": "x", "address": "http://127.0.0.1:9/v1"}}),
}
"""An entry for every endpoint but those in `OPEN`."""

LISTS = {
    "get /api/documents": "vault",
    "get /api/threads": "vault",
    "post /langgraph/threads/search": "vault",
    "get /api/runs": "vault",
    "post /api/replays": "vault",
    "get /api/library": "vault",
    "get /api/search": "vault",
    "post /ag-ui": "vault",
    "get /api/ingestions": "later.md",
    "get /api/assistants": "desk",
    "get /api/sets": "vault",
    "get /api/modes": "desk",
    "post /langgraph/assistants/search": "desk",
}
"""Endpoints that list documents, files, questions or assistants, each with a word of what is hidden from others."""

NAMES = sorted(ENDPOINTS)
WITH_IDS = [name for name in NAMES if ENDPOINTS[name].ids]
OF_GROUPS = [
    name
    for name in WITH_IDS
    if {"assistant", "document", "ingestion", "run", "set", "thread"} & set(ENDPOINTS[name].ids)
]
IN_A_WORKSPACE = [name for name in NAMES if "$workspace" in json.dumps(ENDPOINTS[name].body, default=str)]


@dataclass
class Service:
    """The service, with a workspace `mine`, whose caller asks, and a workspace `theirs`."""

    client: httpx.AsyncClient
    theirs: dict[str, str]
    """Ids of what is in the other workspace."""
    hidden: dict[str, str]
    """Ids of what is in the caller's own workspace, and for another group."""
    caller: Caller = field(default_factory=lambda: Caller("tester", frozenset({"mine"})))

    async def send(self, name: str, ids: Mapping[str, str], workspace: str) -> tuple[int, str]:
        """Return the response's status and its text, in which the ids and the workspace are replaced by their kind."""
        method, path = name.split()
        values = dict(ids) | {"workspace": workspace}
        for kind in ("run", "thread", "document", "ingestion", "checkpoint", "assistant"):
            path = path.replace(f"{{{kind}_id}}", values[kind])
        path = path.replace("{other_id}", values["run"])
        request = fill_in(dict(ENDPOINTS[name].body), values)
        response = await self.client.request(
            method,
            path.replace("{number}", "1")
            .replace("{name}", "standard")
            .replace("{kind}", "webp")
            .replace("{step}", "route")
            .replace("{key_id}", "none")
            .replace("{set_name}", values["set"]),
            **request,
        )
        text = response.text
        for kind, value in values.items():
            text = text.replace(value, f"${kind}")
        return response.status_code, text


def fill_in(value: Any, values: Mapping[str, str]) -> Any:
    """Return a part of a request with the values in place of their names."""
    match value:
        case dict():
            return {key: fill_in(part, values) for key, part in value.items()}
        case list():
            return [fill_in(part, values) for part in value]
        case str() if value.startswith("$"):
            return values[value[1:]]
    return value


def never() -> dict[str, str]:
    """Ids of what never existed."""
    return {kind: str(uuid4()) for kind in ("document", "run", "thread", "checkpoint", "ingestion", "assistant", "set")}


async def fill(
    services: Services, workspace: str, groups: list[str] | None = None, said: str = SECRET
) -> dict[str, str]:
    """Add two documents, one of them by the queue, and ask about one. Returns the ids."""
    text = f"# Vault\n\n{said}\n".encode()
    report = await services.library.ingestion.add(workspace, "vault.md", text, groups=groups)
    waiting = await services.library.ingestions.accept(workspace, "later.md", text, groups=groups)
    assistant = await services.assistants.create(Scope(workspace), Draft(name="desk", groups=groups), OWNER)
    scope = Scope.within(workspace, groups=groups)
    async with services.make_run_manager() as turns:
        done, _ = await collect(await turns.ask(Ask("How does the vault of the Kestrel open?", scope)))
    assert done["type"] == "done"
    steps = await services.make_history_reader().read(workspace, done["thread_id"])
    name, question = f"set-{uuid4()}", SetQuestion(done["run_id"], "How does the vault open?", ["K7731"], True)
    await services.sets.put(workspace, name, question)
    return {
        "set": name,
        "document": str(report.document_id),
        "run": done["run_id"],
        "thread": done["thread_id"],
        "checkpoint": steps[0]["checkpoint_id"],
        "ingestion": waiting.ingestion_id,
        "assistant": assistant.assistant_id,
    }


async def settle(services: Services, **ids: Mapping[str, str]) -> None:
    """Wait until what the workspaces had accepted has become documents, which counts would notice later."""
    for workspace, each in ids.items():
        for _ in range(600):
            status = await services.library.ingestions.get(workspace, each["ingestion"])
            if status is not None and status.progress.stage == "done":
                break
            await asyncio.sleep(0.05)
        else:
            pytest.fail("not ingested in 30 seconds")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def opened(module_services: Services) -> AsyncIterator[Service]:
    """The service, once for all that only fails."""
    theirs = await fill(module_services, "theirs")
    hidden = await fill(module_services, "mine", ["board"])
    await module_services.library.ingestion.add("mine", "lawn.md", HARMLESS.encode())
    async with open_client(make_app(module_services)) as client:
        await settle(module_services, theirs=theirs, mine=hidden)
        yield Service(client, theirs, hidden)


@pytest.fixture
def service(opened: Service, monkeypatch: pytest.MonkeyPatch) -> Service:
    """The service, whose caller is `caller`."""
    mine = replace(opened)

    async def identify(authenticator: Authenticator, credential: str | None) -> Caller:
        return mine.caller

    monkeypatch.setattr(Authenticator, "identify", identify)
    return mine


pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_every_endpoint_is_tried() -> None:
    paths = describe_api()["paths"]
    described = {f"{method} {path}" for path, operations in paths.items() for method in operations}
    served = {
        f"{method.lower()} {route.path}"
        for router in (*ROUTERS, *Services.list_debug_routers(), *DIALECTS)
        for route in cast(list[APIRoute], router.routes)
        for method in route.methods or ()
    }
    assert described <= served == {*ENDPOINTS, *OPEN}


@pytest.mark.parametrize("name", IN_A_WORKSPACE)
async def test_another_workspace_is_as_unknown_as_one_that_never_existed(service: Service, name: str) -> None:
    entered = await service.send(name, service.theirs, "theirs")
    assert entered == await service.send(name, never(), f"nowhere-{uuid4().hex}")
    assert entered[0] == 404


@pytest.mark.parametrize("name", NAMES)
async def test_a_caller_without_the_right_is_refused_whatever_is_there(service: Service, name: str) -> None:
    needed = ENDPOINTS[name].instead | {ENDPOINTS[name].right}
    service.caller = Caller("tester", frozenset({"mine"}), rights=RIGHTS - needed)
    refused = await service.send(name, service.hidden, "mine")
    assert refused == await service.send(name, never(), "mine") == await service.send(name, service.theirs, "theirs")
    assert refused[0] == 403


async def test_erasing_a_document_everywhere_needs_more_than_deleting_it(service: Service) -> None:
    service.caller = Caller("tester", frozenset({"mine"}), rights=RIGHTS - {"admin"})
    for document in (service.hidden["document"], service.theirs["document"], str(uuid4())):
        path = f"/api/documents/{document}?everywhere=true&workspace=mine"
        assert (await service.client.delete(path)).status_code == 403


@pytest.mark.parametrize("name", OF_GROUPS)
async def test_what_is_of_other_groups_is_as_unknown_as_ids_that_never_existed(service: Service, name: str) -> None:
    service.caller = Caller("tester", frozenset({"mine"}), groups=frozenset({"staff"}))
    hidden = await service.send(name, service.hidden, "mine")
    assert hidden == await service.send(name, never(), "mine")
    assert hidden[0] == 404


@pytest.mark.parametrize("groups", [None, frozenset({"staff"})])
async def test_what_is_listed_says_nothing_of_others(service: Service, groups: frozenset[str] | None) -> None:
    service.caller = Caller("tester", frozenset({"mine"}), groups=groups)
    for name in (name for name in IN_A_WORKSPACE if not ENDPOINTS[name].ids):
        status, text = await service.send(name, never(), "mine")
        assert status in (200, 204), name
        assert service.theirs["document"] not in text, name
        assert (LISTS.get(name, "vault") in text) == (groups is None and name in LISTS), name
        assert groups is None or "vault" not in text, name


async def test_workspaces_are_listed_with_what_the_caller_may_read(service: Service) -> None:
    async def count(*workspaces: str, groups: frozenset[str] | None = None) -> dict[str, tuple[int, int]]:
        service.caller = Caller("tester", frozenset(workspaces) or None, groups)
        listed = (await service.client.get("/api/workspaces")).json()["workspaces"]
        return {each["id"]: (each["documents"], each["threads"]) for each in listed}

    everything = await count()
    assert everything.keys() == {"default", "mine", "theirs"}
    assert (everything["default"], everything["theirs"]) == ((0, 0), (2, 1))
    assert await count("mine") == {"mine": everything["mine"]}
    others = await count("mine", groups=frozenset({"nobody"}))
    board = await count("mine", "nowhere", groups=frozenset({"board"}))
    assert others.keys() == board.keys() == {"mine"}
    assert board["mine"][0] > others["mine"][0]
    # Other tests may have asked about what everybody may read.
    assert board["mine"][1] > others["mine"][1]
    service.caller = Caller("tester", frozenset({"mine"}), frozenset({"nobody"}))
    listed = (await service.client.get("/api/threads?workspace=mine&limit=100")).json()["threads"]
    assert len(listed) == others["mine"][1]


async def test_a_conversation_is_deleted_by_whoever_began_it(service: Service) -> None:
    async def ask(caller: str, thread: str | None = None) -> str:
        service.caller = Caller(caller, frozenset({"mine"}), rights=frozenset({"ask"}))
        question = {"question": "On which day is the lawn of the Kestrel mown?", "workspace": "mine"}
        body = question if thread is None else question | {"thread_id": thread}
        return str((await service.client.post("/api/chat?stream=false", json=body)).json()["thread_id"])

    own, shared = await ask("ann"), await ask("ann")
    assert await ask("ben", shared) == shared
    path = "/api/threads/{}?workspace=mine"
    for caller, threads in (("ann", {own, shared}), ("ben", {shared}), ("cy", set())):
        service.caller = Caller(caller, frozenset({"mine"}), rights=frozenset({"ask"}))
        listed = (await service.client.get("/api/threads?workspace=mine&mine=true")).json()["threads"]
        assert {thread["thread_id"] for thread in listed} == threads
    kept = await ask("ann")
    for caller, thread, status in (
        ("ben", own, 403),
        ("ben", shared, 403),
        ("ann", shared, 200),
        ("ann", own, 200),
        ("ann", own, 404),
    ):
        service.caller = Caller(caller, frozenset({"mine"}), rights=frozenset({"ask"}))
        assert (await service.client.delete(path.format(thread))).status_code == status
    service.caller = Caller("cleaner", frozenset({"mine"}), rights=frozenset({"ask", "admin"}))
    assert (await service.client.delete(path.format(kept))).status_code == 200


async def test_a_question_is_answered_from_what_the_caller_may_read(service: Service) -> None:
    text = "How does the vault of the Kestrel open?"
    question = {"question": text, "workspace": "mine"}
    protocol = {"model": "standard", "messages": [{"role": "user", "content": text}], "metadata": {"workspace": "mine"}}
    chat = {"id": "c", "messages": [{"role": "user", "parts": [{"type": "text", "text": text}]}], "workspace": "mine"}
    for groups, tells in ((None, True), (frozenset({"board"}), True), (frozenset({"staff"}), False)):
        # Twice, because the second answer may come from the cache.
        for _ in range(2):
            service.caller = Caller("tester", frozenset({"mine"}), groups=groups)
            asked = await service.client.post("/api/chat", json=question, headers={"Accept": "application/json"})
            completed = await service.client.post("/v1/chat/completions", json=protocol)
            chatted = await service.client.post("/api/ui/chat", json=chat)
            responded = await service.client.post("/v1/responses", json=protocol | {"input": text})
            for response in (asked, completed, responded, chatted):
                assert response.status_code == 200
                assert ("K7731" in response.text) == tells, groups


async def test_a_conversation_is_not_continued_by_those_who_may_not_read_it(service: Service) -> None:
    service.caller = Caller("tester", frozenset({"mine"}), groups=frozenset({"staff"}))
    asked = {"question": "And what else?", "workspace": "mine", "thread_id": service.hidden["thread"]}
    response = await service.client.post("/api/chat", json=asked, headers={"Accept": "application/json"})
    assert response.status_code == 404
    assert "K7731" not in response.text


async def test_open_endpoints_answer_anybody(service: Service) -> None:
    for name, status in OPEN.items():
        method, path = name.split()
        assert (await service.client.request(method, path)).status_code == status


async def test_one_right_suffices(service: Service) -> None:
    """The last test, because what is asked here is listed to the others."""
    for name in NAMES:
        in_workspace = frozenset({"mine"}) if name in IN_A_WORKSPACE else None
        for right in ENDPOINTS[name].instead | {ENDPOINTS[name].right}:
            service.caller = Caller("tester", in_workspace, rights=frozenset({right}))
            assert (await service.send(name, never(), "mine"))[0] not in (401, 403), (name, right)
