"""Metrics for Prometheus."""

from fastapi import APIRouter
from starlette.responses import Response

from app.api.dependencies import MeasureDep, needs
from app.api.openapi import fail_with, respond_with_text
from app.support.metrics import MEDIA_TYPE, render

router = APIRouter(tags=["health"], route_class=needs("debug"))


@router.get(
    "/metrics",
    response_class=Response,
    responses=respond_with_text({"text/plain": "askgraph_runs_running 3.0\n"}, "The metrics.") | fail_with(),
)
async def metrics(measure: MeasureDep) -> Response:
    """Return the metrics of this process, and the depth of the queues of all, in Prometheus' text format."""
    return Response(render(await measure()), headers={"Content-Type": MEDIA_TYPE})
