"""The protocol's endpoints."""

from fastapi import APIRouter
from starlette.responses import Response

from app.api.protocols.agent_server import assistants, runs, thread_events, threads
from app.api.protocols.agent_server.protocol import PREFIX, refuse, route_for

rest = APIRouter(prefix=PREFIX, route_class=route_for(), include_in_schema=False)


@rest.api_route("/{path:path}", methods=["GET", "POST", "PUT", "PATCH", "DELETE"])
async def refuse_rest(path: str) -> Response:
    """Refuse what the real server has besides, such as crons and the store."""
    return refuse(404, f"There is no /{path[:200]} here. docs/clients.md lists what askgraph has of this protocol.")


AGENT_SERVER = (
    *(assistants.router, assistants.making, threads.router, threads.erasing, runs.router, thread_events.router, rest),
)
