"""The one place that watches nodes run: announces the step, times it, and files what it consumed."""

from collections.abc import Awaitable, Callable, Mapping
from time import perf_counter
from typing import Any, Protocol

from langgraph.runtime import Runtime

from domain.events import Thinking
from domain.state import AnswerState, Step, Usage
from nodes.context import Context


class InstrumentedNode(Protocol):
    """A node as the graph runs it."""

    async def __call__(self, state: AnswerState, runtime: Runtime[Context]) -> dict[str, Any]: ...


def instrument(name: str, node: Callable[[Any, Runtime[Context]], Awaitable[Mapping[str, Any]]]) -> InstrumentedNode:
    """`node`, with a `thinking` event before it and a `Step` in the state after it."""

    async def run(state: AnswerState, runtime: Runtime[Context]) -> dict[str, Any]:
        ledger = runtime.context.ledger
        runtime.stream_writer(Thinking(type="thinking", step=name))
        started = perf_counter()
        update = dict(await node(state, runtime))
        step = Step(
            node=name,
            ms=round((perf_counter() - started) * 1000, 2),
            warnings=list(ledger.warnings),
            usage=[
                Usage(
                    node=name,
                    model=used.model,
                    calls=1,
                    input_tokens=used.input_tokens,
                    output_tokens=used.output_tokens,
                    cost=used.cost,
                )
                for used in ledger.usage
            ],
        )
        ledger.warnings.clear()
        ledger.usage.clear()
        # route hands back an empty list, which is what starts a question's own count.
        steps: list[Step] = update.get("steps", state.get("steps") or [])
        return {**update, "steps": [*steps, step]}

    run.__name__ = name
    return run
