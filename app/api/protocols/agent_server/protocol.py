"""What all endpoints of the protocol share: the form of errors, and where a run is found."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from starlette.responses import Response

from app.api.protocols.refusing import refuse_in
from domain.errors import AskgraphError
from domain.people.access import Right

PREFIX = "/langgraph"
HEARTBEAT = b": heartbeat\n\n"


def _refuse_ours(error: AskgraphError, status: int) -> Response:
    return refuse(status, error.message)


def route_for(right: Right = "ask", *others: Right) -> type[APIRoute]:
    """Make the class of routes that need this right, or one of the others, and give errors the protocol's form."""
    return refuse_in(_refuse_ours, *others, right=right)


def refuse(status: int, detail: str) -> Response:
    """Make an error in the protocol's form."""
    return JSONResponse({"detail": detail}, status)


def name_assistant(mode: str) -> str:
    """Return the id of the assistant that answers in a mode. The mode's name names it as well."""
    return str(uuid5(NAMESPACE_URL, f"askgraph:{mode}"))


def name_graph(profile: Mapping[str, Any]) -> dict[str, str]:
    """Return the graph and the assistant of a run with this profile: those of a mode, or of a team's assistant."""
    if of := profile.get("assistant"):
        return {"graph_id": of["mode"], "assistant_id": of["id"]}
    return {"graph_id": profile["name"], "assistant_id": name_assistant(profile["name"])}


def pick(described: dict[str, Any], select: Sequence[str] | None) -> dict[str, Any]:
    """Return only the fields that a client has selected; all where it has selected none."""
    return described if select is None else {name: described[name] for name in select if name in described}


def locate(thread_id: str, run_id: str, end: str = "", workspace: str | None = None) -> dict[str, str]:
    """Make the headers that tell where a run is, and with `end` where to come back to it. The addresses are relative to
    `PREFIX`, as clients expect that know no prefix."""
    place = f"/threads/{thread_id}/runs/{run_id}"
    headers = {"Content-Location": place}
    if end:
        headers["Location"] = f"{place}/{end}" + (f"?workspace={workspace}" if workspace else "")
    return headers
