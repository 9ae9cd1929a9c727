"""Runs again from a saved state. Every replay begins here: as a branch, strictly from a tape, or only to see the end.

`start_at` makes the state that all of them run on from: the saved one, with the rights of whoever asks for it now, and
with changes made to it.
"""

import asyncio
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START
from langgraph.types import Command, StateUpdate

from app.access.authority import limit_rights
from app.adapters.tracing.langsmith import untraced
from app.answering.graph_pass import GraphPass
from app.history.states import require_current
from app.history.thread_states import ThreadStates, locate_states
from app.workbench.replay.effects import Beginning
from app.workbench.replay.saved_run import SavedStep
from app.workbench.replay.state_changes import change_values
from domain.errors import StateError
from domain.profile import Profile
from domain.state import TurnInput
from graphs.answer import FINAL_NODE, STEPS, AnswerGraph
from nodes.context import Context

_NOTHING: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True)
class Start:
    """A state to run on from."""

    step: SavedStep
    """The saved state."""
    values: Mapping[str, Any]
    """Its values, with changes made to them."""
    after: str
    """The node that made the state. Its edge decides again what comes next."""
    forced: str | None = None
    """The node that comes next, whatever the edge would decide."""

    @property
    def beginning(self) -> Beginning:
        """Where the run continues."""
        return Beginning(self.after, decides=True) if self.forced is None else Beginning(self.forced)


def start_at(
    step: SavedStep,
    groups: frozenset[str] | None,
    forced: str | None = None,
    changes: Mapping[str, Any] = _NOTHING,
    mode: str | None = None,
    modes: Mapping[str, Profile] = _NOTHING,
) -> Start:
    """Start from a saved state for a caller of these groups (None: all): with the node `forced`, in another mode, and
    with changes made.

    Raises `UnknownMode`, `QuestionError`, and `StateError` for a change that cannot be made or a state that this
    version cannot run.
    """
    values = change_values(step.values, changes, mode, modes)
    require_current(values, step.version)
    values, step = limit_rights(values, groups), replace(step, values=limit_rights(step.values, groups))
    # The first state of a branch says which node made the one that it copies, and what follows it.
    after = step.node if step.node in STEPS or step.node == START else step.forked_as or FINAL_NODE
    return Start(step, values, after, forced or step.forked_to)


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


async def run_in_memory(in_memory: AnswerGraph, thread_id: str, start: Start, context: Context) -> GraphPass:
    """Run on to the end in what `begin_in_memory` has begun, with nothing stored or traced. Returns the pass."""
    graph_pass = GraphPass(
        ThreadStates(in_memory, _flush_nothing, nullcontext),
        context,
        start.values,
        thread_id,
        perf_counter(),
        trace_url=lambda trace_id: None,
    )

    async def follow() -> None:
        with untraced():
            async for _ in graph_pass.follow(None):
                pass

    # In a task with a context of its own: the trace of whoever asks stays as it is.
    await asyncio.create_task(follow())
    return graph_pass


async def _flush_nothing(workspace_id: str, thread_id: str) -> None:
    """States in memory need no flush."""
