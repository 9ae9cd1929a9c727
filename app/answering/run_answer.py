"""Answers the question of one run: from the cache, or with the graph."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import replace
from typing import cast
from uuid import uuid4

from langgraph.runtime import RunControl
from langgraph.types import StateSnapshot

from app.access.authority import limit_rights
from app.answering.cached_answers import (
    decode_answer,
    encode_answer,
    is_storable,
    make_key,
    may_call_outside,
)
from app.answering.graph_pass import GraphPass, milliseconds_since, prepare_judgement
from app.answering.parts import RunParts
from app.answering.reading import note_reads
from app.answering.records import adopt, make_done
from app.history.since import hold_back
from app.history.states import read_values
from app.history.thread_states import trace_id
from domain.documents import Citation
from domain.errors import AskgraphError, Forbidden, RunLost
from domain.events import RESTART, Correction, Done, Event, Failed
from domain.history.lineage import NO_LINEAGE, Lineage, ReadDocuments, find_lineage
from domain.ports.answers import AnswerKey
from domain.runs import Lease
from domain.scope import Scope
from domain.state import REMEMBERED_TURNS, AnswerState, Turn, TurnInput, blank_question, merge_state, read_turns
from nodes.context import Context, Models

logger = logging.getLogger("askgraph.runs")

MAX_ATTEMPTS = 5
"""Maximum number of times that a run is started. If so many processes died during it, it probably kills them."""
_WRITING = ("work", "generate")
"""The steps that wait for the model that writes."""


class RunAnswer:
    """One attempt at the answer of a run. Sends its events, but the last."""

    def __init__(
        self,
        parts: RunParts,
        lease: Lease,
        send: Callable[[Event], None],
        started: float,
        *,
        control: RunControl,
    ) -> None:
        """`started` is a time of `perf_counter`."""
        self.request = lease.request
        self.sent: list[Event] = []
        self.turns: list[Turn] = []
        self.knows_turns = False
        """True once the thread's turns have been read; the turn of a stopped run is added to them."""
        self.first_token_ms: float | None = None
        """Milliseconds from the start to the answer's first word."""
        self.stopped = False
        """Set to True to stop the run once the thread's turns have been read."""
        self.context: Context | None = None
        """The context of its pass through the graph."""
        self.observer = parts.observe(lease.request)
        self._parts = parts
        self._lease = lease
        self._send_event = send
        self._started = started
        self._control = control
        self._pass: GraphPass | None = None
        self._reached: AnswerState | None = None
        """What an earlier attempt has saved. Its documents are those of the run, however it ends."""
        self._origin = NO_LINEAGE
        """What the answer was made from, where it is another run's."""

    async def find(self) -> tuple[Done | Failed, AnswerState]:
        """Answer the question. Returns the run's last event, and its final state.

        Raises `GraphDrained` where the run's control was asked to drain, and `RunLost` after too many attempts.
        """
        if self._lease.unattended:
            groups = await self._parts.authority.read_groups(self.request.caller, self.request.workspace_id)
            self.request = replace(self.request, turn=cast(TurnInput, limit_rights(self.request.turn, groups)))
        # A new thread has no state, and finding none takes as long as reading one.
        saved = None if self._begins_thread else await self._read_state()
        values = self._reached = self._read_values(saved)
        if self._lease.attempt > MAX_ATTEMPTS:
            raise RunLost
        if values is not None and Scope.from_json(values["scope"]) != self._scope:
            # It holds what was found with more rights, and readers were shown it.
            raise Forbidden("This was begun with rights that its asker does not have any more. Ask again.")
        if self._lease.attempt > 1:
            self._send_restart(values)
        await self._take_up_conversation(saved)
        if self.stopped:
            raise asyncio.CancelledError
        if saved is None or values is None:
            return await self._answer()
        # Not `next`, which leaves out a step whose writes are stored and whose state is not.
        if saved.tasks:
            return await self._run_graph(None, values)
        total_ms = milliseconds_since(self._started)
        return make_done(values, self.request.thread_id, total_ms, self.trace_url()), values

    async def _take_up_conversation(self, saved: StateSnapshot | None) -> None:
        """Read what was said before, as far as the asker may read it and its documents stand as they were cited."""
        said = self.request.history if saved is None else saved.values.get("turns")
        past = [each for each in read_turns(said)[-REMEMBERED_TURNS:] if each["run_id"] != self.request.run_id]
        self.turns = list(await self._parts.threads.list_readable(self._scope, past))
        is_new = self._reached is None
        if is_new:
            self.turns = await hold_back(self._parts.documents, self._scope, self.turns)
        # What the asker may not read stands in no state of their run. What a client brought is saved like the end of an
        # earlier run, so that the graph, history and replays find it there, and so is what is held back.
        if self.request.history if saved is None else is_new and self.turns != past:
            await self._write_conversation()
        self.knows_turns = True

    async def _answer(self) -> tuple[Done | Failed, AnswerState]:
        """Answer from the cache, or with the graph from its beginning."""
        parts, turn = self._parts, self.request.turn
        key = make_key(turn, self.turns, parts.fingerprint, await self._fingerprint_corpus())
        if not self.request.anew and (stored := await parts.answers.find(key)) is not None:
            events, done, self._origin = decode_answer(stored, self.request, milliseconds_since(self._started))
            for event in events:
                self.send(event)
            # In the thread, so that a follow-up can refer to it.
            state = adopt(turn, self.turns, done)
            await self.write_state(state, begins_thread=self._has_no_states, cached="true")
            return done, state
        ended, state = await self._run_graph(turn, self.make_blank())
        if ended["type"] == "done" and is_storable(ended) and not may_call_outside(state):
            # Before `done` is sent, so that whoever asks again at once finds it.
            await self._store(key, ended, self.find_lineage(state))
        return ended, state

    async def _write_conversation(self) -> None:
        """Make the conversation so far the thread's latest state, as if it were the end of an earlier run."""
        changes = {**blank_question(), "turns": self.turns, "run_id": str(uuid4())}
        await self.write_state(merge_state(self.request.turn, changes))

    def send(self, event: Event) -> None:
        """Send an event, and remember it."""
        if event["type"] == "content" and self.first_token_ms is None:
            self.first_token_ms = milliseconds_since(self._started)
        self.sent.append(event)
        self._send_event(event)

    def read_progress(self) -> AnswerState:
        """Return the state of a run that got no further, with the answer that it has sent so far."""
        state = self._reached or self.make_blank()
        if self._pass is not None:
            state |= self._pass.state
        answer, citations = "", list[Citation]()
        for event in self.sent:
            if event["type"] == "content":
                answer += event["token"]
            elif event["type"] == "citation":
                citations.append(event["citation"])
            elif event["type"] == "correction":
                answer, citations = event["answer"], list(event["citations"])
        state["answer"], state["citations"] = answer, citations
        state["standalone_question"] = state["standalone_question"] or state["question"]
        return state

    def find_lineage(self, state: AnswerState) -> Lineage:
        """Return what the run was made from, with this last state."""
        return find_lineage(state, self.sent, self.reads, self.request.forked_from).join(self._origin)

    @property
    def reads(self) -> ReadDocuments:
        """What the ports of the library have returned to it so far, in this process."""
        return ReadDocuments() if self.context is None else self.context.reads

    def make_blank(self) -> AnswerState:
        """Make the state in which a run begins."""
        return merge_state(self.request.turn, {**blank_question(), "turns": self.turns})

    async def write_state(self, state: AnswerState, *, begins_thread: bool = False, **metadata: str) -> None:
        """Make `state` the thread's latest, under this attempt."""
        attempt = self._lease.attempt
        await self._parts.states.write(
            self.request.thread_id, state, attempt=attempt, begins_thread=begins_thread, **metadata
        )

    def trace_url(self) -> str | None:
        """Return the address of this attempt's trace."""
        return self._parts.trace_url(trace_id(self.request.run_id, self._lease.attempt))

    @property
    def _scope(self) -> Scope:
        return Scope.from_json(self.request.turn["scope"])

    @property
    def _begins_thread(self) -> bool:
        """Return True where no earlier run or attempt can have saved a state."""
        return self.request.begins_thread and self._lease.attempt == 1

    @property
    def _has_no_states(self) -> bool:
        """Return True until the graph begins, or a cached answer is written, in a thread that begins with it."""
        return self._begins_thread and not self.request.history

    async def _read_state(self) -> StateSnapshot | None:
        """Read the thread's latest state; None where it has none yet."""
        snapshot = await self._parts.states.read(self.request.workspace_id, self.request.thread_id)
        return snapshot if snapshot.created_at else None

    def _read_values(self, saved: StateSnapshot | None) -> AnswerState | None:
        """Return the saved state where it is this run's own."""
        if saved is None or saved.values.get("run_id") != self.request.run_id:
            return None
        values = read_values(saved)
        if saved.next == ("route",):
            # route resets what the thread's last question has left.
            values |= blank_question()
        return cast(AnswerState, values)

    async def _run_graph(self, graph_input: TurnInput | None, values: AnswerState) -> tuple[Done | Failed, AnswerState]:
        parts, turn = self._parts, self.request.turn
        # LangGraph's own id of a run is that of its trace, and each attempt has its own.
        context = note_reads(replace(parts.make_context(), run_id=turn["run_id"]))
        await prepare_judgement(context.judges)
        self.context = context = self.observer.wrap(context)
        graph_pass = GraphPass(
            parts.states,
            context,
            values,
            self.request.thread_id,
            self._started,
            trace_url=parts.trace_url,
            control=self._control,
            attempt=self._lease.attempt,
            begins_thread=self._has_no_states,
        )
        self._pass = graph_pass
        writes = context.models != Models()
        async with (
            parts.admission.take_turn() as end_turn,
            aclosing(graph_pass.follow(graph_input)) as events,
        ):
            async for event in events:
                if event["type"] == "content" or (writes and event["type"] == "thinking" and event["step"] in _WRITING):
                    end_turn()
                self.send(event)
        assert graph_pass.ended is not None
        return graph_pass.ended, graph_pass.state

    async def _fingerprint_corpus(self) -> str:
        return await self._parts.documents.corpus_fingerprint(self._scope)

    async def _store(self, key: AnswerKey, ended: Done, lineage: Lineage) -> None:
        """Store the answer, unless the documents changed while it was being written."""
        try:
            if await self._fingerprint_corpus() == key.corpus:
                await self._parts.answers.put(key, encode_answer([*self.sent, ended], lineage))
        except AskgraphError as error:
            # The reader has the answer all the same.
            logger.warning("an answer was not stored: %s", error.message)

    def _send_restart(self, values: AnswerState | None) -> None:
        """Withdraw what an earlier attempt has sent, except what the saved state holds of it."""
        answer, citations = (values["answer"], values["citations"]) if values is not None else ("", [])
        self.send(Correction(type="correction", reason=RESTART, answer=answer, citations=citations))
