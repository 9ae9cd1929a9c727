"""What the handlers need from the running application."""

from typing import Annotated, cast

from fastapi import Depends, Query, Request

from app.api.schemas import WorkspaceId
from app.runs.turns import Turns
from app.services import Services


def _get_services(request: Request) -> Services:
    return cast(Services, request.state.services)


def _get_turns(request: Request) -> Turns:
    return cast(Turns, request.state.turns)


ServicesDep = Annotated[Services, Depends(_get_services)]
TurnsDep = Annotated[Turns, Depends(_get_turns)]
Workspace = Annotated[WorkspaceId, Query(description="The workspace (tenant).")]
