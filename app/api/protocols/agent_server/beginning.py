"""Begins runs: in a thread, in a branch of it, or without a thread."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, cast

from fastapi import Depends, Request

from app.answering.requests import AcceptedRun, Branch
from app.api.dependencies import get_caller, get_run_manager, read_services
from app.api.protocols.agent_server.assistants import find_profile
from app.api.protocols.agent_server.messages import Message, make_human, name_question, read_set_messages
from app.api.protocols.agent_server.protocol import locate, name_graph
from app.api.protocols.agent_server.reading import ReaderDep, ThreadReader, read_origin
from app.api.protocols.agent_server.requests import Given, RunInput, RunRequest
from app.api.protocols.agent_server.rewriting import Rewriting
from app.api.protocols.agent_server.translation import StreamMode, Translation
from app.api.schema.schemas import ThreadId
from app.history.states import read_values
from app.history.steps import checkpoint_id_of
from domain.errors import InputError, UnknownThread
from domain.execution.streams import StreamedEvent
from domain.history.client_threads import ClientThread
from domain.state import AnswerState, read_turns


@dataclass(frozen=True, slots=True)
class Started:
    """A run that has begun."""

    run: AcceptedRun
    thread_id: str
    """The thread as the client knows it, of which the run's may be a branch."""
    profile: Mapping[str, Any]
    question: Message
    before: Sequence[Message]
    """The messages before the question."""
    events: AsyncGenerator[StreamedEvent]
    stop: Callable[[], Awaitable[object]]
    waits_for: ThreadReader | None
    """Set where it waits for other runs of its thread, whose answers are not among the messages yet."""

    def make_translation(self, modes: Sequence[StreamMode]) -> tuple[Translation, AsyncGenerator[StreamedEvent]]:
        """Return what translates its events, and the events."""
        translation = Translation(self.run.run_id, self.thread_id, self.profile, modes, self.before, self.question)
        if self.waits_for is None:
            return translation, self.events
        return translation, self.waits_for.follow_in_turn(self.events, translation, self.run.thread_id, self.run.run_id)


class Beginning:
    """Begins runs for the caller of a request."""

    def __init__(self, request: Request, body: RunRequest, reader: ThreadReader, thread_id: str | None) -> None:
        """Raises `InputError` for what our runs cannot do."""
        body.refuse_unsupported()
        self._request = request
        self._thread_id = thread_id
        self.body = body
        self._services = read_services(request)
        self._manager = get_run_manager(request)
        self._caller = get_caller(request)
        self._workspace_id = reader.scope.workspace_id
        self._profile: Mapping[str, Any] = {}
        self._reader = reader

    async def begin(self) -> Started:
        """Begin a run in the thread that the address names, or in one of its own: at the thread's end, or in a new
        branch where the client names an earlier checkpoint; without input, go on from there. Raises what
        `RunManager.start` and `Replayer.go_on` raise, `UnknownAssistant`, and `InputError`."""
        modes = self._services.workspace_modes
        self._profile = (await find_profile(modes, self._reader.scope, self.body.assistant_id)).model_dump()
        if self._thread_id is None:
            return await self._ask(self._read_input(), None, None)
        thread, start = await self._open(self._thread_id), self.body.start
        if self.body.multitask_strategy == "rollback":
            thread = await self._take_back(thread)
        latest: str | None = None
        is_set = False
        asks_at_end = start is None and self.body.input is not None
        if not asks_at_end or not await self._reader.queue.list_turns(self._reader.scope, thread.head, 1):
            snapshot = await self._reader.read_latest(thread)
            latest = checkpoint_id_of(snapshot) if snapshot.created_at is not None else None
            is_set = start in (None, latest) and read_set_messages(snapshot) is not None
        if is_set and latest is not None:
            started = await self._fork(thread, latest)
        elif self.body.input is None:
            if (start := start or latest) is None:
                raise InputError("Nothing was asked in this thread yet: send `input`.")
            return await self._go_on(thread, start)
        elif start is None or start == latest:
            started = await self._ask(self._read_input(), thread, thread.head)
        else:
            started = await self._fork(thread, start)
        graph = name_graph(self._profile)
        await self._services.runs.client_threads.note(self._workspace_id, thread.thread_id, graph)
        return started

    def locate(self, started: Started, what: str) -> dict[str, str]:
        """Make the headers that say where the run is followed."""
        return locate(started.thread_id, started.run.run_id, what, self._request.query_params.get("workspace"))

    @property
    def _mode(self) -> str:
        return str(self._profile["name"])

    def _read_input(self, before: Sequence[Message] = ()) -> Given:
        if self.body.input is None and not before:
            raise InputError("Without a thread there is nothing to go on from: send `input`.")
        return (self.body.input or RunInput()).read(before)

    async def _take_back(self, thread: ClientThread) -> ClientThread:
        """Stop what the thread works on, and go on from before it."""
        runs = await self._services.runs.queue.list_unfinished(self._workspace_id, thread.head)
        for run in runs:
            await self._manager.cancel(self._caller, self._reader.scope, run.request.run_id)
        rewriting = Rewriting(self._reader, self._services.runs.thread_store, self._services.modes)
        await rewriting.take_back(thread, runs, self._manager)
        return await self._reader.open(thread.thread_id)

    async def _open(self, thread_id: str) -> ClientThread:
        try:
            return await self._reader.open(thread_id)
        except UnknownThread:
            if self.body.if_not_exists == "reject":
                raise
            # Another request may make it at the same time.
            await self._services.runs.client_threads.create(self._workspace_id, thread_id, {}, self._caller.name)
        return await self._reader.open(thread_id)

    async def _ask(self, given: Given, thread: ClientThread | None, head: str | None) -> Started:
        ask = self.body.as_ask(given, self._caller, self._workspace_id, self._mode, head, given.turns)
        run = await self._manager.start(ask)
        if given.before or thread is None:
            return self._make(run, thread.thread_id if thread else run.thread_id, given.before, given)
        before = (await self._reader.read_conversation(thread.head)).list_before(run.run_id)
        return self._make(run, thread.thread_id, before, given, self._reader if run.broadcast is None else None)

    async def _fork(self, thread: ClientThread, start: str) -> Started:
        """Ask in a new branch, which begins with the conversation of a checkpoint."""
        part, snapshot = await self._reader.find_state(thread, start)
        before = (await self._reader.read_values(part, snapshot))["messages"]
        if read_set_messages(snapshot) is not None:
            given = self._read_input(before)
            turns, before = given.turns, given.before
        else:
            given = self._read_input()
            turns = read_turns(read_values(snapshot)["turns"]) if snapshot.values else []
        run = await self._manager.start(
            self.body.as_ask(given, self._caller, self._workspace_id, self._mode, None, turns)
        )
        await self._services.runs.client_threads.branch(self._workspace_id, thread.thread_id, run.thread_id, start)
        return self._make(run, thread.thread_id, before, given)

    async def _go_on(self, thread: ClientThread, start: str) -> Started:
        """Go on from a checkpoint in a new branch: what a replay does, and with the same right."""
        self._caller.require("debug")
        part, snapshot = await self._reader.find_state(thread, start)
        if (snapshot.metadata or {}).get("source") == "input":
            # The thread before a question: it is asked again.
            asked = await self._reader.find_run(thread, str((snapshot.metadata or {}).get("run_id")))
            again = make_human(asked.request.turn["question"], asked.request.noted.get("message_id") or "")
            self.body.input = RunInput.model_validate({"messages": [again | {"id": again["id"] or None}]})
            return await self._fork(thread, start)
        if not snapshot.next:
            raise InputError("Nothing is left to do at this checkpoint: take an earlier one, or send `input`.")
        values = await self._reader.read_values(part, snapshot)
        origin = read_origin(snapshot)
        if origin is not None and not (await self._reader.read_conversation(part)).runs:
            # A branch that was made by changing a state, and that nobody has run yet.
            state = cast(AnswerState, read_values(snapshot))
            run = await self._manager.resume(Branch(part, state, origin, caller=self._caller))
        else:
            mode = None if snapshot.values.get("mode") == self._mode else self._mode
            replayer = self._services.make_replayer(self._manager)
            run = await replayer.go_on(self._workspace_id, part, start, self._caller, mode=mode)
            await self._services.runs.client_threads.branch(self._workspace_id, thread.thread_id, run.thread_id, start)
        before = [*values["messages"]]
        while before and before[-1]["type"] != "human":
            before.pop()
        given = Given([], values["question"], before[:-1], before[-1])
        return self._make(run, thread.thread_id, given.before, given)

    def _make(
        self,
        run: AcceptedRun,
        thread_id: str,
        before: Sequence[Message],
        given: Given,
        waits_for: ThreadReader | None = None,
    ) -> Started:
        question = given.message or make_human(given.question, name_question(run.run_id))
        events, stop = self._manager.follow(run), partial(self._manager.stop, run.workspace_id, run.run_id)
        return Started(run, thread_id, self._profile, question, before, events, stop, waits_for)


async def _make_beginning(
    request: Request, body: RunRequest, reader: ReaderDep, thread_id: ThreadId | None = None
) -> Beginning:
    # An address without a thread takes none as a parameter either.
    return Beginning(request, body, reader, thread_id if "thread_id" in request.path_params else None)


BeginningDep = Annotated[Beginning, Depends(_make_beginning)]
