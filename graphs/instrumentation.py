"""Instrument nodes: announce each step, time it, and file what it consumed."""

from time import time
from typing import Any, Protocol

from langgraph.runtime import Runtime

from domain.events import Thinking
from domain.ports.models import ModelUsage
from domain.state import AnswerState, Degradation, ExecutedStep, Usage
from graphs.node import Node
from nodes.context import Context


class InstrumentedNode(Protocol):
    """A node as LangGraph calls it."""

    async def __call__(self, state: AnswerState, runtime: Runtime[Context]) -> dict[str, Any]: ...


def instrument(node: Node) -> InstrumentedNode:
    """Return `node` with a `thinking` event before it and an `ExecutedStep` in the state after it, one of each even if
    it is retried."""

    async def run(state: AnswerState, runtime: Runtime[Context]) -> dict[str, Any]:
        ledger = runtime.context.ledger
        attempt = runtime.execution_info
        failed_ms = 0.0
        if attempt is None or attempt.node_attempt == 1:
            runtime.stream_writer(Thinking(type="thinking", step=node.name))
        elif attempt.node_first_attempt_time is not None:
            # The user waited for the failed attempts, too.
            failed_ms = (time() - attempt.node_first_attempt_time) * 1000
        result = await node.execute(state, runtime)
        step = ExecutedStep(
            node=node.name,
            ms=round(failed_ms + result.ms, 2),
            warnings=list(ledger.warnings),
            # Calls side by side end in any order; a replay must count them alike.
            usage=[file_usage(node.name, used) for used in sorted(ledger.usage, key=_order)],
        )
        if read := runtime.context.reads.file():
            step["read"] = read
        degraded = list(ledger.degraded)
        ledger.warnings.clear()
        ledger.usage.clear()
        ledger.degraded.clear()
        step = runtime.context.measure(step)
        # route returns empty lists, so that every question begins its own.
        steps: list[ExecutedStep] = result.update.get("steps", state.get("steps") or [])
        known: list[Degradation] = result.update.get("degraded", state.get("degraded") or [])
        return {**result.update, "steps": [*steps, step], "degraded": [*known, *degraded]}

    run.__name__ = node.name
    return run


def _order(used: ModelUsage) -> tuple[str, int, int]:
    return used.model, used.input_tokens, used.output_tokens


def file_usage(node: str, used: ModelUsage) -> Usage:
    """Return one model call as the state keeps it."""
    usage = Usage(
        node=node,
        model=used.model,
        calls=1,
        input_tokens=used.input_tokens,
        output_tokens=used.output_tokens,
        cost=used.cost,
        estimated=used.estimated,
    )
    if used.cached_tokens:
        usage["cached_tokens"] = used.cached_tokens
    return usage
