"""Every place of every request that takes an id, or a name that a client chooses, with one that another workspace has."""

import asyncio
import copy
import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any, cast
from uuid import uuid4

import psycopg
import pytest
import pytest_asyncio
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from psycopg.sql import SQL, Identifier, Literal

from app.access.authentication import Authenticator
from app.adapters.postgres.row_security import OF_WORKSPACE
from app.serving.application import DIALECTS, ROUTERS, make_app
from app.wiring.services import Services
from domain.people.access import Caller
from tests.api.test_matrix import ENDPOINTS, HARMLESS, OPEN, Service, fill, fill_in, never, settle
from tests.http_client import open_client

pytestmark = pytest.mark.asyncio(loop_scope="module")

KINDS = {
    "document": "document",
    "document_id": "document",
    "document_ids": "document",
    "thread_id": "thread",
    "ids": "thread",
    "run_id": "run",
    "run_ids": "run",
    "other_id": "run",
    "previous_response_id": "response",
    "last-event-id": "event",
    "checkpoint_id": "checkpoint",
    "ingestion_id": "ingestion",
    "assistant_id": "assistant",
    "set_name": "set",
    "chat_id": "chat",
    "files": "name",
}
"""What the names of parameters and fields mean."""

OF_ONE = {
    ("get /api/threads/{thread_id}", "before"): "run",
    ("get /api/threads/{thread_id}/history", "after"): "checkpoint",
    ("get /langgraph/threads/{thread_id}/history", "before"): "checkpoint",
    ("post /api/ui/chat", "id"): "chat",
    ("post /v1/responses", "input[].id"): "answer",
}
"""Those whose names mean other things elsewhere."""

NO_IDS = {
    "graph_id", "input.messages[].id", "key_id", "values.messages[].id", "values[].messages[].id",
    "post /langgraph/threads/{thread_id}/commands id",
}  # fmt: skip
"""Modes, names that a client's messages have within a request, keys, which are of no workspace, and a client's own
number for a command."""

# A question for requests whose body in the matrix is about something else.
BODIES: dict[str, dict[str, Any]] = {
    "post /api/chat": {"json": {"question": "What is mown?", "workspace": "mine"}, "params": {"stream": "false"}},
    "post /v1/responses": {
        "json": {
            "model": "standard",
            "input": [{"type": "item_reference"}, {"role": "user", "content": "What is mown?"}],
            "metadata": {"workspace": "mine"},
        }
    },
}


def list_places() -> Iterator[tuple[str, str, str, str]]:
    """Operation, part of the request, name and kind of all that takes an id: OpenAPI's, of dialects too."""
    served = (
        cast(APIRoute, route)
        for router in (*ROUTERS, *Services.list_debug_routers(), *DIALECTS)
        for route in router.routes
    )
    routes = [copy.copy(route) for route in served if ":path" not in route.path]
    for route in routes:
        route.include_in_schema = True
    api = get_openapi(title="all", version="1", routes=routes)

    def resolve(schema: Any) -> Any:
        while "$ref" in schema:
            found: Any = api
            for part in schema["$ref"].removeprefix("#/").split("/"):
                found = found[part]
            schema = found
        return schema

    def list_fields(schema: Any, prefix: str = "") -> Iterator[str]:
        schema = resolve(schema)
        for one in (*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())):
            yield from list_fields(one, prefix)
        if "items" in schema:
            yield from list_fields(schema["items"], f"{prefix}[]")
        for name, value in schema.get("properties", {}).items():
            yield f"{prefix}.{name}".lstrip(".")
            yield from list_fields(value, f"{prefix}.{name}")

    for path, operations in api["paths"].items():
        for method, operation in operations.items():
            places = [(each["in"], each["name"]) for each in map(resolve, operation.get("parameters", ()))]
            for content in operation.get("requestBody", {}).get("content", {}).values():
                places += [("body", name) for name in list_fields(content["schema"])]
            for part, name in dict.fromkeys(places):
                kind = OF_ONE.get((f"{method} {path}", name)) or KINDS.get(re.split(r"[.]", name)[-1])
                is_none = NO_IDS & {name, f"{method} {path} {name}"}
                looks_like = re.search(r"(\b|_)ids?$", name) and not is_none
                if kind or looks_like:
                    yield f"{method} {path}", part, name, kind or "unknown"


PLACES = sorted(set(list_places()))


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def opened(module_services: Services) -> AsyncIterator[tuple[Service, dict[str, str], str, list[Any]]]:
    """The service, ids of what is in the caller's own workspace, the database's address, and all that is theirs."""
    theirs = await fill(module_services, "theirs")
    own = await fill(module_services, "mine", said=HARMLESS)
    assert module_services.settings.database_url
    async with open_client(make_app(module_services)) as client:
        await settle(module_services, theirs=theirs, mine=own)
        url = module_services.settings.database_url.get_secret_value()
        before = await read_theirs(url)
        filled = {table for table, number, _ in before if number}
        assert filled >= {"documents", "state_packs"}
        yield Service(client, theirs, {}), own, url, before


@pytest.fixture(autouse=True)
def identified(monkeypatch: pytest.MonkeyPatch) -> None:
    async def identify(authenticator: Authenticator, credential: str | None) -> Caller:
        return Caller("tester", frozenset({"mine"}))

    monkeypatch.setattr(Authenticator, "identify", identify)


def complete(ids: Mapping[str, str]) -> dict[str, str]:
    """Add what is named after a run, and names that clients choose."""
    return dict(ids) | {
        "response": f"resp_{ids['run']}",
        "answer": f"msg_{ids['run']}",
        "event": f"{ids['run']}-1",
        "chat": ids.get("chat", ids["thread"]),
        "name": ids.get("name", "vault.md"),
    }


def put(body: Any, path: list[str], value: Any) -> None:
    """Set a field of a body, which may be in a list or an object that is not there."""
    name, is_list = path[0].removesuffix("[]"), path[0].endswith("[]")
    if len(path) == 1:
        body[name] = value
        return
    inner = body.get(name)
    if is_list:
        inner = inner or [{}]
        put(inner[0], path[1:], value)
    else:
        inner = inner if isinstance(inner, dict) else {}
        put(inner, path[1:], value)
    body[name] = inner


async def send(service: Service, place: tuple[str, str, str, str], own: Mapping[str, str], value: str) -> list[Any]:
    """Send a request that is the caller's own but for this place. Returns what the response tells."""
    operation, part, name, _ = place
    method, path = operation.split()
    values = dict(own) | {"workspace": "mine"}
    request = copy.deepcopy(fill_in(dict(BODIES.get(operation) or ENDPOINTS[operation].body), values))
    in_path = {
        f"{kind}_id": own[kind]
        for kind in ("run", "thread", "document", "ingestion", "checkpoint", "assistant", "chat")
    }
    in_path |= {"other_id": own["run"], "set_name": own["set"], "number": "1", "kind": "webp", "step": "route"}
    match part:
        case "path":
            in_path[name] = value
        case "query":
            request["params"] = dict(request.get("params", {})) | {name: value}
        case "header":
            request["headers"] = {name: value}
        case _ if name == "files":
            request["files"] = {"files": (value, b"# Note\n\nNothing.")}
        case _:
            is_list = name.endswith("ids")
            put(request["json"], name.split("."), [value] if is_list else value)
            if operation == "post /langgraph/threads/{thread_id}/runs/wait":
                request["json"]["if_not_exists"] = "create"
    response = await service.client.request(method, re.sub(r"{(\w+)}", lambda m: in_path[m[1]], path), **request)
    assert response.status_code < 500
    text = response.text.replace(value, "ID").replace(value.removeprefix("resp_"), "ID")
    if place[3] == "thread":
        await drop(service, value)
    if operation == "post /langgraph/assistants":
        # The id was free in the caller's own workspace.
        assert (await service.client.delete(f"/api/assistants/{value}?workspace=mine")).status_code == 204
    return [response.status_code, sorted(response.headers), describe(text, response.status_code)]


async def drop(service: Service, thread: str) -> None:
    """Delete the thread that a request may have begun in the caller's own workspace, once nothing runs in it."""
    for _ in range(200):
        response = await service.client.delete(f"/api/threads/{thread}?workspace=mine")
        if response.status_code in (200, 404):
            return
        await asyncio.sleep(0.05)
    pytest.fail(response.text)


def describe(text: str, status: int) -> Any:
    """Of a refusal every word; of an answer the form, as ids, times and figures differ."""
    assert "K7731" not in text
    if status >= 400:
        return text
    try:
        return outline(json.loads(text))
    except ValueError:
        return sorted(set(re.findall(r"^event: .*$", text, re.MULTILINE)))


def outline(value: Any) -> Any:
    match value:
        case dict():
            return {key: outline(part) for key, part in value.items()}
        case list():
            return [outline(part) for part in value]
        case bool() | str() | None:
            return type(value).__name__
    return "number"


async def read_theirs(url: str) -> list[Any]:
    """All rows of the other workspace."""
    of_table = SQL(
        "SELECT {}, count(*), md5(string_agg(t::text, '|' ORDER BY t::text)) FROM {} AS t WHERE workspace_id = 'theirs'"
    )
    async with await psycopg.AsyncConnection.connect(url) as connection:
        each = [of_table.format(Literal(table), Identifier(table)) for table in OF_WORKSPACE]
        cursor = await connection.execute(SQL(" UNION ALL ").join(each))
        return sorted(await cursor.fetchall())


async def test_every_id_is_known_by_its_kind() -> None:
    assert [place for place in PLACES if place[3] == "unknown"] == []
    assert {operation for operation, *_ in PLACES} <= {*ENDPOINTS} - {*OPEN}
    assert {kind for *_, kind in PLACES} == {*KINDS.values(), *OF_ONE.values()}
    # What the matrix names by hand is among them.
    with_ids = {name for name, endpoint in ENDPOINTS.items() if endpoint.ids}
    assert with_ids <= {operation for operation, *_ in PLACES}


@pytest.mark.parametrize("place", PLACES, ids=lambda place: f"{place[0]} {place[2]}")
async def test_an_id_of_another_workspace_is_like_one_that_exists_nowhere(
    opened: tuple[Service, dict[str, str], str, list[Any]], place: tuple[str, str, str, str]
) -> None:
    service, own, url, before = opened
    own = complete(own)
    taken = await send(service, place, own, complete(service.theirs)[place[3]])
    # Checkpoints are compared by time, so the one that exists nowhere is of the same.
    nowhere = never() | {"name": f"{uuid4().hex}.md", "checkpoint": f"{service.theirs['checkpoint'][:-6]}abcdef"}
    free = await send(service, place, own, complete(nowhere)[place[3]])
    assert taken == free
    assert await read_theirs(url) == before
