"""The official MCP client, unmodified, against the service: over HTTP, and over standard input and output."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp_types import CallToolResult, TextContent, TextResourceContents

from app.access.keys import make_key
from app.api.protocols import mcp_protocol
from app.api.protocols.mcp_tools import Report, ToolResult, Tools
from app.serving.application import make_app
from app.settings import Settings, reveal
from app.wiring.services import Services
from domain.people.access import ApiKey
from domain.people.limits import Limits
from tests.asking import QUESTION
from tests.http_client import run_app, serve_services
from tests.protocols.examples import read_example
from tests.wire.serving import serve_app


@dataclass(frozen=True)
class Served:
    """The service at an address, with the ids of its documents by title."""

    address: str
    services: Services
    library: dict[str, str]


@pytest.fixture
async def served(services: Services, library: dict[str, str]) -> AsyncIterator[Served]:
    async with serve_services(services) as address:
        yield Served(address, services, library)


@asynccontextmanager
async def connect(served: Served, key: str = "", **options: Any) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {key}"} if key else None
    async with (
        create_mcp_http_client(headers) as http,
        Client(streamable_http_client(f"{served.address}/mcp", http_client=http), **options) as client,
    ):
        yield client


def read(said: CallToolResult) -> str:
    [content] = said.content
    assert isinstance(content, TextContent)
    return content.text


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_question_is_answered_with_its_sources_and_its_steps(served: Served, mode: str) -> None:
    steps: list[str | None] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        steps.append(message)

    async with connect(served, mode=mode) as client, httpx.AsyncClient(base_url=served.address) as plain:
        said = await client.call_tool("ask", {"question": QUESTION}, progress_callback=note)
        own = (await plain.post("/api/chat", json={"question": QUESTION}, params={"stream": "false"})).json()
        answer = said.structured_content
        assert (answer["answer"], answer["citations"]) == (own["answer"], own["citations"])
        assert read(said).startswith(own["answer"])
        assert f"document {served.library['Station handbook']}" in read(said)
        assert next(filter(None, steps)) == "route", "nothing is named before"
        assert "generate" in steps
        follow_up = {"question": "Who handles claims?", "thread_id": answer["thread_id"]}
        assert "Petra Lindqvist" in read(await client.call_tool("ask", follow_up))
        why = await client.call_tool("why", {"run_id": answer["run_id"]})
        assert read(why).startswith("outcome: answered")


async def test_documents_are_found_listed_and_read(served: Served) -> None:
    handbook = served.library["Station handbook"]
    async with connect(served) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == [
            "ask", "search", "open_document", "why", "list_documents"
        ]  # fmt: skip
        found = await client.call_tool("search", {"question": "warranty of the Falke", "limit": 2})
        first = found.structured_content["passages"][0]
        assert first["document_id"] == handbook
        assert "36 months" in first["text"]
        exact = await client.call_tool("search", {"question": '"36 MONTHS"'})
        assert [("36 months" in each["text"], each["score"]) for each in exact.structured_content["passages"]] == [
            (True, 1)
        ]
        place = {"document_id": handbook, "start": first["start"], "characters": first["end"] - first["start"]}
        opened = await client.call_tool("open_document", place)
        assert opened.structured_content["text"] == first["text"]
        listed = await client.call_tool("list_documents", {"limit": 1})
        assert (listed.structured_content["total"], listed.structured_content["next"]) == (2, 1)
        resources = (await client.list_resources()).resources
        assert {resource.title for resource in resources} == set(served.library)
        [resource] = [each for each in resources if each.title == "Station handbook"]
        assert resource.uri == f"askgraph://documents/default/{handbook}"
        [content] = (await client.read_resource(resource.uri)).contents
        assert isinstance(content, TextResourceContents)
        assert "36 months" in content.text


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_data_of_each_tool_fits_its_schema(served: Served, mode: str) -> None:
    async with connect(served, mode=mode) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        asked = await client.call_tool("ask", {"question": QUESTION, "mode": "thorough"})
        calls: dict[str, dict[str, Any]] = {
            "ask": {"question": "What does the Falke cost?"},
            "search": {"question": QUESTION, "document_ids": [], "where": ""},
            "open_document": {"document_id": served.library["Station handbook"]},
            "why": {"run_id": asked.structured_content["run_id"]},
            "list_documents": {},
        }
        assert calls.keys() == tools.keys()
        for name, arguments in calls.items():
            assert tools[name].output_schema is not None
            # The client compares the data with it.
            assert not (await client.call_tool(name, arguments)).is_error
            annotations = tools[name].annotations
            assert annotations is not None
            assert annotations.read_only_hint


async def test_what_is_wrong_is_said_in_the_protocols_form(served: Served) -> None:
    async with connect(served) as client:
        for tool, arguments, says in (
            ("ask", {}, "question: Field required"),
            ("ask", {"question": ""}, "question"),
            ("ask", {"question": QUESTION, "mode": "none"}, "There is no mode 'none'"),
            ("open_document", {"document_id": "none"}, "There is no document 'none'"),
            ("why", {"run_id": "none"}, "There is no run 'none'"),
        ):
            said = await client.call_tool(tool, arguments)
            assert said.is_error
            assert says in read(said)
        with pytest.raises(MCPError, match="There is no tool 'none'"):
            await client.call_tool("none", {})
        with pytest.raises(MCPError, match="There is no document 'none'"):
            await client.read_resource("askgraph://documents/default/none")
        for address in ("file:///etc/passwd", "askgraph://documents//none"):
            with pytest.raises(MCPError, match="There is no resource"):
                await client.read_resource(address)
        for address in ("askgraph://documents/no\x00ne/none", "askgraph://documents/default/\x00"):
            with pytest.raises(MCPError):
                await client.read_resource(address)


async def test_keys_are_bearer_tokens(served: Served) -> None:
    async def make(name: str, **options: Any) -> str:
        _, token = await make_key(served.services.keys, ApiKey(key_id="", name=name, **options))
        return token

    asker = await make("asker", rights=frozenset({"ask"}))
    stranger = await make("stranger", rights=frozenset({"ask"}), workspaces=frozenset({"theirs"}))
    limited = await make("limited", rights=frozenset({"ask"}), limits=Limits(requests_per_minute=9))
    async with httpx.AsyncClient() as plain:
        answered = await plain.post(f"{served.address}/mcp", json={}, headers={"Authorization": f"Bearer {limited}"})
        assert answered.headers["RateLimit-Policy"] == '"requests";q=9;w=60'
    async with connect(served, asker) as client:
        assert "why" not in [tool.name for tool in (await client.list_tools()).tools]
        refused = await client.call_tool("why", {"run_id": "any"})
        assert refused.is_error
        assert "the right 'debug'" in read(refused)
        assert "36 months" in read(await client.call_tool("ask", {"question": QUESTION}))
    async with connect(served, stranger) as client:
        assert (await client.list_resources()).resources == []
        assert "36 months" not in read(await client.call_tool("ask", {"question": QUESTION}))
        assert (await client.call_tool("search", {"question": QUESTION, "workspace": "default"})).is_error
        with pytest.raises(MCPError, match="There is no workspace 'default'"):
            await client.read_resource(f"askgraph://documents/default/{served.library['Station handbook']}")
    uploaded = await served.services.library.ingestion.add(
        "default", "vault.md", b"# Vault\n\nIt opens with K7731.", groups=["board"]
    )
    hidden = str(uploaded.document_id)
    staff = await make("staff", rights=frozenset({"ask"}), groups=frozenset({"staff"}))
    async with connect(served, staff) as client:
        for tool, arguments in (
            ("ask", {"question": "What does the vault open with?"}),
            ("search", {"question": "What does the vault open with?"}),
            ("search", {"question": "vault", "document_ids": [hidden]}),
            ("open_document", {"document_id": hidden}),
            ("list_documents", {}),
        ):
            said = read(await client.call_tool(tool, arguments))
            assert "K7731" not in said
            assert "Vault" not in said
        assert "Vault" not in [each.title for each in (await client.list_resources()).resources]
    uploader = await make("uploader", rights=frozenset({"ingest"}))
    async with httpx.AsyncClient() as plain:
        for key, status in ((None, 401), ("wrong", 401), (uploader, 403)):
            headers = {"Authorization": f"Bearer {key}"} if key else {}
            assert (await plain.post(f"{served.address}/mcp", json={}, headers=headers)).status_code == status


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_client_that_cancels_or_leaves_stops_its_run(
    served: Served, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    going, stopped = asyncio.Event(), asyncio.Event()
    search_dense, stop = type(served.services.library.search).search_dense, served.services.runs.queue.request_stop

    async def wait(*given: Any, **named: Any) -> Any:
        going.set()
        await asyncio.sleep(30)
        return await search_dense(*given, **named)

    async def note(*given: Any) -> Any:
        result = await stop(*given)
        stopped.set()
        return result

    monkeypatch.setattr(type(served.services.library.search), "search_dense", wait)
    monkeypatch.setattr(served.services.runs.queue, "request_stop", note)
    async with connect(served, mode=mode) as client:
        asking = asyncio.create_task(client.call_tool("ask", {"question": QUESTION}))
        async with asyncio.timeout(10):
            await going.wait()
            asking.cancel()
            await stopped.wait()


def start(settings: Settings, **more: str) -> StdioServerParameters:
    """Name the command to start, in the home of these settings."""
    given = {
        "ASKGRAPH_HOME": str(settings.home),
        "ASKGRAPH_LOAD_SAMPLES": "false",
        "DATABASE_URL": reveal(settings.database_url),
        "REDIS_URL": reveal(settings.redis_url),
    }
    root = Path(__file__).parents[2]
    return StdioServerParameters(
        command=sys.executable, args=["-m", "app.cli", "mcp"], env=os.environ | given | more, cwd=root
    )


async def test_a_step_that_works_on_is_reported_again(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    heard, enough, found = list[float](), asyncio.Event(), mcp_protocol.TOOLS["search"]

    async def note(progress: float, total: float | None, message: str | None) -> None:
        assert message == "search"
        heard.append(progress)
        if len(heard) == 3:
            enough.set()

    async def search(tools: Tools, given: Any, report: Report) -> ToolResult:
        await report("search")
        await enough.wait()
        return await found.perform(tools, given, report)

    monkeypatch.setattr(mcp_protocol, "SILENCE", 0.01)
    monkeypatch.setitem(mcp_protocol.TOOLS, "search", replace(found, perform=search))
    async with connect(served) as client:
        await client.call_tool("search", {"query": QUESTION}, progress_callback=note)
    assert heard == sorted(set(heard)), "progress that does not grow counts as none"


@pytest.mark.parametrize("named", [False, True])
async def test_a_program_that_starts_the_command_is_answered(
    services: Services, library: dict[str, str], tmp_path: Path, *, named: bool
) -> None:
    settings = services.settings.model_copy(update={"home": tmp_path})
    steps: list[str | None] = []
    paths: list[str] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        steps.append(message)

    async with AsyncExitStack() as stack:
        more = {}
        if named:
            app = await stack.enter_async_context(run_app(make_app(services, local_token="owner", closed=True)))

            async def note_path(scope: Any, receive: Any, send: Any) -> None:
                paths.append(scope["path"])
                await app(scope, receive, send)

            address = await stack.enter_async_context(serve_app(note_path))
            more = {"ASKGRAPH_SERVER": address, "ASKGRAPH_API_KEY": "owner"}
        async with Client(start(settings, **more)) as client:
            said = await client.call_tool("ask", {"question": QUESTION}, progress_callback=note)
            assert "36 months" in read(said)
            assert "generate" in steps
            assert len((await client.list_resources()).resources) == len(library)
            assert "36 months" in str(
                await client.read_resource(f"askgraph://documents/default/{library['Station handbook']}")
            )
            assert (await client.call_tool("ask", {"question": QUESTION, "mode": "none"})).is_error
    assert ("/mcp" in paths) == named


async def test_the_example_of_the_page_runs(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    example = read_example("Model Context Protocol").replace("http://127.0.0.1:8000", served.address)
    await asyncio.to_thread(exec, example, {})
    said = capsys.readouterr().out
    assert "… generate" in said
    assert "36 months" in said
    assert "Station handbook: # Station handbook" in said
