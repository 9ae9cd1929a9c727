"""Functions of MCP servers, called over HTTP or of a program that is started for the call.

Each call has a connection of its own: it begins and ends with the call, whatever the server does, and no state of one
question is there for the next. Importing this module takes half a second.
"""

import asyncio
import json
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Self, TypeVar
from urllib.parse import urlsplit

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp.types import (
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    JSONRPCResponse,
    ResourceLink,
    TextContent,
    TextResourceContents,
    Tool,
)
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from app.adapters.bounded_http import UNCOMPRESSED, bound_responses
from app.support.addresses import is_safe_address
from app.support.toml_files import list_problems, read_toml
from domain.errors import ConfigurationError, FunctionError
from domain.ports.functions import Function, FunctionList, FunctionResult
from domain.scope import Scope
from domain.text.storable import make_storable

logger = logging.getLogger("askgraph.functions")

LIST_SECONDS = 5.0
"""Seconds in which a server has to say which functions it has."""
REMEMBERED_SECONDS = 60.0
"""Seconds for which that is remembered, or that it did not say so."""
MOST_BYTES = 2_000_000
"""Size of one response over HTTP."""
MOST_DESCRIBED = 8_000
"""Characters of a function's description and schema together. A longer one fills the prompt of every round."""
MOST_PAGES = 50
"""Pages of a server's list of functions that are read."""
_BLOCK: TypeAdapter[ContentBlock] = TypeAdapter(ContentBlock)


Answer = TypeVar("Answer")


class McpServer(BaseModel):
    """A server, as the deployment's file describes it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: str | None = None
    token_variable: str | None = None
    """The environment variable that holds the bearer token."""
    command: Annotated[list[str], Field(min_length=1)] | None = None
    variables: list[str] = []
    """Environment variables that the program gets, besides those that every program needs."""
    functions: list[str] = []
    """Functions that may be called: the server has to say that they only read."""
    changing: list[str] = []
    """Further ones, which may be called though they may change something, or the server does not say."""
    workspaces: list[str] | None = None
    """Those that may call them; None: all."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.url is None) == (self.command is None):
            raise ValueError("name either its url or the command that starts it")
        if self.url is not None and self.token_variable and not is_safe_address(self.url):
            raise ValueError("a token is sent over https:// alone, or to this machine")
        for name in [*self.variables, *([self.token_variable] if self.token_variable else [])]:
            if name not in os.environ:
                raise ValueError(f"the environment variable {name} is not set")
        return self


def read_servers(path: Path) -> dict[str, McpServer]:
    """Read the deployment's servers by name. Raises `ConfigurationError` for a file that cannot be used."""
    servers = {}
    for name, table in read_toml(path, "file of MCP servers").items():
        try:
            servers[name] = McpServer.model_validate(table)
        except ValidationError as error:
            raise ConfigurationError(f"The file of MCP servers {path}: [{name}] {list_problems(error)}.") from error
    return servers


class McpFunctions:
    """Calls functions of these servers."""

    def __init__(self, servers: Mapping[str, McpServer]) -> None:
        self._servers = servers
        self._listed: dict[str, tuple[float, list[Tool] | FunctionError]] = {}

    def allows(self, name: str) -> bool:
        """Return True for a function that the deployment's file names."""
        server, _, function = name.partition(".")
        known = self._servers.get(server)
        return known is not None and function in (*known.functions, *known.changing)

    async def list_functions(self, scope: Scope, names: Sequence[str]) -> FunctionList:
        functions: list[Function] = []
        problems: dict[str, None] = {}
        # One after the other, so that a server is asked once.
        for name in names:
            try:
                tool = await self._find(scope, name)
                described = tool.description or tool.title or tool.name
                schema = _write_out(tool.input_schema, name, MOST_DESCRIBED - len(described))
            except FunctionError as error:
                problems[error.message] = None
            else:
                functions.append(Function(name, described, schema))
        return FunctionList(tuple(functions), tuple(problems))

    async def call(
        self, scope: Scope, name: str, arguments: Mapping[str, Any], seconds: float, characters: int
    ) -> FunctionResult:
        server, _, function = name.partition(".")
        loop = asyncio.get_running_loop()
        ends = loop.time() + seconds
        await self._find(scope, name)
        called_at = datetime.now(UTC).isoformat(timespec="seconds")

        async def ask(client: Client) -> CallToolResult:
            return await client.call_tool(function, dict(arguments))

        result = await self._ask(server, ask, max(ends - loop.time(), 0))
        text = _read(result)
        return FunctionResult(text if len(text) <= characters else f"{text[:characters]}…", called_at, result.is_error)

    async def _find(self, scope: Scope, name: str) -> Tool:
        """Return the function, if it may be called. Raises `FunctionError`."""
        server, _, function = name.partition(".")
        known = self._servers.get(server)
        if known is None or (known.workspaces is not None and scope.workspace_id not in known.workspaces):
            raise FunctionError(f"No MCP server {server!r} is connected here.")
        if not self.allows(name):
            raise FunctionError(f"{name} may not be called here.")
        tool = next((each for each in await self._list(server) if each.name == function), None)
        if tool is None:
            raise FunctionError(f"The MCP server {server!r} has no function {function!r}.")
        only_reads = tool.annotations is not None and tool.annotations.read_only_hint is True
        if not only_reads and function not in known.changing:
            raise FunctionError(f"{name} may not be called: its server does not say that it only reads.")
        if len(tool.description or "") + len(json.dumps(tool.input_schema)) > MOST_DESCRIBED:
            raise FunctionError(f"{name} is not offered: its description is too long.")
        return tool

    async def _list(self, server: str) -> list[Tool]:
        now = asyncio.get_running_loop().time()
        asked_at, listed = self._listed.get(server, (-REMEMBERED_SECONDS, []))
        if now - asked_at >= REMEMBERED_SECONDS:

            async def ask(client: Client) -> list[Tool]:
                tools, cursor = list[Tool](), None
                for _ in range(MOST_PAGES):
                    page = await client.list_tools(cursor=cursor)
                    tools += page.tools
                    if not (cursor := page.next_cursor):
                        break
                return tools

            try:
                listed = await self._ask(server, ask, LIST_SECONDS)
            except FunctionError as error:
                listed = error
            self._listed[server] = asyncio.get_running_loop().time(), listed
        if isinstance(listed, FunctionError):
            raise FunctionError(listed.message)
        return listed

    async def _ask(self, server: str, ask: Callable[[Client], Awaitable[Answer]], seconds: float) -> Answer:
        """Ask the server. Raises `FunctionError` for whatever goes wrong: its answers are nobody's that we know."""
        try:
            async with asyncio.timeout(seconds), _connect(self._servers[server]) as client:
                return await ask(client)
        except TimeoutError as error:
            raise FunctionError(f"The MCP server {server!r} did not answer in time.") from error
        except Exception as error:
            cause: BaseException = error
            while isinstance(cause, BaseExceptionGroup):
                cause = cause.exceptions[0]
            # The details may name addresses: they are for the log alone.
            logger.warning("The MCP server %s failed: %r", server, cause)
            raise FunctionError(f"The MCP server {server!r} cannot be reached, or not understood.") from error


def _write_out(schema: Mapping[str, Any], name: str, left: int) -> dict[str, Any]:
    """Return the schema with what it refers to in its place: servers of models refuse `$ref` (Gemini's does). Raises
    `FunctionError` where that is endless, or has more than `left` characters and parts, and where what it refers to is
    no schema."""
    defined: dict[str, Any] = {}
    for key in ("$defs", "definitions"):
        named = schema.get(key, {})
        if not isinstance(named, dict) or not all(isinstance(value, dict | bool) for value in named.values()):
            raise FunctionError(f"{name} is not offered: {key} in its schema is malformed.")
        # Of `true`, anything may be; of `false`, nothing.
        defined |= {
            f"#/{key}/{each}": value if isinstance(value, dict) else {} if value else {"not": {}}
            for each, value in named.items()
        }

    def write(value: Any) -> Any:
        nonlocal left
        left -= len(value) if isinstance(value, str) else 1 + (sum(map(len, value)) if isinstance(value, dict) else 0)
        if left < 0:
            raise FunctionError(f"{name} is not offered: its description is too long.")
        if isinstance(value, dict):
            meant = defined.get(str(value.get("$ref")))
            within = (
                value if meant is None else {**meant, **{key: each for key, each in value.items() if key != "$ref"}}
            )
            return {key: write(each) for key, each in within.items()}
        return [write(each) for each in value] if isinstance(value, list) else value

    try:
        return {key: write(each) for key, each in schema.items() if key not in ("$defs", "definitions")}
    except RecursionError:
        raise FunctionError(f"{name} is not offered: its description is too long.") from None


@asynccontextmanager
async def _connect(server: McpServer) -> AsyncIterator[Client]:
    async with AsyncExitStack() as stack:
        if server.url is not None:
            headers = dict(UNCOMPRESSED)
            if server.token_variable:
                headers["Authorization"] = f"Bearer {os.environ[server.token_variable]}"

            def open_http(*_: Any, **__: Any) -> httpx2.AsyncClient:
                bounds = bound_responses(MOST_BYTES, MOST_BYTES)
                return httpx2.AsyncClient(headers=headers, event_hooks=bounds, timeout=None)

            transport: AbstractAsyncContextManager[Any]
            if urlsplit(server.url).path.endswith("/sse"):
                # The protocol's first form, which many servers still have.
                transport = sse_client(server.url, httpx_client_factory=open_http)
            else:
                http = await stack.enter_async_context(open_http())
                transport = streamable_http_client(server.url, http_client=http)
        else:
            assert server.command
            environment = {name: os.environ[name] for name in server.variables}
            program = StdioServerParameters(command=server.command[0], args=server.command[1:], env=environment)
            transport = stdio_client(program)
        yield await stack.enter_async_context(Client(_listen(transport), cache=None))


@asynccontextmanager
async def _listen(transport: AbstractAsyncContextManager[Any]) -> AsyncIterator[Any]:
    async with transport as (incoming, outgoing):
        yield _Incoming(incoming), outgoing


class _Incoming:
    """What a server sends. Of its functions only what is used here, in the form that the SDK reads: it refuses all for
    one that is described in another, and a result that is not as described."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        return _correct(await self._stream.__anext__())

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> Any:
        return await self._stream.__aexit__(*error)

    async def receive(self) -> Any:
        return _correct(await self._stream.receive())


def _correct(sent: Any) -> Any:
    if isinstance(sent, SessionMessage) and isinstance(sent.message, JSONRPCResponse):
        result = sent.message.result
        if isinstance(listed := result.get("tools"), list):
            named = (tool for tool in listed if isinstance(tool, dict) and isinstance(tool.get("name"), str))
            result["tools"] = [_describe(tool) for tool in named]
        elif not {"content", "structuredContent"}.isdisjoint(result):
            content = result.get("content")
            blocks = content if isinstance(content, list) else [content] if content is not None else []
            result["content"] = [_write_block(block) for block in blocks]
    return sent


def _write_block(block: Any) -> Any:
    """Return a part of a result; one of no kind that is known as its text."""
    try:
        _BLOCK.validate_python(block, by_name=False)
    except ValidationError:
        return {"type": "text", "text": block if isinstance(block, str) else json.dumps(block, ensure_ascii=False)}
    return block


def _describe(tool: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tool's name, texts and schema, and whether it only reads."""
    texts = {name: tool[name] for name in ("name", "title", "description") if isinstance(tool.get(name), str)}
    schema, hints = tool.get("inputSchema"), tool.get("annotations")
    only_reads = isinstance(hints, dict) and hints.get("readOnlyHint") is True
    schema = {**schema, "type": "object"} if isinstance(schema, dict) else {"type": "object"}
    return {**texts, "inputSchema": schema, "annotations": {"readOnlyHint": only_reads}}


def _read(result: CallToolResult) -> str:
    """Return what a result says in words: data without any as JSON, and of pictures and sounds that there are some."""
    parts = []
    for block in result.content:
        match block:
            case TextContent():
                parts.append(block.text)
            case EmbeddedResource(resource=TextResourceContents() as resource):
                parts.append(resource.text)
            case ResourceLink():
                parts.append(": ".join(filter(None, (block.title or block.name, str(block.uri), block.description))))
            case _:
                parts.append(f"({block.type}: not shown)")
    if not parts and result.structured_content is not None:
        parts.append(json.dumps(result.structured_content, ensure_ascii=False))
    return make_storable("\n".join(parts)).strip()
