"""Executes one run in this process."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from dataclasses import replace
from datetime import UTC, datetime
from time import perf_counter
from typing import cast

from langgraph.errors import GraphDrained
from langgraph.runtime import RunControl
from langgraph.types import StateSnapshot

from app.runs.broadcast import Broadcast
from app.runs.cache_key import CacheKey
from app.runs.graph_pass import GraphPass, fail, milliseconds_since, prepare_judgement
from app.runs.hit_log import ANSWERED_BEFORE
from app.runs.parts import RunParts
from app.runs.records import adopt, log_turn, make_done, make_record, merge_state
from app.runs.run_config import trace_id
from app.runs.states import bring_up_to_date, read_values
from app.runs.stored_answers import UNPAID, decode_answer, encode_answer, is_storable
from app.runs.tapes import encode_tape
from app.runs.taping import Player, describe, fill, record
from app.support.cancelling import end_tasks, keep_cancelling
from domain.documents import Citation
from domain.errors import AskgraphError, RunLost, Unavailable
from domain.events import RESTART, Correction, Done, Event, Failed
from domain.runs import Lease, RunRecord, RunState
from domain.state import AnswerState, Turn, TurnInput, blank_question, read_turns
from domain.streams import StreamedEvent
from domain.tapes import Call, Tape
from nodes.context import Context
from nodes.scope import scope_of
from nodes.writing import finish_turn

logger = logging.getLogger("askgraph.runs")

MAX_ATTEMPTS = 5
"""A run during which so many processes have died is what kills them."""

PATIENCE_SECONDS = 5.0
"""How long the reader of a whole answer waits for its end where that cannot be stored."""

Follow = Callable[[str, str], AsyncGenerator[StreamedEvent]]
"""Follows another run of a workspace."""


class RunExecution:
    """Executes a run: with a cached answer, by following a run that is answering the same question, or with the graph.
    Whatever happens, the run ends once; see `perform`."""

    def __init__(self, parts: RunParts, lease: Lease, follow: Follow, *, player: Player | None = None) -> None:
        self.request = lease.request
        self.broadcast = Broadcast(lease.request.run_id, lease.attempt, parts.streams)
        self._parts = parts
        self._lease = lease
        self._follow = follow
        self._player = player
        self._started_at = datetime.now(UTC)
        self._started = perf_counter()
        self._control = RunControl()
        self._sent: list[Event] = []
        self._turns: list[Turn] = []
        self._knows_turns = False
        """Whether the thread's turns have been read: those of a stopped run are added to them."""
        self._context: Context | None = None
        self._calls: list[Call] | None = None
        self._pass: GraphPass | None = None
        self._work: asyncio.Task[tuple[Done | Failed, AnswerState]] | None = None
        self._stopped = False
        self._given_up = False
        self._left = False
        self._hurried = False
        self._record: tuple[RunRecord, bytes | None] | None = None
        """What is stored of the run with its end: however often that is tried, the same."""

    async def perform(self) -> None:
        """Execute the run, and store how it ended. Where the lease was lost, or the process drains, it ends elsewhere.

        Nothing is raised for a run that fails: that is its end. Raises what an end that cannot be stored fails with;
        then the run is handed back.
        """
        self._work = asyncio.create_task(self._answer())
        try:
            if self._given_up or self._left:
                keep_cancelling(self._work)
            await asyncio.wait({self._work})
            if self._given_up:
                return
            if self._left and self._work.cancelled():
                await self._hand_back()
            else:
                await self._conclude(self._work)
        except GraphDrained:
            await self._hand_back()
        except Exception:
            # How it ended cannot be stored, and while this process holds it nobody else would begin it again.
            with suppress(AskgraphError):
                await self._parts.queue.hand_back(self._lease)
            raise
        finally:
            if not self._work.done():
                await end_tasks(self._work)
            self.broadcast.close()

    def stop(self) -> None:
        """End the run with what it has written so far."""
        self._stopped = True
        if self._knows_turns:
            self._cancel_work()

    def give_up(self) -> None:
        """Stop without an end: another process has the lease."""
        self._given_up = True
        self._cancel_work()

    def hurry(self) -> None:
        """The process is about to end: where the run's end cannot be stored, do not wait for a database that can.
        Whoever takes up the run then has it end again."""
        self._hurried = True

    def drain(self) -> None:
        """Let the step that is being taken finish; another process goes on from there."""
        self._control.request_drain()

    def leave(self) -> None:
        """Do not even let the step finish; another process takes it again."""
        self._left = True
        self._cancel_work()

    def _cancel_work(self) -> None:
        if self._work is not None:
            keep_cancelling(self._work)

    async def _hand_back(self) -> None:
        await self._flush()
        await self._parts.queue.hand_back(self._lease)

    async def _flush(self) -> None:
        """Return once the run's states are stored, and its events are where others can read them."""
        await asyncio.gather(
            self._parts.states.flush(self.request.thread_id), self._parts.streams.flush(self.request.run_id)
        )

    async def _answer(self) -> tuple[Done | Failed, AnswerState]:
        """How the run ends, and its state then."""
        turn, parts = self.request.turn, self._parts
        if self._lease.attempt > MAX_ATTEMPTS:
            raise RunLost
        # A new thread has no state, and reading that takes as long as reading one.
        saved = None if self.request.begins_thread and self._lease.attempt == 1 else await self._read_state()
        values = self._read_values(saved)
        if self._lease.attempt > 1:
            self._send_restart(values)
        if saved is not None:
            past = read_turns(saved.values.get("turns"))
            self._turns = [each for each in past if each["run_id"] != turn["run_id"]]
        self._knows_turns = True
        if self._stopped:
            raise asyncio.CancelledError
        if saved is not None and values is not None:
            # Its tasks, and not `next`, which leaves out a step whose writes are stored and whose state is not.
            if saved.tasks:
                return await self._run_graph(None, values)
            total_ms = milliseconds_since(self._started)
            return make_done(values, self.request.thread_id, total_ms, self._trace_url()), values

        scope = scope_of(turn)
        corpus = await parts.documents.corpus_fingerprint(scope)
        cache_key = CacheKey.of(turn, self._turns, parts.fingerprint)
        key = cache_key.at(corpus)
        stored = await parts.answers.get(key)
        if stored is not None:
            *events, last = decode_answer(stored, {})
            for event in events:
                self._send(event)
            return await self._adopt(cast(Done, last), ANSWERED_BEFORE)
        followed = {turn["run_id"]}
        while (leader := await parts.answers.lead(key, turn["run_id"])) not in followed:
            followed.add(leader)
            status = await parts.queue.get(turn["scope"]["workspace_id"], leader)
            if status is None or status.state != "running":
                # It has ended, or lost its process, without saying that it leads no more. What may be given again of
                # an ended run is stored; and one that waits for a process must not be waited for by one.
                await parts.answers.release(key, leader)
                continue
            shared = await self._share(leader)
            if shared is not None:
                return shared
        try:
            ended, state = await self._run_graph(turn, self._make_blank())
            if ended["type"] == "done" and is_storable(ended):
                # Before `done` goes out, so that whoever asks again at once finds it.
                await self._store(cache_key, corpus, ended)
            return ended, state
        finally:
            await parts.answers.release(key, turn["run_id"])

    async def _read_state(self) -> StateSnapshot | None:
        """How the thread stands; None where it has no state yet."""
        parts, thread_id = self._parts, self.request.thread_id
        with parts.states.translating_errors():
            snapshot = await bring_up_to_date(parts.states.graph, thread_id)
            if not snapshot.created_at and await parts.threads.settle(self.request.workspace_id, thread_id):
                snapshot = await bring_up_to_date(parts.states.graph, thread_id)
        return snapshot if snapshot.created_at else None

    async def _run_graph(self, graph_input: TurnInput | None, values: AnswerState) -> tuple[Done | Failed, AnswerState]:
        parts, turn = self._parts, self.request.turn
        # LangGraph's own id of a run is that of its trace, and each attempt has its own.
        context = replace(parts.make_context(), run_id=turn["run_id"])
        await prepare_judgement(context.judges, values)
        if self._player is not None:
            context = fill(context, self._player)
        if parts.tapes.applies_to(turn["scope"]["workspace_id"]):
            self._calls = []
            context = record(context, self._calls)
        self._context = context
        thread_id = self.request.thread_id
        graph_pass = GraphPass(
            parts.states,
            context,
            values,
            thread_id,
            self._started,
            trace_url=parts.trace_url,
            control=self._control,
            attempt=self._lease.attempt,
        )
        self._pass = graph_pass
        # Work ahead that nobody needs would use up what is on a tape.
        async with aclosing(graph_pass.follow(graph_input, ahead=self._player is None)) as events:
            async for event in events:
                self._send(event)
        assert graph_pass.ended is not None
        return graph_pass.ended, graph_pass.state

    async def _share(self, leader: str) -> tuple[Done | Failed, AnswerState] | None:
        """Send what the run sends that answers the same question now. None where it was stopped, or is gone."""
        ended: Event | None = None
        async with aclosing(self._follow(self.request.workspace_id, leader)) as events:
            async for streamed in events:
                ended = streamed.event
                if not streamed.is_end:
                    self._send(ended)
        if ended is not None and ended["type"] == "done" and not ended["stopped"]:
            return await self._adopt(ended, "the same question was being answered")
        if ended is not None and ended["type"] == "error" and not ended["retryable"]:
            return ended, self._make_blank()
        self._send(Correction(type="correction", reason=RESTART, answer="", citations=[]))
        return None

    async def _adopt(self, done: Done, reason: str) -> tuple[Done, AnswerState]:
        """Another run's end as this one's. The turn is written into the thread, so that a follow-up can refer to it."""
        turn = self.request.turn
        mine = {
            **done,
            **UNPAID,
            "run_id": turn["run_id"],
            "thread_id": self.request.thread_id,
            "timings": {"total": round(milliseconds_since(self._started), 2)},
        }
        state = adopt(turn, self._turns, done, reason)
        await self._write_state(state, cached="true")
        return cast(Done, mine), state

    async def _write_state(self, state: AnswerState, **metadata: str) -> None:
        attempt = self._lease.attempt
        await self._parts.states.write(self.request.thread_id, state, attempt=attempt, **metadata)

    async def _store(self, key: CacheKey, corpus: str, ended: Done) -> None:
        """Store the answer, unless the documents changed while it was being written."""
        try:
            if await self._parts.documents.corpus_fingerprint(key.scope) == corpus:
                answer = encode_answer([*self._sent, ended])
                await self._parts.answers.put(key.at(corpus), key.components(corpus), answer)
        except AskgraphError as error:
            # The reader has the answer; that nobody else will find it stored is no failure of theirs.
            logger.warning("an answer was not stored: %s", error.message)

    async def _conclude(self, work: "asyncio.Task[tuple[Done | Failed, AnswerState]]") -> None:
        """Store how the run ended, and say so."""
        run_state: RunState
        state: AnswerState
        ended: Done | Failed
        try:
            ended, state = work.result()
            run_state = "failed" if ended["type"] == "error" else "done"
        except GraphDrained:
            raise
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - the run must end, whatever it is
            state = self._read_progress()
            if self._stopped and self._knows_turns:
                ended, run_state = self._make_stop(state), "stopped"
            else:
                ended, run_state = fail(error, self.request.run_id), "failed"
        await self._store_end(run_state, ended, state)

    def _make_stop(self, state: AnswerState) -> Done:
        """The end of a run that was stopped. Its turn joins the conversation, marked."""
        run_id = self.request.run_id
        turns = finish_turn(state, state["answer"], state["citations"], state["outcome"])
        state["turns"] = [turn | {"stopped": True} if turn["run_id"] == run_id else turn for turn in turns]
        total_ms = milliseconds_since(self._started)
        return make_done(state, self.request.thread_id, total_ms, self._trace_url(), stopped=True)

    def _trace_url(self) -> str | None:
        return self._parts.trace_url(trace_id(self.request.run_id, self._lease.attempt))

    def _read_progress(self) -> AnswerState:
        """The state of a run that got no further, with what it has sent of the answer."""
        state = self._make_blank()
        if self._pass is not None:
            state |= self._pass.state
        answer, citations = "", list[Citation]()
        for event in self._sent:
            if event["type"] == "content":
                answer += event["token"]
            elif event["type"] == "citation":
                citations.append(event["citation"])
            elif event["type"] == "correction":
                answer, citations = event["answer"], list(event["citations"])
        state["answer"], state["citations"] = answer, citations
        state["standalone_question"] = state["standalone_question"] or state["question"]
        return state

    def _make_blank(self) -> AnswerState:
        """The state in which a run begins."""
        return merge_state(self.request.turn, {**blank_question(), "turns": self._turns})

    async def _store_end(self, run_state: RunState, ended: Done | Failed, state: AnswerState) -> None:
        """Store the end before it is sent, so that no answer counts as given that may be given again. Tries until the
        database takes it; a reader does not wait that long."""
        began, pause, sent, spoilt = perf_counter(), 0.05, False, False
        ended_id = self.broadcast.next_id
        while True:
            storing = asyncio.create_task(self._try_to_end(run_state, ended, ended_id, state))
            try:
                if not sent:
                    patience = began + PATIENCE_SECONDS - perf_counter()
                    if not (await asyncio.wait({storing}, timeout=max(0.0, patience)))[0]:
                        logger.error("run %s: its end cannot be stored yet", self.request.run_id)
                        self._send(ended)
                        sent = True
                kept = await storing
                break
            except Unavailable as error:
                logger.debug("run %s: its end cannot be stored yet: %s", self.request.run_id, error.message)
                if self._left or (sent and self._hurried):
                    return
                await asyncio.sleep(pause)
                pause = min(2 * pause, PATIENCE_SECONDS)
            except Exception as error:
                if spoilt or sent:
                    raise
                # What was made cannot be stored at all; that it failed can.
                spoilt, self._calls, self._record = True, None, None
                ended, run_state, state = fail(error, self.request.run_id), "failed", self._make_blank()
            finally:
                if not storing.done():
                    await end_tasks(storing)
        if not kept:
            logger.warning("run %s ended elsewhere; what was done of it here is dropped", self.request.run_id)
        elif not sent:
            self._send(ended)

    async def _try_to_end(self, run_state: RunState, ended: Done | Failed, ended_id: str, state: AnswerState) -> bool:
        if run_state == "stopped":
            await self._write_state(state, stopped="true")
        await self._flush()
        if self._record is None:
            self._record = self._make_record(ended, state)
        kept = await self._parts.queue.end(self._lease, run_state, ended, ended_id, *self._record)
        if kept:
            log_turn(self._record[0])
        return kept

    def _make_record(self, ended: Done | Failed, state: AnswerState) -> tuple[RunRecord, bytes | None]:
        """The run as it is kept, and its tape where it has one."""
        run = make_record(
            state,
            self.request.thread_id,
            self._started_at,
            milliseconds_since(self._started),
            ended,
            forked_from=self.request.forked_from,
            unfinished=[] if self._context is None else self._context.ledger.usage,
        )
        tape: bytes | None = None
        if self._calls is not None and self._context is not None:
            sent = [event for event in self._sent if event is not ended]
            tape, problem = encode_tape(Tape(describe(self._context), self._calls, [*sent, ended]))
            if problem:
                logger.warning("run %s: %s", run.run_id, problem)
                run = replace(run, warnings=[*run.warnings, problem])
        return run, tape

    def _read_values(self, saved: StateSnapshot | None) -> AnswerState | None:
        """The saved state where it is this run's own."""
        if saved is None or saved.values.get("run_id") != self.request.run_id:
            return None
        values = read_values(saved)
        if saved.next == ("route",):
            # Which resets what the thread's last question has left there.
            values |= blank_question()
        return cast(AnswerState, values)

    def _send_restart(self, values: AnswerState | None) -> None:
        """Say that what was sent before does not stand, but for what the saved state has of it."""
        answer, citations = (values["answer"], values["citations"]) if values is not None else ("", [])
        self._send(Correction(type="correction", reason=RESTART, answer=answer, citations=citations))

    def _send(self, event: Event) -> None:
        self._sent.append(event)
        self.broadcast.send(event)
