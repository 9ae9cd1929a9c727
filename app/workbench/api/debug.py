"""The debugger: lists of runs, what happened in one, and what would have happened otherwise."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Depends, Path, Query, Request
from langgraph.graph import START
from pydantic import Field, StringConstraints
from starlette.responses import Response
from typing_extensions import TypedDict

from app.api.asking.streams import (
    GONE,
    MEDIA_TYPE,
    encode_frame,
    locate,
    respond,
    respond_with_frames,
    stream_events,
    work_while_connected,
)
from app.api.dependencies import (
    CallerDep,
    CallerScope,
    FeedbackDep,
    RunLogDep,
    RunManagerDep,
    get_run_manager,
    needs,
    read_services,
)
from app.api.schema.openapi import answer_with, fail_with, respond_with_run, respond_with_text
from app.api.schema.schemas import Body, ThreadId, WorkspaceId
from app.history.run_list import RunFigures, list_runs, read_filter, sum_up_runs
from app.workbench.compare.difference import RunDifference, diff
from app.workbench.debugger import Debugger
from app.workbench.explain.failures import Failures, group_failures
from app.workbench.explain.settable import Settable, list_settable
from app.workbench.explain.trace import Trace, trace
from app.workbench.explain.whatif import MOST_SETS, Variant, WhatIf
from app.workbench.fleet.fleet import MOST_AT_ONCE, make_variant
from app.workbench.fleet.report import Plan
from app.workbench.replay.bundle import SUFFIX, write_bundle
from app.workbench.replay.replay import Replay, Replayer
from app.workbench.replay.saved_run import find_step
from app.workbench.replay.strict_replay import StrictReplay
from app.workbench.tapes.tape import TapeUse
from askgraph import models
from askgraph.models import Fact
from domain.errors import AskgraphError
from domain.execution.streams import StreamedEvent
from domain.history.run_lists import MOST_RUNS, RunFilter, read_cursor

NodeName = Annotated[str, StringConstraints(pattern=r"^[a-z_]{1,40}(@[1-9][0-9]?)?$")]


class ReplayRequest(Body):
    """Continue from a saved state, or run a run again from its start."""

    checkpoint_id: str | None = None
    run_id: str | None = None
    """Without a checkpoint: this run, from its start."""
    node: NodeName | None = None
    """Run this step of the run again with its saved input, and then what follows: `rerank`; `rerank@2` is the second
    one."""
    after: NodeName | None = None
    """Continue after this step of the run; its edge decides again what follows."""
    tape: TapeUse = "off"
    """`strict`: answer every call from the run's tape, store nothing, and compare. `fill`: call only what is not on
    it."""
    set: dict[str, Any] = Field(default_factory=dict)
    """State fields to change first; `profile.rerank.keep` reaches into the profile."""
    mode: str | None = None
    workspace: WorkspaceId | None = None
    """Unset: the only one of the caller's key, else `default`."""


class ManyRunsRequest(Body):
    """Replay runs that have ended with one change, in memory."""

    since: str = "7d"
    """A span such as `24h`, `7d` or `2w`, a date, or `yesterday`."""
    until: str | None = None
    """Only runs that began before it."""
    text: str = Field(default="", max_length=1000)
    """Words that all stand in the question or the answer."""
    where: list[str] = Field(default_factory=list, max_length=20)
    """Filters of runs, such as `outcome == abstained`; all have to hold."""
    set: dict[str, Any] = Field(default_factory=dict)
    """Knobs to change: `profile.rerank.keep`."""
    mode: str | None = None
    """In this mode."""
    search_anew: bool = False
    """Instead of another change: search the documents of today."""
    budget: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """US dollars that language models may cost. Unset: they are not asked."""
    limit: int = Field(default=200, ge=1, le=MOST_AT_ONCE)
    """The most runs to look at, the latest first."""


class WhatIfRequest(Body):
    """What to try besides the usual."""

    sets: list[dict[str, Any]] = Field(default_factory=list, max_length=MOST_SETS)
    """Changes of the state to try, each like `set` of a replay."""
    models: bool = False
    """Ask language models what the run's tape does not know. Otherwise such variants are reported as not made."""


class WhyBody(TypedDict):
    """Why a run ended as it did."""

    run_id: str
    facts: list[Fact]


class StateBody(TypedDict):
    """The state after a step."""

    run_id: str
    step: str
    checkpoint_id: str
    values: dict[str, Any]
    """The fields of the state and their values."""
    settable: list[Settable]
    """What a replay from this step can set, so that the step or the edge after it notices."""


async def _make_debugger(request: Request) -> Debugger:
    return read_services(request).make_debugger()


async def _make_replayer(request: Request) -> Replayer:
    return read_services(request).make_replayer(get_run_manager(request))


DebuggerDep = Annotated[Debugger, Depends(_make_debugger)]
ReplayerDep = Annotated[Replayer, Depends(_make_replayer)]


def _read_filter(
    since: Annotated[
        str, Query(description="A span before now, such as `24h` or `7d`, a date or time, `today` or `yesterday`.")
    ] = "7d",
    until: Annotated[str | None, Query(description="Only runs that began before it, written likewise.")] = None,
    text: Annotated[
        str, Query(max_length=1000, description="Words that all stand in the question or the answer.")
    ] = "",
    where: Annotated[
        list[str] | None,
        Query(description="Such as `outcome == abstained or asked_by == anna`; several all have to hold."),
    ] = None,
) -> RunFilter:
    return read_filter(since, until, text, where or ())


FilterDep = Annotated[RunFilter, Depends(_read_filter)]

router = APIRouter(prefix="/api/runs", tags=["debugger"], route_class=needs("debug"))
replaying = APIRouter(prefix="/api/threads", tags=["threads"], route_class=needs("debug"))
grouping = APIRouter(prefix="/api", tags=["debugger"], route_class=needs("debug"))
ROUTERS = (router, grouping, replaying)


@grouping.get("/failures", **answer_with(Failures, "The groups."))
async def list_failures(log: RunLogDep, scope: CallerScope, wanted: FilterDep) -> Failures:
    """Group the runs that did not go well by cause, the most frequent first, with the latest examples."""
    return await group_failures(log, scope, wanted)


@router.get("", **answer_with(models.RunList, "The runs."))
async def list_all(
    log: RunLogDep,
    scope: CallerScope,
    wanted: FilterDep,
    limit: Annotated[int, Query(ge=1, le=MOST_RUNS)] = 50,
    after: Annotated[str | None, Query(description="The `next` of the page before.")] = None,
) -> dict[str, Any]:
    """List runs that have ended, newest first, a page at a time."""
    return await list_runs(
        log, scope, replace(wanted, limit=limit, after=None if after is None else read_cursor(after))
    )


@grouping.get("/figures", **answer_with(RunFigures, "The figures."))
async def show_figures(log: RunLogDep, scope: CallerScope, wanted: FilterDep) -> RunFigures:
    """Sum up the runs that a list would show: their number, outcomes, times and cost, by hour or day; and who asked,
    the models called and the documents cited, for a filter to choose from."""
    return await sum_up_runs(log, scope, wanted)


@router.get("/{run_id}/trace", **answer_with(Trace, "The run, step by step.", 404, 409))
async def show_trace(run_id: str, debugger: DebuggerDep, feedback: FeedbackDep, scope: CallerScope) -> Trace:
    """Show what happened in a run: for each step what changed, its time, cost, calls, prompts and replies, what became
    of every candidate, and the verdicts. Of a run that has not ended, the steps up to now."""
    run = await debugger.read_so_far(scope, run_id)
    said = await feedback.read(scope.workspace_id, [run_id])
    return await asyncio.to_thread(trace, run, said.get(run_id))


@router.get("/{run_id}/states/{step}", **answer_with(StateBody, "The state.", 404, 409))
async def show_state(
    run_id: str,
    step: Annotated[str, Path(max_length=100, description="`rerank`, `rerank@2`; `__start__`: before the first one.")],
    debugger: DebuggerDep,
    scope: CallerScope,
) -> dict[str, Any]:
    """Return the whole state after a step of a run."""
    run = await debugger.read(scope, run_id)
    place = 0 if step == START else find_step(run.steps, step)
    found = run.steps[place]
    return {
        "run_id": run_id,
        "step": step,
        "checkpoint_id": found.checkpoint_id,
        "values": dict(found.values),
        "settable": list_settable(found.node),
    }


@router.get("/{run_id}/why", **answer_with(WhyBody, "The decisive facts.", 404, 409))
async def show_why(run_id: str, debugger: DebuggerDep, scope: CallerScope) -> dict[str, Any]:
    """Say in a few lines why a run ended as it did: what decided, and by how much."""
    return await debugger.explain(scope, run_id)


@router.post("/{run_id}/whatif", **answer_with(WhatIf, "What would have changed the end.", 404, 409, 429))
async def try_whatif(
    request: Request, run_id: str, body: WhatIfRequest, debugger: DebuggerDep, scope: CallerScope, caller: CallerDep
) -> WhatIf | Response:
    """Try what would have changed a run's end: without each source, with another grade, number of sources, fusion,
    reranker or mode, and with each knob at its default. Nothing is stored."""
    work = debugger.try_variants(scope, run_id, sets=body.sets, models=body.models, caller=caller)
    tried = await work_while_connected(request, work)
    return Response(status_code=GONE) if tried is None else tried


@router.get("/{run_id}/diff/{other_id}", **answer_with(RunDifference, "Where they part, and both ends.", 404, 409))
async def compare_runs(run_id: str, other_id: str, debugger: DebuggerDep, scope: CallerScope) -> RunDifference:
    """Compare two runs: the first step where they part, with the state and the call that differ; then how both
    ended, with their time and cost."""
    runs = [await debugger.read(scope, each) for each in (run_id, other_id)]
    return await asyncio.to_thread(diff, *runs)


@router.get(
    "/{run_id}/bundle",
    response_class=Response,
    responses=respond_with_text("The file.", "application/octet-stream") | fail_with(404, 409),
)
async def export(run_id: str, debugger: DebuggerDep, scope: CallerScope) -> Response:
    """Return a run as a file, which the commands take in place of a run: states, tape, and what it cited."""
    data = await asyncio.to_thread(write_bundle, await debugger.read(scope, run_id))
    headers = {"Content-Disposition": f'attachment; filename="{run_id}{SUFFIX}"'}
    return Response(data, media_type="application/octet-stream", headers=headers)


@grouping.post("/replays/plan", **answer_with(Plan, "What would be replayed."))
async def plan_replays(body: ManyRunsRequest, debugger: DebuggerDep, scope: CallerScope) -> Plan:
    """Say which runs a change affects, from which step, and what these steps cost then. Nothing is replayed."""
    return await debugger.plan_many(scope, *_read_change(body))


@grouping.post(
    "/replays",
    response_class=Response,
    responses=respond_with_text("The events.", MEDIA_TYPE) | fail_with(429),
)
async def replay_many(body: ManyRunsRequest, debugger: DebuggerDep, scope: CallerScope, caller: CallerDep) -> Response:
    """Replay many runs with one change, in memory, each from the first step that the change affects. The events are
    the `plan`, the `progress` and the `report`. Whoever closes the connection stops it. Nothing is stored."""
    wanted, variant = _read_change(body)
    events = debugger.replay_many(scope, wanted, variant, budget=body.budget, caller=caller)
    # What is wrong with the request is answered with its status, and so comes before the stream.
    first = await anext(events)
    return respond_with_frames(encode(first, events), {})


async def encode(first: Mapping[str, Any], events: AsyncGenerator[Mapping[str, Any]]) -> AsyncGenerator[bytes]:
    """Encode events, the first of which is there, as frames; what fails after it is an event, too."""
    async with aclosing(events):
        try:
            yield _make_frame(first)
            async for event in events:
                yield _make_frame(event)
        except AskgraphError as error:
            failed = {"type": "error", "code": error.code, "message": error.message, "retryable": error.retryable}
            yield _make_frame(failed)


def _make_frame(event: Mapping[str, Any]) -> bytes:
    data = {key: value for key, value in event.items() if key != "type"}
    return encode_frame(StreamedEvent("", event["type"], orjson.dumps(data)))


def _read_change(body: ManyRunsRequest) -> tuple[RunFilter, Variant]:
    wanted = read_filter(body.since, body.until, body.text, body.where, body.limit)
    return wanted, make_variant(body.set, body.mode, search_anew=body.search_anew)


@replaying.post(
    "/{thread_id}/replay",
    responses=respond_with_run(models.Answer) | fail_with(404, 409, 502),
)
async def replay(
    thread_id: ThreadId,
    body: ReplayRequest,
    request: Request,
    caller: CallerDep,
    replayer: ReplayerDep,
    manager: RunManagerDep,
    stream: bool | None = None,
) -> Response:
    """Continue from a saved state, changed or not, in a new thread; or run a run again from its tape. Streams like
    `/api/chat`."""
    wanted = Replay(
        caller.enter(body.workspace),
        thread_id=thread_id,
        checkpoint_id=body.checkpoint_id,
        run_id=body.run_id,
        node=body.node,
        after=body.after,
        changes=body.set,
        mode=body.mode,
        tape=body.tape,
        caller=caller,
    )
    replayed = await replayer.open(wanted)
    if isinstance(replayed, StrictReplay):
        return await respond(request, stream_events(replayed.run()), stream)
    return await respond(request, manager.follow(replayed), stream, headers=locate(replayed))
