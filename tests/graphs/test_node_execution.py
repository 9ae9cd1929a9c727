"""How a node is executed: its deadlines, its step in the state, and the step's share of what was consumed."""

import asyncio
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest
from langgraph.runtime import Runtime
from typing_extensions import TypedDict

from domain.execution.budget import Budget
from domain.ports.models import ModelUsage
from domain.profile import ModelKnobs, Profile
from domain.state import Degradation, ExecutedStep
from graphs.instrumentation import file_usage, instrument
from graphs.node import Node
from nodes.context import Context, Models
from nodes.step import Step

USED = ModelUsage("gpt", 10, 5, 0.25)
DEGRADED = Degradation(node="grade", code="model_failed", given_up="gpt", instead="local", message="The model failed.")
EARLIER: ExecutedStep = {"node": "route", "ms": 1.0, "warnings": [], "usage": []}


class Input(TypedDict):
    question: str
    profile: dict[str, Any]


def make_context(**models: Any) -> Context:
    nothing = cast(Any, None)
    return Context(library=nothing, embedder=nothing, judges=nothing, tokens=nothing, models=Models(**models))


def make_runtime(context: Context, events: list[Any], **info: Any) -> Runtime[Context]:
    execution = cast(Any, SimpleNamespace(**info)) if info else None
    return Runtime(context=context, stream_writer=events.append, execution_info=execution)


class Seen:
    """A node's function that remembers what it was called with."""

    def __init__(self, update: Mapping[str, Any] | None = None, error: Exception | None = None) -> None:
        self.update, self.error = update or {}, error
        self.left: float | None = None
        self.budget: float | None = None

    async def __call__(self, state: Input, runtime: Runtime[Context]) -> Mapping[str, Any]:
        ledger = runtime.context.ledger
        now = asyncio.get_running_loop().time()
        self.context = runtime.context
        self.left = None if ledger.model_deadline is None else ledger.model_deadline - now
        self.budget = None if ledger.budget_deadline is None else ledger.budget_deadline - now
        ledger.record(USED)
        ledger.degrade(DEGRADED)
        if self.error:
            raise self.error
        return self.update


def make_node(function: Any, *, name: str = "grade", writes: bool = False, seconds: float = 20.0) -> Node:
    function.__name__ = name
    return Node(Step(run=function, label="", streams=writes), seconds)


def make_profile(**knobs: Any) -> dict[str, Any]:
    return Profile(name="own", **knobs).model_dump()


def test_a_node_says_what_it_reads() -> None:
    async def function(state: Input, runtime: Runtime[Context]) -> Mapping[str, Any]:
        return {}

    assert make_node(function).step.reads == {"question", "profile"}


async def test_a_node_has_the_nodes_own_time_without_a_profile() -> None:
    seen, context = Seen({"a": 1}), make_context()
    result = await make_node(seen).execute({}, make_runtime(context, []))
    assert result.update == {"a": 1}
    assert 0 <= result.ms < 5000
    assert seen.left == pytest.approx(20, abs=1)
    assert seen.budget is None
    assert (context.ledger.node, context.ledger.usage) == ("grade", [USED])


@pytest.mark.parametrize(
    ("timeout", "writes", "seconds"), [(None, False, 20), (5.0, False, 5), (60.0, False, 20), (5.0, True, 20)]
)
async def test_a_mode_may_shorten_a_nodes_time_unless_it_writes(
    timeout: float | None, writes: bool, seconds: float
) -> None:
    seen = Seen()
    state = {"profile": make_profile(models=ModelKnobs(timeout=timeout))}
    await make_node(seen, writes=writes).execute(state, make_runtime(make_context(), []))
    assert seen.left == pytest.approx(seconds, abs=1)


@pytest.mark.parametrize(
    ("name", "writes", "spent_ms", "left"),
    [
        ("grade", False, 0, 10),
        ("grade", False, 4000, 6),
        ("grade", False, 30_000, 0),
        # The steps in the state are still those of the last turn.
        ("route", False, 30_000, 10),
        # An answer that is being written is finished; one that may not begin is not begun.
        ("generate", True, 4000, None),
        ("generate", True, 30_000, 0),
    ],
)
async def test_a_budget_sets_a_deadline(name: str, writes: bool, spent_ms: float, left: float | None) -> None:
    seen, context = Seen(), make_context()
    state = {"profile": make_profile(budget=Budget(seconds=10)), "steps": [{**EARLIER, "ms": float(spent_ms)}]}
    await make_node(seen, name=name, writes=writes).execute(state, make_runtime(context, []))
    assert seen.budget == (None if left is None else pytest.approx(left, abs=1))
    assert bool(context.ledger.over_budget) == (left is not None)


async def test_a_node_has_the_models_of_its_mode() -> None:
    small, other = cast(Any, SimpleNamespace(name="small")), cast(Any, SimpleNamespace(name="other"))
    context = make_context(small=small, named={("small", "other"): other})
    for knobs, model in ((ModelKnobs(), small), (ModelKnobs(small="other"), other)):
        seen = Seen()
        await make_node(seen).execute({"profile": make_profile(models=knobs)}, make_runtime(context, []))
        assert seen.context.models.small is model


async def test_a_step_is_announced_and_filed() -> None:
    context, events = make_context(), list[Any]()
    run = instrument(make_node(Seen({"confidence": 0.5})))
    update = await run(cast(Any, {"steps": [EARLIER], "degraded": []}), make_runtime(context, events))
    assert events == [{"type": "thinking", "step": "grade"}]
    earlier, step = update["steps"]
    assert earlier == EARLIER
    assert step["node"] == "grade"
    assert 0 <= step["ms"] < 5000
    assert step["ms"] == round(step["ms"], 2)
    assert step["warnings"] == ["The model failed."]
    assert step["usage"] == [file_usage("grade", USED)]
    assert update["degraded"] == [DEGRADED]
    assert update["confidence"] == 0.5
    assert (context.ledger.usage, context.ledger.warnings, context.ledger.degraded) == ([], [], [])
    assert cast(Any, run).__name__ == "grade"


@pytest.mark.parametrize(
    ("update", "state"),
    [({"steps": [], "degraded": []}, {"steps": [EARLIER], "degraded": [DEGRADED]}), ({}, {})],
    ids=["what the step resets", "a state without any"],
)
async def test_what_a_step_resets_is_what_its_own_is_added_to(update: dict[str, Any], state: Any) -> None:
    filed = await instrument(make_node(Seen(update)))(state, make_runtime(make_context(), []))
    assert [step["node"] for step in filed["steps"]] == ["grade"]
    assert filed["degraded"] == [DEGRADED]


async def test_a_node_that_fails_leaves_what_it_consumed() -> None:
    context = make_context()
    with pytest.raises(RuntimeError):
        await instrument(make_node(Seen(error=RuntimeError())))(cast(Any, {}), make_runtime(context, []))
    assert context.ledger.usage == [USED]


def test_a_call_is_filed_under_its_node() -> None:
    assert file_usage("grade", USED) == {
        "node": "grade", "model": "gpt", "calls": 1, "input_tokens": 10, "output_tokens": 5, "cost": 0.25,
        "estimated": False,
    }  # fmt: skip
