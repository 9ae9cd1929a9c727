"""The Model Context Protocol over HTTP, at `/mcp`: tools and resources for whoever brings a language model.

Each request stands for itself, so that every process of a deployment can answer it.
"""

import asyncio
from importlib import import_module
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from app.api.dependencies import (
    CallerDep,
    DocumentsDep,
    ModesDep,
    get_run_manager,
    needs,
    read_services,
)
from app.api.protocols.mcp_tools import Tools

router = APIRouter(route_class=needs("ask"), include_in_schema=False)


class ProtocolResponse(Response):
    """Hands the request over to the protocol's own server, whose response gets the headers that are added to this."""

    def __init__(self, protocol: Any, tools: Tools) -> None:
        super().__init__()
        self.raw_headers = []
        self._protocol = protocol
        self._tools = tools

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""

        async def send_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *self.raw_headers]
            await send(message)

        await self._protocol.serve_request(self._tools, scope, receive, send_headers)


@router.post("/mcp")
async def speak(
    request: Request,
    caller: CallerDep,
    modes: ModesDep,
    documents: DocumentsDep,
) -> Response:
    """Answer one message of a client. There is nothing to GET: nothing is sent that was not asked for."""
    # Takes half a second, once. In a thread, so that others are answered meanwhile.
    protocol = await asyncio.to_thread(import_module, "app.api.protocols.mcp_protocol")
    tools = Tools(
        caller=caller,
        modes=modes,
        documents=documents,
        explain=read_services(request).make_debugger().explain,
        manager=get_run_manager(request),
        make_context=read_services(request).make_context,
    )
    return ProtocolResponse(protocol, tools)
