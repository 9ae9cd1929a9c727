"""The Model Context Protocol's server, by its own package. Imported only where the protocol is spoken."""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any
from uuid import uuid4

import anyio
from mcp.client import Client
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    CancelledNotification,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    RequestId,
    Resource,
    ResourceTemplate,
    TextContent,
    TextResourceContents,
    Tool,
    ToolAnnotations,
)
from pydantic import TypeAdapter, ValidationError
from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send

from app.api.perimeter.errors import status_of
from app.api.protocols.mcp_tools import (
    MOST_LISTED,
    Arguments,
    AskArguments,
    ListArguments,
    ListedDocuments,
    OpenArguments,
    OpenedDocument,
    Report,
    RunFailed,
    SearchArguments,
    ToolResult,
    Tools,
    WhyArguments,
)
from app.api.schema.openapi import list_of
from app.support.cancelling import end_tasks
from askgraph import models
from domain.documents import Document
from domain.errors import AskgraphError
from domain.people.access import Caller, Right
from domain.people.names import WORKSPACE_ID
from domain.text.storable import make_json_storable

logger = logging.getLogger("askgraph.api")

INSTRUCTIONS = (
    "Answers questions from a team's documents. Prefer `ask`, whose answers are checked against the documents and cite "
    "them; `search` and `open_document` show what the documents say in their own words."
)
ADDRESS = "askgraph://documents/"
_ADDRESS = re.compile(rf"{ADDRESS}(?P<workspace>{WORKSPACE_ID.strip('^$')})/(?P<document>[^\x00]+)")
TEXT = "text/markdown"


@dataclass(frozen=True, slots=True)
class _Tool:
    arguments: type[Arguments]
    perform: Callable[[Tools, Any, Report], Awaitable[ToolResult]]
    result: Any
    """The type of its data."""
    title: str
    right: Right = "ask"

    def describe(self, name: str) -> Tool:
        """Describe it in the protocol's form."""
        return Tool(
            name=name,
            title=self.title,
            description=self.perform.__doc__,
            input_schema=self.arguments.model_json_schema(),
            output_schema=TypeAdapter(self.result).json_schema(mode="serialization"),
            annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False),
        )


TOOLS = {
    "ask": _Tool(AskArguments, Tools.ask, models.Answer, "Ask the documents"),
    "search": _Tool(SearchArguments, Tools.search, list_of("passages", models.Passage), "Find passages"),
    "open_document": _Tool(OpenArguments, Tools.open_document, OpenedDocument, "Read a document"),
    "why": _Tool(WhyArguments, Tools.why, list_of("facts", models.Fact), "Explain an answer", "debug"),
    "list_documents": _Tool(ListArguments, Tools.list_documents, ListedDocuments, "List the documents"),
}


SILENCE = 5.0
"""Seconds after which the step that still works is reported again: clients give up on what reports nothing, some after
ten seconds."""

SESSION = "mcp-session-id"
MODERN = "mcp-protocol-version"
"""Names of headers."""

_Call = tuple[str, str, RequestId | None]
"""A call of a tool: the caller, its session, and the request's id, which is unique within the session only."""

_calls: dict[_Call, anyio.CancelScope] = {}
"""The calls that this process is working on and whose clients may cancel them by another request."""


async def serve_request(tools: Tools, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer one HTTP request of a client. A client that leaves stops what it has asked for.

    Before the protocol's version of 2026, cancelling is a message of its own, which comes by another connection. So
    clients of these versions get a session to name, of which nothing is kept but the calls that go on.
    """
    request = Request(scope, receive)
    body = make_json_storable((await request.body()).decode("utf-8", "replace")).encode()
    session = request.headers.get(SESSION)
    if session is not None and (call := _calls.get((tools.caller.name, session, _read_cancelled(body)))):
        call.cancel()

    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return waiting.pop() if waiting else await receive()

    async def send_session(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message["headers"], (SESSION.encode(), uuid4().hex.encode())]
        await send(message)

    begins = session is None and MODERN not in request.headers
    manager = StreamableHTTPSessionManager(make_server(tools), stateless=True)
    async with manager.run():
        await manager.handle_request(scope, receive_again, send_session if begins else send)


def _read_cancelled(body: bytes) -> RequestId | None:
    """Return the id of the request that a message cancels; None where it cancels none."""
    try:
        message = CancelledNotification.model_validate_json(body, by_name=False)
    except ValidationError:
        return None
    return message.params.request_id


@contextmanager
def _cancellable(caller: Caller, context: ServerRequestContext) -> Iterator[anyio.CancelScope]:
    """Let the client cancel what happens within."""
    session = context.request.headers.get(SESSION) if isinstance(context.request, Request) else None
    with anyio.CancelScope() as scope:
        if session is None or context.request_id is None:
            yield scope
            return
        call = (caller.name, session, context.request_id)
        _calls[call] = scope
        try:
            yield scope
        finally:
            _calls.pop(call, None)


def make_server(tools: Tools) -> Server[Any]:
    """Make a server at which one caller is served."""

    async def list_tools(context: ServerRequestContext, given: PaginatedRequestParams | None) -> ListToolsResult:
        offered = [tool.describe(name) for name, tool in TOOLS.items() if tool.right in tools.caller.rights]
        return ListToolsResult(tools=offered)

    async def call_tool(context: ServerRequestContext, given: CallToolRequestParams) -> CallToolResult:
        tool = TOOLS.get(given.name)
        if tool is None:
            raise MCPError(INVALID_PARAMS, f"There is no tool {given.name!r}. There are: {', '.join(TOOLS)}.")
        with _cancellable(tools.caller, context):
            return await perform(tool, context, given.arguments or {})
        return _refuse("Cancelled.")

    async def perform(tool: _Tool, context: ServerRequestContext, arguments: dict[str, Any]) -> CallToolResult:
        steps, working = 0, ""

        async def report(step: str) -> None:
            nonlocal steps, working
            steps, working = steps + 1, step
            await context.session.report_progress(steps, message=step or None)

        async def repeat() -> None:
            while True:
                await asyncio.sleep(SILENCE)
                await report(working)

        repeating = asyncio.create_task(repeat())
        try:
            tools.caller.require(tool.right)
            said = await tool.perform(tools, tool.arguments.model_validate(arguments), report)
        except ValidationError as error:
            problems = (f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors())
            return _refuse("; ".join(problems))
        except RunFailed as error:
            return _refuse(str(error))
        except AskgraphError as error:
            return _refuse(_explain(error))
        except Exception as error:
            logger.exception("mcp: a tool failed unexpectedly")
            raise MCPError(INTERNAL_ERROR, "Something went wrong inside askgraph; its log says what.") from error
        finally:
            await end_tasks(repeating)
        return CallToolResult(content=[TextContent(text=said.text)], structured_content=said.data)

    async def list_resources(
        context: ServerRequestContext, given: PaginatedRequestParams | None
    ) -> ListResourcesResult:
        try:
            start = int((given.cursor if given else None) or 0)
            if start < 0:
                raise ValueError
            found = await tools.find_documents(None)
        except ValueError:
            raise MCPError(INVALID_PARAMS, "This cursor is not one of ours.") from None
        except AskgraphError as error:
            raise MCPError(INVALID_PARAMS, _explain(error)) from error
        following = start + MOST_LISTED
        return ListResourcesResult(
            resources=[_describe(document) for document in found[start:following]],
            next_cursor=str(following) if following < len(found) else None,
        )

    async def list_templates(
        context: ServerRequestContext, given: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        template = ResourceTemplate(
            name="document",
            uri_template=f"{ADDRESS}{{workspace}}/{{document_id}}",
            description="The text of a document of any workspace.",
            mime_type=TEXT,
        )
        return ListResourceTemplatesResult(resource_templates=[template])

    async def read_resource(context: ServerRequestContext, given: ReadResourceRequestParams) -> ReadResourceResult:
        named = _ADDRESS.fullmatch(given.uri)
        if named is None:
            raise MCPError(INVALID_PARAMS, f"There is no resource {given.uri!r}.", {"uri": given.uri})
        try:
            _, text = await tools.read(named["workspace"], named["document"])
        except AskgraphError as error:
            raise MCPError(INVALID_PARAMS, _explain(error), {"uri": given.uri}) from error
        return ReadResourceResult(contents=[TextResourceContents(uri=given.uri, mime_type=TEXT, text=text)])

    return _assemble(list_tools, call_tool, list_resources, list_templates, read_resource)


def make_bridge(client: Client) -> Server[Any]:
    """Make a server that passes everything on to another, with which `client` is connected."""
    return _assemble(
        lambda context, given: client.list_tools(),
        lambda context, given: client.call_tool(
            given.name, given.arguments, progress_callback=context.session.report_progress
        ),
        lambda context, given: client.list_resources(cursor=given.cursor if given else None),
        lambda context, given: client.list_resource_templates(),
        lambda context, given: client.read_resource(given.uri),
    )


def _assemble(list_tools: Any, call_tool: Any, list_resources: Any, list_templates: Any, read_resource: Any) -> Server:
    return Server(
        "askgraph",
        version=version("askgraph"),
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
    )


def _describe(document: Document) -> Resource:
    return Resource(
        uri=f"{ADDRESS}{document.workspace_id}/{document.id}",
        name=document.source,
        title=document.title,
        mime_type=TEXT,
    )


def _refuse(message: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=message)], is_error=True)


def _explain(error: AskgraphError) -> str:
    if status_of(error) >= 500 and not error.retryable:
        logger.error("mcp: %s", error.message, exc_info=error)
    return error.message
