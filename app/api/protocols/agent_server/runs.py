"""Runs: begin them, stream them, wait for them, and stop them."""

import asyncio
import re
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from typing import Annotated, Any, Literal, cast, get_args

import orjson
from fastapi import APIRouter, Header, Query, Request
from pydantic import Field
from starlette.responses import JSONResponse, Response, StreamingResponse

from app.answering.manager import RunManager
from app.api.asking.streams import Leave, encode_events, respond_with_frames
from app.api.dependencies import CallerDep, RunManagerDep, begins_run, get_caller, get_run_manager, read_services
from app.api.protocols.agent_server.beginning import BeginningDep
from app.api.protocols.agent_server.protocol import HEARTBEAT, PREFIX, locate, name_graph, pick, route_for
from app.api.protocols.agent_server.reading import OpenThread, ReaderDep, ThreadReader
from app.api.protocols.agent_server.rewriting import Rewriting, wait_for_end
from app.api.protocols.agent_server.translation import Part, StreamMode, Translation
from app.api.protocols.client_conversations import ClientModel
from app.api.schema.schemas import ThreadId
from app.support.cancelling import end_tasks, finish
from domain.errors import AskgraphError, Forbidden, InputError
from domain.execution.streams import StreamedEvent
from domain.history.client_threads import ClientThread, ThreadOrder
from domain.runs import RunState, RunStatus

router = APIRouter(prefix=PREFIX, route_class=route_for(), include_in_schema=False)

ALIVE_SECONDS = 5.0
"""Seconds between the lines that keep a connection alive on which a run is waited for."""
CANCEL_SECONDS = 5.0
"""Longest wait for a run to end that is cancelled."""
MOST_THREADS = 1000
"""Threads whose runs are cancelled at once."""

CancelAction = Literal["interrupt", "rollback"]

_STATUS: dict[RunState, str] = {
    "queued": "pending",
    "running": "running",
    "done": "success",
    "failed": "error",
    "stopped": "interrupted",
}


FROM_START = "-1"
"""The `Last-Event-ID` of who wants everything."""

_ID = re.compile(r"[0-9]{1,18}-[0-9]{1,18}-[0-9]{1,18}")

Order = tuple[int, ...]


def read_last_event_id(text: str | None) -> Order:
    """Return the place in a stream after which to go on. Raises `InputError`."""
    if not text or text == FROM_START:
        return ()
    if not _ID.fullmatch(text):
        raise InputError(f"Last-Event-ID is the id of an event, such as 1-17-0, or -1; {text!r} is neither.")
    return tuple(map(int, text.split("-")))


def respond_streaming(
    translation: Translation,
    events: AsyncGenerator[StreamedEvent],
    headers: Mapping[str, str],
    *,
    after: Order = (),
    on_leave: Leave | None = None,
) -> Response:
    """Make the response that streams a run past the place `after`. What stands before is translated too, because the
    state grows out of it. Calls `on_leave` where the client leaves before the end."""

    def encode(event: StreamedEvent) -> Iterator[bytes]:
        return _number(translation.translate(event.event), event.id, after)

    frames = encode_events(events, on_leave, encode, _number(translation.begin(), "0-0", after))
    return respond_with_frames(frames, headers, HEARTBEAT)


def _number(parts: Iterator[Part], event_id: str, after: Order) -> Iterator[bytes]:
    """Encode what an event has become; each part has an id of its own."""
    for number, part in enumerate(parts):
        frame = b"event: %b\ndata: %b\n" % (part.name.encode(), orjson.dumps(part.data))
        if not event_id:
            yield frame + b"\n"
        elif (*map(int, event_id.split("-")), number) > after:
            yield b"%bid: %b-%d\n\n" % (frame, event_id.encode(), number)


@router.post("/runs/stream")
@router.post("/threads/{thread_id}/runs/stream")
@begins_run
async def stream_run(beginning: BeginningDep) -> Response:
    """Ask, in a thread or without one, and stream the run."""
    started, body = await beginning.begin(), beginning.body
    return respond_streaming(
        *started.make_translation(body.modes),
        beginning.locate(started, "stream"),
        on_leave=started.stop if body.on_disconnect == "cancel" else None,
    )


@router.post("/runs/wait")
@router.post("/threads/{thread_id}/runs/wait")
@begins_run
async def wait_for_run(beginning: BeginningDep) -> Response:
    """Ask, in a thread or without one, and wait for the final state."""
    started = await beginning.begin()
    on_leave = started.stop if beginning.body.on_disconnect == "cancel" else None
    return _respond_whole(*started.make_translation([]), beginning.locate(started, "join"), on_leave)


@router.post("/runs")
@router.post("/threads/{thread_id}/runs")
@begins_run
async def create_run(beginning: BeginningDep, manager: RunManagerDep) -> Response:
    """Ask, in a thread or without one, and leave the run to itself."""
    started = await beginning.begin()
    run = started.run
    status = await manager.read_status(run.workspace_id, run.run_id)
    return JSONResponse(_describe(started.thread_id, status), headers=locate(started.thread_id, run.run_id))


@router.get("/threads/{thread_id}/runs")
async def list_runs(
    thread: OpenThread,
    reader: ReaderDep,
    limit: Annotated[int, Query(ge=1, le=1000)] = 10,
    offset: Annotated[int, Query(ge=0)] = 0,
    status: str | None = None,
    select: Annotated[list[str] | None, Query()] = None,
) -> list[dict[str, Any]]:
    """List the runs of a thread and its branches, the latest first."""
    described = [_describe(thread.thread_id, run) for run in reversed(await reader.list_runs(thread))]
    found = [each for each in described if status in (None, each["status"])]
    return [pick(each, select) for each in found[offset : offset + limit]]


@router.get("/threads/{thread_id}/runs/{run_id}")
async def get_run(run_id: str, thread: OpenThread, reader: ReaderDep) -> dict[str, Any]:
    """Describe a run."""
    return _describe(thread.thread_id, await reader.find_run(thread, run_id))


@router.get("/threads/{thread_id}/runs/{run_id}/join")
async def join_run(run_id: str, thread: OpenThread, reader: ReaderDep, manager: RunManagerDep) -> Response:
    """Wait for a run's final state."""
    joined = await _join(reader, thread, run_id, manager, [])
    return _respond_whole(*joined, locate(thread.thread_id, run_id, "join"))


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
    """Stream a run from its beginning, or past `Last-Event-ID`, while it runs and after it has ended; in the modes that
    it was begun with unless others are named."""
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
    return await join_run(run_id, thread, reader, manager) if wait else Response(status_code=202)


class RunsToCancel(ClientModel):
    """Runs of a thread by their ids, or all in a state, of a thread or of all threads that are open to the caller."""

    thread_id: ThreadId | None = None
    run_ids: list[str] = Field(default_factory=list, max_length=100)
    status: Literal["pending", "running", "all"] | None = None


@router.post("/runs/cancel")
async def cancel_runs(
    body: RunsToCancel, request: Request, reader: ReaderDep, action: CancelAction = "interrupt"
) -> Response:
    """Stop several runs. Of those named by their state, runs that somebody else has asked go on."""
    if body.thread_id is not None:
        threads = [await reader.open(body.thread_id)]
    elif body.status is not None:
        order: ThreadOrder = "updated_at"
        threads = await reader.client_threads.search(reader.scope, {}, None, True, MOST_THREADS, 0, order)
    else:
        raise InputError("Name a thread and its runs, or a status.")
    for thread in threads:
        run_ids = body.run_ids
        if body.status is not None:
            runs = [run for run in await reader.list_runs(thread) if run.ended is None]
            mine = [run for run in runs if get_caller(request).may_change(run.request.caller)]
            run_ids = [run.request.run_id for run in mine if body.status in ("all", _STATUS[run.state])]
        await _cancel(request, thread, reader, run_ids, action)
    return Response(status_code=204)


async def _cancel(
    request: Request, thread: ClientThread, reader: ThreadReader, run_ids: Sequence[str], action: CancelAction
) -> None:
    manager = get_run_manager(request)
    runs = [await reader.find_run(thread, run_id) for run_id in run_ids]
    for run_id in run_ids:
        await manager.cancel(get_caller(request), reader.scope, run_id)
    # Who is answered may ask again at once. A process that does not respond is not waited for.
    with suppress(TimeoutError):
        async with asyncio.timeout(CANCEL_SECONDS):
            for run_id in run_ids:
                await wait_for_end(manager, reader.scope.workspace_id, run_id)
    if action == "rollback":
        services = read_services(request)
        await Rewriting(reader, services.runs.thread_store, services.modes).take_back(thread, runs, manager)


async def _join(
    reader: ThreadReader, thread: ClientThread, run_id: str, manager: RunManager, modes: Sequence[StreamMode] | None
) -> tuple[Translation, AsyncGenerator[StreamedEvent]]:
    """Return what translates the events of a run that somebody has begun, and the events. No modes are its own."""
    status = await reader.find_run(thread, run_id)
    modes = status.request.noted.get("stream_mode") or list(get_args(StreamMode)) if modes is None else modes
    translation = await reader.translate(thread, status, modes)
    events = await manager.follow_run(reader.scope.workspace_id, run_id)
    if status.state == "queued":
        events = reader.follow_in_turn(events, translation, status.request.thread_id, run_id)
    return translation, events


def _respond_whole(
    translation: Translation,
    events: AsyncGenerator[StreamedEvent],
    headers: dict[str, str],
    on_leave: Leave | None = None,
) -> Response:
    """Answer with a run's final state, or with what went wrong, once it has ended. Until then empty lines keep the
    connection alive. Calls `on_leave` where the client leaves before."""

    async def collect() -> dict[str, Any]:
        failed: dict[str, Any] = {}
        try:
            async with aclosing(events) as opened:
                async for event in opened:
                    for part in translation.translate(event.event):
                        if part.name == "error":
                            failed = {"__error__": part.data}
        except AskgraphError as error:
            failed = {"__error__": {"error": error.code, "message": error.message}}
        return failed or translation.values

    async def write() -> AsyncGenerator[bytes]:
        collecting, ended = asyncio.create_task(collect()), False
        try:
            while not (await asyncio.wait({collecting}, timeout=ALIVE_SECONDS))[0]:
                yield b"\n"
            values, ended = collecting.result(), True
            yield orjson.dumps(values)
        finally:
            await end_tasks(collecting)
            if on_leave is not None and not ended:
                await finish(on_leave)

    return StreamingResponse(write(), headers=headers, media_type="application/json")


def _read_modes(given: list[str] | None) -> list[StreamMode] | None:
    """Read the stream modes of an address: repeated, or as a JSON list; None where none is. Raises `InputError`."""
    if not given or given == [""]:
        return None
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
        "metadata": {"created_by": "system", **graph, **run.request.noted.get("metadata", {})},
        "status": status,
        "kwargs": {"input": {"question": run.request.turn["question"]}},
        "multitask_strategy": run.request.noted.get("multitask_strategy", "enqueue"),
        "created_at": run.accepted_at.isoformat(),
        "updated_at": (run.ended_at or run.started_at or run.accepted_at).isoformat(),
    }
