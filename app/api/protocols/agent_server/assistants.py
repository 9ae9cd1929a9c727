"""Assistants: the modes, and those that a team has made of them. All answer with the same graph."""

from contextlib import suppress
from datetime import UTC, datetime
from typing import Annotated, Any, Literal
from uuid import UUID, uuid4

from fastapi import APIRouter
from langgraph.graph import END
from pydantic import BaseModel, Field, ValidationError
from starlette.responses import JSONResponse, Response

from app.api.dependencies import AssistantsDep, CallerDep, CallerScope, GraphDep
from app.api.protocols.agent_server.protocol import PREFIX, name_assistant, pick, route_for
from app.api.schema.schemas import VersionRequest
from app.assistants import Assistants, WorkspaceModes, unknown_assistant
from app.drawing.diagram import read_graph
from app.support.toml_files import list_problems
from domain.assistants import Assistant, Draft, Setup
from domain.errors import Forbidden, InputError, NameTaken, UnknownAssistant, UnknownMode
from domain.profile import Profile
from domain.scope import Scope

router = APIRouter(prefix=PREFIX, route_class=route_for(), include_in_schema=False)
making = APIRouter(prefix=PREFIX, route_class=route_for("ingest"), include_in_schema=False)

EPOCH = "1970-01-01T00:00:00+00:00"
"""Modes are settings, and have no time of their own."""

OWN = sorted({*Setup.model_fields, "groups"} - {"mode"})
"""What an assistant's context may hold."""

MESSAGES = {"type": "array", "items": {"type": "object", "additionalProperties": True}}
CONTEXT_SCHEMA = {
    "type": "object",
    "title": "Context",
    "properties": {
        "document_ids": {"type": "array", "items": {"type": "string"}},
        "filter": {"type": "object"},
        "threshold": {"type": "number", "minimum": 0, "maximum": 1},
        "limit": {"type": "integer", "minimum": 1},
        **{name: {"type": "string"} for name in ("instructions", "length", "language")},
        "models": {"type": "object"},
        "groups": {"type": "array", "items": {"type": "string"}},
    },
}
"""`threshold` and `limit` are for runs, and the last five for assistants."""


Metadata = dict[str, Any] | None
SortBy = Literal["assistant_id", "graph_id", "name", "created_at", "updated_at"]


class Config(BaseModel):
    """The configuration of an assistant, of which `configurable` is read."""

    configurable: dict[str, Any] | None = None


class AssistantChange(BaseModel):
    """What an assistant is to be."""

    graph_id: str | None = None
    config: Config | None = None
    context: dict[str, Any] | None = None
    metadata: Metadata = None
    name: str | None = None
    description: str | None = None

    def read_context(self) -> dict[str, Any] | None:
        """Return what the client says of the assistant's setup; None where it says nothing. Raises `InputError`."""
        configurable = (self.config or Config()).configurable
        if configurable and self.context:
            raise InputError("Send `context` alone, and not `config.configurable` with it.")
        context = configurable or self.context
        if unknown := set(context or ()) - set(OWN):
            raise InputError(f"context.{min(unknown)}: an assistant has no such field. It has {', '.join(OWN)}.")
        return context

    def draft(self, name: str, before: Draft | None = None) -> Draft:
        """Return the version that this makes of the one before. Raises `InputError` and `FilterError`."""
        context = self.read_context()
        kept = {} if before is None else before.model_dump()
        if context is not None:
            kept = {key: value for key, value in kept.items() if key not in OWN} | context
        given = {"name": self.name or name, "mode": self.graph_id, "description": self.description}
        try:
            return Draft.model_validate(
                kept
                | {key: value for key, value in given.items() if value is not None}
                | {"metadata": kept.get("metadata", {}) | (self.metadata or {})}
            )
        except ValidationError as error:
            raise InputError(list_problems(error)) from None


class NewAssistant(AssistantChange):
    """An assistant to make."""

    graph_id: str
    assistant_id: UUID | None = None
    if_exists: Literal["raise", "do_nothing"] = "raise"


class AssistantSearch(BaseModel):
    """Which assistants to list. Other fields are ignored."""

    graph_id: str | None = None
    name: str | None = None
    metadata: Metadata = None
    limit: Annotated[int, Field(ge=1, le=1000)] = 10
    offset: Annotated[int, Field(ge=0)] = 0
    sort_by: SortBy = "created_at"
    sort_order: Literal["asc", "desc"] = "desc"
    select: list[str] | None = None

    async def choose(self, assistants: Assistants, asker: Scope) -> list[dict[str, Any]]:
        """Return the assistants that are asked for."""
        made = [_describe(each) for each in await assistants.list(asker)]
        found = [
            assistant
            for assistant in (*made, *map(_describe_mode, assistants.modes.deployed))
            if self.graph_id in (None, assistant["graph_id"])
            and (self.name or "").lower() in assistant["name"].lower()
            and (self.metadata or {}).items() <= assistant["metadata"].items()
        ]
        return sorted(found, key=lambda each: str(each[self.sort_by]).lower(), reverse=self.sort_order == "desc")


async def find_profile(modes: WorkspaceModes, asker: Scope, assistant_id: str) -> Profile:
    """Return the profile of an assistant, by its id or its name. Raises `UnknownAssistant` and `AssistantError`."""
    try:
        return await modes.find(asker, _find_mode(modes, assistant_id) or assistant_id)
    except UnknownMode:
        raise unknown_assistant(assistant_id) from None


@router.get("/ok")
async def ok() -> dict[str, bool]:
    """Say that the service answers."""
    return {"ok": True}


@router.get("/info")
async def info() -> dict[str, Any]:
    """Say what this server can do."""
    return {"version": "askgraph", "flags": {"assistants": True, "crons": False, "langsmith": False}}


@making.post("/assistants")
async def create_assistant(
    body: NewAssistant, assistants: AssistantsDep, caller: CallerDep, scope: CallerScope
) -> dict[str, Any]:
    """Make an assistant."""
    assistant_id = str(body.assistant_id or uuid4())
    try:
        if _find_mode(assistants.modes, assistant_id):
            raise NameTaken(f"There is an assistant {assistant_id!r} already.")
        draft = body.draft(f"Untitled {assistant_id[:8]}")
        return _describe(await assistants.create(scope, draft, caller, assistant_id))
    except NameTaken:
        if body.if_exists == "raise":
            raise
        if body.assistant_id is not None:
            # What has the name may be another one.
            with suppress(UnknownAssistant):
                return await _read(assistants, scope, assistant_id)
            raise
        # One that nobody names by its id is known by its name.
        known = [
            each for each in await assistants.list(scope) if (each.name, each.setup.mode) == (body.name, body.graph_id)
        ]
        if not known:
            raise
        return _describe(known[0])


@router.post("/assistants/search")
async def search_assistants(body: AssistantSearch, assistants: AssistantsDep, scope: CallerScope) -> Response:
    """List the assistants, the latest first unless the client says otherwise."""
    found = await body.choose(assistants, scope)
    following = body.offset + body.limit
    headers = {"X-Pagination-Total": str(len(found))}
    if following < len(found):
        headers["X-Pagination-Next"] = str(following)
    chosen = [pick(each, body.select) for each in found[body.offset : following]]
    return JSONResponse(chosen, headers=headers)


@router.post("/assistants/count")
async def count_assistants(body: AssistantSearch, assistants: AssistantsDep, scope: CallerScope) -> int:
    """Count the assistants."""
    return len(await body.choose(assistants, scope))


@router.get("/assistants/{assistant_id}")
async def get_assistant(assistant_id: str, assistants: AssistantsDep, scope: CallerScope) -> dict[str, Any]:
    """Describe an assistant."""
    return await _read(assistants, scope, assistant_id)


@making.patch("/assistants/{assistant_id}")
async def change_assistant(
    assistant_id: str, body: AssistantChange, assistants: AssistantsDep, caller: CallerDep, scope: CallerScope
) -> dict[str, Any]:
    """Make a version of an assistant with some of it changed. Metadata is added to; a context replaces the last one."""
    known = await _open(assistants, scope, assistant_id)
    before = Draft(name=known.name, description=known.description, metadata=known.metadata, **known.setup.model_dump())
    return _describe(await assistants.change(scope, body.draft(known.name, before), caller, known.assistant_id))


@making.delete("/assistants/{assistant_id}", status_code=204)
async def delete_assistant(
    assistant_id: str, assistants: AssistantsDep, scope: CallerScope, delete_threads: bool = False
) -> Response:
    """Delete an assistant with its versions. Its threads stay."""
    if delete_threads:
        raise InputError("Threads stay when their assistant goes. Delete each by itself.")
    known = await _open(assistants, scope, assistant_id)
    await assistants.delete(scope, known.assistant_id)
    return Response(status_code=204)


@router.post("/assistants/{assistant_id}/versions")
async def list_versions(
    assistant_id: str, body: AssistantSearch, assistants: AssistantsDep, scope: CallerScope
) -> list[dict[str, Any]]:
    """List the versions of an assistant, the latest first."""
    described = [await _read(assistants, scope, assistant_id)]
    if not _find_mode(assistants.modes, assistant_id):
        versions = await assistants.list_versions(scope, described[0]["assistant_id"])
        described = [_describe(each) | {"created_at": _write_time(each.updated_at)} for each in versions]
    found = [each for each in described if (body.metadata or {}).items() <= each["metadata"].items()]
    return [
        {name: value for name, value in each.items() if name != "updated_at"}
        for each in found[body.offset : body.offset + body.limit]
    ]


@making.post("/assistants/{assistant_id}/latest")
async def choose_version(
    assistant_id: str, body: VersionRequest, assistants: AssistantsDep, scope: CallerScope
) -> dict[str, Any]:
    """Let one of the versions of an assistant answer."""
    known = await _open(assistants, scope, assistant_id)
    return _describe(await assistants.choose(scope, known.assistant_id, body.version))


@router.get("/assistants/{assistant_id}/graph")
async def draw_assistant(
    assistant_id: str, assistants: AssistantsDep, graph: GraphDep, scope: CallerScope
) -> dict[str, Any]:
    """Return the steps of the graph and the edges between them."""
    await _read(assistants, scope, assistant_id)
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
async def describe_schemas(assistant_id: str, assistants: AssistantsDep, scope: CallerScope) -> dict[str, Any]:
    """Return the JSON schemas of the input, the state and the context."""
    assistant = await _read(assistants, scope, assistant_id)
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
        "graph_id": assistant["graph_id"],
        "input_schema": inputs,
        "output_schema": state,
        "state_schema": state,
        "config_schema": {"type": "object", "title": "Config", "properties": {}},
        "context_schema": CONTEXT_SCHEMA,
    }


@router.get("/assistants/{assistant_id}/subgraphs")
async def list_subgraphs(assistant_id: str, assistants: AssistantsDep, scope: CallerScope) -> dict[str, Any]:
    """Return the graph's subgraphs: it has none."""
    await _read(assistants, scope, assistant_id)
    return {}


def _find_mode(modes: WorkspaceModes, assistant_id: str) -> str | None:
    """Return the mode that the id, or the name, is of; None where it is of none."""
    return next((name for name in modes.deployed if assistant_id in (name, name_assistant(name))), None)


async def _read(assistants: Assistants, scope: Scope, assistant_id: str) -> dict[str, Any]:
    """Describe an assistant, by its id or its name. Raises `UnknownAssistant`."""
    if mode := _find_mode(assistants.modes, assistant_id):
        return _describe_mode(mode)
    return _describe(await assistants.find(scope, assistant_id))


async def _open(assistants: Assistants, scope: Scope, assistant_id: str) -> Assistant:
    """Return an assistant to change it. Raises `UnknownAssistant`, and `Forbidden` for a mode."""
    if mode := _find_mode(assistants.modes, assistant_id):
        raise Forbidden(f"{mode!r} is a mode of the deployment, whose settings alone change it.")
    return await assistants.find(scope, assistant_id)


def _describe_mode(mode: str) -> dict[str, Any]:
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


def _describe(assistant: Assistant) -> dict[str, Any]:
    context = assistant.setup.model_dump(include=set(OWN), exclude_none=True)
    context |= {"groups": list(assistant.groups)} if assistant.groups else {}
    return {
        "assistant_id": assistant.assistant_id,
        "graph_id": assistant.setup.mode,
        "config": {"configurable": context} if context else {},
        "context": context,
        "metadata": assistant.metadata,
        "name": assistant.name,
        "created_at": _write_time(assistant.created_at),
        "updated_at": _write_time(assistant.updated_at),
        "version": assistant.version,
        "description": assistant.description or None,
    }


def _write_time(time: datetime) -> str:
    return time.astimezone(UTC).isoformat(timespec="microseconds")
