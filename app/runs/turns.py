"""A turn's life: checked, served from the cache or run through the graph, streamed, recorded."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Coroutine, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from time import perf_counter
from typing import Any, Self, cast
from uuid import uuid4
from weakref import WeakValueDictionary

from app.runs.cache import CacheKey, is_storable
from app.runs.execution import Execution, configure, fail, milliseconds_since, prepare_judgement
from app.runs.records import log_turn, make_record, merge_state
from app.runs.tapes import encode_tape, is_taped
from app.runs.taping import Player, describe, fill, record
from app.services import Services
from domain.documents import Scope
from domain.errors import AskgraphError, UnknownMode
from domain.events import Done, Event, Failed
from domain.question import clean_question
from domain.runs import RunRecord
from domain.state import AnswerState, Turn, TurnInput, blank_question, read_turns
from domain.tapes import Call, Tape
from nodes.writing import finish_turn

logger = logging.getLogger("askgraph.turns")


@dataclass(frozen=True, slots=True)
class Ask:
    """A question as it arrives, before anything is checked."""

    question: str
    workspace_id: str = "default"
    thread_id: str | None = None
    document_ids: tuple[str, ...] | None = None
    mode: str = "standard"


@dataclass(frozen=True, slots=True)
class Branch:
    """A run that starts from a copy of a saved state, already in the thread that is its own."""

    thread_id: str
    values: AnswerState
    forked_from: dict[str, Any]
    player: Player | None = None
    """Answers what it can in place of the run's own calls."""


class Turns:
    """Starts turns and follows them to their end. Use it as a context manager: leaving waits for what is still being
    written."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._background: set[asyncio.Task[None]] = set()
        self._remembering: dict[str, asyncio.Task[None]] = {}
        self._keeping: dict[str, asyncio.Task[None]] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Wait for what is still being written."""
        while self._background:
            await asyncio.gather(*self._background, return_exceptions=True)

    async def settle(self, thread_id: str) -> None:
        """Wait until a cached turn that was just given is part of its thread."""
        if remembering := self._remembering.get(thread_id):
            await asyncio.shield(remembering)

    async def wait_for_record(self, run_id: str) -> None:
        """Wait until a run that has just ended is on record, with its tape."""
        if keeping := self._keeping.get(run_id):
            await asyncio.shield(keeping)

    async def start(self, ask: Ask) -> AsyncGenerator[Event]:
        """Check the question and hand back its events.

        Everything that is wrong with the request is raised here, before the first event: `QuestionError`,
        `UnknownMode`, `UnknownDocument`, `UnknownThread`, `DatabaseUnavailable`. Later faults end the stream with an
        `error` event.
        """
        services = self._services
        started = perf_counter()
        question = clean_question(ask.question)
        profile = services.modes.get(ask.mode)
        if profile is None:
            raise UnknownMode(f"There is no mode {ask.mode!r}. There are: {', '.join(services.modes)}.")
        corpus = await services.documents.corpus_fingerprint(Scope(ask.workspace_id, ask.document_ids))
        if ask.thread_id is not None:
            await services.threads.claim(ask.workspace_id, ask.thread_id)
        turn = TurnInput(
            run_id=str(uuid4()),
            question=question,
            workspace_id=ask.workspace_id,
            document_ids=None if ask.document_ids is None else list(ask.document_ids),
            mode=ask.mode,
            profile=profile.model_dump(),
        )
        return self._follow(turn, ask.thread_id, corpus, started)

    async def resume(self, branch: Branch) -> AsyncGenerator[Event]:
        """Run on from a saved state. Never served from the cache, and never stored in it."""
        run = self._run(None, branch.values, branch.thread_id, perf_counter(), branch=branch)
        async with self._lock(branch.thread_id), aclosing(run) as events:
            async for event in events:
                yield event

    async def _follow(
        self, turn: TurnInput, known_thread: str | None, corpus: str, started: float
    ) -> AsyncGenerator[Event]:
        thread_id = known_thread or str(uuid4())
        scope = Scope(turn["workspace_id"], None if turn["document_ids"] is None else tuple(turn["document_ids"]))
        lock = self._lock(thread_id)
        waits = lock.locked()
        async with lock:
            try:
                if waits:
                    # The documents may have changed while the thread's other turn was running.
                    corpus = await self._services.documents.corpus_fingerprint(scope)
                await self.settle(thread_id)
                if known_thread is None:
                    await self._services.threads.claim(turn["workspace_id"], thread_id)
                turns = await self._read_turns(thread_id) if known_thread else []
                key = CacheKey.of(turn, turns, corpus, self._services.fingerprint).digest()
                stored = await self._services.answers.get(key)
            except Exception as error:  # noqa: BLE001 - whatever it is, the stream must end with an event
                yield fail(error, turn["run_id"])
                return
            if stored is not None:
                for event in self._recall(stored, turn, turns, thread_id, started):
                    yield event
                return

            sent: list[Event] = []
            async with aclosing(self._run(turn, turn, thread_id, started)) as events:
                async for event in events:
                    sent.append(event)
                    if event["type"] == "done" and is_storable(event):
                        # Before `done` goes out, so that whoever asks again at once finds it.
                        await self._store(key, scope, corpus, sent)
                    yield event

    async def _store(self, key: str, scope: Scope, corpus: str, sent: list[Event]) -> None:
        """Store the answer, unless the documents changed while it was being written."""
        try:
            if await self._services.documents.corpus_fingerprint(scope) == corpus:
                kept = [dict(event) for event in sent if event["type"] != "thinking"]
                await self._services.answers.put(scope.workspace_id, key, kept)
        except AskgraphError as error:
            # The reader has the answer; that nobody else will find it stored is no failure of theirs.
            logger.warning("an answer was not stored: %s", error.message)

    def _recall(
        self, stored: list[dict[str, Any]], turn: TurnInput, turns: list[Turn], thread_id: str, started: float
    ) -> list[Event]:
        """The stored events as this run's own. The turn is written into the thread, so that a follow-up can refer to
        it, by a task that the thread's next turn waits for and this reader does not."""
        *events, last = stored
        total_ms = milliseconds_since(started)
        done = cast(
            Done,
            last
            | {
                "run_id": turn["run_id"],
                "thread_id": thread_id,
                "cached": True,
                "usage": [],
                "cost": 0.0,
                "timings": {"total": round(total_ms, 2)},
                "trace_url": None,
            },
        )
        state = merge_state(
            turn,
            {
                **blank_question(),
                "turns": turns,
                "standalone_question": done["standalone_question"],
                "query": done["standalone_question"],
                "route": done["route"],
                "route_reason": "it was answered before",
                "answer": done["answer"],
                "answered_by": done["answered_by"],
                "citations": done["citations"],
                "confidence": done["confidence"],
                "verification": done["verification"],
            },
        )
        state["turns"] = finish_turn(state, done["answer"], done["citations"])
        record = make_record(state, thread_id, datetime.now(UTC), total_ms, done)
        task = self._in_background(self._remember(state, thread_id, record))
        self._remembering[thread_id] = task
        task.add_done_callback(lambda _: self._remembering.pop(thread_id, None))
        return cast("list[Event]", [*events, done])

    async def _remember(self, state: AnswerState, thread_id: str, record: RunRecord) -> None:
        # As `reconcile`, because what follows that node is the end, whatever the mode.
        config = configure(thread_id, state, cached=True)
        await self._services.graph.aupdate_state(config, cast("dict[str, Any]", state), as_node="reconcile")
        await self._keep(record)

    async def _run(
        self,
        graph_input: TurnInput | None,
        turn: Mapping[str, Any],
        thread_id: str,
        started: float,
        *,
        branch: Branch | None = None,
    ) -> AsyncGenerator[Event]:
        """One execution of the graph, with its `done` or `error` at the end, its record and its tape kept."""
        services = self._services
        started_at = datetime.now(UTC)
        await prepare_judgement(services, turn)
        context = services.make_context()
        player = None if branch is None else branch.player
        if player is not None:
            context = fill(context, player)
        calls: list[Call] | None = None
        if is_taped(services.settings, turn["workspace_id"]):
            calls = []
            context = record(context, calls)
        execution = Execution(services, services.graph, context, turn, thread_id, started)
        try:
            # Work ahead that nobody needs would use up what is on a tape.
            async with aclosing(execution.follow(graph_input, ahead=player is None)) as events:
                async for event in events:
                    yield event
        finally:
            # In a task of its own: a reader who leaves cancels the run, not its record.
            run = make_record(
                execution.state,
                thread_id,
                started_at,
                milliseconds_since(started),
                execution.ended,
                forked_from=None if branch is None else branch.forked_from,
                unfinished=context.ledger.usage,
            )
            tape = None if calls is None else Tape(describe(context), calls, execution.events)
            keeping = self._in_background(self._keep(run, tape))
            self._keeping[run.run_id] = keeping
            keeping.add_done_callback(lambda _: self._keeping.pop(run.run_id, None))
        if execution.ended is not None:
            yield execution.ended

    async def _keep(self, run: RunRecord, tape: Tape | None = None) -> None:
        encoded: bytes | None = None
        if tape is not None:
            encoded, problem = encode_tape(tape)
            if problem:
                logger.warning("run %s: %s", run.run_id, problem)
                run = replace(run, warnings=[*run.warnings, problem])
        log_turn(run)
        await self._services.runs.record(run, encoded)

    def _in_background(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        async def guarded() -> None:
            try:
                await work
            except Exception:
                logger.exception("a turn could not be recorded")

        task = asyncio.create_task(guarded())
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return task

    async def _read_turns(self, thread_id: str) -> list[Turn]:
        with self._services.translating_errors():
            snapshot = await self._services.graph.aget_state({"configurable": {"thread_id": thread_id}})
        return read_turns(snapshot.values.get("turns"))

    def _lock(self, thread_id: str) -> asyncio.Lock:
        """One turn at a time in a thread, as far as this process goes; a second one waits."""
        lock = self._locks.get(thread_id)
        if lock is None:
            lock = self._locks[thread_id] = asyncio.Lock()
        return lock


async def collect(events: AsyncGenerator[Event]) -> tuple[Done | Failed, list[Event]]:
    """Follow a turn to its end: how it ended, and all its events."""
    async with aclosing(events):
        seen = [event async for event in events]
    return cast("Done | Failed", seen[-1]), seen
