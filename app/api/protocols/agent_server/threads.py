"""Threads: make and find them, and read their states."""

from collections.abc import Set
from typing import Annotated, Any, Literal
from uuid import uuid4

from fastapi import APIRouter, Query, Request
from langgraph.graph import START
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import JSONResponse, Response

from app.api.dependencies import CallerDep, RunManagerDep, read_services
from app.api.protocols.agent_server.protocol import PREFIX, pick, refuse, route_for
from app.api.protocols.agent_server.reading import NO_STATE, OpenThread, ReaderDep, ThreadReader
from app.api.protocols.agent_server.requests import CheckpointPlace, Notes, RunInput, check_notes
from app.api.protocols.agent_server.rewriting import Rewriting, wait_for_end
from app.api.schema.schemas import ThreadId
from domain.errors import InputError
from domain.history.client_threads import ClientThread, ThreadOrder
from domain.scope import Scope

router = APIRouter(prefix=PREFIX, route_class=route_for(), include_in_schema=False)
erasing = APIRouter(prefix=PREFIX, route_class=route_for("ask", "admin"), include_in_schema=False)


_LOOKED_UP = frozenset({"values", "status", "error"})
"""Fields of a thread that take looking up."""
MOST_LOOKED_AT = 200
"""Threads of which it is found out whether their last run has failed."""


class ThreadRequest(BaseModel):
    """A thread to make."""

    thread_id: ThreadId | None = None
    metadata: Notes | None = None
    if_exists: Literal["raise", "do_nothing"] = "raise"
    ttl: Any = None
    supersteps: list[Any] | None = None


class ThreadNotes(BaseModel):
    """Notes to add to a thread."""

    metadata: Notes | None = None
    ttl: Any = None


class ThreadSearch(BaseModel):
    """Which threads to list."""

    metadata: Notes | None = None
    values: dict[str, Any] | None = None
    ids: list[ThreadId] | None = Field(None, max_length=1000)
    status: Literal["idle", "busy", "interrupted", "error"] | None = None
    limit: int = Field(10, ge=1, le=200)
    offset: int = Field(0, ge=0, le=1_000_000)
    sort_by: ThreadOrder | Literal["state_updated_at"] | None = None
    sort_order: Literal["asc", "desc"] | None = None
    select: list[str] | None = None
    extract: dict[str, str] | None = None


class HistoryRequest(BaseModel):
    """Which states to list."""

    limit: int = Field(10, ge=1, le=1000)
    before: CheckpointPlace | str | None = None
    metadata: dict[str, Any] | None = None


class StateValues(RunInput):
    """Fields of a state, and messages to add to it, to replace in it, or to remove from it."""

    model_config = ConfigDict(extra="allow")


class StateChange(BaseModel):
    """Changes of a state, one after the other."""

    values: StateValues | list[StateValues] | None = None
    checkpoint: CheckpointPlace | None = None
    checkpoint_id: str | None = Field(None, max_length=200)
    as_node: str | None = None


class StateRequest(BaseModel):
    """A state to read."""

    checkpoint: CheckpointPlace


@router.post("/threads")
async def create_thread(body: ThreadRequest, caller: CallerDep, reader: ReaderDep) -> Any:
    """Make a thread."""
    if body.supersteps:
        raise InputError("A thread begins empty: ask in it with the conversation so far as `input.messages`.")
    _refuse_ttl(body.ttl)
    check_notes(notes := body.metadata or {})
    thread_id = body.thread_id or str(uuid4())
    created = await reader.client_threads.create(reader.scope.workspace_id, thread_id, notes, caller.name)
    if not created and body.if_exists == "raise":
        return refuse(409, f"There is a thread {thread_id!r} already.")
    return await _describe(reader, await reader.open(thread_id))


@router.post("/threads/search")
async def search_threads(body: ThreadSearch, reader: ReaderDep) -> Response:
    """List the threads that the caller may read."""
    if body.values:
        raise InputError("Threads are found by `metadata` and `ids`, and not by `values`.")
    if body.extract is not None:
        raise InputError("Parts of a thread's values cannot be extracted: select `values`.")
    if body.status == "interrupted":
        return JSONResponse([])
    busy = None if body.status is None else body.status == "busy"
    # Which thread's last run has failed is found by looking at each.
    looks = body.status in ("idle", "error")
    # A thread's state changes with the thread.
    order = "updated_at" if body.sort_by is None or body.sort_by == "state_updated_at" else body.sort_by
    found = await reader.client_threads.search(
        reader.scope,
        body.metadata or {},
        body.ids,
        busy,
        MOST_LOOKED_AT if looks else body.limit + 1,
        0 if looks else body.offset,
        order,
        ascending=body.sort_order == "asc",
    )
    shown = _LOOKED_UP if body.select is None else {*body.select, *(["status"] if looks else [])}
    described = []
    for thread in found:
        each = await _describe(reader, thread, shown)
        described += [each] if body.status in (None, each["status"]) else []
    described = described[body.offset :] if looks else described
    chosen = described[: body.limit]
    headers = {"X-Pagination-Next": str(body.offset + body.limit)} if len(described) > body.limit else {}
    return JSONResponse([pick(each, body.select) for each in chosen], headers=headers)


@router.get("/threads/{thread_id}")
async def get_thread(thread: OpenThread, reader: ReaderDep) -> dict[str, Any]:
    """Describe a thread."""
    return await _describe(reader, thread)


@router.patch("/threads/{thread_id}")
async def note_thread(body: ThreadNotes, thread: OpenThread, reader: ReaderDep) -> dict[str, Any]:
    """Add notes to a thread."""
    _refuse_ttl(body.ttl)
    notes = body.metadata or {}
    check_notes({**thread.metadata, **notes})
    await reader.client_threads.note(reader.scope.workspace_id, thread.thread_id, notes)
    return await _describe(reader, await reader.open(thread.thread_id))


@erasing.delete("/threads/{thread_id}")
async def delete_thread(
    thread_id: ThreadId, request: Request, caller: CallerDep, reader: ReaderDep, manager: RunManagerDep
) -> Response:
    """Erase a thread with its branches. Needs the right `admin`, unless the caller has begun it."""
    services, scope = read_services(request), reader.scope
    thread = await reader.client_threads.read(scope.workspace_id, thread_id)
    everything = Scope(scope.workspace_id)
    if thread is None or not await reader.queue.list_turns(everything, thread_id, 1):
        thread = await reader.open(thread_id)
    for part in thread.parts:
        # Nobody has asked in a branch that was made by changing a state, and that nobody has run.
        if await reader.queue.list_turns(everything, part, 1):
            await services.runs.threads.require_own(caller, scope, part)
    for part in thread.parts:
        for run in await reader.queue.list_unfinished(scope.workspace_id, part):
            await manager.stop(scope.workspace_id, run.request.run_id)
            await wait_for_end(manager, scope.workspace_id, run.request.run_id)
    await services.make_forgetting().forget_thread(scope.workspace_id, thread.thread_id)
    return Response(status_code=204)


@router.get("/threads/{thread_id}/state")
async def get_state(thread: OpenThread, reader: ReaderDep) -> dict[str, Any]:
    """Return the state that a thread goes on from."""
    snapshot = await reader.read_latest(thread)
    return NO_STATE if snapshot.created_at is None else await reader.describe(thread, thread.head, snapshot)


@router.post("/threads/{thread_id}/state")
async def change_state(
    body: StateChange,
    request: Request,
    caller: CallerDep,
    thread: OpenThread,
    reader: ReaderDep,
    manager: RunManagerDep,
) -> dict[str, Any]:
    """Make a branch from a state, with fields of it or its messages changed. A run without input goes on from there."""
    services = read_services(request)
    values = body.values or []
    each_change = values if isinstance(values, list) else [values]
    messages = [message for change in each_change for message in change.messages]
    changes: dict[str, Any] = {}
    for change in each_change:
        changes |= change.model_dump(exclude={"messages"}, exclude_unset=True)
    if messages and changes:
        raise InputError("Messages are set alone: send other fields in a request of their own.")
    if body.as_node not in (None, START if messages else None):
        raise InputError("A state is changed as the node has left it that made it: leave as_node out.")
    if changes:
        caller.require("debug")
    start = body.checkpoint_id or (body.checkpoint.checkpoint_id if body.checkpoint is not None else None)
    start = start or await reader.find_latest(thread)
    if messages:
        await Rewriting(reader, services.runs.thread_store, services.modes).set_messages(thread, messages, start)
    else:
        if start is None:
            raise InputError("Nothing was asked in this thread yet: it has no state to change.")
        part, snapshot = await reader.find_state(thread, start)
        if not changes:
            return await reader.describe(thread, part, snapshot)
        workspace_id = reader.scope.workspace_id
        branch = await services.make_replayer(manager).branch(workspace_id, part, start, caller, changes=changes)
        await reader.client_threads.branch(workspace_id, thread.thread_id, branch.thread_id, start)
    made = await reader.find_latest(await reader.open(thread.thread_id))
    place = {"thread_id": thread.thread_id, "checkpoint_ns": "", "checkpoint_id": made}
    return {"checkpoint": place, "configurable": place, "checkpoint_id": made}


@router.get("/threads/{thread_id}/state/{checkpoint_id}")
async def get_state_at(checkpoint_id: str, thread: OpenThread, reader: ReaderDep) -> dict[str, Any]:
    """Return an earlier state."""
    return await reader.describe(thread, *await reader.find_state(thread, checkpoint_id))


@router.post("/threads/{thread_id}/state/checkpoint")
async def find_state(body: StateRequest, thread: OpenThread, reader: ReaderDep) -> dict[str, Any]:
    """Return an earlier state, or without a checkpoint's id the latest."""
    if body.checkpoint.checkpoint_id is None:
        return await get_state(thread, reader)
    return await get_state_at(body.checkpoint.checkpoint_id, thread, reader)


@router.get("/threads/{thread_id}/history")
async def get_history(
    thread: OpenThread,
    reader: ReaderDep,
    limit: Annotated[int, Query(ge=1, le=1000)] = 10,
    before: str | None = None,
) -> list[dict[str, Any]]:
    """List the states of a thread, the latest first."""
    return await reader.list_states(thread, limit, before)


@router.post("/threads/{thread_id}/history")
async def search_history(body: HistoryRequest, thread: OpenThread, reader: ReaderDep) -> list[dict[str, Any]]:
    """List the states of a thread, the latest first."""
    before = body.before.checkpoint_id if isinstance(body.before, CheckpointPlace) else body.before
    return await reader.list_states(thread, body.limit, before, body.metadata)


def _refuse_ttl(ttl: Any) -> None:
    if ttl is not None:
        raise InputError("How long threads are kept is for the service's retention policy to say: leave ttl out.")


async def _describe(reader: ThreadReader, thread: ClientThread, shown: Set[str] = _LOOKED_UP) -> dict[str, Any]:
    """Describe a thread. Of what takes looking up, only the fields that are `shown` are right."""
    values = await reader.read_last_values(thread) if "values" in shown else None
    failed = None
    if not thread.busy and not shown.isdisjoint({"status", "error"}):
        runs = (await reader.read_conversation(thread.head)).runs
        failed = runs[-1].ended if runs and runs[-1].state == "failed" else None
    return {
        "thread_id": thread.thread_id,
        "created_at": thread.created_at.isoformat(),
        "updated_at": thread.updated_at.isoformat(),
        "state_updated_at": thread.updated_at.isoformat(),
        "metadata": thread.metadata,
        "status": "busy" if thread.busy else "error" if failed else "idle",
        "config": {"configurable": {}},
        "values": values,
        "error": dict(failed) if failed else None,
        "interrupts": {},
    }
