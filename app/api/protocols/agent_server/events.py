"""The protocol's newer form: commands begin runs, and one stream tells all that happens in a thread.

Each event has a number that grows within the thread, past which a client that has lost its stream goes on.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from starlette.responses import JSONResponse, Response

from app.answering.manager import RunManager
from app.api.dependencies import CallerScope, RunManagerDep
from app.api.protocols.agent_server.beginning import Beginning
from app.api.protocols.agent_server.protocol import PREFIX, AgentServerRoute
from app.api.protocols.agent_server.reading import ThreadReader
from app.api.protocols.agent_server.requests import RunRequest
from app.api.protocols.agent_server.streaming import respond_with_frames
from app.api.protocols.agent_server.translation import Part, StreamMode, Translation
from app.api.schema.schemas import ThreadId
from domain.errors import InputError, UnknownThread
from domain.events import Event
from domain.runs import RunStatus

router = APIRouter(prefix=PREFIX, route_class=AgentServerRoute, include_in_schema=False)

Channel = Annotated[
    str,
    StringConstraints(
        pattern=r"^(values|updates|messages|tools|lifecycle|input|checkpoints|tasks|custom(:.{1,100})?)$"
    ),
]
"""What a client wants to hear of. Nothing is ever said of `tools`, `input` and `checkpoints`."""

MODES: list[StreamMode] = ["values", "updates", "messages-tuple", "tasks", "custom"]

MOST_EVENTS = 10_000_000
"""Numbers that each run of a thread has for its events."""

SHORTEST_PAUSE, LONGEST_PAUSE = 0.1, 2.0
"""Seconds after which a stream looks again whether a run has begun in its thread."""


class Command(BaseModel):
    """A command."""

    model_config = ConfigDict(extra="ignore")

    id: int
    method: str
    params: dict[str, Any] = Field(default_factory=dict)


class Subscription(BaseModel):
    """What a stream is to tell."""

    model_config = ConfigDict(extra="ignore")

    channels: list[Channel] = Field(min_length=1, max_length=100)
    namespaces: list[list[str]] | None = None
    since: int | None = Field(None, ge=0, lt=2**53)

    def wants(self, method: str, data: Any) -> bool:
        """Return True where an event is to be told. All of ours are of the graph itself, and none of subgraphs."""
        if self.namespaces and [] not in self.namespaces:
            return False
        return method in self.channels or (method == "custom" and f"custom:{data['name']}" in self.channels)


@router.post("/threads/{thread_id}/commands")
async def command(thread_id: ThreadId, body: Command, request: Request, scope: CallerScope) -> Response:
    """Begin a run. Other commands are refused."""
    match body.method:
        case "run.start":
            try:
                run_id = await _start(thread_id, body.params, request, scope)
            except InputError as error:
                return _refuse(body, "invalid_argument", error.message)
            return JSONResponse({"type": "success", "id": body.id, "result": {"run_id": run_id}})
        case "input.respond":
            return _refuse(body, "no_such_interrupt", "No run waits for a response.")
    return _refuse(body, "unknown_command", f"There is no command {body.method!r}; run.start begins a run.")


@router.post("/threads/{thread_id}/stream/events")
async def stream_thread(
    thread_id: ThreadId, body: Subscription, request: Request, scope: CallerScope, manager: RunManagerDep
) -> Response:
    """Stream what happens in a thread: from its last run on, or past `since`."""
    await ThreadReader.of(request, scope).open(thread_id)
    return respond_with_frames(_follow(thread_id, body, request, scope, manager), {})


async def _start(thread_id: str, params: dict[str, Any], request: Request, scope: CallerScope) -> str:
    try:
        wanted = RunRequest.model_validate({**params, "if_not_exists": "create"})
    except ValidationError as error:
        first = error.errors()[0]
        raise InputError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    return (await Beginning(request, scope, wanted).begin_in(thread_id)).run.run_id


def _refuse(body: Command, code: str, message: str) -> Response:
    return JSONResponse({"type": "error", "id": body.id, "error": code, "message": message})


async def _follow(
    thread_id: str, wanted: Subscription, request: Request, scope: CallerScope, manager: RunManager
) -> AsyncGenerator[bytes]:
    """Yield frames until the client leaves, the thread is gone, or the process is about to end."""
    following: int | None = None if wanted.since is None else wanted.since // MOST_EVENTS
    seen, pause = None, SHORTEST_PAUSE
    while not manager.is_draining:
        reader = ThreadReader.of(request, scope)
        thread = await reader.client_threads.read(scope.workspace_id, thread_id)
        if thread is not None and thread == seen:
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
            continue
        seen, pause = thread, SHORTEST_PAUSE
        try:
            thread = await reader.open(thread_id)
        except UnknownThread:
            return
        runs = await reader.list_runs(thread)
        if following is None:
            following = next((place for place, run in enumerate(runs) if run.ended is None), max(0, len(runs) - 1))
        for place, run in enumerate(runs[following:], following):
            translation = await reader.translate(thread, run, MODES)
            async with aclosing(_translate(translation, run, manager)) as parts:
                number = place * MOST_EVENTS
                async for part in parts:
                    number += 1
                    if number > (wanted.since or 0) and wanted.wants(part.name, part.data):
                        yield _encode(part, number, run.request.run_id)
        following = len(runs)


async def _translate(translation: Translation, run: RunStatus, manager: RunManager) -> AsyncGenerator[Part]:
    """Yield the events of a run, from its beginning."""
    events_of_run = MethodEvents(translation, run.request.turn["mode"])
    events = await manager.follow_run(run.request.workspace_id, run.request.run_id)
    for part in events_of_run.begin():
        yield part
    async with aclosing(events) as opened:
        async for event in opened:
            for part in events_of_run.translate(event.event):
                yield part


class MethodEvents:
    """One run in the events of this form, whose names are methods."""

    def __init__(self, translation: Translation, mode: str) -> None:
        self._translation = translation
        self._mode = mode
        self._text: str | None = None

    def begin(self) -> Iterator[Part]:
        """Yield what comes before the run's first event."""
        yield self._say("running")
        for part in self._translation.begin():
            yield from self._adapt(part)

    def translate(self, event: Event) -> Iterator[Part]:
        """Yield what an event of the run becomes."""
        has_ended = event["type"] in ("done", "error")
        for part in self._translation.translate(event):
            if has_ended and part.name != "messages":
                yield from self._finish_message()
            yield from self._adapt(part)
        if event["type"] == "done":
            yield self._say("completed")
        elif event["type"] == "error":
            yield self._say("failed", error=event["message"])

    def _adapt(self, part: Part) -> Iterator[Part]:
        match part.name:
            case "values" | "tasks":
                yield part
            case "updates":
                for node, values in part.data.items():
                    yield Part("updates", {"node": node, "values": values or {}})
            case "custom":
                yield Part("custom", {"name": part.data["type"], "payload": part.data})
            case "messages":
                yield from self._write(part.data[0])

    def _write(self, chunk: dict[str, Any]) -> Iterator[Part]:
        if self._text is None:
            self._text = ""
            yield Part("messages", {"event": "message-start", "role": "ai", "id": chunk["id"]})
            yield Part(
                "messages", {"event": "content-block-start", "index": 0, "content": {"type": "text", "text": ""}}
            )
        self._text += chunk["content"]
        delta = {"type": "text-delta", "text": chunk["content"]}
        yield Part("messages", {"event": "content-block-delta", "index": 0, "delta": delta})

    def _finish_message(self) -> Iterator[Part]:
        if self._text is not None:
            content = {"type": "text", "text": self._text}
            yield Part("messages", {"event": "content-block-finish", "index": 0, "content": content})
            yield Part("messages", {"event": "message-finish"})
            self._text = None

    def _say(self, status: str, **more: str) -> Part:
        return Part("lifecycle", {"event": status, "graph_name": self._mode, **more})


def _encode(part: Part, number: int, run_id: str) -> bytes:
    now = int(datetime.now(UTC).timestamp() * 1000)
    event = {
        "type": "event",
        "event_id": f"{run_id}:{number}",
        "seq": number,
        "method": part.name,
        "params": {"namespace": [], "timestamp": now, "data": part.data},
    }
    return b"event: %b\ndata: %b\nid: %d\n\n" % (part.name.encode(), orjson.dumps(event), number)
