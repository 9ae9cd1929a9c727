"""A node, and how it is executed."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

from langgraph.runtime import Runtime

from domain.execution.spans import Facts
from nodes.context import Context, profile_of
from nodes.prompting.edited import edit_prompt
from nodes.step import Step

_CHUNKS = frozenset({"candidates", "sources", "set_aside", "turns", "profile"})
"""Fields of the state that a span leaves out: they are long, and shown as documents or in the spans of models."""


@dataclass(frozen=True, slots=True)
class NodeResult:
    """The state update of one execution, and the milliseconds that it took."""

    update: dict[str, Any]
    ms: float


@dataclass(frozen=True)
class Node:
    """A step and its time limit for a language model.

    The limit is `model_seconds`, or less where the run's mode says so. A step that `streams` limits the wait for each
    word by itself.
    """

    step: Step
    model_seconds: float

    @property
    def name(self) -> str:
        """The name of the node."""
        return self.step.name

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
            if edited := profile.prompts.get(self.name):
                context = replace(context, models=edit_prompt(context.models, edited))
            if not self.step.streams:
                seconds = min(seconds, profile.models.timeout or seconds)
            # At route, the steps are still those of the last turn. An answer that is being written is finished.
            left = profile.budget.left([] if self.name == "route" else state.get("steps") or [])
            if left is not None and not (left[0] and self.step.streams):
                ledger.budget_deadline, ledger.over_budget = now + left[0], profile.budget.explain(left[1])
        ledger.model_deadline = now + seconds
        started = perf_counter()
        with context.span(self.name) as note:
            asked = state.get("query") or state.get("standalone_question") or state.get("question", "")
            note(Facts(kind=self.step.kind, input=asked))
            update = dict(await self.step.run(state, runtime.override(context=context)))
            note(self._describe(state, update))
        return NodeResult(update, (perf_counter() - started) * 1000)

    def _describe(self, state: Mapping[str, Any], update: Mapping[str, Any]) -> Facts:
        """Return what the node's span shows of what the step wrote, with the chunks apart."""
        told = {name: value for name, value in update.items() if name not in _CHUNKS}
        facts = Facts(kind=self.step.kind, output=told)
        if self.step.kind == "retriever":
            facts["documents"] = update.get("candidates", [])
        elif self.step.kind == "reranker":
            facts["candidates"], facts["documents"] = state["candidates"], update.get("sources", [])
        return facts
