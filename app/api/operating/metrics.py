"""Metrics for Prometheus."""

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from app.api.dependencies import CallerDep, needs, read_services
from app.api.schema.openapi import fail_with, respond_with_text
from app.support.metrics import MEDIA_TYPE, render
from domain.errors import DatabaseUnavailable, Forbidden

_Guarded = needs("debug")


class _MetricsRoute(_Guarded):  # type: ignore[valid-type, misc]
    """Tells everybody that the database does not answer, as `/readyz` does, and nothing else meanwhile: no key can be
    checked then. As an error it would be no metric, and no alert of it could fire."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_outage(request: Request) -> Response:
            try:
                response: Response = await handle(request)
            except DatabaseUnavailable:
                return Response("askgraph_database_up 0.0\n", headers={"Content-Type": MEDIA_TYPE})
            return response

        return handle_outage


router = APIRouter(tags=["health"], route_class=_MetricsRoute)


@router.get(
    "/metrics",
    response_class=Response,
    responses=respond_with_text("The metrics.", "text/plain") | fail_with(),
)
async def metrics(request: Request, caller: CallerDep) -> Response:
    """Return the metrics of this process, and the depth of the queues of all, in Prometheus' text format. They
    are of all workspaces, so a key of some of them is refused."""
    if not caller.sees_deployment:
        raise Forbidden("Metrics are of all workspaces, and your key is not.")
    return Response(render(await read_services(request).measure()), headers={"Content-Type": MEDIA_TYPE})
