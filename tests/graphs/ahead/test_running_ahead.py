"""What runs ahead is foreseen, and when it is taken for the graph's own."""

import asyncio
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from langgraph.runtime import Runtime

from app.adapters.embeddings.onnx import OnnxEmbedder
from domain.profile import GradeKnobs, Profile
from graphs.answer import STEPS, find_next
from graphs.node import Node
from graphs.speculation import Ahead, Speculation
from nodes.context import Context
from nodes.generate.step import GenerateInput
from nodes.grade.step import GradeInput
from tests.nodes.nodes_alone import make_runtime, make_state
from tests.sources import make_source

PROFILE = Profile(name="own", grade=GradeKnobs(sufficient=0.6))
GIVEN: dict[str, Any] = {
    "confidence": 0.9,
    "level": "high",
    "missing": [],
    "sources": [make_source("Lunch costs nine francs.")],
}


async def write(state: GenerateInput, runtime: Runtime[Context]) -> dict[str, Any]:
    return {}


async def judge(state: GradeInput, runtime: Runtime[Context]) -> dict[str, Any]:
    return {}


@pytest.mark.parametrize(
    ("change", "fits"),
    [
        ({}, True),
        # The model is as sure as it has to be, whatever it says beside that.
        ({"confidence": 0.6, "level": "medium"}, True),
        ({"missing": ["dinner"]}, True),
        # It is not: the answer needs a caveat, another search, or none at all.
        ({"confidence": 0.599}, False),
        ({"confidence": 0.0}, False),
        # It was given something else to write from.
        ({"sources": []}, False),
        ({"standalone_question": "What does dinner cost?"}, False),
        ({"answerer": "local"}, False),
        # generate does not read it.
        ({"query": "dinner"}, True),
    ],
)
async def test_generate_is_taken_over_where_the_sources_suffice(
    embedder: OnnxEmbedder, change: dict[str, Any], fits: bool
) -> None:
    state = make_state(profile=PROFILE, **GIVEN)
    ahead = Ahead(
        Node(replace(STEPS["generate"], run=write), 1, partial(find_next, "generate")),
        state,
        make_runtime(embedder, []),
    )
    assert ahead.fits({**state, **change}) == fits
    await asyncio.wait([ahead.task])


@pytest.mark.parametrize(
    ("change", "fits"),
    [({}, True), ({"level": "low"}, True), ({"corrected_question": "dinner"}, False), ({"sources": []}, False)],
)
async def test_another_step_is_taken_over_where_its_input_is_equal(
    embedder: OnnxEmbedder, change: dict[str, Any], fits: bool
) -> None:
    state = make_state(profile=PROFILE, **GIVEN)
    ahead = Ahead(
        Node(replace(STEPS["grade"], run=judge), 1, partial(find_next, "grade")), state, make_runtime(embedder, [])
    )
    assert ahead.fits({**state, **change}) == fits
    await asyncio.wait([ahead.task])


READ = {**GIVEN, "route": "needs_retrieval", "query": "q (words)"}
"""What route and grade say without a model."""


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
    state, foresee = make_state("q", PROFILE, **{**READ, **fields}), STEPS[name].foresee
    ahead = foresee(state) if foresee else {}
    assert (None if ahead is None else find_next(name, state | dict(ahead))) == following


async def test_nothing_runs_ahead_where_no_model_is_waited_for(embedder: OnnxEmbedder) -> None:
    speculation, node = Speculation(), Node(STEPS["route"], 1, partial(find_next, "route"))
    speculation.begin("route", make_state("q", PROFILE), make_runtime(embedder, []), {"route": node})
    assert speculation._following is None
