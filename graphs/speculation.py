"""Speculative execution: run the next steps while a language model judges.

While a step that can `foresee` its model's judgement waits for it, the steps that follow in the graph run already, on
the state that follows if the model agrees with the local judgement. Models are so called side by side, not one after
the other. Nodes are functions of their input and the context: where the graph later gives a step the input that it ran
ahead with, the result is used. Otherwise the model judged differently: the steps that ran ahead are cancelled, and what
they consumed is filed under the node `speculation`.

The graph's picture does not show this. docs/decisions/13-speculation-and-latency.md.
"""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, replace
from typing import Any, cast

from langgraph.runtime import Runtime

from domain.ports.models import ModelUsage
from domain.state import AnswerState
from graphs.node import Node, NodeResult
from nodes.context import Context, Models, profile_of

State = Mapping[str, Any]

STEPS_AHEAD: ContextVar[int] = ContextVar("steps_ahead", default=0)
"""Number of steps by which what runs is ahead of the graph's own step."""


@asynccontextmanager
async def speculate(context: Context) -> AsyncIterator[Context]:
    """Yield `context` for one run of the graph that may run ahead.

    Leaving the block cancels what still runs ahead, because the run failed or its reader left, and adds what that
    consumed to the context's ledger.
    """
    speculation = Speculation()
    given = {part.name: getattr(context, part.name) for part in fields(context)}
    try:
        yield SpeculatingContext(**given, speculation=speculation)
    finally:
        await speculation.cancel()
        context.ledger.usage.extend(speculation.wasted)


class Speculation:
    """The steps that run ahead in one run of the graph."""

    def __init__(self) -> None:
        self.wasted: list[ModelUsage] = []
        """Usage of cancelled steps that is not filed yet."""
        self._runs: dict[str, Ahead] = {}
        self._following: asyncio.Task[None] | None = None

    async def take(self, name: str, state: State) -> "Ahead | None":
        """Return the execution of this node on this input, running or done, if there is one. If not, the graph took
        another way than expected: cancel everything that runs ahead."""
        run = self._runs.get(name)
        if run is not None and run.fits(state):
            return self._runs.pop(name)
        await self.cancel()
        return None

    def begin(self, name: str, state: State, runtime: Runtime[Context], nodes: Mapping[str, Node]) -> None:
        """Start to run ahead of a node that is about to ask its model, if the mode allows it."""
        judged = nodes[name].step.foresee is not None
        if judged and runtime.context.models.small is not None and profile_of(state).speculate:
            self._following = asyncio.create_task(self._follow(name, state, runtime, nodes))

    async def cancel(self) -> None:
        """Cancel everything that runs ahead. A caller that is interrupted meanwhile may call this again."""
        if self._following is not None:
            # First, because this task starts the others.
            await _end([self._following])
            self._following = None
        await _end([run.task for run in self._runs.values()])
        for run in self._runs.values():
            self.wasted.extend(run.ledger.usage)
        self._runs.clear()

    async def _follow(self, name: str, state: State, runtime: Runtime[Context], nodes: Mapping[str, Node]) -> None:
        """Run the steps after the judged node `name`, until the next one cannot be foreseen."""
        while True:
            node = nodes[name]
            if node.step.foresee:
                alone = replace(runtime.context, models=Models(), ledger=runtime.context.ledger.branch())
                result = await node.execute(state, runtime.override(context=alone))
                state = {**state, **result.update}
                expected = node.step.foresee(cast(AnswerState, state))
                if expected is None:
                    return
                state = {**state, **expected}
            elif node.step.streams:
                return
            else:
                # Shielded: the graph may have taken the step over meanwhile, and it must outlive this task.
                result = await asyncio.shield(self._runs[name].task)
                state = {**state, **result.update}
            name = node.find_next(cast(AnswerState, state))
            if name not in nodes or not nodes[name].step.runs_ahead:
                return
            STEPS_AHEAD.set(STEPS_AHEAD.get() + 1)
            self._runs[name] = Ahead(nodes[name], state, runtime)


async def _end(tasks: Collection[asyncio.Task[Any]]) -> None:
    """Cancel each task once, since a second time would interrupt its cleaning up. Drop their errors."""
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
    """A node's execution ahead of the graph. Its events are held back until the graph takes it over."""

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
        """Return True where the graph's input equals the input that the node was given ahead."""
        copies = self._node.step.copies
        if copies and state["confidence"] < profile_of(state).grade.sufficient:
            return False
        return all(state.get(key) == self._state.get(key) for key in self._node.step.reads - copies)

    async def finish(self, runtime: Runtime[Context]) -> NodeResult:
        """Finish as the graph's own step: pass on its events, from now on as they come, and add its usage and warnings
        to the step's ledger."""
        for event in self._held:
            runtime.stream_writer(event)
        self._emit = runtime.stream_writer
        try:
            result = await self.task
        finally:
            runtime.context.ledger.absorb(self.ledger)
        copied = {key for key in self._node.step.copies if result.update.get(key) == self._state.get(key)}
        return NodeResult({key: value for key, value in result.update.items() if key not in copied}, result.ms)
