"""The protocol's endpoints."""

from fastapi import APIRouter
from starlette.responses import Response

from app.api.protocols.agent_server import assistants, runs, threads
from app.api.protocols.agent_server.protocol import PREFIX, refuse, route_for

rest = APIRouter(prefix=PREFIX, route_class=route_for(), include_in_schema=False)


@rest.api_route("/{path:path}", methods=["GET", "POST", "PUT", "PATCH", "DELETE"])
async def refuse_rest(path: str) -> Response:
    """Refuse what the real server has besides, such as crons and the store."""
    instead = " useStream of @langchain/langgraph-sdk/react does without." if path.endswith(_STREAMS) else ""
    return refuse(
        404, f"There is no /{path[:200]} here.{instead} docs/clients.md lists what askgraph has of this protocol."
    )


_STREAMS = ("/commands", "/stream/events")
"""Streams of threads, which `useStream` of `@langchain/react` asks for."""
AGENT_SERVER = (assistants.router, assistants.making, threads.router, threads.erasing, runs.router, rest)
