"""The application in this process, and an HTTP client of it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import httpx
from fastapi import FastAPI
from starlette.types import ASGIApp

from app.serving.application import make_app
from app.settings import Settings
from app.wiring.services import Services
from tests.wire.serving import serve_app


def describe_api() -> dict[str, Any]:
    """Return the OpenAPI document, without opening the service."""
    return make_app(cast(Any, SimpleNamespace(settings=Settings()))).openapi()


@asynccontextmanager
async def run_app(app: FastAPI) -> AsyncIterator[ASGIApp]:
    """Run the application's lifespan, which httpx's transport does not."""
    async with app.router.lifespan_context(app) as state:

        async def with_state(scope: Any, receive: Any, send: Any) -> None:
            await app(scope | {"state": dict(state or {})}, receive, send)

        yield with_state


@asynccontextmanager
async def open_client(app: FastAPI, *, raise_app_exceptions: bool = True) -> AsyncIterator[httpx.AsyncClient]:
    """Run the application and open a client of it."""
    async with (
        run_app(app) as running,
        httpx.AsyncClient(
            transport=httpx.ASGITransport(app=running, raise_app_exceptions=raise_app_exceptions),
            base_url="http://localhost",
        ) as opened,
    ):
        yield opened


@asynccontextmanager
async def serve_services(services: Services) -> AsyncIterator[str]:
    """Serve the application of these services; gives its address."""
    async with run_app(make_app(services)) as running, serve_app(running) as address:
        yield address
