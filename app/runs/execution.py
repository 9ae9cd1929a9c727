"""One pass through the graph, of a turn or of a replay: its events, the state as it comes, and how it ends."""

import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, nullcontext, suppress
from time import perf_counter
from typing import Any, cast
from uuid import UUID, uuid5

from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphDrained, NodeTimeoutError
from langgraph.runtime import RunControl

from app.runs.records import make_done, merge_state
from app.services import Services
from domain.errors import AskgraphError, EmbedderUnavailable, InputError
from domain.events import Done, Event, Failed
from domain.state import AnswerState, TurnInput, blank_question
from graphs.answer import LAST, RECURSION_LIMIT, AnswerGraph
from graphs.speculation import speculate
from nodes.context import Context
from nodes.local.direction import read_axes
from nodes.local.routing import prepare

logger = logging.getLogger("askgraph.turns")


class Execution:
    """One pass through the graph: its events, the state as it comes, and how it ends."""

    def __init__(
        self,
        services: Services,
        graph: AnswerGraph,
        context: Context,
        turn: Mapping[str, Any],
        thread_id: str,
        started: float,
        *,
        control: RunControl | None = None,
        attempt: int = 1,
    ) -> None:
        self.thread_id = thread_id
        self.state = merge_state(blank_question(), turn)
        self.events: list[Event] = []
        """All so far; when it has ended, with the end."""
        self.ended: Done | Failed | None = None
        """None while it runs, and where it was stopped."""
        self._services = services
        self._graph = graph
        self._context = context
        self._turn = turn
        self._started = started
        self._control = control
        self._attempt = attempt
        self._trace_id = trace_id(turn["run_id"], attempt)

    async def follow(self, graph_input: TurnInput | None, *, ahead: bool) -> AsyncGenerator[Event]:
        """The nodes' events as they come. Whatever goes wrong ends them, and is in `ended` then. Steps may run `ahead`
        of a judgement.

        Raises `GraphDrained` where the run's control was asked to drain, after the step that was being taken.
        """
        services, run_id = self._services, self._turn["run_id"]
        # LangGraph's first values are the input on top of what the thread's last turn left, which is not ours.
        is_ours = graph_input is None
        try:
            with services.translating_errors():
                async with speculate(self._context) if ahead else nullcontext(self._context) as context:
                    stream = self._graph.astream(
                        graph_input,
                        configure(self.thread_id, self._turn, attempt=self._attempt),
                        context=context,
                        stream_mode=["custom", "values"],
                        durability="async",
                        control=self._control,
                    )
                    async with aclosing(cast("AsyncGenerator[tuple[str, Any]]", stream)) as parts:
                        async for mode, part in parts:
                            if mode == "custom":
                                self.events.append(part)
                                yield part
                            elif is_ours:
                                self.state = part
                            else:
                                is_ours = True
            total_ms = milliseconds_since(self._started)
            self.ended = make_done(self.state, self.thread_id, total_ms, services.trace_url(self._trace_id))
        except GraphDrained:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, the stream must end with an event
            self.ended = fail(error, run_id)
        self.events.append(self.ended)


async def prepare_judgement(services: Services, turn: Mapping[str, Any]) -> None:
    """Embed what local judgement compares with, once in the life of the process. It belongs to the code and to no run,
    so it is done before there is a tape."""
    with suppress(EmbedderUnavailable):
        await prepare(services.sentences)
        if turn["profile"].get("verify"):
            await read_axes(services.sentences)


def configure(thread_id: str, turn: Mapping[str, Any], *, attempt: int = 1, **more: str) -> RunnableConfig:
    """The configuration of a run: its thread, and the metadata by which traces and checkpoints can be found, and by
    which those of an attempt that another one has followed are refused."""
    metadata = {
        "thread_id": thread_id,
        "run_id": turn["run_id"],
        "workspace_id": turn["scope"]["workspace_id"],
        "mode": turn["mode"],
        "attempt": attempt,
        **more,
    }
    return RunnableConfig(
        configurable={"thread_id": thread_id},
        run_id=UUID(trace_id(turn["run_id"], attempt)),
        run_name="answer",
        metadata=metadata,
        recursion_limit=RECURSION_LIMIT,
    )


async def write_state(
    services: Services, thread_id: str, state: AnswerState, *, attempt: int = 1, **metadata: str
) -> None:
    """Make `state`, which no node has made, the thread's.

    Raises `DatabaseUnavailable`.
    """
    config = configure(thread_id, state, attempt=attempt, **metadata)
    with services.translating_errors():
        await services.graph.aupdate_state(config, cast("dict[str, Any]", state), as_node=LAST)


def trace_id(run_id: str, attempt: int) -> str:
    """The id of an attempt's trace: that of the run for the first, one of its own for each that follows, because a
    trace has one root."""
    return run_id if attempt == 1 else str(uuid5(UUID(run_id), str(attempt)))


def milliseconds_since(started: float) -> float:
    """`started` is of `perf_counter`."""
    return (perf_counter() - started) * 1000


def fail(error: BaseException, run_id: str) -> Failed:
    """The event that ends a turn that could not be finished. The log gets the traceback, the reader what to do."""
    if isinstance(error, AskgraphError):
        # What was asked for wrongly is the asker's to know: a trace would say nothing more.
        logger.warning("run %s failed: %s", run_id, error.message, exc_info=not isinstance(error, InputError) and error)
        return Failed(type="error", code=error.code, message=error.message, retryable=error.retryable)
    if isinstance(error, NodeTimeoutError):
        logger.warning("run %s timed out in %s", run_id, error.node, exc_info=error)
        message = f"The step {error.node!r} took too long. Try again."
        return Failed(type="error", code="timeout", message=message, retryable=True)
    logger.error("run %s failed unexpectedly", run_id, exc_info=error)
    message = f"Something went wrong inside askgraph; its log says what, under run {run_id}."
    return Failed(type="error", code="internal_error", message=message, retryable=False)
