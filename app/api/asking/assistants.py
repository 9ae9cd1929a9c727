"""Assistants: the modes that a workspace's team makes for itself."""

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.api.dependencies import AssistantsDep, CallerDep, CallerScope, needs
from app.api.schema.openapi import answer_with, fail_with, list_of
from app.api.schema.schemas import AssistantRequest, VersionRequest
from askgraph import models
from domain.assistants import Assistant

reading = APIRouter(prefix="/api/assistants", tags=["assistants"], route_class=needs("ask"))
writing = APIRouter(prefix="/api/assistants", tags=["assistants"], route_class=needs("ingest"))


@reading.get("", **answer_with(list_of("assistants", models.Assistant), "The assistants."))
async def list_assistants(assistants: AssistantsDep, scope: CallerScope) -> dict[str, Any]:
    """List the assistants that the caller may use, by name. Each answers as a mode of its name."""
    return {"assistants": [describe_assistant(each) for each in await assistants.list(scope)]}


@writing.post("", **answer_with(models.Assistant, "The assistant.", 404, 409, status=201))
async def create_assistant(
    body: AssistantRequest, request: Request, assistants: AssistantsDep, caller: CallerDep, scope: CallerScope
) -> dict[str, Any]:
    """Make an assistant. Callers of its groups can use it; without groups, everybody who may ask in the workspace."""
    request.state.targets = [body.name]
    return describe_assistant(await assistants.create(scope, body, caller))


@reading.get("/{assistant_id}", **answer_with(models.Assistant, "The assistant.", 404))
async def read_assistant(assistant_id: str, assistants: AssistantsDep, scope: CallerScope) -> dict[str, Any]:
    """Return an assistant as it answers now."""
    return describe_assistant(await assistants.read(scope, assistant_id))


@writing.put("/{assistant_id}", **answer_with(models.Assistant, "The assistant.", 404, 409))
async def change_assistant(
    assistant_id: str, body: AssistantRequest, assistants: AssistantsDep, caller: CallerDep, scope: CallerScope
) -> dict[str, Any]:
    """Make a new version of an assistant, which answers from now on. Runs of earlier versions stay as they are."""
    return describe_assistant(await assistants.change(scope, body, caller, assistant_id))


@reading.get("/{assistant_id}/versions", **answer_with(list_of("assistants", models.Assistant), "The versions.", 404))
async def list_versions(assistant_id: str, assistants: AssistantsDep, scope: CallerScope) -> dict[str, Any]:
    """List an assistant's versions, the latest first. `NAME@2` as a mode answers as the second."""
    versions = await assistants.list_versions(scope, assistant_id)
    return {"assistants": [describe_assistant(each) for each in versions]}


@writing.put("/{assistant_id}/version", **answer_with(models.Assistant, "The assistant.", 404, 409))
async def choose_version(
    assistant_id: str, body: VersionRequest, assistants: AssistantsDep, scope: CallerScope
) -> dict[str, Any]:
    """Let one of an assistant's versions answer, also an earlier one."""
    return describe_assistant(await assistants.choose(scope, assistant_id, body.version))


@writing.delete(
    "/{assistant_id}", status_code=204, responses=fail_with(404) | {204: {"description": "The assistant is deleted."}}
)
async def delete_assistant(assistant_id: str, assistants: AssistantsDep, scope: CallerScope) -> Response:
    """Delete an assistant with all of its versions. What it has answered stays."""
    await assistants.delete(scope, assistant_id)
    return Response(status_code=204)


def describe_assistant(assistant: Assistant) -> dict[str, Any]:
    """Return a version of an assistant as the API shows it."""
    return {
        "assistant_id": assistant.assistant_id,
        "version": assistant.version,
        "name": assistant.name,
        "description": assistant.description,
        **assistant.setup.model_dump(),
        "metadata": assistant.metadata,
        "groups": list(assistant.groups),
        "created_by": assistant.created_by,
        "created_at": assistant.created_at,
        "updated_at": assistant.updated_at,
    }
