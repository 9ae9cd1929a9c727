"""Reads threads: who may see them, their messages, and their saved states."""

import json
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence, Set
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from fastapi import Depends, Request
from langgraph.types import StateSnapshot

from app.api.dependencies import CallerScope, read_services
from app.api.protocols.agent_server.messages import (
    Message,
    list_run_messages,
    list_turn_messages,
    list_uses,
    list_work_messages,
    make_ai,
    make_human,
    name_question,
    name_questions,
    pick_fields,
    read_set_messages,
)
from app.api.protocols.agent_server.protocol import name_graph
from app.api.protocols.agent_server.translation import StreamMode, Translation
from app.api.schema.schemas import ThreadId
from app.history.states import read_values
from app.history.steps import checkpoint_id_of, list_runs_of, parent_id_of
from app.history.thread_states import ThreadStates, locate_states
from app.history.threads import Threads
from domain.errors import UnknownCheckpoint, UnknownRun, UnknownThread
from domain.execution.streams import StreamedEvent
from domain.history.client_threads import ClientThread
from domain.ports.conversations import ClientThreads
from domain.ports.runs import RunQueue
from domain.runs import RunRequest, RunStatus
from domain.scope import Scope
from domain.state import blank_question

PAGE = 1000
"""Runs of a thread that are read at once."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """The conversation of one thread, or of one branch with what is before it."""

    before: Sequence[Message]
    """Messages of before its first run."""
    runs: Sequence[RunStatus]
    first_question: str | None = None
    """The id of the first question, where the branch goes on with one that was asked before it."""

    def list_before(self, run_id: str) -> list[Message]:
        """Return the messages before a run."""
        ids = [run.request.run_id for run in self.runs]
        return self._list(self.runs[: ids.index(run_id)] if run_id in ids else [])

    def list_messages(self) -> list[Message]:
        """Return all messages."""
        return self._list(self.runs)

    def name_question(self, run_id: str) -> str:
        """Return the id of a question's message. It stays the same where its run is repeated."""
        is_first = not self.runs or self.runs[0].request.run_id == run_id
        if self.first_question is not None and is_first:
            return self.first_question
        return name_questions(self.runs).get(run_id) or name_question(run_id)

    def _list(self, runs: Sequence[RunStatus]) -> list[Message]:
        messages = list_run_messages(runs)
        if messages:
            messages[0]["id"] = self.name_question(runs[0].request.run_id)
        return [*self.before, *messages]

    def holds(self, run_id: str) -> bool:
        """Return True where the run is one of these."""
        return any(run.request.run_id == run_id for run in self.runs)


@dataclass(frozen=True, slots=True)
class ThreadReader:
    """Reads threads for one asker. Every method raises `DatabaseUnavailable`."""

    scope: Scope
    threads: Threads
    client_threads: ClientThreads
    queue: RunQueue
    states: ThreadStates
    _conversations: dict[str, Conversation] = field(default_factory=dict)

    async def open(self, thread_id: str) -> ClientThread:
        """Return a thread. Raises `UnknownThread` where it is not open to the asker."""
        workspace_id = self.scope.workspace_id
        thread = await self.client_threads.read(workspace_id, thread_id)
        unknown = UnknownThread(f"There is no thread {thread_id!r} in this workspace.")
        if thread is None or not await self.threads.is_open_to(self.scope, thread_id):
            raise unknown
        branches = [each for each in thread.branches if await self.threads.is_open_to(self.scope, each.thread_id)]
        return replace(thread, branches=branches)

    async def find_run(self, thread: ClientThread, run_id: str) -> RunStatus:
        """Return a run of a thread. Raises `UnknownRun`."""
        status = await self.queue.get(self.scope.workspace_id, run_id)
        if (
            status is None
            or status.request.thread_id not in thread.parts
            or run_id not in await self.queue.list_readable(self.scope, [run_id])
        ):
            raise UnknownRun(f"There is no run {run_id!r} in this thread.")
        return status

    async def list_runs(self, thread: ClientThread) -> list[RunStatus]:
        """Return the runs of a thread and its branches, in order of arrival."""
        runs = [run for part in thread.parts for run in (await self.read_conversation(part)).runs]
        return sorted(runs, key=lambda run: run.accepted_at)

    async def translate(self, thread: ClientThread, run: RunStatus, modes: Sequence[StreamMode]) -> Translation:
        """Make what translates the events of a run from its beginning, whoever has begun it."""
        run_id, turn = run.request.run_id, run.request.turn
        conversation = await self.read_conversation(run.request.thread_id)
        before = conversation.list_before(run_id)
        question = make_human(turn["question"], conversation.name_question(run_id))
        return Translation(run_id, thread.thread_id, turn["profile"], modes, before, question)

    async def follow_in_turn(
        self, events: AsyncGenerator[StreamedEvent], translation: Translation, part: str, run_id: str
    ) -> AsyncGenerator[StreamedEvent]:
        """Yield the events of a run that has waited for others of its thread: by the first one those have ended, and
        their answers stand before it."""
        has_waited = True
        async with aclosing(events) as opened:
            async for event in opened:
                if has_waited:
                    self._conversations.pop(part, None)
                    translation.before = (await self.read_conversation(part)).list_before(run_id)
                    has_waited = False
                yield event

    async def read_conversation(self, thread_id: str) -> Conversation:
        """Return the conversation of a thread or a branch. A branch of a branch may have thousands before it."""
        unread = []
        while thread_id not in self._conversations:
            runs = await self._list_runs(thread_id)
            if runs:
                origin, history = runs[0].request.forked_from, runs[0].request.history
            else:
                # A branch that nobody has run yet, or an empty thread.
                snapshot = await self.states.read(self.scope.workspace_id, thread_id)
                origin, history = read_origin(snapshot), []
            if origin is None:
                # A branch has what was asked before it as its history; questions keep their ids there.
                asked = [await self.queue.get(self.scope.workspace_id, turn["run_id"]) for turn in history]
                names = name_questions(run for run in asked if run is not None)
                self._conversations[thread_id] = Conversation(list_turn_messages(history, names), runs)
            else:
                unread.append((thread_id, runs, origin))
                thread_id = origin["thread_id"]
        conversation = self._conversations[thread_id]
        for branch_id, runs, origin in reversed(unread):
            snapshot = await self._read(origin["thread_id"], origin["checkpoint_id"])
            run_id = snapshot.values.get("run_id", "")
            repeated = conversation.name_question(run_id)
            conversation = Conversation(conversation.list_before(run_id), runs, repeated)
            self._conversations[branch_id] = conversation
        return conversation

    async def _list_runs(self, thread_id: str) -> list[RunStatus]:
        """Return all runs of a thread or a branch, in order of arrival."""
        runs: list[RunStatus] = []
        while True:
            before = runs[0].request.run_id if runs else None
            page = await self.queue.list_turns(self.scope, thread_id, PAGE, before)
            runs = [*page, *runs]
            if len(page) < PAGE:
                return runs

    async def list_states(
        self, thread: ClientThread, limit: int, before: str | None = None, wanted: Mapping[str, Any] | None = None
    ) -> list[dict[str, Any]]:
        """Return the states of a thread and its branches, the latest first: at most `limit`, those before a
        checkpoint, and with this metadata. Raises `DamagedState`."""
        found: list[tuple[str, StateSnapshot]] = []
        workspace_id = self.scope.workspace_id
        for part in thread.parts:
            await self.states.flush(self.scope.workspace_id, part)
            past = locate_states(workspace_id, part, checkpoint_id=before) if before else None
            with self.states.translating_errors():
                history = self.states.graph.aget_state_history(
                    locate_states(workspace_id, part), filter=dict(wanted or {}) or None, before=past, limit=limit
                )
                found += [(part, snapshot) async for snapshot in history]
        readable = await self._list_readable([snapshot for _, snapshot in found])
        found = [each for each in found if list_runs_of(each[1]) <= readable]
        found.sort(key=lambda each: checkpoint_id_of(each[1]), reverse=True)
        return [await self.describe(thread, part, snapshot) for part, snapshot in found[:limit]]

    async def list_saved(self, run: RunRequest) -> list[StateSnapshot]:
        """Return the saved states of a run, the latest first."""
        workspace_id = self.scope.workspace_id
        await self.states.flush(workspace_id, run.thread_id)
        with self.states.translating_errors():
            history = self.states.graph.aget_state_history(
                locate_states(workspace_id, run.thread_id), filter={"run_id": run.run_id}
            )
            return [snapshot async for snapshot in history]

    async def read_latest(self, thread: ClientThread) -> StateSnapshot:
        """Return the state that the thread goes on from; its `created_at` is None where the thread has none."""
        await self.states.flush(self.scope.workspace_id, thread.head)
        snapshot = await self.states.read(self.scope.workspace_id, thread.head)
        if list_runs_of(snapshot) <= await self._list_readable([snapshot]):
            return snapshot
        # The last state that the asker may read: later ones belong to turns that they may not.
        with self.states.translating_errors():
            async for earlier in self.states.graph.aget_state_history(
                locate_states(self.scope.workspace_id, thread.head)
            ):
                if list_runs_of(earlier) <= await self._list_readable([earlier]):
                    return earlier
        return snapshot._replace(values={}, tasks=(), created_at=None)

    async def _list_readable(self, snapshots: Iterable[StateSnapshot]) -> Set[str]:
        return await self.queue.list_readable(self.scope, {run for each in snapshots for run in list_runs_of(each)})

    async def find_latest(self, thread: ClientThread) -> str | None:
        """Return the id of the checkpoint that the thread goes on from; None where it has none."""
        latest = await self.read_latest(thread)
        return None if latest.created_at is None else checkpoint_id_of(latest)

    async def find_state(self, thread: ClientThread, checkpoint_id: str) -> tuple[str, StateSnapshot]:
        """Return a saved state, and the thread or branch that holds it. Raises `UnknownCheckpoint`."""
        for part in thread.parts:
            await self.states.flush(self.scope.workspace_id, part)
            snapshot = await self._read(part, checkpoint_id)
            if snapshot.created_at is not None and list_runs_of(snapshot) <= await self._list_readable([snapshot]):
                return part, snapshot
        raise UnknownCheckpoint(f"Thread {thread.thread_id!r} has no checkpoint {checkpoint_id!r}.")

    async def _read(self, thread_id: str, checkpoint_id: str) -> StateSnapshot:
        with self.states.translating_errors():
            return await self.states.graph.aget_state(
                locate_states(self.scope.workspace_id, thread_id, checkpoint_id=checkpoint_id)
            )

    async def read_last_values(self, thread: ClientThread) -> dict[str, Any] | None:
        """Return what the protocol shows of a thread's last run; None where nothing was asked yet."""
        conversation = await self.read_conversation(thread.head)
        if not conversation.runs:
            latest = await self.read_latest(thread)
            is_set = read_set_messages(latest) is not None
            # A list of threads names branches that are not open to the asker, too.
            if not is_set or not await self.threads.is_open_to(self.scope, thread.head):
                return None
            return await self.read_values(thread.head, latest)
        last = conversation.runs[-1]
        fields = {"question": last.request.turn["question"], "mode": last.request.turn["mode"]}
        return {"messages": conversation.list_messages(), **fields, **pick_fields(last.ended or {})}

    async def read_values(self, part: str, snapshot: StateSnapshot) -> dict[str, Any]:
        """Return what the protocol shows of a state."""
        if not snapshot.values:
            return {"messages": []}
        if (held := read_set_messages(snapshot)) is not None:
            known: dict[str, Message] = {}
            if held["origin"] is not None:
                before, checkpoint_id = held["origin"]
                origin = await self._read(before, checkpoint_id)
                if list_runs_of(origin) <= await self._list_readable([origin]):
                    known = {each["id"]: each for each in (await self.read_values(before, origin))["messages"]}
            messages = [known.get(each) if isinstance(each, str) else each for each in held["messages"]]
            return {"messages": [message for message in messages if message is not None]}
        values, conversation = read_values(snapshot), await self.read_conversation(part)
        if snapshot.next == ("route",):
            # route resets what the thread's last question has left.
            values |= blank_question()
        run_id = values["run_id"]
        if conversation.runs and not conversation.holds(run_id):
            # The end of what the client sent before the first question.
            return {"messages": list(conversation.before)}
        messages = [
            *conversation.list_before(run_id),
            make_human(values["question"], conversation.name_question(run_id)),
        ]
        messages += list_work_messages(run_id, list_uses(values["work"]))
        if values["answer"]:
            messages.append(make_ai(values["answer"], run_id, values))
        return {"messages": messages, **pick_fields(values)}

    async def describe(self, thread: ClientThread, part: str, snapshot: StateSnapshot) -> dict[str, Any]:
        """Describe a state in the protocol's form."""
        metadata: Mapping[str, Any] = snapshot.metadata or {}
        mode = str(metadata.get("mode", snapshot.values.get("mode", "")))
        checkpoint_id = checkpoint_id_of(snapshot)
        branched_at = {branch.thread_id: branch.checkpoint_id for branch in thread.branches}
        parent_id = parent_id_of(snapshot) or branched_at.get(part) or None
        return {
            "values": await self.read_values(part, snapshot),
            "next": list(snapshot.next),
            "tasks": [
                {
                    "id": task.id,
                    "name": task.name,
                    "path": list(task.path),
                    "error": None if task.error is None else str(task.error),
                    "interrupts": [],
                    "checkpoint": None,
                    "state": None,
                    "result": _show_result(task.result, metadata.get("run_id", "")),
                }
                for task in snapshot.tasks
            ],
            "metadata": {
                "source": metadata.get("source"),
                "step": metadata.get("step"),
                "parents": {},
                "created_by": "system",
                "run_attempt": metadata.get("attempt", 1),
                "run_id": metadata.get("run_id"),
                "thread_id": thread.thread_id,
                **name_graph(snapshot.values.get("profile") or {"name": mode}),
            },
            "created_at": snapshot.created_at,
            "checkpoint": _locate(thread, checkpoint_id),
            "parent_checkpoint": None if parent_id is None else _locate(thread, parent_id),
            "interrupts": [],
            "checkpoint_id": checkpoint_id,
            "parent_checkpoint_id": parent_id,
        }


async def _make_reader(request: Request, scope: CallerScope) -> ThreadReader:
    runs = read_services(request).runs
    return ThreadReader(scope, runs.threads, runs.client_threads, runs.queue, runs.states)


ReaderDep = Annotated[ThreadReader, Depends(_make_reader)]


async def _open_thread(thread_id: ThreadId, reader: ReaderDep) -> ClientThread:
    return await reader.open(thread_id)


OpenThread = Annotated[ClientThread, Depends(_open_thread)]
"""The thread that the address names. It is open to the caller."""


NO_STATE: dict[str, Any] = {
    "values": {},
    "next": [],
    "tasks": [],
    "metadata": None,
    "created_at": None,
    "checkpoint": None,
    "parent_checkpoint": None,
    "interrupts": [],
    "checkpoint_id": None,
    "parent_checkpoint_id": None,
}
"""The state of a thread in which nothing was asked yet."""


def read_origin(snapshot: StateSnapshot) -> dict[str, Any] | None:
    """Return where a branch's first state was copied from; None for other states."""
    origin = (snapshot.metadata or {}).get("forked_from")
    return None if origin is None else dict(json.loads(str(origin)))


def _show_result(result: Any, run_id: str) -> dict[str, Any] | None:
    """Return what the protocol shows of what a step has changed."""
    if not isinstance(result, dict):
        return None
    shown = pick_fields(result)
    return shown | ({"messages": [make_ai(result["answer"], run_id, result)]} if result.get("answer") else {})


def _locate(thread: ClientThread, checkpoint_id: str) -> dict[str, Any]:
    return {"checkpoint_id": checkpoint_id, "thread_id": thread.thread_id, "checkpoint_ns": ""}
