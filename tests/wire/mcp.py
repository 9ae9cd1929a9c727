"""A loopback MCP server, written with the SDK, that says who is on call."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from tests.wire.serving import serve_app

TOKEN = "a-token-of-the-deployment"


@dataclass
class OnCall:
    """The running server."""

    url: str = ""
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    """The functions that were called, with their arguments."""
    requests: int = 0
    fault: Literal["", "raises", "slow", "long", "no json", "refuses"] = ""


@asynccontextmanager
async def serve_on_call() -> AsyncIterator[OnCall]:
    on_call = OnCall()
    server = MCPServer("on-call")

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    async def who_is_on_call(team: str) -> str:
        """Tells who is on call today."""
        on_call.calls.append(("who_is_on_call", {"team": team}))
        if on_call.fault == "raises":
            raise ToolError(f"There is no team {team}.")
        return f"On call for {team} is Petra Lindqvist, extension 4711."

    @server.tool(annotations=ToolAnnotations(read_only_hint=False))
    async def page_somebody(text: str) -> str:
        """Pages the person on call."""
        on_call.calls.append(("page_somebody", {"text": text}))
        return "paged"

    inner = server.streamable_http_app(stateless_http=True, json_response=True)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        on_call.requests += 1
        headers = dict(scope["headers"])
        if headers.get(b"authorization") != f"Bearer {TOKEN}".encode() or on_call.fault == "refuses":
            return await Response("Who are you?", 401)(scope, receive, send)
        if on_call.fault == "slow":
            await asyncio.sleep(60)
        if on_call.fault in ("long", "no json"):
            body = b"{" * (50_000_000 if on_call.fault == "long" else 10)
            return await Response(body, media_type="application/json")(scope, receive, send)
        return await inner(scope, receive, send)

    async with server.session_manager.run(), serve_app(app) as url:
        on_call.url = f"{url}/mcp"
        yield on_call
