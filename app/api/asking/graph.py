"""Draws the graph."""

import asyncio
import json
from functools import lru_cache

from fastapi import APIRouter
from starlette.responses import Response

from app.api.dependencies import GraphDep, needs
from app.api.schema.openapi import answer_with
from app.drawing.diagram import Diagram, Layout, read_graph

router = APIRouter(prefix="/api", tags=["graph"], route_class=needs("ask", "debug"))


@router.get("/graph", **answer_with(Layout, "The steps and edges with their places."))
async def get_graph(graph: GraphDep) -> Response:
    """Draw the graph that this server runs, without a network."""
    return Response(await asyncio.to_thread(_draw, read_graph(graph)), media_type="application/json")


@lru_cache(maxsize=8)
def _draw(diagram: Diagram) -> bytes:
    # Pillow is needed for this alone, and every page asks for it.
    from app.drawing.layout import lay_out

    return json.dumps(lay_out(diagram)).encode()
