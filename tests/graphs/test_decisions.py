"""Every conditional edge, at and around each of its thresholds."""

from collections.abc import Sequence
from typing import Any, cast, get_args

import pytest

from domain.execution.budget import Budget
from domain.profile import GradeKnobs, Profile, ResearchKnobs
from domain.state import AnswerState, ExecutedStep, Failure, Task, Usage, blank_question
from graphs.decisions import decide_remedy, decide_retry, decide_sufficiency
from nodes.prompting.answerers import LOCAL

SUFFICIENT, CAVEAT, MAX_RETRIES = 0.6, 0.4, 2
FAILURE = Failure(code="model_refused", given_up="m", message="…")
HALF_SPENT, SPENT = 50, 100
"""Tokens of steps, against a budget of 100."""


def make_state(
    tokens: int = 0,
    verify: bool = False,
    grade: GradeKnobs | None = None,
    budget: Budget | None = None,
    research: int = 0,
    tasks: Sequence[Task] = get_args(Task),
    **fields: Any,
) -> AnswerState:
    profile = Profile(
        name="own",
        grade=grade or GradeKnobs(sufficient=SUFFICIENT, caveat=CAVEAT, max_retries=MAX_RETRIES),
        budget=budget or Budget(tokens=SPENT),
        verify=verify,
        research=ResearchKnobs(rounds=research, tasks=list(tasks)),
    )
    used = Usage(node="grade", model="m", calls=1, input_tokens=tokens, output_tokens=0, cost=0.0, estimated=False)
    steps = [ExecutedStep(node="grade", ms=1000.0, warnings=[], usage=[used])]
    state = {
        **blank_question(),
        "graded_by": LOCAL,
        "turns": [],
        "profile": profile.model_dump(),
        "steps": steps,
        **fields,
    }
    return cast(AnswerState, state)


@pytest.mark.parametrize(
    ("confidence", "retries", "tokens", "answerer", "edge"),
    [
        # Sufficient from the threshold on, whether retries are left or not.
        (0.599, 0, 0, "", "something is missing"),
        (0.6, 0, 0, "", "sufficient"),
        (0.601, 0, 0, "", "sufficient"),
        (0.6, 2, 0, "", "sufficient"),
        # Below it, every retry is used.
        (0.599, 1, 0, "", "something is missing"),
        (0.599, 2, 0, "", "sufficient"),
        (0.0, 0, 0, "", "something is missing"),
        (0.0, 1, 0, "", "something is missing"),
        # Without a retry, the caveat's threshold decides.
        (0.4, 2, 0, "", "sufficient"),
        (0.401, 2, 0, "", "sufficient"),
        (0.399, 2, 0, "", "poor"),
        (0.399, 3, 0, "", "poor"),
        (0.0, 2, 0, "", "poor"),
        # The budget ends searching and writing, and nothing else.
        (0.599, 0, HALF_SPENT, "", "something is missing"),
        (0.599, 0, SPENT, "", "over budget"),
        (0.6, 0, SPENT - 1, "", "sufficient"),
        (0.6, 0, SPENT, "", "over budget"),
        (0.4, 2, SPENT, "", "over budget"),
        (0.399, 2, SPENT, "", "poor"),
        # To quote costs nothing, but to search again does.
        (0.6, 0, SPENT, "local", "sufficient"),
        (0.6, 0, SPENT, "model", "over budget"),
        (0.599, 0, SPENT, "local", "over budget"),
    ],
)
def test_sufficiency(confidence: float, retries: int, tokens: int, answerer: str, edge: str) -> None:
    state = make_state(tokens, confidence=confidence, retries=retries, answerer=answerer)
    assert decide_sufficiency(state) == edge


@pytest.mark.parametrize(
    ("graded_by", "missing", "confidence", "retries", "edge"),
    [
        # What a model misses is searched for, however sure it is of the rest.
        ("m", ["price of B"], 0.949, 0, "something is missing"),
        ("m", ["price of B"], 0.949, 1, "something is missing"),
        ("m", ["price of B"], 0.949, 2, "sufficient"),
        ("m", ["price of B"], 0.95, 0, "sufficient"),
        ("m", [], 0.7, 0, "sufficient"),
        # The local judgement names words that no source holds, which no search will find.
        ("local", ["price"], 0.7, 0, "sufficient"),
        # A model that writes says itself what is not there, if there is anything near.
        ("m", [], 0.1, 2, "sufficient"),
        ("m", [], 0.0, 2, "poor"),
        ("local", [], 0.1, 2, "poor"),
    ],
)
def test_what_a_model_misses_is_searched_for(
    graded_by: str, missing: list[str], confidence: float, retries: int, edge: str
) -> None:
    state = make_state(graded_by=graded_by, missing=missing, confidence=confidence, retries=retries)
    assert decide_sufficiency(state) == edge


def test_where_the_run_quotes_a_poor_grade_ends_it() -> None:
    poor: dict[str, Any] = {"graded_by": "m", "confidence": 0.1, "retries": 2}
    assert decide_sufficiency(make_state(**poor, answerer="local")) == "poor"
    assert decide_retry(make_state(**poor, query="q", queries_tried=["q"])) == "nothing new, worth writing"
    assert decide_retry(make_state(**poor, query="q", queries_tried=["q"], answerer="local")) == "nothing new"


@pytest.mark.parametrize(("confidence", "edge"), [(0.5, "sufficient"), (0.499, "poor")])
def test_a_caveat_above_sufficient_does_not_count(confidence: float, edge: str) -> None:
    grade = GradeKnobs(sufficient=0.5, caveat=0.7, max_retries=0)
    assert decide_sufficiency(make_state(grade=grade, confidence=confidence)) == edge


@pytest.mark.parametrize(
    ("budget", "edge"),
    [
        (Budget(seconds=1.001), "sufficient"),
        (Budget(seconds=1.0), "over budget"),
        (Budget(dollars=0.01), "sufficient"),
        (Budget(dollars=0.0), "over budget"),
        (Budget(), "sufficient"),
    ],
)
def test_every_limit_of_the_budget_counts(budget: Budget, edge: str) -> None:
    assert decide_sufficiency(make_state(SPENT, budget=budget, confidence=0.9)) == edge


@pytest.mark.parametrize(
    ("query", "confidence", "tokens", "answerer", "edge"),
    [
        ("other", 0.0, 0, "", "new query"),
        ("other", 0.9, 0, "", "new query"),
        ("other", 0.0, SPENT - 1, "", "new query"),
        ("other", 0.0, SPENT, "", "over budget"),
        ("other", 0.0, SPENT, "local", "over budget"),
        ("tried", 0.399, 0, "", "nothing new"),
        ("tried", 0.4, 0, "", "nothing new, worth writing"),
        ("tried", 0.599, 0, "", "nothing new, worth writing"),
        ("tried", 0.399, SPENT, "", "nothing new"),
        ("tried", 0.4, SPENT, "", "over budget"),
        ("tried", 0.4, SPENT, "local", "nothing new, worth writing"),
    ],
)
def test_retry(query: str, confidence: float, tokens: int, answerer: str, edge: str) -> None:
    state = make_state(
        tokens, query=query, queries_tried=["first", "tried"], confidence=confidence, answerer=answerer, retries=1
    )
    assert decide_retry(state) == edge


@pytest.mark.parametrize(
    ("confidence", "failure", "grade", "edge"),
    [
        (0.4, None, None, "answer otherwise"),
        (0.399, None, None, "nothing to answer from"),
        (0.0, None, None, "nothing to answer from"),
        (0.0, FAILURE, None, "answer otherwise"),
        (0.3, None, GradeKnobs(sufficient=0.3, caveat=0.7), "answer otherwise"),
        (0.299, None, GradeKnobs(sufficient=0.3, caveat=0.7), "nothing to answer from"),
    ],
)
def test_remedy(confidence: float, failure: Failure | None, grade: GradeKnobs | None, edge: str) -> None:
    assert decide_remedy(make_state(confidence=confidence, failure=failure, grade=grade)) == edge
