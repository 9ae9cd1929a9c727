"""The Model Context Protocol over HTTP, at `/mcp`: tools and resources for whoever brings a language model.

Each request stands for itself, so that every process of a deployment can answer it.
"""

import asyncio
from collections.abc import Callable, Coroutine
from importlib import import_module
from typing import Any, cast

from fastapi import APIRouter, Request
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response
from starlette.types import Message, Receive, Scope, Send

from app.api.dependencies import (
    CallerDep,
    DocumentsDep,
    ModesDep,
    SettingsDep,
    get_run_manager,
    needs,
    read_services,
)
from app.api.perimeter.errors import respond_to_error
from app.api.perimeter.json_bodies import JsonRoute
from app.api.protocols.mcp_tools import Tools
from app.api.protocols.translating import read_base_url
from domain.errors import Unauthenticated

PROVIDER = ".well-known/oauth-protected-resource"


class _Route(needs("ask")):  # type: ignore[misc]
    """Tells clients without a token where to learn who gives one, if there is a provider."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_told(request: Request) -> Response:
            try:
                return cast(Response, await handle(request))
            except Unauthenticated as error:
                refused = respond_to_error(request, error)
                if read_services(request).settings.oidc_issuer:
                    place = f"{read_base_url(request)}{PROVIDER}/mcp"
                    refused.headers["WWW-Authenticate"] = f'Bearer resource_metadata="{place}"'
                return refused

        return handle_told


router = APIRouter(route_class=_Route, include_in_schema=False)
signing_in = APIRouter(route_class=JsonRoute, include_in_schema=False)


@signing_in.get(f"/{PROVIDER}")
@signing_in.get(f"/{PROVIDER}/mcp")
async def name_provider(request: Request, settings: SettingsDep) -> dict[str, Any]:
    """Say who gives tokens (RFC 9728)."""
    if settings.oidc_issuer is None:
        raise HTTPException(404)
    return {
        "resource": f"{read_base_url(request)}mcp",
        "authorization_servers": [settings.oidc_issuer],
        "scopes_supported": settings.oidc_scopes.split(),
        "bearer_methods_supported": ["header"],
    }


@signing_in.post("/register")
async def refuse_client() -> Response:
    """Refuse a client that takes this service for a provider, in words that it shows."""
    told = "There is no signing in here: give the client a key of askgraph as the header Authorization: Bearer KEY."
    return JSONResponse({"error": "access_denied", "error_description": told}, 404)


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
