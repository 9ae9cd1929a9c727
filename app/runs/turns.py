"""A turn's life: checked, served from the cache or run through the graph, streamed, recorded."""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime
from time import perf_counter
from typing import Any, cast
from uuid import UUID, uuid4
from weakref import WeakValueDictionary

from langchain_core.runnables import RunnableConfig
from langgraph.errors import NodeTimeoutError

from app.runs.cache import CacheKey, is_storable
from app.services import Services
from domain.documents import Scope
from domain.errors import AskgraphError, UnknownMode
from domain.events import Done, Event, Failed
from domain.question import clean_question
from domain.runs import RunRecord
from domain.state import AnswerState, Step, Turn, TurnInput, Usage

logger = logging.getLogger("askgraph.turns")

LOW_TOP_SCORE = 0.3
"""Below this the best source is probably not about the question; such turns are marked in the log (DESIGN, §1)."""


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
    """A run that starts from a saved state, in a thread of its own that `config` names."""

    thread_id: str
    values: AnswerState
    forked_from: dict[str, Any]


class Turns:
    """Starts turns and follows them to their end."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._background: set[asyncio.Task[None]] = set()
        self._remembering: dict[str, asyncio.Task[None]] = {}

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
        scope = Scope(ask.workspace_id, ask.document_ids)
        corpus = await services.documents.corpus_fingerprint(scope)
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
        thread_id = ask.thread_id or str(uuid4())
        return self._follow(turn, thread_id, ask.thread_id is None, scope, corpus, started)

    async def resume(self, branch: Branch) -> AsyncGenerator[Event]:
        """Run on from a saved state. Never served from the cache, and never stored in it."""
        values = branch.values
        async with (
            self._lock(branch.thread_id),
            aclosing(
                self._run(None, values, branch.thread_id, perf_counter(), forked_from=branch.forked_from)
            ) as events,
        ):
            async for event in events:
                yield event

    async def close(self) -> None:
        """Wait for what is still being written."""
        await asyncio.gather(*self._background, return_exceptions=True)

    async def _follow(
        self, turn: TurnInput, thread_id: str, is_new: bool, scope: Scope, corpus: str, started: float
    ) -> AsyncGenerator[Event]:
        services = self._services
        async with self._lock(thread_id):
            try:
                if remembering := self._remembering.get(thread_id):
                    await asyncio.shield(remembering)
                turns = [] if is_new else await self._read_turns(thread_id)
                key = CacheKey.of(turn, turns, corpus, services.fingerprint).digest()
                if (stored := await services.answers.get(key)) is not None:
                    task = self._in_background(self._remember(stored, turn, turns, thread_id, started))
                    self._remembering[thread_id] = task
                    task.add_done_callback(lambda _: self._remembering.pop(thread_id, None))
                    for event in self._recall(stored, turn, thread_id, started):
                        yield event
                    return
                if is_new:
                    await services.threads.claim(turn["workspace_id"], thread_id)
            except AskgraphError as error:
                yield _fail(error)
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
        if await self._services.documents.corpus_fingerprint(scope) == corpus:
            kept = [dict(event) for event in sent if event["type"] != "thinking"]
            await self._services.answers.put(scope.workspace_id, key, kept)

    def _recall(self, stored: list[dict[str, Any]], turn: TurnInput, thread_id: str, started: float) -> list[Event]:
        """The stored events as this run's own."""
        *events, done = stored
        done = done | {
            "run_id": turn["run_id"],
            "thread_id": thread_id,
            "cached": True,
            "usage": [],
            "cost": 0.0,
            "timings": {"total": _milliseconds_since(started)},
            "trace_url": None,
        }
        return cast("list[Event]", [*events, done])

    async def _remember(
        self, stored: list[dict[str, Any]], turn: TurnInput, turns: list[Turn], thread_id: str, started: float
    ) -> None:
        """Write a cached turn into the thread, so that a follow-up can refer to it.

        After the answer is out: the reader does not wait for it, and the thread's next turn does.
        """
        services = self._services
        done = cast(Done, stored[-1])
        await services.threads.claim(turn["workspace_id"], thread_id)
        update = {
            **turn,
            "standalone_question": turn["question"],
            "route": done["route"],
            "answer": done["answer"],
            "citations": done["citations"],
            "confidence": done["confidence"],
            "verification": done["verification"],
            "sources": [],
            "candidates": [],
            "retries": 0,
            "steps": [],
            "turns": [
                *turns,
                Turn(
                    run_id=turn["run_id"],
                    question=turn["question"],
                    standalone_question=turn["question"],
                    route=done["route"],
                    answer=done["answer"],
                    documents=list(dict.fromkeys(c["title"] for c in done["citations"])),
                ),
            ],
        }
        # An update as `reconcile`, because what follows it is the end, whatever the mode.
        config = _configure(thread_id, turn, cached=True)
        await services.graph.aupdate_state(config, update, as_node="reconcile")
        await services.runs.record(
            RunRecord(
                run_id=turn["run_id"],
                thread_id=thread_id,
                workspace_id=turn["workspace_id"],
                mode=turn["mode"],
                question=turn["question"],
                started_at=datetime.now(UTC),
                standalone_question=turn["question"],
                document_ids=turn["document_ids"],
                route=done["route"],
                confidence=done["confidence"],
                verification=done["verification"]["status"],
                cached=True,
                answer=done["answer"],
                citations=done["citations"],
                timings={"total": _milliseconds_since(started)},
            )
        )

    async def _run(
        self,
        graph_input: TurnInput | None,
        turn: Mapping[str, Any],
        thread_id: str,
        started: float,
        *,
        forked_from: dict[str, Any] | None = None,
    ) -> AsyncGenerator[Event]:
        """One execution of the graph, with its `done` or `error` at the end and its record kept."""
        services = self._services
        started_at = datetime.now(UTC)
        state: dict[str, Any] = dict(turn)
        ended: Done | Failed | None = None
        config = _configure(thread_id, turn)
        try:
            with services.translating_errors():
                stream = services.graph.astream(
                    graph_input,
                    config,
                    context=services.make_context(),
                    stream_mode=["custom", "values"],
                    durability="async",
                )
                async with aclosing(cast("AsyncGenerator[tuple[str, Any]]", stream)) as parts:
                    async for mode, part in parts:
                        if mode == "values":
                            state = part
                        else:
                            yield part
            ended = _finish(state, thread_id, started, services.trace_url(turn["run_id"]))
        except AskgraphError as error:
            logger.warning("run %s failed: %s", turn["run_id"], error.message, exc_info=error)
            ended = _fail(error)
        except NodeTimeoutError as error:
            logger.warning("run %s timed out in %s", turn["run_id"], error.node, exc_info=error)
            ended = Failed(
                type="error",
                code="timeout",
                message=f"The step {error.node!r} took too long. Try again.",
                retryable=True,
            )
        except Exception:
            logger.exception("run %s failed unexpectedly", turn["run_id"])
            ended = Failed(
                type="error",
                code="internal_error",
                message=f"Something went wrong inside askgraph; its log says what, under run {turn['run_id']}.",
                retryable=False,
            )
        finally:
            # Shielded by being a task of its own: a reader who leaves cancels the run, not its record.
            record = _record(state, turn, thread_id, started, started_at, ended, forked_from)
            self._in_background(self._log(record))
        yield ended

    async def _log(self, record: RunRecord) -> None:
        alerts = []
        if record.top_score is not None and record.top_score < LOW_TOP_SCORE:
            alerts.append("low_top_score")
        if record.route == "needs_retrieval" and record.answer and record.confidence > 0 and not record.citations:
            alerts.append("no_citation")
        if record.retries > 1:
            alerts.append("many_retries")
        logger.info(
            "turn run=%s thread=%s mode=%s route=%s confidence=%.2f sources=%d retries=%d verification=%s "
            "cached=%s total_ms=%.0f error=%s alerts=%s",
            record.run_id,
            record.thread_id,
            record.mode,
            record.route,
            record.confidence,
            record.sources,
            record.retries,
            record.verification,
            record.cached,
            record.timings.get("total", 0),
            record.error,
            ",".join(alerts) or None,
        )
        await self._services.runs.record(record)

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
        return cast("list[Turn]", snapshot.values.get("turns") or [])

    def _lock(self, thread_id: str) -> asyncio.Lock:
        """One turn at a time in a thread; a second one waits."""
        lock = self._locks.get(thread_id)
        if lock is None:
            lock = self._locks[thread_id] = asyncio.Lock()
        return lock


async def collect(events: AsyncIterator[Event]) -> tuple[Done | Failed, list[Event]]:
    """Follow a turn to its end: how it ended, and all its events."""
    seen = [event async for event in events]
    return cast("Done | Failed", seen[-1]), seen


def _configure(thread_id: str, turn: Mapping[str, Any], *, cached: bool = False) -> RunnableConfig:
    """The configuration of a run: its thread, and the metadata by which traces and checkpoints can be found."""
    metadata = {
        "thread_id": thread_id,
        "run_id": turn["run_id"],
        "workspace_id": turn["workspace_id"],
        "mode": turn["mode"],
    }
    if cached:
        metadata["cached"] = "true"
    return RunnableConfig(
        configurable={"thread_id": thread_id},
        run_id=UUID(turn["run_id"]),
        run_name="answer",
        metadata=metadata,
        # Two retries pass retrieve, rerank and grade three times; anything beyond is a loop.
        recursion_limit=40,
    )


def _milliseconds_since(started: float) -> float:
    return round((perf_counter() - started) * 1000, 2)


def _fail(error: AskgraphError) -> Failed:
    return Failed(type="error", code=error.code, message=error.message, retryable=error.retryable)


def _sum_timings(steps: list[Step], started: float) -> dict[str, float]:
    timings: dict[str, float] = {}
    for step in steps:
        timings[step["node"]] = round(timings.get(step["node"], 0.0) + step["ms"], 2)
    return {**timings, "total": _milliseconds_since(started)}


def _sum_cost(usage: list[Usage]) -> float | None:
    costs = [used["cost"] for used in usage]
    return None if None in costs else round(sum(cost for cost in costs if cost is not None), 6)


def _finish(state: Mapping[str, Any], thread_id: str, started: float, trace_url: str | None) -> Done:
    final = cast(AnswerState, state)
    usage = [used for step in final["steps"] for used in step["usage"]]
    return Done(
        type="done",
        run_id=final["run_id"],
        thread_id=thread_id,
        answer=final["answer"],
        citations=final["citations"],
        route=final["route"],
        mode=final["mode"],
        confidence=final["confidence"] if final["citations"] else 0.0,
        verification=final["verification"],
        cached=False,
        usage=usage,
        cost=_sum_cost(usage),
        timings=_sum_timings(final["steps"], started),
        warnings=[warning for step in final["steps"] for warning in step["warnings"]],
        trace_url=trace_url,
    )


def _record(
    state: Mapping[str, Any],
    turn: Mapping[str, Any],
    thread_id: str,
    started: float,
    started_at: datetime,
    ended: Done | Failed | None,
    forked_from: dict[str, Any] | None,
) -> RunRecord:
    steps: list[Step] = state.get("steps") or []
    sources = state.get("sources") or []
    usage = [used for step in steps for used in step["usage"]]
    error = "cancelled" if ended is None else ended["code"] if ended["type"] == "error" else None
    return RunRecord(
        run_id=turn["run_id"],
        thread_id=thread_id,
        workspace_id=turn["workspace_id"],
        mode=turn["mode"],
        question=turn["question"],
        started_at=started_at,
        standalone_question=state.get("standalone_question") or "",
        queries=state.get("queries_tried") or [],
        document_ids=turn["document_ids"],
        route=state.get("route") or "",
        retries=state.get("retries") or 0,
        candidates=len(state.get("candidates") or []),
        sources=len(sources),
        top_score=max((source["score"] for source in sources), default=None),
        confidence=state.get("confidence") or 0.0,
        verification=(state.get("verification") or {}).get("status", "skipped"),
        answer=state.get("answer") or "",
        citations=state.get("citations") or [],
        usage=usage,
        cost=_sum_cost(usage),
        timings=_sum_timings(steps, started),
        warnings=[warning for step in steps for warning in step["warnings"]],
        error=error,
        forked_from=forked_from,
    )
