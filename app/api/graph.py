"""A drawing of the graph."""

import asyncio
from typing import Literal

from fastapi import APIRouter
from starlette.responses import Response

from app.api.dependencies import GraphDep
from app.drawing import draw

router = APIRouter(prefix="/api", tags=["graph"])

_MEDIA_TYPES = {"mermaid": "text/plain; charset=utf-8", "ascii": "text/plain; charset=utf-8", "png": "image/png"}


@router.get("/graph")
async def get_graph(graph: GraphDep, format: Literal["mermaid", "ascii", "png"] = "mermaid") -> Response:
    """Draw the graph as it runs."""
    return Response(await asyncio.to_thread(draw, graph, format), media_type=_MEDIA_TYPES[format])
