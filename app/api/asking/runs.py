"""Runs: status, events, cancelling, and what readers say of them."""

from typing import Annotated, Any

from fastapi import APIRouter, Header, Request
from starlette.responses import Response

from app.api.asking.streams import respond
from app.api.dependencies import CallerDep, CallerScope, DocumentsDep, FeedbackDep, RunManagerDep, needs
from app.api.schema.descriptions import describe_feedback, describe_run
from app.api.schema.openapi import answer_with, fail_with, respond_with_run
from app.api.schema.schemas import FeedbackRequest
from app.history.since import tell_since
from askgraph import models
from domain.errors import InputError
from domain.execution.streams import order_of

router = APIRouter(prefix="/api/runs", tags=["runs"], route_class=needs("ask"))


@router.get("/{run_id}", **answer_with(models.Run, "The run's status.", 404))
async def status(run_id: str, manager: RunManagerDep, documents: DocumentsDep, scope: CallerScope) -> dict[str, Any]:
    """Return a run's status; once it has ended, with its answer, usage, cost and timings. A citation whose document was
    changed or deleted later says so in `since`."""
    await manager.require(scope, run_id)
    run = await manager.read_status(scope.workspace_id, run_id)
    return describe_run(*await tell_since(documents, scope.workspace_id, [run]))


@router.get(
    "/{run_id}/events",
    responses=respond_with_run(models.Answer)
    | {204: {"description": "Nothing follows the event that `Last-Event-ID` names."}}
    | fail_with(404, 502),
)
async def events(
    run_id: str,
    request: Request,
    manager: RunManagerDep,
    scope: CallerScope,
    last_event_id: Annotated[str | None, Header()] = None,
    stream: bool | None = None,
) -> Response:
    """Stream the run's events from its beginning, or past `Last-Event-ID`, while it runs and after it has ended. Every
    process of the deployment can be asked. Ends with `done` or `error` like `/api/chat`; 204 where `Last-Event-ID` is
    the last event's."""
    await manager.require(scope, run_id)
    if last_event_id:
        try:
            order_of(last_event_id)
        except ValueError:
            raise InputError(f"Last-Event-ID is the id of an event, such as 1-17; {last_event_id!r} is none.") from None
        ended_id = (await manager.read_status(scope.workspace_id, run_id)).ended_id
        if ended_id is not None and order_of(last_event_id) >= order_of(ended_id):
            # Nothing follows, and a browser's EventSource reconnects after any other status.
            return Response(status_code=204)
    followed = await manager.follow_run(scope.workspace_id, run_id, last_event_id or None)
    return await respond(request, followed, stream)


@router.post("/{run_id}/cancel", **answer_with(models.Run, "The run's status.", 404))
async def cancel(run_id: str, manager: RunManagerDep, caller: CallerDep, scope: CallerScope) -> dict[str, Any]:
    """Stop a run. What it has written so far is kept, as a turn that is marked as stopped. A run that has ended stays
    as it is. What somebody else has asked is stopped with the right `admin`."""
    return describe_run(await manager.cancel(caller, scope, run_id))


@router.put("/{run_id}/feedback", **answer_with(models.Feedback, "The feedback.", 404))
async def give_feedback(
    run_id: str,
    body: FeedbackRequest,
    caller: CallerDep,
    scope: CallerScope,
    manager: RunManagerDep,
    feedback: FeedbackDep,
) -> dict[str, Any]:
    """Say whether an answer helps, and what is wrong with it. Replaces what the caller has said of it before; what
    somebody else has said is replaced with the right `admin`."""
    await manager.require(scope, run_id)
    await manager.read_status(scope.workspace_id, run_id)
    given = await feedback.put(scope.workspace_id, run_id, body.rating, body.reason, body.comment, caller)
    return describe_feedback(given)


@router.delete("/{run_id}/feedback", status_code=204, response_class=Response, responses=fail_with(404))
async def take_feedback_back(
    run_id: str, caller: CallerDep, scope: CallerScope, manager: RunManagerDep, feedback: FeedbackDep
) -> Response:
    """Take back what was said of an answer."""
    await manager.require(scope, run_id)
    await manager.read_status(scope.workspace_id, run_id)
    await feedback.delete(scope.workspace_id, run_id, caller)
    return Response(status_code=204)
