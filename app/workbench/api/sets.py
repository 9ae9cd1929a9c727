"""Sets of questions: kept by a workspace, made of its runs, asked as often as something changes."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Request
from pydantic import Field, StringConstraints
from starlette.responses import Response

from app.api.asking.streams import MEDIA_TYPE, respond_with_frames
from app.api.dependencies import CallerDep, CallerScope, RunManagerDep, needs, read_services
from app.api.schema.openapi import answer_with, fail_with, list_of, respond_with_text
from app.api.schema.schemas import Body
from app.evaluation.kept_sets import ask_set, find_set
from app.support.cases import tell_progress
from app.workbench.api.debug import encode
from askgraph import models
from domain.errors import Forbidden, InputError, UnknownMode, UnknownSet
from domain.ports.question_sets import QuestionSets, SetQuestion
from domain.state import MAX_QUESTION

router = APIRouter(prefix="/api/sets", tags=["debugger"], route_class=needs("debug"))

SetName = Annotated[str, Path(pattern=r"^\w[\w .-]{0,59}$", description="The set's name.")]
Fact = Annotated[str, StringConstraints(min_length=1, max_length=500)]


class QuestionRequest(Body):
    """A question with what a right answer to it holds."""

    question: str = Field(min_length=1, max_length=MAX_QUESTION)
    answers: list[Fact] = Field(default_factory=list, max_length=20)
    """A right answer holds one of these."""
    answerable: bool = True
    """False: the documents do not say."""


class SetRunRequest(Body):
    """How to ask a set."""

    mode: str = "standard"


async def _open_sets(request: Request) -> QuestionSets:
    return read_services(request).sets


SetsDep = Annotated[QuestionSets, Depends(_open_sets)]


@router.get("", **answer_with(list_of("sets", models.QuestionSet), "The sets."))
async def list_sets(sets: SetsDep, scope: CallerScope) -> dict[str, Any]:
    """List the sets with their questions and what came of them, for who may read all documents of the workspace."""
    held = await sets.list(scope.workspace_id) if scope.groups is None else ()
    return {"sets": [asdict(each) for each in held]}


_CHANGED: Any = {"status_code": 204, "responses": fail_with(404) | {204: {"description": "Done."}}}


@router.put("/{set_name}/questions/{run_id}", **_CHANGED)
async def add_question(
    set_name: SetName, run_id: str, body: QuestionRequest, sets: SetsDep, manager: RunManagerDep, scope: CallerScope
) -> Response:
    """Make a run's question one of a set, in place of what the set has of this run."""
    await manager.require(scope, run_id)
    await manager.read_status(scope.workspace_id, run_id)
    if scope.groups is not None:
        raise Forbidden("A set is asked of all documents of the workspace, and your key reads those of some groups.")
    if body.answerable != bool(body.answers):
        raise InputError("Say what a right answer holds, or that the documents do not say.")
    await sets.put(scope.workspace_id, set_name, SetQuestion(run_id, body.question, body.answers, body.answerable))
    return Response(status_code=204)


@router.delete("/{set_name}/questions/{run_id}", **_CHANGED)
async def delete_question(set_name: SetName, run_id: str, sets: SetsDep, scope: CallerScope) -> Response:
    """Take a question out of a set. The set and its history go with the last one."""
    if scope.groups is not None or not await sets.delete(scope.workspace_id, set_name, run_id):
        raise UnknownSet("There is no such question in this set.")
    return Response(status_code=204)


@router.post(
    "/{set_name}/runs",
    response_class=Response,
    responses=respond_with_text("The events.", MEDIA_TYPE) | fail_with(404, 429),
)
async def run_set(
    set_name: SetName, body: SetRunRequest, request: Request, caller: CallerDep, scope: CallerScope
) -> Response:
    """Ask all questions of a set, in memory and without the answer cache, and keep how many came out right. The events
    are the `progress` and the `report`. Whoever closes the connection stops it."""
    services = read_services(request)
    if scope.groups is not None:
        raise UnknownSet(f"There is no set {set_name!r} in this workspace.")
    await find_set(services.sets, scope.workspace_id, set_name)
    modes = await services.workspace_modes.list(scope, body.mode)
    if body.mode not in modes:
        raise UnknownMode(f"There is no mode {body.mode!r}.")

    async def work(report: Callable[[int, int], None]) -> Any:
        run = await ask_set(
            services, scope.workspace_id, set_name, modes[body.mode], caller, lambda _, done, total: report(done, total)
        )
        return {"type": "report", **asdict(run), "ran_at": run.ran_at.isoformat()}

    events = tell_progress(work)
    return respond_with_frames(encode(await anext(events), events), {})
