"""The one place that watches nodes run: announces the step, times it, and files what it consumed."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from time import perf_counter, time
from typing import Any, Protocol

from langgraph.runtime import Runtime

from domain.events import Thinking
from domain.ports import ModelUsage
from domain.state import AnswerState, Step, Usage
from nodes.context import Context
from nodes.scope import profile_of


class InstrumentedNode(Protocol):
    """A node as the graph runs it."""

    async def __call__(self, state: AnswerState, runtime: Runtime[Context]) -> dict[str, Any]: ...


def instrument(
    name: str,
    node: Callable[[Any, Runtime[Context]], Awaitable[Mapping[str, Any]]],
    model_seconds: float,
    *,
    writes: bool = False,
) -> InstrumentedNode:
    """`node`, with a `thinking` event before it and a `Step` in the state after it; one of each, however often it is
    tried. The node sees the models of the run's mode, for which each attempt may wait `model_seconds`, or what the
    mode says where this is less; steps that write bound the wait for each word instead (`writes`)."""

    async def run(state: AnswerState, runtime: Runtime[Context]) -> dict[str, Any]:
        context = runtime.context
        ledger = context.ledger
        knobs = profile_of(state).models
        waits = min(model_seconds, knobs.timeout or model_seconds) if not writes else model_seconds
        ledger.model_deadline = asyncio.get_running_loop().time() + waits
        runtime = runtime.override(context=replace(context, models=context.models.choose(knobs)))
        started = perf_counter()
        attempt = runtime.execution_info
        if attempt is None or attempt.node_attempt == 1:
            runtime.stream_writer(Thinking(type="thinking", step=name))
        elif attempt.node_first_attempt_time is not None:
            # The user has waited for the attempts that failed, too.
            started -= time() - attempt.node_first_attempt_time
        update = dict(await node(state, runtime))
        step = Step(
            node=name,
            ms=round((perf_counter() - started) * 1000, 2),
            warnings=list(ledger.warnings),
            usage=[file_usage(name, used) for used in ledger.usage],
        )
        ledger.warnings.clear()
        ledger.usage.clear()
        # route hands back an empty list, which is what starts a question's own count.
        steps: list[Step] = update.get("steps", state.get("steps") or [])
        return {**update, "steps": [*steps, step]}

    run.__name__ = name
    return run


def file_usage(node: str, used: ModelUsage) -> Usage:
    """One model call as the state keeps it."""
    return Usage(
        node=node,
        model=used.model,
        calls=1,
        input_tokens=used.input_tokens,
        output_tokens=used.output_tokens,
        cost=used.cost,
    )
