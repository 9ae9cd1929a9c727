"""Streams of every kind end within five seconds once their caller may not have them."""

import asyncio
import re
import time
from collections.abc import AsyncIterator
from importlib import import_module
from typing import Any

import httpx
import psycopg
import pytest
import pytest_asyncio

from app.access.keys import make_key
from app.answering.manager import RunManager
from app.api import dependencies
from app.serving.application import make_app
from app.settings import Settings
from app.wiring.services import Services, open_services
from domain.people.access import ApiKey
from tests.asking import with_models
from tests.conftest import HANDBOOK
from tests.http_client import run_app
from tests.wire.oidc import AUDIENCE, OidcProvider, serve_oidc
from tests.wire.openai import serve_openai
from tests.wire.serving import serve_app

SECONDS = 5.0
GROUP = "a"

Json = dict[str, Any]


@pytest_asyncio.fixture
async def place(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[httpx.AsyncClient, Services, OidcProvider]]:
    """The service at an address, whose model writes for minutes; at the end it waits for none."""
    monkeypatch.setattr(RunManager.drain, "__defaults__", (0.0, 0.0))
    import_module("app.api.protocols.mcp_protocol")  # which takes its time once
    async with serve_oidc() as provider, serve_openai(rate=30, length=20_000) as model:
        changed = with_models(settings, model, oidc_issuer=provider.issuer, oidc_audience=AUDIENCE)
        async with (
            open_services(changed) as services,
            run_app(make_app(services)) as app,
            serve_app(app) as address,
            httpx.AsyncClient(base_url=address, timeout=60) as client,
        ):
            await services.library.ingestion.add("default", "handbook.md", HANDBOOK)
            yield client, services, provider


def list_streams() -> dict[str, tuple[str, Json, Json]]:
    """The ways to ask for a stream: path, body and headers."""

    def say(name: str) -> str:
        return f"How long is the warranty of the Falke, asks {name}?"

    chat = [{"id": "1", "role": "user", "parts": [{"type": "text", "text": say("ui")}]}]
    called = {"name": "ask", "arguments": {"question": say("mcp")}, "_meta": {"progressToken": 1}}
    graph = {"assistant_id": "standard", "if_not_exists": "create"}
    return {
        "ours": ("/api/chat", {"question": say("ours")}, {}),
        "openai": (
            "/v1/chat/completions",
            {"model": "standard", "stream": True, "messages": [{"role": "user", "content": say("openai")}]},
            {},
        ),
        "responses": ("/v1/responses", {"model": "standard", "stream": True, "input": say("responses")}, {}),
        "langgraph": ("/langgraph/threads/t/runs/stream", graph | {"input": {"question": say("langgraph")}}, {}),
        "stateless": (
            "/langgraph/runs/stream",
            {"assistant_id": "standard", "input": {"question": say("stateless")}},
            {},
        ),
        "ag_ui": (
            "/ag-ui",
            {"threadId": "t", "runId": "r", "messages": [{"id": "1", "role": "user", "content": say("ag_ui")}]},
            {},
        ),
        "ui": ("/api/ui/chat", {"id": "chat", "messages": chat}, {}),
        "mcp": (
            "/mcp",
            {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": called},
            {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"},
        ),
    }


class Readers:
    """Readers of streams that do not end by themselves."""

    def __init__(self, client: httpx.AsyncClient, sent: Json) -> None:
        self._client = client
        self._sent = sent
        self.ended: dict[str, float] = {}
        self.begun: dict[str, asyncio.Event] = {}
        self.run_ids: dict[str, str] = {}
        self.texts: dict[str, str] = {}
        self.tasks: list[asyncio.Task[None]] = []

    def open(self, name: str, method: str, path: str, body: Json | None, headers: Json) -> None:
        self.begun[name] = asyncio.Event()
        self.tasks.append(asyncio.create_task(self._read(name, method, path, body, headers)))

    async def wait_until_begun(self) -> None:
        """Raise `TimeoutError` with the names of those that do not begin."""
        waiting = {name: asyncio.create_task(begun.wait()) for name, begun in self.begun.items()}
        await asyncio.wait(waiting.values(), timeout=15)
        if late := [name for name, task in waiting.items() if not task.done()]:
            raise TimeoutError(late, [task.exception() for task in self.tasks if task.done()])

    async def _read(self, name: str, method: str, path: str, body: Json | None, headers: Json) -> None:
        async with self._client.stream(method, path, json=body, headers=headers | self._sent) as response:
            assert response.status_code == 200, (name, (await response.aread()).decode())
            found = re.search(r"/runs/([0-9a-f-]{36})", str(response.headers))
            self.run_ids[name] = "" if found is None else found[1]
            try:
                self.texts[name] = ""
                async for text in response.aiter_text():
                    self.texts[name] += text
                    self.begun[name].set()
            except (httpx.RemoteProtocolError, httpx.ReadError):
                pass
            self.ended[name] = time.monotonic()


async def wait_until_shown(database_url: str, runs: int) -> None:
    """Wait until it is noted of as many runs that they have shown a document."""
    noted: tuple[int] | None = None
    async with asyncio.timeout(30), await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        while noted != (runs,):
            await asyncio.sleep(0.1)
            found = await connection.execute("SELECT count(*) FROM accepted_runs WHERE showing <> '{}'")
            noted = await found.fetchone()


@pytest.mark.parametrize("change", ["revoked", "token", "signed out", "groups"])
async def test_open_streams_end_when_their_caller_may_not_have_them(
    place: tuple[httpx.AsyncClient, Services, OidcProvider],
    change: str,
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client, services, provider = place
    ask = ApiKey("", "test", frozenset({"ask"}), groups=frozenset({GROUP}))
    key, secret = await make_key(services.keys, ask)
    sent = {"X-API-Key": secret}
    if change == "token":
        expires = int(time.time()) + 3600
        token = provider.sign(scope="ask", groups=[GROUP], exp=expires)
        sent = {"Authorization": f"Bearer {token}"}
    elif change == "signed out":
        signed_in = await client.post("/api/session", json={"key": secret})
        sent = {"Cookie": signed_in.headers["set-cookie"].split(";")[0]}
    readers = Readers(client, sent)
    for name, (path, body, headers) in list_streams().items():
        readers.open(name, "POST", path, body, headers)
    await readers.wait_until_begun()
    readers.open("events", "GET", f"/api/runs/{readers.run_ids['ours']}/events", None, {})
    readers.open("joined", "GET", f"/langgraph/threads/t/runs/{readers.run_ids['langgraph']}/stream", None, {})
    readers.open("resumed", "GET", "/api/ui/chat/chat/stream", None, {})
    await readers.wait_until_begun()
    await wait_until_shown(database_url, runs=len(list_streams()))
    # What a run has read is noted before its readers get it.
    async with asyncio.timeout(30):
        while '"handbook.md"' not in readers.texts["ours"]:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
    assert not readers.ended
    changed_at = time.monotonic()
    if change == "revoked":
        await services.keys.revoke(key.key_id)
    elif change == "token":
        monkeypatch.setattr(dependencies, "time", lambda: expires)
    elif change == "signed out":
        assert (await client.delete("/api/session", headers=sent)).status_code == 204
        # The key itself, which a program may have, is as good as it was.
        assert (await client.get("/api/documents", headers={"X-API-Key": secret})).status_code == 200
        assert (await client.get("/api/documents", headers=sent)).status_code == 401
    elif change == "groups":
        for document in await services.library.documents.list("default"):
            await services.library.documents.set_groups("default", document.id, ["b"])
    await asyncio.wait(readers.tasks, timeout=SECONDS)
    open_still = readers.begun.keys() - readers.ended.keys()
    for task in readers.tasks:
        task.cancel()
    await asyncio.gather(*readers.tasks, return_exceptions=True)
    assert not open_still
    assert max(readers.ended.values()) - changed_at < SECONDS
