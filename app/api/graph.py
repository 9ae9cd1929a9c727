"""The graph, drawn."""

import asyncio
from typing import Literal

from fastapi import APIRouter
from starlette.responses import Response

from app.api.dependencies import ServicesDep
from app.drawing import draw

router = APIRouter(prefix="/api", tags=["graph"])

_MEDIA_TYPES = {"mermaid": "text/plain; charset=utf-8", "ascii": "text/plain; charset=utf-8", "png": "image/png"}


@router.get("/graph")
async def get_graph(services: ServicesDep, format: Literal["mermaid", "ascii", "png"] = "mermaid") -> Response:
    """The graph as it runs, drawn without a network."""
    return Response(await asyncio.to_thread(draw, services.graph, format), media_type=_MEDIA_TYPES[format])
