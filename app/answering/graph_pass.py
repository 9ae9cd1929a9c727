"""One pass through the graph, for a run or a replay."""

import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, suppress
from time import perf_counter
from typing import Any, cast

from langgraph.errors import GraphDrained, NodeTimeoutError
from langgraph.runtime import RunControl

from app.answering.records import make_done
from app.history.thread_states import ThreadStates, configure_run, trace_id
from domain.errors import AskgraphError, EmbedderUnavailable, InputError, NotOnTape
from domain.events import Done, Event, Failed
from domain.ports.judgement import Judges
from domain.state import TurnInput, blank_question, merge_state
from nodes.context import Context

logger = logging.getLogger("askgraph.runs")


class GraphPass:
    """One pass through the graph: its events, the state as it changes, and how it ends."""

    def __init__(
        self,
        states: ThreadStates,
        context: Context,
        turn: Mapping[str, Any],
        thread_id: str,
        started: float,
        *,
        trace_url: Callable[[str], str | None],
        control: RunControl | None = None,
        attempt: int = 1,
        begins_thread: bool = False,
    ) -> None:
        """`started` is a time of `perf_counter`. `begins_thread` says that
        the thread has no states, which need not be looked for."""
        self.thread_id = thread_id
        self.state = merge_state(blank_question(), turn)
        self.events: list[Event] = []
        """All so far; the last one is `ended` once it has ended."""
        self.ended: Done | Failed | None = None
        """None while it runs, and after it was cancelled."""
        self._states = states
        self._trace_url = trace_url
        self._context = context
        self._turn = turn
        self._started = started
        self._control = control
        self._attempt = attempt
        self._begins_thread = begins_thread
        self._trace_id = trace_id(turn["run_id"], attempt)

    async def follow(self, graph_input: TurnInput | None) -> AsyncGenerator[Event]:
        """Yield the nodes' events as they come. Any error ends them and is in `ended` then.

        Raises `GraphDrained` after the current step where the run's control was asked to drain.
        """
        # LangGraph's first values are the input merged into the state of the thread's last turn, which is not ours.
        is_ours = graph_input is None
        config = configure_run(self.thread_id, self._turn, attempt=self._attempt, begins_thread=self._begins_thread)
        try:
            with self._states.translating_errors():
                stream = self._states.graph.astream(
                    graph_input,
                    config,
                    context=self._context,
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
            self.ended = make_done(self.state, self.thread_id, total_ms, self._trace_url(self._trace_id))
        except GraphDrained:
            raise
        except Exception as error:  # noqa: BLE001 - the stream must end with an event
            self.ended = fail(error, self._turn["run_id"])
        self.events.append(self.ended)


async def prepare_judgement(judges: Judges) -> None:
    """Embed the examples that local judgement compares with, once per process. They belong to the code and not to a
    run, so we do this before a tape is started."""
    with suppress(EmbedderUnavailable):
        await judges.prepare()


def milliseconds_since(started: float) -> float:
    """Return the time since `started`, a time of `perf_counter`."""
    return (perf_counter() - started) * 1000


def fail(error: BaseException, run_id: str) -> Failed:
    """Make the event that ends a failed run, with what the reader can do. The traceback goes to the log."""
    if isinstance(error, AskgraphError):
        # A wrong request needs no traceback, and a replay says by itself what its tape lacks.
        level = logging.DEBUG if isinstance(error, NotOnTape) else logging.WARNING
        traced = not isinstance(error, InputError) and error
        logger.log(level, "run %s failed: %s", run_id, error.message, exc_info=traced)
        return Failed(type="error", code=error.code, message=error.message, retryable=error.retryable)
    if isinstance(error, NodeTimeoutError):
        logger.warning("run %s timed out in %s", run_id, error.node, exc_info=error)
        message = f"The step {error.node!r} took too long. Try again."
        return Failed(type="error", code="timeout", message=message, retryable=True)
    logger.error("run %s failed unexpectedly", run_id, exc_info=error)
    message = f"Something went wrong inside askgraph; its log says what, under run {run_id}."
    return Failed(type="error", code="internal_error", message=message, retryable=False)
