"""Changes what has been said in a thread: clients set its messages, and take runs back.

The thread goes on in a branch, whose only state says what its messages are. What the client has left as it was is named
there and not copied, so that it is erased and hidden with its run.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from typing import Any
from uuid import uuid4

from app.answering.manager import RunManager
from app.api.protocols.agent_server.messages import Message, read_set_messages
from app.api.protocols.agent_server.reading import ThreadReader
from app.api.protocols.agent_server.requests import GivenMessage
from app.api.protocols.client_conversations import MOST_MESSAGES
from app.history.steps import checkpoint_id_of, parent_id_of
from app.modes import find_mode
from domain.errors import InputError, ThreadBusy
from domain.history.client_threads import ClientThread
from domain.ports.runs import ThreadStore
from domain.profile import Profile
from domain.runs import RunStatus
from domain.state import TurnInput, blank_question, merge_state

REMOVE_ALL = "__remove_all__"
"""The id that removes all messages, as LangGraph has it."""


class Rewriting:
    """Rewrites threads for one asker. Every method raises `DatabaseUnavailable`."""

    def __init__(self, reader: ThreadReader, store: ThreadStore, modes: Mapping[str, Profile]) -> None:
        self._reader = reader
        self._store = store
        self._modes = modes

    async def set_messages(self, thread: ClientThread, given: Sequence[GivenMessage], start: str | None) -> None:
        """Change the messages of a checkpoint, or begin an empty thread with these: add some, replace some by their
        ids, and remove some. Raises `UnknownCheckpoint`, `ThreadBusy` and `InputError`."""
        if thread.busy:
            raise ThreadBusy
        before: list[Message] = []
        origin: list[str] | None = None
        named: dict[str, str | Message] = {}
        if start is not None:
            part, snapshot = await self._reader.find_state(thread, start)
            before = (await self._reader.read_values(part, snapshot))["messages"]
            origin, named = [part, start], {message["id"]: message["id"] for message in before}
            if (held := read_set_messages(snapshot)) is not None:
                origin = held["origin"]
                named = {each if isinstance(each, str) else each["id"]: each for each in held["messages"]}
        kept = {message["id"]: message for message in before}
        merged = _merge(kept, given)
        if len(merged) > MOST_MESSAGES:
            raise InputError(f"A thread is given at most {MOST_MESSAGES:,} messages, and would have {len(merged):,}.")
        messages = [named[name] if kept.get(name) is each else each for name, each in merged.items()]
        await self._write(thread, start, origin, messages)

    async def take_back(self, thread: ClientThread, runs: Sequence[RunStatus], manager: RunManager) -> None:
        """Go on from before the first of these runs, which were cancelled, once they have ended. Those that had
        ended before stay as they are, and all stay recorded."""
        unfinished = [run for run in runs if run.ended is None]
        if not unfinished:
            return
        for run in unfinished:
            await wait_for_end(manager, run.request.workspace_id, run.request.run_id)
        first = min(unfinished, key=lambda run: run.accepted_at)
        part, run_id = first.request.thread_id, first.request.run_id
        saved = await self._reader.list_saved(first.request)
        if not saved:
            return
        start = parent_id_of(saved[-1]) or checkpoint_id_of(saved[-1])
        before = (await self._reader.read_conversation(part)).list_before(run_id)
        await self._write(thread, start, [part, checkpoint_id_of(saved[0])], [message["id"] for message in before])

    async def _write(
        self, thread: ClientThread, start: str | None, origin: list[str] | None, messages: Sequence[str | Message]
    ) -> None:
        scope = self._reader.scope
        mode = str(thread.metadata.get("graph_id", ""))
        mode = mode if mode in self._modes else "standard"
        profile = find_mode(self._modes, mode).model_dump()
        turn = TurnInput(run_id=str(uuid4()), question="", scope=scope.to_json(), mode=mode, profile=profile)
        part = str(uuid4())
        await self._store.claim(scope.workspace_id, part, turn["scope"].get("groups"))
        said = json.dumps({"origin": origin, "messages": messages})
        await self._reader.states.write(part, merge_state(turn, {**blank_question(), "turns": []}), messages=said)
        await self._reader.states.flush(scope.workspace_id, part)
        # An empty thread has no checkpoint to branch from.
        await self._reader.client_threads.branch(scope.workspace_id, thread.thread_id, part, start or "")


async def wait_for_end(manager: RunManager, workspace_id: str, run_id: str) -> None:
    """Wait for the end of a run. Raises what `RunManager.follow_run` raises."""
    async with aclosing(await manager.follow_run(workspace_id, run_id)) as events:
        async for _ in events:
            pass


def _merge(kept: Mapping[str, Message], given: Sequence[GivenMessage]) -> dict[str, Message]:
    merged = dict(kept)
    for message in given:
        if message.type == "remove":
            if message.id == REMOVE_ALL:
                merged = {}
            elif merged.pop(message.id or "", None) is None:
                raise InputError(f"There is no message {message.id!r} to remove.")
        elif message.side is None:
            # Instructions and tools' results are not heard: they may be sent back, and not be added.
            if message.id not in merged:
                raise InputError(f"Messages of the type {message.type!r} cannot be set.")
        else:
            message.read_text()
            shown: dict[str, Any] = message.show()
            if message.id not in merged or merged[message.id]["content"] != shown["content"]:
                merged[shown["id"]] = shown
    return merged
