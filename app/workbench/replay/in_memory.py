"""Begins threads with a saved state: as branches, or in memory, where nothing is stored."""

import asyncio
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any
from uuid import uuid4

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START
from langgraph.types import Command, StateUpdate

from app.adapters.tracing.langsmith import untraced
from app.answering.graph_pass import GraphPass
from app.history.thread_states import ThreadStates, locate_states
from app.workbench.compare.endings import Ending, read_ending
from app.workbench.tapes.taping import Player, fill
from domain.errors import StateError
from domain.state import AnswerState, TurnInput
from graphs.answer import FINAL_NODE, AnswerGraph
from graphs.effects import Beginning
from nodes.context import Context


@dataclass(frozen=True, slots=True)
class Start:
    """A state to run on from."""

    thread_id: str
    checkpoint_id: str
    """Of the saved state."""
    number: int
    """The graph's number of the step that made it."""
    values: Mapping[str, Any]
    """The saved values, with changes made to them."""
    after: str
    """The node that made the state. Its edge decides again what comes next."""
    forced: str | None = None
    """The node that comes next, whatever the edge would decide."""

    @property
    def beginning(self) -> Beginning:
        """Where the run continues."""
        return Beginning(self.after, decides=True) if self.forced is None else Beginning(self.forced)


async def begin_thread(graph: AnswerGraph, thread_id: str, start: Start, **metadata: str) -> tuple[str, ...]:
    """Begin a thread with the state, as if its node had made it. Returns the nodes that run next."""
    values = start.values
    updates = [StateUpdate(dict(values), start.after)]
    if start.forced is not None:
        updates = [StateUpdate(Command(update=dict(values), goto=start.forced), FINAL_NODE)]  # type: ignore[arg-type]
    elif start.after == START:
        # LangGraph takes only the input from the start; the rest of the state is written beside it.
        given = {key: values[key] for key in TurnInput.__annotations__}
        updates = [
            StateUpdate({key: value for key, value in values.items() if key not in given}, FINAL_NODE),
            StateUpdate(given, START),
        ]
    place = locate_states(values["scope"]["workspace_id"], thread_id)
    config = await graph.abulk_update_state({**place, "metadata": metadata}, [updates])
    return (await graph.aget_state(config)).next


async def begin_in_memory(graph: AnswerGraph, thread_id: str, start: Start) -> AnswerGraph:
    """Return a copy of the graph whose checkpointer is in memory and holds a thread that begins with the state.

    Raises `StateError` where no node would run next.
    """
    in_memory = graph.copy({"checkpointer": InMemorySaver()})
    if not await begin_thread(in_memory, thread_id, start):
        raise StateError("Nothing is left to run from this checkpoint: it ends a turn. Choose an earlier one.")
    return in_memory


async def follow_untraced(graph_pass: GraphPass) -> None:
    """Follow a pass to its end, in a task with a context of its own in which nothing is traced: the run's own trace
    stays as it is."""

    async def follow() -> None:
        with untraced():
            async for _ in graph_pass.follow(None, ahead=False):
                pass

    await asyncio.create_task(follow())


async def flush_nothing(thread_id: str) -> None:
    """States in memory need no flush."""


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """How a run would have ended."""

    ending: Ending
    state: AnswerState
    error: str | None
    """Why it failed, for people."""
    taped: int
    """Calls that the tape answered."""
    made: int
    """Calls that were made, because the tape lacks them."""
    refused: str | None
    """The first call that would have been needed and was not made."""


async def rehearse(graph: AnswerGraph, start: Start, context: Context, player: Player) -> Rehearsal:
    """Run on from a state, with calls from the tape where it has them, and the others as `player` allows.

    Raises `StateError` where nothing is left to run.
    """
    thread_id = str(uuid4())
    in_memory = await begin_in_memory(graph, thread_id, start)
    graph_pass = GraphPass(
        ThreadStates(in_memory, flush_nothing, nullcontext),
        replace(fill(context, player), run_id=start.values["run_id"]),
        start.values,
        thread_id,
        perf_counter(),
        trace_url=lambda trace_id: None,
    )

    await follow_untraced(graph_pass)
    ended, state = graph_pass.ended, graph_pass.state
    assert ended is not None
    failed = ended if ended["type"] == "error" else None
    return Rehearsal(
        ending=read_ending(state, error=failed and failed["code"]),
        state=state,
        error=failed and failed["message"],
        taped=player.answered,
        made=player.made,
        refused=player.refused,
    )


_PAID = ("ChatModel ", "Reranker cohere/", "Embedder openai:", "Functions")
"""How the names of ports begin whose servers send bills. Such a server may be one's own: we cannot tell. Nor what a
function from outside costs, or changes."""


def allow_unpaid(title: str) -> bool:
    """Allow the calls that cost nothing: all but those of language models, Cohere's reranker and servers that embed."""
    return not title.startswith(_PAID)
