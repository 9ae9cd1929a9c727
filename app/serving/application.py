"""The HTTP application."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI
from fastapi.responses import FileResponse
from typing_extensions import TypedDict

from app.api import cache, chat, costs, documents, graph, health, ingestions, originals, runs, threads
from app.api.errors import register_error_handlers
from app.ingest.rendering import PageRenderer
from app.runs.cached_answers import CachedAnswers
from app.runs.hit_log import HitRecorder
from app.runs.manager import RunManager
from app.wiring.services import Services

ROUTERS = (
    chat.router,
    cache.router,
    runs.router,
    documents.reading,
    documents.writing,
    originals.router,
    ingestions.router,
    threads.router,
    threads.erasing,
    graph.router,
    costs.router,
    health.router,
)

PAGE = Path(__file__).parents[1] / "api" / "page.html"


class Lifespan(TypedDict):
    """The content of `request.state` for request handlers."""

    services: Services
    manager: RunManager
    cached_answers: CachedAnswers
    renderer: PageRenderer


def make_app(services: Services) -> FastAPI:
    """Make the application on open services, which the caller closes."""

    @asynccontextmanager
    async def run_lifespan(app: FastAPI) -> AsyncIterator[Lifespan]:
        # Resumes builds that a crash has interrupted. Not done by `open_services`: a command ends before a build does.
        services.library.tend_indexes()
        async with services.make_run_manager() as manager, HitRecorder(services.runs.hit_log) as recorder:
            await manager.work()
            app.state.manager = manager
            yield Lifespan(
                services=services,
                manager=manager,
                cached_answers=services.make_cached_answers(recorder),
                renderer=PageRenderer(),
            )
            await manager.drain()

    app = FastAPI(title="askgraph", description="Question answering over a team's documents.", lifespan=run_lifespan)
    register_error_handlers(app)
    for router in ROUTERS:
        app.include_router(router)

    @app.get("/", include_in_schema=False)
    async def page() -> FileResponse:
        return FileResponse(PAGE, headers={"Cache-Control": "no-cache"})

    return app
