"""A node, and how it is executed: by the graph, or ahead of it."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from time import perf_counter
from typing import Any, get_type_hints

from langgraph.runtime import Runtime

from nodes.context import Context, profile_of


@dataclass(frozen=True, slots=True)
class NodeResult:
    """The state update of one execution, and the milliseconds that it took."""

    update: dict[str, Any]
    ms: float


def list_fields(declared: Any) -> frozenset[str]:
    """Return the fields of a TypedDict."""
    return frozenset(declared.__required_keys__ | declared.__optional_keys__)


@dataclass(frozen=True)
class Node:
    """A step's function and its time limit for a language model.

    The limit is `model_seconds`, or less where the run's mode says so. A node that `writes` limits the wait for each
    word by itself.
    """

    name: str
    function: Callable[[Any, Runtime[Context]], Awaitable[Mapping[str, Any]]]
    model_seconds: float
    writes: bool

    @cached_property
    def reads(self) -> frozenset[str]:
        """The state fields that the function declares as its input."""
        return list_fields(get_type_hints(self.function)["state"])

    async def execute(self, state: Mapping[str, Any], runtime: Runtime[Context]) -> NodeResult:
        """Run the function with the models of the run's mode. Usage and warnings go into the context's ledger, even if
        the function raises."""
        context = runtime.context
        ledger = context.ledger
        now = asyncio.get_running_loop().time()
        seconds = self.model_seconds
        ledger.node, ledger.budget_deadline = self.name, None
        # LangGraph Studio starts a run without a profile; route fills one in.
        if state.get("profile"):
            profile = profile_of(state)
            context = replace(context, models=context.models.choose(profile.models))
            if not self.writes:
                seconds = min(seconds, profile.models.timeout or seconds)
            # At route, the steps are still those of the last turn. An answer that is being written is finished.
            left = profile.budget.left([] if self.name == "route" else state.get("steps") or [])
            if left is not None and not (left[0] and self.writes):
                ledger.budget_deadline, ledger.over_budget = now + left[0], profile.budget.explain(left[1])
        ledger.model_deadline = now + seconds
        started = perf_counter()
        with context.span(self.name):
            update = dict(await self.function(state, runtime.override(context=context)))
        return NodeResult(update, (perf_counter() - started) * 1000)
