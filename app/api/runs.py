"""Runs: how one stands, its events from anywhere on, and an end to it."""

from typing import Annotated, Any

from fastapi import APIRouter, Header, Request
from starlette.responses import Response

from app.api.dependencies import ServicesDep, TurnsDep, Workspace
from app.api.streams import respond
from app.descriptions import describe_run
from app.runs.following import read_status
from domain.errors import InputError
from domain.streams import order_of

router = APIRouter(prefix="/api/runs", tags=["runs"])


@router.get("/{run_id}")
async def status(run_id: str, services: ServicesDep, workspace: Workspace = "default") -> dict[str, Any]:
    """How a run stands; once it has ended, with its answer, usage, cost and timings."""
    return describe_run(await read_status(services, workspace, run_id))


@router.get("/{run_id}/events")
async def events(
    run_id: str,
    request: Request,
    services: ServicesDep,
    turns: TurnsDep,
    workspace: Workspace = "default",
    last_event_id: Annotated[str | None, Header()] = None,
    stream: bool | None = None,
) -> Response:
    """The run's events, from its beginning or past `Last-Event-ID`, from whichever process is asked, while it runs and
    after it. Ends with `done` or `error` like `/api/chat`; 204 where `Last-Event-ID` is that of the end."""
    if last_event_id:
        try:
            order_of(last_event_id)
        except ValueError:
            raise InputError(f"Last-Event-ID is the id of an event, such as 1-17; {last_event_id!r} is none.") from None
        ended_id = (await read_status(services, workspace, run_id)).ended_id
        if ended_id is not None and order_of(last_event_id) >= order_of(ended_id):
            # There is nothing more, and a browser's EventSource would ask for ever after anything but this.
            return Response(status_code=204)
    return await respond(request, await turns.follow_run(workspace, run_id, last_event_id or None), stream)


@router.post("/{run_id}/cancel")
async def cancel(run_id: str, turns: TurnsDep, workspace: Workspace = "default") -> dict[str, Any]:
    """Stop a run. What it has written so far stays, as a turn that is marked as stopped. Does nothing to a run that
    has ended."""
    return describe_run(await turns.stop(workspace, run_id))
