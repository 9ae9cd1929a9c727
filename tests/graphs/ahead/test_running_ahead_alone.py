"""Running ahead, with nodes of the test's own: what is begun, taken over, and thrown away."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import pytest
from langgraph.runtime import Runtime
from typing_extensions import TypedDict

from domain.ports.models import ModelUsage
from domain.profile import Profile
from domain.state import blank_question
from graphs.answer import STEPS, find_next
from graphs.instrumentation import instrument
from graphs.node import Node
from graphs.speculation import SpeculatingContext, speculate
from nodes.context import Context, Models

USED = ModelUsage("gpt", 10, 5, 0.25)
PROFILE = Profile(name="own", speculate=True)
MODEL = cast(Any, object())
ALL = ["route", "retrieve", "rerank", "grade", "generate"]


class Input(TypedDict):
    question: str
    query: str


class GenerateInput(Input):
    confidence: float
    level: str
    missing: list[str]


def make_state(**fields: Any) -> Any:
    return {
        **blank_question(), "question": "q", "standalone_question": "q", "query": "q (words)", "route": "needs_retrieval",
        "profile": PROFILE.model_dump(), "confidence": 0.9, "level": "high", "missing": [],
        "sources": [{"number": 1, "document_id": "d"}], "steps": [], **fields,
    }  # fmt: skip


class Steps:
    """The nodes from route to generate. `judgements` are what route and grade say with a model, and without."""

    def __init__(self, **model_says: Mapping[str, Any]) -> None:
        self.edges: dict[str, str] = {}
        self.calls: list[str] = []
        self.queries: dict[str, str] = {}
        self.cancelled: list[str] = []
        self.slow = asyncio.Event()
        self.nodes = {name: self._make_node(name, model_says.get(name)) for name in ALL}

    def _make_node(self, name: str, model_says: Mapping[str, Any] | None = None) -> Node:
        step = replace(STEPS["rerank" if name == "own" else name], run=self._make(name, model_says))
        return Node(step, 20.0, lambda state: self.edges.get(name) or find_next(name, state))

    def _make(self, name: str, model_says: Mapping[str, Any] | None) -> Any:
        async def judge(state: Any, runtime: Runtime[Context]) -> Mapping[str, Any]:
            asked = runtime.context.models.small is not None
            self.calls.append(f"{name} by model" if asked and name in ("route", "grade") else name)
            self.queries[name] = state["query"]
            if name in ("route", "grade"):
                if not asked:
                    return {}
                await asyncio.sleep(0.01)
                return model_says or {}
            runtime.stream_writer(name)
            if name == "generate":
                runtime.context.ledger.record(USED)
                try:
                    await asyncio.wait_for(self.slow.wait(), 0.05)
                except TimeoutError:
                    pass
                except asyncio.CancelledError:
                    self.cancelled.append(name)
                    raise
                return {"answer": "a", "confidence": state["confidence"], "level": state["level"], "missing": []}
            return {}

        if name == "generate":

            async def generate(state: GenerateInput, runtime: Runtime[Context]) -> Mapping[str, Any]:
                return await judge(state, runtime)

            return generate

        async def run(state: Input, runtime: Runtime[Context]) -> Mapping[str, Any]:
            return await judge(state, runtime)

        run.__name__ = name
        return run

    def put_between_rerank_and_grade(self) -> None:
        self.nodes["own"] = self._make_node("own")
        self.edges = {"rerank": "own", "own": "grade"}


def make_context(small: Any = MODEL) -> Context:
    nothing = cast(Any, None)
    return Context(library=nothing, embedder=nothing, judges=nothing, tokens=nothing, models=Models(small=small))


async def walk(
    steps: Steps, given: Any, names: list[str], context: Context, events: list[Any]
) -> tuple[dict[str, Any], list[Any]]:
    """Run these nodes one after the other, as the graph would."""
    state: Any = dict(given)
    async with speculate(context) as ahead:
        runtime: Runtime[Context] = Runtime(context=ahead, stream_writer=events.append)
        for name in names:
            state = {**state, **(await instrument(steps.nodes[name], steps.nodes)(state, runtime))}
            state["query"] = "q" if name == "route" else state["query"]
    return state, events


async def test_what_a_model_agrees_with_is_run_once_and_seen_in_order() -> None:
    steps, context = Steps(), make_context()
    state, events = await walk(steps, make_state(), ALL, context, [])
    assert sorted(steps.calls) == sorted([
        "route by model", "route", "retrieve", "rerank", "grade", "grade by model", "generate",
    ]) or sorted(steps.calls) == sorted([
        "route by model", "route", "retrieve", "rerank", "grade", "grade by model", "grade", "generate",
    ])  # fmt: skip
    assert [event if isinstance(event, str) else event["step"] for event in events] == [
        "route", "retrieve", "retrieve", "rerank", "rerank", "grade", "generate", "generate",
    ]  # fmt: skip
    assert [(used["node"], used["model"]) for step in state["steps"] for used in step["usage"]] == [("generate", "gpt")]
    assert context.ledger.usage == []
    assert steps.queries["retrieve"] == "q"
    assert steps.cancelled == []


async def test_what_a_model_disagrees_with_is_cancelled_and_on_the_bill() -> None:
    steps, context = Steps(grade={"confidence": 0.1}), make_context()
    state, events = await walk(steps, make_state(), ALL[2:4], context, [])
    assert state["confidence"] == 0.1
    assert steps.cancelled == ["generate"]
    assert "generate" not in events
    assert context.ledger.usage == [USED]


async def test_generate_ahead_is_not_taken_over_on_another_input() -> None:
    steps, context = Steps(), make_context()
    async with speculate(context) as ahead:
        runtime: Runtime[Context] = Runtime(context=ahead, stream_writer=lambda event: None)
        state = make_state()
        await instrument(steps.nodes["grade"], steps.nodes)(state, runtime)
        update = await instrument(steps.nodes["generate"], steps.nodes)(make_state(query="other"), runtime)
    assert steps.calls.count("generate") == 2
    assert steps.queries["generate"] == "other"
    usage = [used["node"] for step in update["steps"] for used in step["usage"]]
    assert usage == ["generate", "speculation"]


async def test_sureness_does_not_keep_generate_from_being_taken_over() -> None:
    steps, context = Steps(grade={"confidence": 0.7, "level": "fair", "missing": ["x"]}), make_context()
    state, _ = await walk(steps, make_state(), ["grade", "generate"], context, [])
    assert steps.calls.count("generate") == 1
    assert (state["confidence"], state["level"], state["missing"], state["answer"]) == (0.7, "fair", ["x"], "a")


@pytest.mark.parametrize(("small", "speculates"), [(None, True), (MODEL, False)])
async def test_nothing_runs_ahead_without_a_model_or_where_the_mode_forbids_it(small: Any, speculates: bool) -> None:
    steps = Steps()
    profile = PROFILE.model_copy(update={"speculate": speculates})
    state = make_state(profile=profile.model_dump())
    await walk(steps, state, ["route"], make_context(small), [])
    assert len(steps.calls) == 1


async def test_leaving_ends_what_runs_ahead() -> None:
    steps, context = Steps(), make_context()
    await walk(steps, make_state(), ["grade"], context, [])
    assert steps.calls.count("generate") == 1
    assert steps.cancelled == ["generate"]
    assert context.ledger.usage == [USED]


async def test_the_context_of_a_run_keeps_its_parts() -> None:
    context = make_context()
    async with speculate(context) as ahead:
        assert isinstance(ahead, SpeculatingContext)
        assert (ahead.ledger, ahead.models) == (context.ledger, context.models)


@pytest.mark.parametrize(
    ("name", "fields", "following"),
    [
        ("route", {}, "retrieve"),
        ("route", {"standalone_question": "other"}, None),
        ("route", {"route": "conversational"}, None),
        ("retrieve", {}, "rerank"),
        ("rerank", {}, "grade"),
        ("grade", {"confidence": PROFILE.grade.sufficient}, "generate"),
        # A model usually finds them sufficient, whatever the local judgement says.
        ("grade", {"confidence": 0.0}, "generate"),
        ("grade", {"confidence": 0.0, "sources": []}, None),
    ],
)
def test_what_follows_is_foreseen(name: str, fields: dict[str, Any], following: str | None) -> None:
    state, foresee = make_state(**fields), STEPS[name].foresee
    ahead = foresee(state) if foresee else {}
    assert (None if ahead is None else find_next(name, state | dict(ahead))) == following


async def test_a_further_step_of_the_graph_runs_ahead_like_the_others() -> None:
    steps, context = Steps(), make_context()
    steps.put_between_rerank_and_grade()
    await walk(steps, make_state(), ["route", "retrieve", "rerank", "own", "grade", "generate"], context, [])
    assert [steps.calls.count(name) for name in ("retrieve", "rerank", "own", "grade by model", "generate")] == [1] * 5
    assert (context.ledger.usage, steps.cancelled) == ([], [])
