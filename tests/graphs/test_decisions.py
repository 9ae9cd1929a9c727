"""Every conditional edge, at and around each of its thresholds."""

from typing import Any, cast

import pytest

from domain.execution.budget import Budget
from domain.profile import GradeKnobs, Profile, ResearchKnobs
from domain.state import AnswerState, ExecutedStep, Failure, Usage, blank_question
from graphs.decisions import decide_remedy, decide_retry, decide_sufficiency
from nodes.prompting.answerers import LOCAL

SUFFICIENT, CAVEAT, MAX_RETRIES = 0.6, 0.4, 2
FAILURE = Failure(code="model_refused", given_up="m", message="…")
SPENT = 100
"""Tokens of steps, against a budget of 100."""


def make_state(
    tokens: int = 0,
    verify: bool = False,
    grade: GradeKnobs | None = None,
    budget: Budget | None = None,
    research: int = 0,
    **fields: Any,
) -> AnswerState:
    profile = Profile(
        name="own",
        grade=grade or GradeKnobs(sufficient=SUFFICIENT, caveat=CAVEAT, max_retries=MAX_RETRIES),
        budget=budget or Budget(tokens=SPENT),
        verify=verify,
        research=ResearchKnobs(rounds=research),
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
    ("confidence", "tokens", "answerer", "edge"),
    [
        (0.4, 0, "", "sufficient"),
        (0.399, 0, "", "poor"),
        (0.0, 0, "", "poor"),
        (0.6, SPENT - 1, "", "sufficient"),
        (0.4, SPENT, "", "over budget"),
        (0.399, SPENT, "", "poor"),
        # To quote costs nothing.
        (0.6, SPENT, "local", "sufficient"),
        (0.6, SPENT, "model", "over budget"),
    ],
)
def test_sufficiency(confidence: float, tokens: int, answerer: str, edge: str) -> None:
    assert decide_sufficiency(make_state(tokens, confidence=confidence, answerer=answerer)) == edge


def test_a_model_that_writes_says_itself_what_it_lacks_of_what_was_found() -> None:
    found: Any = {"sources": [{"document_id": "a"}], "confidence": 0.1}
    assert decide_sufficiency(make_state(**found, answerer="model")) == "sufficient"
    assert decide_sufficiency(make_state(SPENT, **found, answerer="model")) == "over budget"
    assert decide_sufficiency(make_state(**found, answerer="local")) == "poor"
    assert decide_sufficiency(make_state(answerer="model")) == "poor"
    assert decide_sufficiency(make_state(**found, answerer="model", grade=GradeKnobs(formula="weighted"))) == "poor"


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
    ("query", "tokens", "edge"),
    [
        ("other", SPENT - 1, "new query"),
        ("other", SPENT, "over budget"),
        ("tried", 0, "nothing new"),
        ("tried", SPENT, "over budget"),
    ],
)
def test_retry(query: str, tokens: int, edge: str) -> None:
    assert decide_retry(make_state(tokens, query=query, queries_tried=["first", "tried"])) == edge


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


@pytest.mark.parametrize(("confidence", "edge"), [(0.4, "answer otherwise"), (0.399, "nothing to answer from")])
def test_where_a_model_fails_only_what_may_answer_is_quoted(confidence: float, edge: str) -> None:
    assert decide_remedy(make_state(confidence=confidence, failure=FAILURE, answerer=LOCAL)) == edge
