"""Draws the graph."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from app.api.dependencies import GraphDep, needs
from app.api.schema.openapi import Responses, fail_with, respond_with, respond_with_text
from app.drawing.diagram import Format, Layout, draw, read_graph

router = APIRouter(prefix="/api", tags=["graph"], route_class=needs("ask", "debug"))

_MEDIA_TYPES = {
    "mermaid": "text/plain; charset=utf-8",
    "ascii": "text/plain; charset=utf-8",
    "json": "application/json",
}


def _describe_drawings() -> Responses:
    described = respond_with(Layout, "The drawing; as JSON, the steps and edges with their places.")
    described[200]["content"] = respond_with_text("", "text/plain")[200]["content"]
    return described


@router.get("/graph", response_class=Response, responses=_describe_drawings() | fail_with())
async def get_graph(
    graph: GraphDep, format: Annotated[Format, Query(description="How to draw it.")] = "mermaid"
) -> Response:
    """Draw the graph that this server runs, without a network."""
    return Response(await asyncio.to_thread(draw, read_graph(graph), format), media_type=_MEDIA_TYPES[format])
