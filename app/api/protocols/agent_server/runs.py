"""Runs: begin them, stream them, wait for them, and stop them."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from typing import Annotated, Any, Literal, cast, get_args

import orjson
from fastapi import APIRouter, Header, Query, Request
from pydantic import BaseModel, Field
from starlette.responses import JSONResponse, Response

from app.answering.manager import RunManager
from app.api.asking.streams import GONE, work_while_connected
from app.api.dependencies import CallerDep, RunManagerDep, begins_run, get_caller, get_run_manager, read_services
from app.api.protocols.agent_server.beginning import Beginning, BeginningDep, Started
from app.api.protocols.agent_server.protocol import PREFIX, locate, name_graph, route_for
from app.api.protocols.agent_server.reading import OpenThread, ReaderDep, ThreadReader
from app.api.protocols.agent_server.requests import RunRequest
from app.api.protocols.agent_server.rewriting import Rewriting
from app.api.protocols.agent_server.streaming import read_last_event_id, respond_streaming
from app.api.protocols.agent_server.translation import StreamMode, Translation
from app.api.schema.schemas import ThreadId
from domain.errors import Forbidden, InputError
from domain.execution.streams import StreamedEvent
from domain.history.client_threads import ClientThread
from domain.runs import RunState, RunStatus

router = APIRouter(prefix=PREFIX, route_class=route_for(), include_in_schema=False)

CancelAction = Literal["interrupt", "rollback"]

_STATUS: dict[RunState, str] = {
    "queued": "pending",
    "running": "running",
    "done": "success",
    "failed": "error",
    "stopped": "interrupted",
}


@router.post("/runs/stream")
@begins_run
async def stream_alone(beginning: BeginningDep) -> Response:
    """Ask without a thread, and stream the run."""
    return _stream(beginning, await beginning.begin_alone())


@router.post("/runs/wait")
@begins_run
async def wait_alone(beginning: BeginningDep) -> Response:
    """Ask without a thread, and wait for the final state."""
    return await _wait(beginning, await beginning.begin_alone())


@router.post("/runs")
@begins_run
async def create_alone(beginning: BeginningDep, manager: RunManagerDep) -> Response:
    """Ask without a thread, and leave the run to itself."""
    return await _leave(manager, beginning.body, await beginning.begin_alone())


@router.post("/threads/{thread_id}/runs/stream")
@begins_run
async def stream_run(thread_id: ThreadId, beginning: BeginningDep) -> Response:
    """Ask in a thread, and stream the run."""
    return _stream(beginning, await beginning.begin_in(thread_id))


@router.post("/threads/{thread_id}/runs/wait")
@begins_run
async def wait_for_run(thread_id: ThreadId, beginning: BeginningDep) -> Response:
    """Ask in a thread, and wait for the final state."""
    return await _wait(beginning, await beginning.begin_in(thread_id))


@router.post("/threads/{thread_id}/runs")
@begins_run
async def create_run(thread_id: ThreadId, beginning: BeginningDep, manager: RunManagerDep) -> Response:
    """Ask in a thread, and leave the run to itself."""
    return await _leave(manager, beginning.body, await beginning.begin_in(thread_id))


@router.get("/threads/{thread_id}/runs")
async def list_runs(
    thread: OpenThread,
    reader: ReaderDep,
    limit: Annotated[int, Query(ge=1, le=1000)] = 10,
    offset: Annotated[int, Query(ge=0)] = 0,
    status: str | None = None,
) -> list[dict[str, Any]]:
    """List the runs of a thread and its branches, the latest first."""
    described = [_describe(thread.thread_id, run) for run in reversed(await reader.list_runs(thread))]
    found = [each for each in described if status in (None, each["status"])]
    return found[offset : offset + limit]


@router.get("/threads/{thread_id}/runs/{run_id}")
async def get_run(run_id: str, thread: OpenThread, reader: ReaderDep) -> dict[str, Any]:
    """Describe a run."""
    return _describe(thread.thread_id, await reader.find_run(thread, run_id))


@router.get("/threads/{thread_id}/runs/{run_id}/join")
async def join_run(
    run_id: str, request: Request, thread: OpenThread, reader: ReaderDep, manager: RunManagerDep
) -> Response:
    """Wait for a run's final state."""
    joined = await _join(reader, thread, run_id, manager, [])
    return await _respond_whole(request, *joined, locate(thread.thread_id, run_id, "join"))


@router.get("/threads/{thread_id}/runs/{run_id}/stream")
async def join_stream(
    run_id: str,
    request: Request,
    caller: CallerDep,
    thread: OpenThread,
    reader: ReaderDep,
    manager: RunManagerDep,
    stream_mode: Annotated[list[str] | None, Query()] = None,
    last_event_id: Annotated[str | None, Header()] = None,
    cancel_on_disconnect: bool = False,
) -> Response:
    """Stream a run from its beginning, or past `Last-Event-ID`, while it runs and after it has ended."""
    joined = await _join(reader, thread, run_id, manager, _read_modes(stream_mode))

    async def stop() -> None:
        with suppress(Forbidden):
            await manager.cancel(caller, reader.scope, run_id)

    return respond_streaming(
        *joined,
        locate(thread.thread_id, run_id, "stream", request.query_params.get("workspace")),
        after=read_last_event_id(last_event_id),
        on_leave=stop if cancel_on_disconnect else None,
    )


@router.post("/threads/{thread_id}/runs/{run_id}/cancel")
async def cancel_run(
    run_id: str,
    request: Request,
    thread: OpenThread,
    reader: ReaderDep,
    manager: RunManagerDep,
    wait: bool = False,
    action: CancelAction = "interrupt",
) -> Response:
    """Stop a run, and answer with the final state if asked to wait. What it has written so far is kept, unless the run
    is rolled back: then the thread goes on from before it. A run that has ended stays as it is."""
    await _cancel(request, thread, reader, [run_id], action)
    return await join_run(run_id, request, thread, reader, manager) if wait else Response(status_code=202)


class RunsToCancel(BaseModel):
    """Runs of a thread. Other fields are ignored."""

    thread_id: ThreadId
    run_ids: list[str] = Field(max_length=100)


@router.post("/runs/cancel")
async def cancel_runs(
    body: RunsToCancel, request: Request, reader: ReaderDep, action: CancelAction = "interrupt"
) -> Response:
    """Stop several runs."""
    await _cancel(request, await reader.open(body.thread_id), reader, body.run_ids, action)
    return Response(status_code=204)


async def _cancel(
    request: Request, thread: ClientThread, reader: ThreadReader, run_ids: Sequence[str], action: CancelAction
) -> None:
    manager = get_run_manager(request)
    runs = [await reader.find_run(thread, run_id) for run_id in run_ids]
    for run_id in run_ids:
        await manager.cancel(get_caller(request), reader.scope, run_id)
    if action == "rollback":
        services = read_services(request)
        await Rewriting(reader, services.runs.thread_store, services.modes).take_back(thread, runs, manager)


async def _join(
    reader: ThreadReader, thread: ClientThread, run_id: str, manager: RunManager, modes: Sequence[StreamMode]
) -> tuple[Translation, AsyncGenerator[StreamedEvent]]:
    """Return what translates the events of a run that somebody has begun, and the events."""
    status = await reader.find_run(thread, run_id)
    translation = await reader.translate(thread, status, modes)
    events = await manager.follow_run(reader.scope.workspace_id, run_id)
    if status.state == "queued":
        events = reader.follow_in_turn(events, translation, status.request.thread_id, run_id)
    return translation, events


def _stream(beginning: Beginning, started: Started) -> Response:
    request, body = beginning.request, beginning.body
    return respond_streaming(
        *started.make_translation(body.modes),
        locate(started.thread_id, started.run.run_id, "stream", request.query_params.get("workspace")),
        on_leave=started.stop if body.on_disconnect == "cancel" else None,
    )


async def _wait(beginning: Beginning, started: Started) -> Response:
    request, body = beginning.request, beginning.body
    headers = locate(started.thread_id, started.run.run_id, "join", request.query_params.get("workspace"))
    response = await _respond_whole(request, *started.make_translation([]), headers)
    if response.status_code == GONE and body.on_disconnect == "cancel":
        await started.stop()
    return response


async def _leave(manager: RunManager, body: RunRequest, started: Started) -> Response:
    run = started.run
    status = await manager.read_status(run.workspace_id, run.run_id)
    described = _describe(started.thread_id, status) | {"multitask_strategy": body.multitask_strategy}
    return JSONResponse(described, headers=locate(started.thread_id, run.run_id))


async def _respond_whole(
    request: Request, translation: Translation, events: AsyncGenerator[StreamedEvent], headers: dict[str, str]
) -> Response:
    """Wait for a run's end, and answer with its final state, or with what went wrong."""

    async def collect() -> dict[str, Any]:
        failed: dict[str, Any] = {}
        async with aclosing(events) as opened:
            async for event in opened:
                for part in translation.translate(event.event):
                    if part.name == "error":
                        failed = {"__error__": part.data}
        return failed or translation.values

    values = await work_while_connected(request, collect())
    return Response(status_code=GONE) if values is None else JSONResponse(values, headers=headers)


def _read_modes(given: list[str] | None) -> list[StreamMode]:
    """Read the stream modes of an address: repeated, or as a JSON list; none given: all. Raises `InputError`."""
    if not given or given == [""]:
        return list(get_args(StreamMode))
    try:
        names = orjson.loads(given[0]) if given[0].startswith("[") else given
    except orjson.JSONDecodeError:
        names = given
    for name in names:
        if name not in get_args(StreamMode):
            raise InputError(f"There is no stream mode {name!r}. There are: {', '.join(get_args(StreamMode))}.")
    return cast("list[StreamMode]", names)


def _describe(thread_id: str, run: RunStatus) -> dict[str, Any]:
    graph = name_graph(run.request.turn["profile"])
    status = _STATUS[run.state]
    if run.ended is not None and run.ended["type"] == "error" and run.ended["code"] == "timeout":
        status = "timeout"
    return {
        "run_id": run.request.run_id,
        "thread_id": thread_id,
        "assistant_id": graph["assistant_id"],
        "metadata": {"created_by": "system", **graph},
        "status": status,
        "kwargs": {"input": {"question": run.request.turn["question"]}},
        "multitask_strategy": "enqueue",
        "created_at": run.accepted_at.isoformat(),
        "updated_at": (run.ended_at or run.started_at or run.accepted_at).isoformat(),
    }
