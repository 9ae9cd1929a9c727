"""The one place that watches nodes run: announces the step, times it, and files what it consumed."""

from collections.abc import Mapping
from time import time
from typing import Any, Protocol

from langgraph.runtime import Runtime

from domain.events import Thinking
from domain.ports.models import ModelUsage
from domain.state import AnswerState, Degradation, Step, Usage
from graphs.execution import Node
from graphs.speculation import SpeculatingContext
from nodes.context import Context


class InstrumentedNode(Protocol):
    """A node as the graph runs it."""

    async def __call__(self, state: AnswerState, runtime: Runtime[Context]) -> dict[str, Any]: ...


def instrument(node: Node, nodes: Mapping[str, Node]) -> InstrumentedNode:
    """`node`, with a `thinking` event before it and a `Step` in the state after it; one of each, however often it is
    tried. Where the context allows it, those of the graph's `nodes` that probably follow run ahead."""

    async def run(state: AnswerState, runtime: Runtime[Context]) -> dict[str, Any]:
        ledger = runtime.context.ledger
        speculation = runtime.context.speculation if isinstance(runtime.context, SpeculatingContext) else None
        attempt = runtime.execution_info
        failed_ms = 0.0
        if attempt is None or attempt.node_attempt == 1:
            runtime.stream_writer(Thinking(type="thinking", step=node.name))
        elif attempt.node_first_attempt_time is not None:
            # The user has waited for the attempts that failed, too.
            failed_ms = (time() - attempt.node_first_attempt_time) * 1000
        ahead = await speculation.take(node.name, state) if speculation else None
        if ahead is not None:
            outcome = await ahead.finish(runtime)
        else:
            if speculation is not None:
                speculation.begin(node.name, state, runtime, nodes)
            outcome = await node.execute(state, runtime)
        step = Step(
            node=node.name,
            ms=round(failed_ms + outcome.ms, 2),
            warnings=list(ledger.warnings),
            usage=[file_usage(node.name, used) for used in ledger.usage],
        )
        degraded = list(ledger.degraded)
        ledger.warnings.clear()
        ledger.usage.clear()
        ledger.degraded.clear()
        if speculation is not None:
            step["usage"] += [file_usage("speculation", used) for used in speculation.wasted]
            speculation.wasted.clear()
        step = runtime.context.measure(step)
        # route hands back empty lists, which is what starts a question's own count.
        steps: list[Step] = outcome.update.get("steps", state.get("steps") or [])
        known: list[Degradation] = outcome.update.get("degraded", state.get("degraded") or [])
        return {**outcome.update, "steps": [*steps, step], "degraded": [*known, *degraded]}

    run.__name__ = node.name
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
