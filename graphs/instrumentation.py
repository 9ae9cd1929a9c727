"""The one place that watches nodes run: announces the step, times it, and files what it consumed."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from time import perf_counter, time
from typing import Any, Protocol

from langgraph.runtime import Runtime

from domain.events import Thinking
from domain.ports import ModelUsage
from domain.state import AnswerState, Step, Usage
from nodes.context import Context


class InstrumentedNode(Protocol):
    """A node as the graph runs it."""

    async def __call__(self, state: AnswerState, runtime: Runtime[Context]) -> dict[str, Any]: ...


def instrument(
    name: str, node: Callable[[Any, Runtime[Context]], Awaitable[Mapping[str, Any]]], model_seconds: float
) -> InstrumentedNode:
    """`node`, with a `thinking` event before it and a `Step` in the state after it; one of each, however often it is
    tried. Each attempt may wait `model_seconds` for its language model."""

    async def run(state: AnswerState, runtime: Runtime[Context]) -> dict[str, Any]:
        ledger = runtime.context.ledger
        ledger.model_deadline = asyncio.get_running_loop().time() + model_seconds
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
