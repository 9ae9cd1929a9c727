"""The application in this process, and an HTTP client of it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
from fastapi import FastAPI
from starlette.types import ASGIApp


@asynccontextmanager
async def run_app(app: FastAPI) -> AsyncIterator[ASGIApp]:
    """Run the application's lifespan, which httpx's transport does not."""
    async with app.router.lifespan_context(app) as state:

        async def with_state(scope: Any, receive: Any, send: Any) -> None:
            await app(scope | {"state": dict(state or {})}, receive, send)

        yield with_state


@asynccontextmanager
async def open_client(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    """Run the application and open a client of it."""
    async with (
        run_app(app) as running,
        httpx.AsyncClient(transport=httpx.ASGITransport(app=running), base_url="http://askgraph") as opened,
    ):
        yield opened
