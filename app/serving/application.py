"""The HTTP application."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI
from fastapi.responses import HTMLResponse
from starlette.middleware.gzip import GZipMiddleware
from starlette.types import ASGIApp
from typing_extensions import TypedDict

from app.access.authentication import Authenticator
from app.access.refusals import RefusalLog
from app.answering.manager import RunManager
from app.api import pages
from app.api.asking import assistants, chat, graph, modes, runs, threads
from app.api.library import browsing, documents, ingestions, originals, search, starters, workspaces
from app.api.operating import cache, costs, health, metrics, models
from app.api.people import keys, session, sign_in
from app.api.perimeter.errors import register_error_handlers
from app.api.perimeter.perimeter import BodyLimit, Perimeter, TraceRequests
from app.api.protocols import ag_ui, mcp, ollama, openai, openai_responses, ui
from app.api.protocols.agent_server.routes import AGENT_SERVER
from app.api.schema.documenting import add_words
from app.api.schema.reference import POLICY, render_reference
from app.ingest.rendering import PageRenderer
from app.support.cancelling import end_tasks
from app.wiring.services import Services
from domain.people.access import OWNER, STRANGER

ROUTERS = (
    chat.router,
    cache.router,
    runs.router,
    documents.reading,
    documents.writing,
    originals.router,
    browsing.router,
    search.router,
    starters.router,
    ingestions.router,
    threads.reading,
    threads.erasing,
    graph.router,
    modes.router,
    assistants.reading,
    assistants.writing,
    costs.router,
    workspaces.router,
    session.router,
    session.guarded,
    sign_in.router,
    keys.router,
    models.router,
    health.router,
    metrics.router,
)

DIALECTS = (
    openai.router,
    openai_responses.router,
    openai.rest,
    ollama.router,
    ui.router,
    ag_ui.router,
    mcp.router,
    mcp.signing_in,
    *AGENT_SERVER,
)
"""Other protocols, which others document."""

MAX_BODY = 1_000_000
"""Largest body of a request in bytes."""


class Lifespan(TypedDict):
    """The content of `request.state` for request handlers."""

    services: Services
    authenticator: Authenticator
    refusals: RefusalLog
    manager: RunManager
    renderer: PageRenderer


class Application(FastAPI):
    """The application inside its perimeter, which is outside of all that Starlette does: answers to unexpected errors
    have its headers too."""

    def __init__(self, hosts: Iterable[str], origins: Iterable[str], **options: Any) -> None:
        super().__init__(**options)
        self._hosts, self._origins = hosts, origins

    def build_middleware_stack(self) -> ASGIApp:
        """Wrap what FastAPI builds."""
        return TraceRequests(Perimeter(super().build_middleware_stack(), self._hosts, self._origins))

    def openapi(self) -> dict[str, Any]:
        """Return the OpenAPI document, which is made once."""
        if not self.openapi_schema:
            add_words(super().openapi())
        return super().openapi()


def make_app(
    services: Services, *, local_token: str | None = None, closed: bool = False, exposed: bool = False
) -> FastAPI:
    """Make the application on open services, which the caller closes.

    `local_token` identifies the owner of the machine. If `closed`, callers need a key even while there is none. If
    `exposed`, other machines reach the service: nobody administers it before the first key is made.
    """

    @asynccontextmanager
    async def run_lifespan(app: FastAPI) -> AsyncIterator[Lifespan]:
        # Resumes builds that a crash has interrupted. Not done by `open_services`: a command ends before a build does.
        services.library.tend_indexes()
        async with (
            services.make_run_manager() as manager,
            RefusalLog(services.audit) as refusals,
        ):
            await manager.work()
            app.state.manager = manager
            forgetting = asyncio.create_task(services.make_forgetting().resume())
            async with PageRenderer() as renderer:
                yield Lifespan(
                    services=services,
                    authenticator=Authenticator(
                        services.keys,
                        local_token=local_token,
                        tokens=services.identities.tokens,
                        always=closed,
                        anonymous=STRANGER if exposed else OWNER,
                    ),
                    refusals=refusals,
                    manager=manager,
                    renderer=renderer,
                )
            await end_tasks(forgetting)
            await manager.drain()

    settings = services.settings
    app = Application(
        settings.hosts,
        settings.origins,
        title="askgraph",
        version=version("askgraph"),
        description="Question answering over a team's documents.",
        lifespan=run_lifespan,
        docs_url=None,
        redoc_url=None,
    )
    register_error_handlers(app)
    app.add_middleware(BodyLimit, limit=MAX_BODY, others={"/api/documents": settings.max_upload_bytes})
    app.add_middleware(GZipMiddleware)
    # Not by `include_router`, which builds every route a second time, at the first request: 0.4 s of CPU.
    for router in (*ROUTERS, *Services.list_debug_routers(), *DIALECTS, pages.router):
        app.router.routes.extend(router.routes)

    @app.get("/docs", include_in_schema=False)
    async def reference() -> HTMLResponse:
        return HTMLResponse(render_reference(app.openapi()), headers={"Content-Security-Policy": POLICY})

    return app
