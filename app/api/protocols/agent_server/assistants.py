"""Assistants: the modes, of which each answers with the same graph."""

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter
from langgraph.graph import END
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import JSONResponse, Response

from app.api.dependencies import GraphDep, ModesDep
from app.api.protocols.agent_server.protocol import PREFIX, AgentServerRoute, name_assistant
from app.drawing.diagram import read_graph
from domain.errors import UnknownMode
from domain.profile import Profile

router = APIRouter(prefix=PREFIX, route_class=AgentServerRoute, include_in_schema=False)

EPOCH = "1970-01-01T00:00:00+00:00"
"""Modes are settings, and have no time of their own."""

MESSAGES = {"type": "array", "items": {"type": "object", "additionalProperties": True}}
CONTEXT_SCHEMA = {
    "type": "object",
    "title": "Context",
    "properties": {
        "document_ids": {"type": "array", "items": {"type": "string"}},
        "filter": {"type": "object"},
        "threshold": {"type": "number", "minimum": 0, "maximum": 1},
        "limit": {"type": "integer", "minimum": 1},
    },
}


class AssistantSearch(BaseModel):
    """Which assistants to list. Other fields are ignored."""

    model_config = ConfigDict(extra="ignore")

    graph_id: str | None = None
    name: str | None = None
    metadata: dict[str, Any] | None = None
    limit: Annotated[int, Field(ge=1, le=1000)] = 10
    offset: Annotated[int, Field(ge=0)] = 0

    def choose(self, modes: Mapping[str, Profile]) -> list[dict[str, Any]]:
        """Return the assistants that are asked for."""
        return [
            assistant
            for assistant in map(_describe, modes)
            if self.graph_id in (None, assistant["graph_id"])
            and (self.name or "").lower() in assistant["name"].lower()
            and (self.metadata or {}).items() <= assistant["metadata"].items()
        ]


def find_mode_of(modes: Mapping[str, Profile], assistant_id: str) -> str:
    """Return the mode of an assistant, by the assistant's id or the mode's name. Raises `UnknownMode`."""
    mode = next((name for name in modes if assistant_id in (name, name_assistant(name))), None)
    if mode is None:
        raise UnknownMode(f"There is no assistant {assistant_id!r}. There are: {', '.join(modes)}.")
    return mode


@router.get("/ok")
async def ok() -> dict[str, bool]:
    """Say that the service answers."""
    return {"ok": True}


@router.get("/info")
async def info() -> dict[str, Any]:
    """Say what this server can do."""
    return {"version": "askgraph", "flags": {"assistants": True, "crons": False, "langsmith": False}}


@router.post("/assistants/search")
async def search_assistants(body: AssistantSearch, modes: ModesDep) -> Response:
    """List the modes."""
    found = body.choose(modes)
    following = body.offset + body.limit
    headers = {"X-Pagination-Total": str(len(found))}
    if following < len(found):
        headers["X-Pagination-Next"] = str(following)
    return JSONResponse(found[body.offset : following], headers=headers)


@router.post("/assistants/count")
async def count_assistants(body: AssistantSearch, modes: ModesDep) -> int:
    """Count the modes."""
    return len(body.choose(modes))


@router.get("/assistants/{assistant_id}")
async def get_assistant(assistant_id: str, modes: ModesDep) -> dict[str, Any]:
    """Describe a mode."""
    return _describe(find_mode_of(modes, assistant_id))


@router.get("/assistants/{assistant_id}/graph")
async def draw_assistant(assistant_id: str, modes: ModesDep, graph: GraphDep) -> dict[str, Any]:
    """Return the steps of the graph and the edges between them."""
    find_mode_of(modes, assistant_id)
    diagram = read_graph(graph)
    return {
        "nodes": [
            {"id": step} if step == END else {"id": step, "type": "runnable", "data": {"name": step}}
            for step in diagram.steps
        ],
        "edges": [
            {"source": edge.source, "target": edge.target}
            | ({"conditional": True, "data": edge.label} if edge.label else {})
            for edge in diagram.edges
        ],
    }


@router.get("/assistants/{assistant_id}/schemas")
async def describe_schemas(assistant_id: str, modes: ModesDep) -> dict[str, Any]:
    """Return the JSON schemas of the input, the state and the context."""
    mode = find_mode_of(modes, assistant_id)
    question = {"type": "string", "description": "In place of messages."}
    inputs = {"type": "object", "title": "Input", "properties": {"messages": MESSAGES, "question": question}}
    state = {
        "type": "object",
        "title": "State",
        "properties": {
            "messages": MESSAGES,
            **{name: {"type": "string"} for name in ("question", "mode", "route", "standalone_question", "outcome")},
            "outcome_reasons": {"type": "array", "items": {"type": "object"}},
            "confidence": {"type": "number"},
            "citations": {"type": "array", "items": {"type": "object"}},
            "verification": {"type": "object"},
        },
    }
    return {
        "graph_id": mode,
        "input_schema": inputs,
        "output_schema": state,
        "state_schema": state,
        "config_schema": {"type": "object", "title": "Config", "properties": {}},
        "context_schema": CONTEXT_SCHEMA,
    }


@router.get("/assistants/{assistant_id}/subgraphs")
async def list_subgraphs(assistant_id: str, modes: ModesDep) -> dict[str, Any]:
    """Return the graph's subgraphs: it has none."""
    find_mode_of(modes, assistant_id)
    return {}


def _describe(mode: str) -> dict[str, Any]:
    return {
        "assistant_id": name_assistant(mode),
        "graph_id": mode,
        "config": {},
        "context": {},
        "metadata": {"created_by": "system"},
        "name": mode,
        "created_at": EPOCH,
        "updated_at": EPOCH,
        "version": 1,
        "description": None,
    }
