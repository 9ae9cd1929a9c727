"""API keys: who may do what where, and when a key is needed."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from fastapi.routing import APIRoute

from app.access import authentication, refusals
from app.access.authentication import Authenticator
from app.access.keys import make_key
from app.api.perimeter.json_bodies import JsonRoute
from app.api.protocols import mcp
from app.serving.application import DIALECTS, ROUTERS, make_app
from app.serving.server import run_server
from app.settings import Settings
from app.wiring.services import Services, open_services
from app.workbench.api import debug
from domain.errors import ConfigurationError, Unauthenticated
from domain.people.access import OWNER, ApiKey, Right
from tests.asking import with_models
from tests.http_client import open_client
from tests.wire.openai import serve_openai

QUESTION = {"question": "How long is the warranty of the Falke?"}
LOCAL = "the token of this machine"


@pytest.fixture(autouse=True)
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a process knows of keys is looked up each time."""
    monkeypatch.setattr(authentication, "TRUSTED_SECONDS", 0)


@pytest.fixture
async def client(services: Services, library: dict[str, str]) -> AsyncIterator[httpx.AsyncClient]:
    async with open_client(make_app(services, local_token=LOCAL)) as opened:
        yield opened


async def make(services: Services, *rights: Right, **options: Any) -> tuple[ApiKey, dict[str, str]]:
    """Make a key; returns it and the header with its secret."""
    key, token = await make_key(services.keys, ApiKey("", "test", frozenset(rights), **options))
    return key, {"Authorization": f"Bearer {token}"}


def test_every_route_but_those_of_health_and_signing_in_needs_a_caller() -> None:
    free = {
        (route.path, method)
        for router in (*ROUTERS, *debug.ROUTERS, *DIALECTS)
        for route in router.routes
        if isinstance(route, APIRoute) and type(route) in (APIRoute, JsonRoute)
        for method in route.methods or ()
    }
    signing_in = {"/api/session", "/api/session/sign-in", "/api/session/callback"}
    signing_in |= {route.path for route in mcp.signing_in.routes if isinstance(route, APIRoute)}
    assert {path for path, _ in free} == {"/healthz", "/readyz", *signing_in}
    assert {method for path, method in free if path == "/api/session"} == {"POST", "DELETE"}


async def test_what_the_parts_are_is_not_told_to_strangers(client: httpx.AsyncClient, services: Services) -> None:
    assert (await client.get("/readyz")).json()["parts"] == services.parts
    _, asking = await make(services, "ask")
    _, debugging = await make(services, "debug")
    for header, parts in (({}, {}), ({"X-API-Key": "wrong"}, {}), (asking, {}), (debugging, services.parts)):
        ready = await client.get("/readyz", headers=header)
        assert (ready.status_code, ready.json()["parts"]) == (200, parts)


async def test_which_models_answer_is_not_told_to_strangers(settings: Settings) -> None:
    async with serve_openai() as model, open_services(with_models(settings, model)) as services:
        _, asking = await make(services, "ask")
        _, debugging = await make(services, "debug")
        async with open_client(make_app(services)) as client:
            for header, are_told in (({}, False), (asking, False), (debugging, True)):
                ready = (await client.get("/readyz", headers=header)).json()
                assert (ready["models"], bool(ready["answering"])) == ("ok", are_told)

        async def fail() -> str:
            return "No file /run/secrets/key."

        failing = dict.fromkeys(("models", "embeddings", "rerank", "originals"), fail)
        async with open_client(make_app(replace(services, checks={**services.checks, **failing}))) as client:
            for header, are_told in (({}, False), (asking, False), (debugging, True)):
                ready = (await client.get("/readyz", headers=header)).json()
                assert {"/run/secrets" in ready[part] for part in failing} == {are_told}
                assert ready["status"] == "degraded"


async def test_from_the_first_key_on_every_request_needs_one(client: httpx.AsyncClient, services: Services) -> None:
    assert (await client.get("/api/documents")).status_code == 200
    _, header = await make(services, "ask")
    for method, path in (
        ("GET", "/api/documents"),
        ("POST", "/api/chat"),
        ("DELETE", "/api/threads/x"),
        ("GET", "/api/session"),
    ):
        response = await client.request(method, path)
        assert (response.status_code, response.json()["error"]["code"]) == (401, "unauthenticated")
        assert response.headers["www-authenticate"] == "Bearer"
    for path in ("/", "/healthz"):
        assert (await client.get(path)).status_code == 200
    assert (await client.get("/api/documents", headers=header)).status_code == 200
    token = header["Authorization"].removeprefix("Bearer ")
    for right in ({"X-API-Key": token}, {"Api-Key": token}, {"Authorization": token}):
        assert (await client.get("/api/documents", headers=right)).status_code == 200
    for wrong in ({"X-API-Key": token[:-1]}, {"Authorization": "Bearer "}, {"Authorization": f"Basic {token}"}):
        assert (await client.get("/api/documents", headers=wrong)).status_code == 401


async def test_who_may_not_is_refused_before_the_body_is_read(client: httpx.AsyncClient, services: Services) -> None:
    _, asking = await make(services, "ask")

    async def never() -> AsyncIterator[bytes]:
        raise AssertionError("the body was read")
        yield b""

    for headers, status in (({}, 401), (asking, 403)):
        sent = headers | {"Content-Type": "multipart/form-data; boundary=x"}
        assert (await client.post("/api/documents", content=never(), headers=sent)).status_code == status


async def test_a_key_is_not_named_like_another(client: httpx.AsyncClient, services: Services) -> None:
    first, admin = await make(services, "admin")
    for name in ("Test", "ｔest", "tеst"):
        refused = await client.post("/api/keys", json={"name": name}, headers=admin)
        assert (refused.status_code, "looks like 'test'" in refused.text) == (409, True), name
    assert (await client.post("/api/keys", json={"name": "test"}, headers=admin)).status_code == 201
    other = (await client.post("/api/keys", json={"name": "tests"}, headers=admin)).json()["key_id"]
    assert (await client.put(f"/api/keys/{other}", json={"name": "TEST"}, headers=admin)).status_code == 409
    renamed = {"name": "Test", "rights": ["admin"]}
    await client.delete(f"/api/keys/{other}", headers=admin)
    for key in await services.keys.list():
        if key.key_id not in (first.key_id, other):
            await services.keys.revoke(key.key_id)
    assert (await client.put(f"/api/keys/{first.key_id}", json=renamed, headers=admin)).status_code == 204


async def test_a_workspace_is_not_named_like_the_shipped_one(client: httpx.AsyncClient) -> None:
    files = {"files": ("a.md", b"# A")}
    refused = await client.post("/api/documents?workspace=Default", files=files)
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "name_taken")
    assert "looks like 'default'" in refused.text
    assert (await client.post("/api/documents?workspace=default-2", files=files)).status_code == 200


async def test_keys_end(client: httpx.AsyncClient, services: Services) -> None:
    revoked, header = await make(services, "ask")
    assert (await client.get("/api/documents", headers=header)).status_code == 200
    assert await services.keys.revoke(revoked.key_id)
    assert (await client.get("/api/documents", headers=header)).status_code == 401
    _, expired = await make(services, "ask", expires_at=datetime.now(UTC) - timedelta(seconds=1))
    assert (await client.get("/api/documents", headers=expired)).status_code == 401
    # The last key has ended, and the service stays closed.
    assert (await client.get("/api/documents")).status_code == 401
    assert not await services.keys.revoke("none")


async def test_the_use_of_a_key_is_noted_once_a_minute(client: httpx.AsyncClient, services: Services) -> None:
    _, header = await make(services, "ask")
    [key] = await services.keys.list()
    assert key.last_used_at is None
    noted = set()
    for _ in range(3):
        await client.get("/api/documents", headers=header)
        [key] = await services.keys.list()
        noted.add(key.last_used_at)
    assert len(noted) == 1
    assert None not in noted


async def test_a_key_is_remembered_for_seconds_only(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authentication, "TRUSTED_SECONDS", 5)
    now = 100.0
    authenticator = Authenticator(services.keys, clock=lambda: now)
    assert await authenticator.identify(None) == OWNER
    key, header = await make(services, "ask")
    token = header["Authorization"].removeprefix("Bearer ")
    assert (await authenticator.identify(token)).name == f"key:{key.key_id}"
    await services.keys.revoke(key.key_id)
    assert (await authenticator.identify(token)).rights == {"ask"}
    now += 5
    with pytest.raises(Unauthenticated, match="revoked"):
        await authenticator.identify(token)
    with pytest.raises(Unauthenticated):
        await authenticator.identify(None)


async def test_the_machine_itself_needs_no_key(client: httpx.AsyncClient, services: Services) -> None:
    await make(services, "ask", workspaces=frozenset({"legal"}))
    local = {"Authorization": f"Bearer {LOCAL}"}
    assert (await client.get("/api/session", headers=local)).json()["rights"] == ["admin", "ask", "debug", "ingest"]


async def test_the_page_signs_in_with_a_cookie_that_no_script_reads(
    client: httpx.AsyncClient, services: Services
) -> None:
    _, header = await make(services, "ask")
    refused = await client.post("/api/session", json={"key": "ask_wrong"})
    assert (refused.status_code, refused.headers.get("set-cookie")) == (401, None)
    key = header["Authorization"].removeprefix("Bearer ")
    signed_in = await client.post("/api/session", json={"key": key})
    assert signed_in.json()["rights"] == ["ask"]
    cookie = signed_in.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert (await client.get("/api/documents")).status_code == 200
    assert (await client.delete("/api/session")).status_code == 204
    assert (await client.get("/api/documents")).status_code == 401


async def test_a_service_without_keys_listens_on_this_machine_only(
    settings: Settings, services: Services, monkeypatch: pytest.MonkeyPatch, database_url: str, redis_url: str
) -> None:
    monkeypatch.setenv("DATABASE_URL", database_url)
    monkeypatch.setenv("REDIS_URL", redis_url)
    with pytest.raises(ConfigurationError, match="askgraph keys create"):
        await run_server("0.0.0.0", 0)


async def test_a_service_that_others_reach_needs_a_key_even_without_any(services: Services) -> None:
    async with open_client(make_app(services, closed=True)) as client:
        assert (await client.get("/api/documents")).status_code == 401


async def test_only_the_machine_itself_makes_the_first_key_of_a_service_that_others_reach(services: Services) -> None:
    first = {"name": "Mine", "rights": ["admin"]}
    async with open_client(make_app(services, local_token=LOCAL, exposed=True)) as client:
        assert (await client.get("/api/documents")).status_code == 200
        assert (await client.post("/api/keys", json=first)).status_code == 403
        local = {"Authorization": f"Bearer {LOCAL}"}
        assert (await client.post("/api/keys", json=first, headers=local)).status_code == 201
        assert (await client.get("/api/documents")).status_code == 401


async def test_changes_are_recorded_with_who_made_them_and_refusals_too(
    client: httpx.AsyncClient, services: Services, library: dict[str, str]
) -> None:
    key, header = await make(services, "ask", "ingest", workspaces=frozenset({"legal"}))
    await client.get("/api/documents", headers=header)
    part = b'--B\r\nContent-Disposition: form-data; name="files"; filename="%s"\r\n\r\n%s\r\n'
    form = part % (b"a.md", b"# A\n\nText.") + part % (b"a\0.md", b"") + b"--B--\r\n"
    kind = {"Content-Type": "multipart/form-data; boundary=B"}
    await client.post("/api/documents", content=form, headers=header | kind)
    await client.delete(f"/api/documents/{library['Station handbook']}", headers=header)
    await client.delete("/api/documents/x?everywhere=true", headers=header)
    entries = await services.audit.list(datetime.now(UTC) - timedelta(hours=1), 10)
    assert [(e.caller, e.action, e.targets, e.workspace_id, e.status) for e in entries] == [
        (f"key:{key.key_id}", "DELETE /api/documents/{document_id}", ("x", "everywhere=true"), "legal", 403),
        (f"key:{key.key_id}", "DELETE /api/documents/{document_id}", (library["Station handbook"],), "legal", 404),
        (f"key:{key.key_id}", "POST /api/documents", ("a.md", "a\ufffd.md"), "legal", 200),
    ]
    await services.audit.delete_before(datetime.now(UTC) + timedelta(hours=1))
    assert await services.audit.list(datetime.now(UTC) - timedelta(hours=1), 10) == []


async def test_refused_keys_are_recorded_together_and_requests_without_one_are_not(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refusals, "MOST_ENTRIES", 2)
    async with open_client(make_app(services)) as client:
        key, header = await make(services, "ask")
        for _ in range(3):
            await client.get("/api/documents", headers={"X-API-Key": "ask_wrong"})
        await client.post("/api/session", json={"key": "ask_wrong"})
        await client.get("/api/documents")
        await client.get("/api/costs", headers=header)
        await client.get("/api/ingestions/x", headers=header)
    entries = await services.audit.list(datetime.now(UTC) - timedelta(hours=1), 10)
    assert [(e.caller, e.action, e.targets, e.status, e.address) for e in reversed(entries)] == [
        ("unknown", "refused", ("This key is not known, has expired or was revoked.", "4 times"), 401, "127.0.0.1"),
        (f"key:{key.key_id}", "refused", ("This needs the right 'debug', which your key does not have.",), 403, "127.0.0.1"),
        ("others", "refused", (), 403, None),
    ]  # fmt: skip


async def test_what_is_of_all_workspaces_is_not_shown_to_a_key_of_some(
    client: httpx.AsyncClient, services: Services
) -> None:
    _, everywhere = await make(services, "debug")
    _, legal = await make(services, "debug", workspaces=frozenset({"legal"}))
    assert (await client.get("/readyz", headers=everywhere)).json()["parts"] == services.parts
    assert (await client.get("/readyz", headers=legal)).json()["parts"] == {}
    assert (await client.get("/metrics", headers=everywhere)).status_code == 200
    refused = await client.get("/metrics", headers=legal)
    assert (refused.status_code, "runs_running" in refused.text) == (403, False)


async def test_a_refused_upload_is_recorded_with_its_status_and_a_dry_run_not_at_all(
    client: httpx.AsyncClient, services: Services, library: dict[str, str]
) -> None:
    document = f"/api/documents/{library['Station handbook']}"
    assert (await client.post("/api/documents", data={"groups": "x"})).status_code == 422
    assert (await client.delete(f"{document}?dry_run=1")).status_code == 200
    assert (await client.delete(f"{document}?dry_run=true&everywhere=true")).status_code == 200
    assert (await client.delete("/api/documents/none?dry_run=nonsense")).status_code == 422
    assert (await client.delete(document)).status_code == 204
    entries = await services.audit.list(datetime.now(UTC) - timedelta(hours=1), 10)
    assert [(e.action.partition(" ")[0], e.status) for e in entries] == [
        ("DELETE", 204),
        ("DELETE", 422),
        ("POST", 422),
    ]


async def test_keys_are_made_changed_and_revoked_by_administrators_of_everything(
    client: httpx.AsyncClient, services: Services
) -> None:
    first = await client.post("/api/keys", json={"name": "Me", "rights": ["admin", "ask"]})
    assert first.status_code == 201
    # From the first key on, nobody is the owner any more.
    assert (await client.get("/api/keys")).status_code == 401
    mine = {"Authorization": f"Bearer {first.json()['key']}"}
    wanted = {"name": " Ann ", "workspaces": ["legal"], "groups": [], "expires": "90d", "dollars_per_day": 5}
    wanted |= {"max_documents": 7, "max_stored_mb": 8}
    made = (await client.post("/api/keys", json=wanted, headers=mine)).json()
    theirs = {"Authorization": f"Bearer {made['key']}"}
    _, ann = (await client.get("/api/keys", headers=mine)).json()["keys"]
    assert made["key"] not in json.dumps(ann)
    assert (ann["name"], ann["rights"], ann["workspaces"], ann["groups"]) == ("Ann", ["ask"], ["legal"], [])
    assert ann["limits"]["dollars_per_day"] == 5
    assert (ann["limits"]["max_documents"], ann["limits"]["max_stored_mb"]) == (7, 8)
    assert datetime.fromisoformat(ann["expires_at"]) > datetime.now(UTC) + timedelta(days=89)
    path = f"/api/keys/{made['key_id']}"
    changed = await client.put(path, json={"name": "Ann", "workspaces": ["legal"], "groups": ["board"]}, headers=mine)
    assert changed.status_code == 204
    session = (await client.get("/api/session", headers=theirs)).json()
    assert (session["groups"], session["rights"]) == (["board"], ["ask"])
    # Whoever administers a part could make a key for the rest.
    _, part = await make(services, "admin", workspaces=frozenset({"legal"}))
    _, some = await make(services, "admin", groups=frozenset({"board"}))
    for header in (part, some, theirs):
        for method, where in (("GET", "/api/keys"), ("POST", "/api/keys"), ("PUT", path), ("DELETE", path)):
            sent = {"name": "Me", "rights": ["admin"]} if method in ("POST", "PUT") else None
            assert (await client.request(method, where, headers=header, json=sent)).status_code == 403
        assert (await client.get("/api/retention", headers=header)).status_code == 403
        wanted = {"days": 7, "steps_days": None}
        assert (await client.put("/api/retention", headers=header, json=wanted)).status_code == 403
    for days in (0, -1, 1e9, "x"):
        wanted = {"days": days, "steps_days": None}
        assert (await client.put("/api/retention", headers=mine, json=wanted)).status_code == 422
    assert (await client.get("/api/retention", headers=mine)).json()["steps_days"] == 30
    assert (await client.delete(path, headers=mine)).status_code == 204
    assert (await client.get("/api/session", headers=theirs)).status_code == 401
    assert (await client.put(path, json={"name": "Ann"}, headers=mine)).status_code == 404
    for wrong in ({"name": " "}, {"name": "x", "rights": ["all"]}, {"name": "x", "expires": "soon"}):
        assert (await client.post("/api/keys", json=wrong, headers=mine)).status_code == 422
    log = [
        (entry.action, *entry.targets[:1], entry.status)
        for entry in await services.audit.list(datetime.now(UTC) - timedelta(1), 99)
    ]
    assert ("POST /api/keys", first.json()["key_id"], 201) in log
    assert ("DELETE /api/keys/{key_id}", path.rpartition("/")[2], 204) in log
