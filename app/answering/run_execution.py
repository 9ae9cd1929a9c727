"""Executes one run in this process, and stores how it ended."""

import asyncio
import logging
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from time import perf_counter

from langgraph.errors import GraphDrained
from langgraph.runtime import RunControl

from app.answering.following import Broadcast
from app.answering.graph_pass import fail, milliseconds_since
from app.answering.parts import RunParts
from app.answering.records import make_done, make_record, make_shown, publish_record
from app.answering.run_answer import RunAnswer
from app.support.cancelling import end_tasks, keep_cancelling
from app.support.logs import log_about
from app.support.spans import span
from domain.documents import list_hashes
from domain.errors import AskgraphError, Unavailable
from domain.events import Done, Failed
from domain.execution.spans import Facts, Note, ignore
from domain.history.lineage import Lineage, list_sent
from domain.runs import FIRST_TOKEN, Lease, RunRecord, RunState, Shown
from domain.state import AnswerState, count_tokens, list_grounds
from domain.text.languages import detect_language
from nodes.wording.notices import read_catalogue
from nodes.writing.stream import finish_turn

logger = logging.getLogger("askgraph.runs")

PATIENCE_SECONDS = 5.0
"""Seconds to wait for the end of a run to be stored before it is sent to the reader anyway."""


SHOWN_SECONDS = 1.0
"""Time between two notes of what a run that goes on has read: its readers have to be allowed to read it."""


class RunExecution:
    """The life of a run in this process. Whatever happens, the run ends once; see `perform`."""

    def __init__(self, parts: RunParts, lease: Lease) -> None:
        self.request = lease.request
        self.broadcast = Broadcast(lease.request.run_id, lease.attempt, parts.streams)
        self._parts = parts
        self._lease = lease
        self._started_at = datetime.now(UTC)
        self._started = perf_counter()
        self._control = RunControl()
        self._answer = RunAnswer(parts, lease, self.broadcast.send, self._started, control=self._control)
        self._work: asyncio.Task[tuple[Done | Failed, AnswerState]] | None = None
        self._given_up = False
        self._left = False
        self._hurried = False
        self._spoilt = False
        """True where the result cannot be stored at all, so that only the failure is."""
        self._note: Note = ignore
        self._taped: Done | Failed | None = None
        """The end as the graph has it, which a replay on the tape repeats."""
        self._record: tuple[RunRecord, bytes | None, Shown, Lineage] | None = None
        """What is stored with the end. Made once, however often storing is tried."""

    async def perform(self) -> None:
        """Execute the run, and store its end. Where the lease was lost, or the process drains, it ends elsewhere.

        A run that fails raises nothing: that is its end. Raises the error where the end cannot be stored; then the run
        is handed back.
        """
        request = self.request
        ids = {"run_id": request.run_id, "thread_id": request.thread_id, "workspace_id": request.workspace_id}
        with log_about(**ids), span("answer", {f"askgraph.{name}": value for name, value in ids.items()}) as note:
            self._note = note
            note(Facts(kind="agent", thread_id=request.thread_id, input=request.turn["question"]))
            await self._perform()

    async def _perform(self) -> None:
        self._work = asyncio.create_task(self._answer.find())
        noting = asyncio.create_task(self._note_showing())
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
            # The end cannot be stored, and nobody else begins the run again while this process holds it.
            with suppress(AskgraphError):
                await self._parts.queue.hand_back(self._lease)
            raise
        finally:
            await end_tasks(self._work, noting)
            self.broadcast.close()

    async def _note_showing(self) -> None:
        """Note which documents were read and shown, for as long as the run goes on, and those of the turns that it was
        given, which it may repeat."""
        noted = set[str]()
        while True:
            await asyncio.sleep(SHOWN_SECONDS)
            showing = {each["document_id"] for each in list_sent(self._answer.sent)}
            showing |= {document_id for document_id, _ in self._answer.reads.known}
            turns = {turn["run_id"] for turn in self._answer.turns}
            if showing | turns > noted:
                with suppress(AskgraphError):
                    await self._parts.queue.note_showing(self._lease, showing, turns)
                    noted = showing | turns

    def stop(self) -> None:
        """End the run with what it has written so far."""
        self._answer.stopped = True
        if self._answer.knows_turns:
            self._cancel_work()

    def give_up(self) -> None:
        """Stop without an end: another process holds the lease."""
        self._given_up = True
        self._cancel_work()

    def hurry(self) -> None:
        """Do not wait for the database to store the end: the process is about to exit, and another one will repeat the
        run's end."""
        self._hurried = True

    def drain(self) -> None:
        """Let the current step finish; another process continues after it."""
        self._control.request_drain()

    def leave(self) -> None:
        """Cancel the current step; another process takes it again."""
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
            self._parts.states.flush(self.request.workspace_id, self.request.thread_id),
            self._parts.streams.flush(self.request.run_id),
        )

    async def _conclude(self, work: "asyncio.Task[tuple[Done | Failed, AnswerState]]") -> None:
        """Store the end of the run, and send it."""
        run_state: RunState
        state: AnswerState
        ended: Done | Failed
        try:
            ended, state = work.result()
            run_state = "failed" if ended["type"] == "error" else "done"
        except GraphDrained:
            raise
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - the run must end, whatever it is
            state = self._answer.read_progress()
            if self._answer.stopped and self._answer.knows_turns:
                ended, run_state = self._make_stop(state), "stopped"
            else:
                ended, run_state = fail(error, self.request.run_id), "failed"
        self._taped = ended
        if self.request.leaves_unread and ended["type"] == "done":
            language = detect_language(state["question"]) or state["language"]
            ended = {**ended, "warnings": [*ended["warnings"], read_catalogue(language).warnings.unread]}
        await self._store_end(run_state, ended, state)

    def _make_stop(self, state: AnswerState) -> Done:
        """Make the end of a run that was stopped. Its turn joins the conversation, marked as stopped."""
        run_id = self.request.run_id
        turns = finish_turn(state, state["answer"], state["citations"], state["outcome"])
        # What it has written last may not be cited yet.
        grounds = list_hashes(state["sources"])
        state["turns"] = [
            {**turn, "stopped": True, "rests_on": grounds | list_grounds(turn)} if turn["run_id"] == run_id else turn
            for turn in turns
        ]
        total_ms = milliseconds_since(self._started)
        return make_done(state, self.request.thread_id, total_ms, self._answer.trace_url(), stopped=True)

    async def _store_end(self, run_state: RunState, ended: Done | Failed, state: AnswerState) -> None:
        """Store the end before sending it, so that no answer that a reader has is written again. Tries until the
        database takes it, but keeps the reader waiting for `PATIENCE_SECONDS` at most."""
        began, pause, sent = perf_counter(), 0.05, False
        # Before the reader has the end, with which the span of the request may end.
        self._note(Facts(output=state["answer"] if run_state != "failed" else ended))
        ended_id = self.broadcast.next_id
        while True:
            storing = asyncio.create_task(self._try_to_end(run_state, ended, ended_id, state))
            try:
                if not sent:
                    patience = began + PATIENCE_SECONDS - perf_counter()
                    if not (await asyncio.wait({storing}, timeout=max(0.0, patience)))[0]:
                        logger.error("run %s: its end cannot be stored yet", self.request.run_id)
                        self._answer.send(ended)
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
                if self._spoilt or sent:
                    raise
                self._spoilt, self._record = True, None
                ended, run_state, state = fail(error, self.request.run_id), "failed", self._answer.make_blank()
            finally:
                if not storing.done():
                    await end_tasks(storing)
        if not kept:
            logger.warning("run %s ended elsewhere; its result here is dropped", self.request.run_id)
        elif not sent:
            self._answer.send(ended)

    async def _try_to_end(self, run_state: RunState, ended: Done | Failed, ended_id: str, state: AnswerState) -> bool:
        if run_state == "stopped":
            await self._answer.write_state(state, stopped="true")
        await self._flush()
        if self._record is None:
            self._record = self._make_record(ended, state)
        kept = await self._parts.queue.end(self._lease, run_state, ended, ended_id, *self._record)
        if kept:
            publish_record(self._record[0])
            # Before the caller sees the end and may ask again.
            record = self._record[0]
            await self._parts.limits.end_run(
                self.request.caller, record.run_id, count_tokens(record.usage), record.cost or 0.0
            )
        return kept

    def _make_record(self, ended: Done | Failed, state: AnswerState) -> tuple[RunRecord, bytes | None, Shown, Lineage]:
        """Make the run's record, what its observer stores beside it, what it showed, and its lineage."""
        context = self._answer.context
        run = make_record(
            state,
            self.request.thread_id,
            self._started_at,
            milliseconds_since(self._started),
            ended,
            forked_from=self.request.forked_from,
            unfinished=[] if context is None else context.ledger.usage,
        )
        if self._answer.first_token_ms is not None:
            run.timings[FIRST_TOKEN] = self._answer.first_token_ms
        sent = [event for event in self._answer.sent if event is not ended]
        beside, problem = (None, None) if self._spoilt else self._answer.observer.finish([*sent, self._taped or ended])
        if problem:
            logger.warning("run %s: %s", run.run_id, problem)
            run = replace(run, warnings=[*run.warnings, problem])
        shown = make_shown(self._answer.sent, state["steps"], ended)
        return run, beside, shown, self._answer.find_lineage(state)
