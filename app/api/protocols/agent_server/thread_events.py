"""Streams of threads and commands in them, as `useStream` of `@langchain/react` wants them.

A stream tells of the thread's last run from its beginning, and then of each that follows, until the client leaves. What
it tells of a run has the same ids each time, so that clients which come back know what they have.
"""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from typing import Any

import orjson
from fastapi import APIRouter, Request
from pydantic import BaseModel, Field, ValidationError
from starlette.responses import Response

from app.answering.manager import RunManager
from app.api.asking.streams import respond_with_frames
from app.api.dependencies import RunManagerDep, begins_run
from app.api.protocols.agent_server.beginning import Beginning
from app.api.protocols.agent_server.protocol import HEARTBEAT, PREFIX, route_for
from app.api.protocols.agent_server.reading import OpenThread, ReaderDep, ThreadReader
from app.api.protocols.agent_server.requests import RunRequest
from app.api.protocols.agent_server.translation import Part, StreamMode
from app.api.schema.schemas import ThreadId
from app.history.steps import checkpoint_id_of, parent_id_of
from domain.errors import AskgraphError, InputError
from domain.events import Event
from domain.history.client_threads import ClientThread
from domain.runs import RunStatus

logger = logging.getLogger("askgraph.api")
router = APIRouter(prefix=PREFIX, route_class=route_for(), include_in_schema=False)

_MODES: list[StreamMode] = ["values", "updates", "custom", "tasks"]
_LATEST = 20
"""Runs of a thread that may have begun since it was looked at."""
_LOOKS, _AT_ONCE = 1.0, 50
"""Seconds after which a thread is looked at again, for runs that other processes have begun; longer with more streams
than so many, so that the database is asked as often however many stay open."""
_LONGEST = 3600.0
"""Seconds that a stream lasts. Clients come back, and need a key that is still good."""

_waiting: dict[asyncio.Event, tuple[str, str]] = {}
"""What each stream waits for, and its workspace and thread."""


class Command(BaseModel):
    """A command, of which only `run.start` is known."""

    id: int
    method: str = Field(max_length=100)
    params: dict[str, Any] = {}


class Channels(BaseModel):
    """What a stream tells of. Subgraphs, which other namespaces are, there are none of."""

    channels: list[str] = Field(min_length=1, max_length=100)
    namespaces: list[list[str]] | None = None
    since: int | None = None

    def want(self, event: Mapping[str, Any]) -> bool:
        """Return True for an event that the client wants."""
        return (
            any(channel.partition(":")[0] == event["method"] for channel in self.channels)
            and (self.namespaces is None or [] in self.namespaces)
            and event["seq"] > (self.since or 0)
        )


@router.post("/threads/{thread_id}/commands")
@begins_run
async def command(body: Command, request: Request, thread_id: ThreadId, reader: ReaderDep) -> dict[str, Any]:
    """Begin a run; a thread that is not there is made."""
    if body.method != "run.start":
        message = f"There is no {body.method} here: runs are begun by run.start, and no run waits for an answer."
        return {"type": "error", "id": body.id, "error": "not_supported", "message": message}
    try:
        asked = RunRequest.model_validate({**body.params, "if_not_exists": "create"})
    except ValidationError as error:
        first = error.errors()[0]
        raise InputError(f"params.{'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    started = await Beginning(request, asked, reader, thread_id).begin()
    for begun, place in _waiting.items():
        if place == (reader.scope.workspace_id, thread_id):
            begun.set()
    return {"type": "success", "id": body.id, "result": {"run_id": started.run.run_id}}


@router.post("/threads/{thread_id}/stream/events")
async def stream_thread(body: Channels, thread: OpenThread, reader: ReaderDep, manager: RunManagerDep) -> Response:
    """Stream what happens in a thread."""
    return respond_with_frames(_stream(body, thread.thread_id, reader, manager), {}, HEARTBEAT)


async def _stream(wanted: Channels, thread_id: str, reader: ThreadReader, manager: RunManager) -> AsyncGenerator[bytes]:
    begun, until = asyncio.Event(), time.monotonic() + _LONGEST
    told: set[str] | None = None
    _waiting[begun] = reader.scope.workspace_id, thread_id
    try:
        while time.monotonic() < until and not manager.is_draining:
            begun.clear()
            reader = replace(reader, _conversations={})
            thread = await reader.open(thread_id)
            runs = await reader.queue.list_turns(reader.scope, thread.head, _LATEST)
            if told is None:
                told = {run.request.run_id for run in runs[:-1] if run.ended is not None}
            following = next((run for run in runs if run.request.run_id not in told), None)
            if following is None:
                with suppress(TimeoutError):
                    await asyncio.wait_for(begun.wait(), _LOOKS * max(1, len(_waiting) / _AT_ONCE))
                continue
            told.add(following.request.run_id)
            async with aclosing(_Telling(following).tell(thread, reader, manager)) as events:
                async for event in events:
                    if wanted.want(event):
                        head = b"event: %b\nid: %d\n" % (event["method"].encode(), event["seq"])
                        yield b"%bdata: %b\n\n" % (head, orjson.dumps(event))
    except AskgraphError as error:
        # Whoever comes back is told what it is.
        logger.info("The stream of the thread %s ended: %s", thread_id, error.message)
    finally:
        del _waiting[begun]


@dataclass(slots=True)
class _Telling:
    """Tells of one run."""

    run: RunStatus
    number: int = 0
    text: str = ""
    """What the answer's message has so far; empty before and after it."""
    wrote: bool = False

    async def tell(self, thread: ClientThread, reader: ThreadReader, manager: RunManager) -> AsyncGenerator[Any]:
        """Yield the events of the run."""
        request = self.run.request
        yield self._live("running", graph_name=request.turn["profile"]["name"])
        translation = await reader.translate(thread, self.run, _MODES)
        try:
            events = await manager.follow_run(reader.scope.workspace_id, request.run_id)
            if self.run.state == "queued":
                events = reader.follow_in_turn(events, translation, request.thread_id, request.run_id)
            for part in translation.begin():
                for told in self._show(part):
                    yield told
            async with aclosing(events) as opened:
                async for event in opened:
                    for told in (*self._write(event.event), *self._show_tool(event.event)):
                        yield told
                    if event.event["type"] == "done" and (saved := await reader.list_saved(request)):
                        # From its beginning it is asked again, or in other words.
                        is_input = (saved[-1].metadata or {}).get("source") == "input"
                        # An answer from the cache is a state alone.
                        first = checkpoint_id_of(saved[-1]) if is_input else parent_id_of(saved[-1])
                        named = {"id": checkpoint_id_of(saved[0]), **({"parent_id": first} if first else {})}
                        yield self._make("checkpoints", {**named, "source": "loop"})
                    for part in translation.translate(event.event):
                        for told in self._show(part):
                            yield told
                    if event.event["type"] == "done":
                        yield self._live("interrupted" if event.event["stopped"] else "completed")
        except AskgraphError as error:
            yield self._live("failed", error=error.message)

    def _show(self, part: Part) -> list[dict[str, Any]]:
        match part.name:
            case "updates":
                [(node, values)] = part.data.items()
                return [*self._end_message(), self._make("updates", {"node": node, "values": values or {}})]
            case "custom":
                return [self._make("custom", {"payload": part.data})]
            case "values" | "tasks":
                return [self._make(part.name, part.data)]
            case "error":
                return [*self._end_message(), self._live("failed", error=part.data["message"])]
        return []

    def _write(self, event: Event) -> list[dict[str, Any]]:
        """Return what a piece of the answer becomes. A correction begins the message anew."""
        shown: list[dict[str, Any]] = []
        match event["type"]:
            case "content":
                piece = event["token"]
            case "correction":
                shown, piece = self._end_message(), event["answer"]
            case "done" if not self.wrote:
                piece = event["answer"]
            case _:
                return []
        if not piece:
            return shown
        said: list[dict[str, Any]] = []
        if not self.text:
            said.append({"event": "message-start", "role": "ai", "id": self.run.request.run_id})
            said.append({"event": "content-block-start", "index": 0, "content": {"type": "text", "text": ""}})
        self.text, self.wrote = self.text + piece, True
        delta = {"type": "text-delta", "text": piece}
        said.append({"event": "content-block-delta", "index": 0, "delta": delta})
        return [*shown, *(self._make("messages", each) for each in said)]

    def _end_message(self) -> list[dict[str, Any]]:
        if not self.text:
            return []
        content, self.text = {"type": "text", "text": self.text}, ""
        ends = {"event": "content-block-finish", "index": 0, "content": content}, {"event": "message-finish"}
        return [self._make("messages", each) for each in ends]

    def _show_tool(self, event: Event) -> list[dict[str, Any]]:
        if event["type"] == "tool_call":
            told = {"event": "tool-started", "tool_name": event["name"], "input": event["arguments"]}
        elif event["type"] == "tool_result":
            told = {"event": "tool-finished", "output": event["text"]}
        else:
            return []
        return [self._make("tools", {**told, "tool_call_id": event["call_id"]})]

    def _live(self, status: str, **about: str) -> dict[str, Any]:
        # By the form of this id, clients know whose end it is.
        event_id = f"synth:{self.run.request.run_id}:lc::{status}"
        return self._make("lifecycle", {"event": status, **about}, event_id)

    def _make(self, method: str, data: Any, event_id: str = "") -> dict[str, Any]:
        self.number += 1
        return {
            "type": "event",
            "event_id": event_id or f"{self.run.request.run_id}:{self.number}",
            # Larger than those of the runs before it.
            "seq": int(self.run.accepted_at.timestamp() * 1000) * 1000 + self.number,
            "method": method,
            "params": {"namespace": [], "timestamp": int(time.time() * 1000), "data": data},
        }
