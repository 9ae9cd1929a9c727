"""The workspaces that a caller may enter."""

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter

from app.api.dependencies import CallerDep, WorkspacesDep, needs
from app.api.schema.openapi import answer_with, list_of
from domain.errors import UnknownWorkspace
from domain.ports.workspaces import WorkspaceSize

router = APIRouter(prefix="/api/workspaces", tags=["workspaces"], route_class=needs("ask"))


@router.get("", **answer_with(list_of("workspaces", WorkspaceSize), "The workspaces."))
async def list_workspaces(caller: CallerDep, workspaces: WorkspacesDep) -> dict[str, Any]:
    """List the workspaces that the caller may enter and that hold something, and always the one that requests enter
    which name none."""
    found = list(await workspaces.list(caller))
    try:
        default = caller.enter(None)
    except UnknownWorkspace:
        pass  # of several, none is the caller's default
    else:
        if all(workspace.id != default for workspace in found):
            found.insert(0, WorkspaceSize(default, 0, 0))
    return {"workspaces": [asdict(workspace) for workspace in found]}
