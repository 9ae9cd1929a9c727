"""Running ahead of a language model's judgement.

While route and grade wait for their model, the steps that follow them run already, with the state that they will be
given if the model says what the node says without one. The calls to models are thus asked side by side and not in a
row. Nodes are functions of their input and the context, so a step that ran ahead is the graph's own step where the
input that the graph gives it is equal; where it is not, the model has judged otherwise and has its way: what ran ahead
is cancelled, and what that had consumed is on the bill as the node `speculation`.

No node knows of this, nor does the graph's picture. docs/decisions/13-speculation-and-latency.md.
"""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, fields, replace
from typing import Any, cast

from langgraph.runtime import Runtime

from domain.ports.models import ModelUsage
from domain.state import AnswerState
from graphs.decisions import decide_route
from graphs.execution import Node, Outcome
from nodes.context import Context, Models
from nodes.scope import profile_of

State = Mapping[str, Any]

_JUDGED = ("route", "grade")

_SURENESS = frozenset({"confidence", "level", "missing"})
"""What grade says of sources that suffice. It does not change what generate's model is asked for; generate hands it
on."""


@asynccontextmanager
async def speculate(context: Context) -> AsyncIterator[Context]:
    """`context`, for one run of the graph that may run ahead. What still runs ahead at the end of the block, because
    the run failed or its reader left, is cancelled; what it had consumed is in the context's ledger then."""
    speculation = Speculation()
    given = {part.name: getattr(context, part.name) for part in fields(context)}
    try:
        yield SpeculatingContext(**given, speculation=speculation)
    finally:
        await speculation.cancel()
        context.ledger.usage.extend(speculation.wasted)


class Speculation:
    """What runs ahead in one run of the graph."""

    def __init__(self) -> None:
        self.wasted: list[ModelUsage] = []
        """What was consumed in vain, until somebody files it."""
        self._runs: dict[str, Ahead] = {}
        self._following: asyncio.Task[None] | None = None

    async def take(self, name: str, state: State) -> "Ahead | None":
        """The execution of this node on this input, running or done, if there is one. If not, the graph has taken
        another way than was expected, and everything that runs ahead is cancelled."""
        run = self._runs.get(name)
        if run is not None and run.fits(state):
            return self._runs.pop(name)
        await self.cancel()
        return None

    def begin(self, name: str, state: State, runtime: Runtime[Context], nodes: Mapping[str, Node]) -> None:
        """Run ahead of a node that is about to ask its model, if it is one and the mode allows it."""
        if name in _JUDGED and runtime.context.models.small is not None and profile_of(state).speculate:
            self._following = asyncio.create_task(self._follow(name, state, runtime, nodes))

    async def cancel(self) -> None:
        """End what runs ahead. Whoever is interrupted while waiting for that may call it again."""
        if self._following is not None:
            # First, because it starts the runs.
            await _end([self._following])
            self._following = None
        await _end([run.task for run in self._runs.values()])
        for run in self._runs.values():
            self.wasted.extend(run.ledger.usage)
        self._runs.clear()

    async def _follow(self, name: str, state: State, runtime: Runtime[Context], nodes: Mapping[str, Node]) -> None:
        """From the judged node `name` on, until it cannot be foreseen what follows."""
        while True:
            if name in _JUDGED:
                alone = replace(runtime.context, models=Models(), ledger=runtime.context.ledger.branch())
                outcome = await nodes[name].execute(state, runtime.override(context=alone))
            else:
                # The graph may have taken it over meanwhile: this task's end is not its end.
                outcome = await asyncio.shield(self._runs[name].task)
            state = {**state, **outcome.update}
            following = _foresee(name, cast(AnswerState, state))
            if following is None:
                return
            if following == "retrieve":
                # What a route without a model adds to the query stands in for what a model makes of the question.
                state = {**state, "query": state["standalone_question"]}
            self._runs[following] = Ahead(nodes[following], state, runtime)
            if following == "generate":
                return
            name = following


async def _end(tasks: Collection[asyncio.Task[Any]]) -> None:
    """Cancel tasks, once each: a second time would interrupt how they clean up. What they failed with is dropped."""
    for task in tasks:
        if not task.cancelling():
            task.cancel()
    if tasks:
        await asyncio.wait(tasks)
    for task in tasks:
        if not task.cancelled():
            task.exception()


@dataclass(frozen=True, slots=True)
class SpeculatingContext(Context):
    """The context of a run that may run ahead."""

    speculation: Speculation = field(default_factory=Speculation)


class Ahead:
    """A node's execution ahead of the graph. What it emits is held back until the graph takes it over."""

    def __init__(self, node: Node, state: State, runtime: Runtime[Context]) -> None:
        self.ledger = runtime.context.ledger.branch()
        self._node = node
        self._state = state
        self._held: list[Any] = []
        self._emit = self._held.append
        context = replace(runtime.context, ledger=self.ledger)
        apart = runtime.override(context=context, stream_writer=lambda event: self._emit(event))
        self.task = asyncio.create_task(node.execute(state, apart))

    def fits(self, state: State) -> bool:
        """Whether the graph gives the node the input that it was given ahead."""
        read = self._node.reads
        if self._node.name == "generate":
            if state["confidence"] < profile_of(state).grade.sufficient:
                return False
            read -= _SURENESS
        return all(state.get(key) == self._state.get(key) for key in read)

    async def finish(self, runtime: Runtime[Context]) -> Outcome:
        """What it comes to, as the graph's own step: with its events in the graph's stream, from now on as they come,
        and with its usage and warnings in the step's ledger."""
        for event in self._held:
            runtime.stream_writer(event)
        self._emit = runtime.stream_writer
        try:
            outcome = await self.task
        finally:
            runtime.context.ledger.absorb(self.ledger)
        update = outcome.update
        if self._node.name == "generate" and update.get("confidence") == self._state["confidence"]:
            update = {key: value for key, value in update.items() if key not in _SURENESS}
        return Outcome(update, outcome.ms)


def _foresee(name: str, state: AnswerState) -> str | None:
    """The node that follows `name`, if the judgement in `state` is that of the model, too."""
    match name:
        case "route":
            # How a model words a follow-up that does not stand alone cannot be foreseen.
            alone = state["standalone_question"] == state["question"]
            return "retrieve" if alone and decide_route(state) == "needs_retrieval" else None
        case "retrieve":
            return "rerank"
        case "rerank":
            return "grade"
        case _:
            return "generate" if state["confidence"] >= profile_of(state).grade.sufficient else None
