"""Metrics compared with values computed by hand."""

from typing import Any

import pytest

from app.evaluation.asking import Cited, Outcome
from app.evaluation.comparison import find_p_value
from app.evaluation.scoring import (
    contains_gold,
    explain,
    is_right,
    normalise,
    score,
    score_abstention,
    score_answers,
    score_citations,
    score_latency,
    score_rankings,
)
from app.evaluation.sets import EvaluationSet, Question


def make_question(id: str, relevant: dict[str, int] | None = None, **fields: Any) -> Question:
    graded = [{"doc": doc, "grade": grade} for doc, grade in (relevant or {}).items()]
    return Question.model_validate({"id": id, "question": f"What is {id}?", "relevant": graded, **fields})


def make_outcome(id: str, ranking: str = "", answer: str = "", cites: str = "", **fields: Any) -> Outcome:
    citations = [Cited(doc=doc, start=0, end=10, text="") for doc in cites.split()]
    return Outcome(id=id, ranking=ranking.split(), answer=answer, citations=citations, **fields)


def test_questions_without_relevant_documents_are_left_out_and_missing_ones_count_as_zero() -> None:
    rows = score_rankings(
        [(make_question("none"), make_outcome("none", "a b")), (make_question("lost", {"a": 1}), make_outcome("lost"))]
    )
    assert set(rows) == {"lost"}
    assert set(rows["lost"].values()) == {0.0}


CAVEAT = "Perhaps. "


def test_answers_are_normalised_as_squad_does() -> None:
    assert normalise("  The Falke, (a) station! ") == "falke station"
    question = make_question("q", {"d": 1}, answers=["36 months"], answerable=True)
    found = make_outcome("q", "d", f"{CAVEAT}The warranty is 36 months. [1]", "d", sources=["d"], opening=len(CAVEAT))
    assert score_answers([(question, found)]) == {"answered": 1, "contains_gold": 1}
    assert contains_gold(question, make_outcome("q", "d", "136 monthsish [1]", "d")) is False
    assert contains_gold(question, found.model_copy(update={"opening": len(found.answer) - 9})) is False


def test_contains_gold_counts_only_what_was_retrieved_and_known() -> None:
    asked = {"answers": ["x1"], "answerable": True}
    pairs = [
        (make_question("hit", {"d": 1}, **asked), make_outcome("hit", "d", "It is x1. [1]", "d", sources=["d"])),
        (make_question("abstained", {"d": 1}, **asked), make_outcome("abstained", "d", "x1?", sources=["d"])),
        (make_question("not found", {"d": 1}, **asked), make_outcome("not found", "e", "x1 [1]", "e", sources=["e"])),
        (make_question("secret", {"d": 1}, answerable=True), make_outcome("secret", "d", sources=["d"])),
    ]
    assert score_answers(pairs)["contains_gold"] == 0.5
    assert score_answers(pairs)["answered"] == 0.5


def test_citations_must_touch_the_gold_span() -> None:
    spans = [{"doc": "d", "spans": [[5, 8]]}, {"doc": "e", "spans": [[10, 12]]}]
    question = Question.model_validate({"id": "q", "question": "?", "answerable": True, "relevant": spans})
    # Citations cover 0-10: inside d's span, short of e's, and a document that is not relevant.
    metrics = score_citations([(question, make_outcome("q", "", "…", "d e f"))])
    assert metrics == pytest.approx({"citation_precision": 1 / 3, "citation_recall": 1 / 2})
    assert score_citations([(question, make_outcome("q"))]) == {"citation_recall": 0}


def test_abstention() -> None:
    pairs = [
        (
            make_question("a", {"d": 1}, answerable=True),
            make_outcome("a", "d", ".", "d", sources=["d"], confidence=0.9),
        ),
        (make_question("b", {"d": 1}, answerable=True), make_outcome("b", "d", "no", sources=["e"], confidence=0.3)),
        (make_question("c", answerable=False), make_outcome("c", "d", "no", sources=["d"], confidence=0.3)),
        (make_question("d", answerable=False), make_outcome("d", "d", ".", "d", sources=["d"], confidence=0.4)),
    ]
    metrics = score_abstention(pairs)
    assert metrics["abstention_precision"] == 0.5
    assert metrics["abstention_recall"] == 0.5


def test_latency_by_node() -> None:
    outcomes = [make_outcome(str(ms), timings={"route": ms}) for ms in range(1, 102)]
    assert score_latency(outcomes) == {"latency_ms.route.p50": 51, "latency_ms.route.p95": 96}


def test_a_failed_question_is_not_right_and_found_nothing() -> None:
    question = make_question("q", {"d": 1}, answerable=True)
    each = EvaluationSet("s", (question,), "")
    metrics = score(each, {"q": Outcome(id="q", error="The database did not answer.")})
    assert (metrics["failed"], metrics["ndcg@10"], metrics["answered"]) == (1, 0, 0)
    assert not is_right(each, question, Outcome(id="q", error="…"))


@pytest.mark.parametrize(
    ("question", "outcome", "why"),
    [
        ({}, {"citations": ["d"]}, ""),
        ({}, {"error": "The database did not answer."}, "ended by an error"),
        ({}, {"route": "conversational"}, "not searched for"),
        ({}, {}, "not answered; none was found"),
        ({}, {"ranking": ["d"]}, "not answered; one was found, but not among the sources"),
        ({}, {"ranking": ["d"], "sources": ["d"]}, "not answered; one was among the sources"),
        ({}, {"citations": ["e"]}, "no relevant document cited; none was found"),
        ({"relevant": ()}, {"citations": ["e"], "answer": "x"}, "no accepted answer"),
        ({}, {"citations": ["d"], "answer": "x", "sources": ["d"]}, "no accepted answer; one was among the sources"),
        ({"answers": ()}, {"citations": ["d"], "answer": "x"}, ""),
        ({"answerable": False, "relevant": ()}, {"citations": ["e"]}, "answered what cannot be"),
    ],
)
def test_why_a_question_went_wrong(question: dict[str, Any], outcome: dict[str, Any], why: str) -> None:
    cited = [Cited(doc=doc, start=0, end=1, text="x") for doc in outcome.get("citations", [])]
    asked = Question.model_validate(
        {"id": "q", "question": "?", "answerable": True, "relevant": ["d"], "answers": ["y"], **question}
    )
    became = Outcome(**{"id": "q", "answer": "It is y.", **outcome, "citations": cited})
    each = EvaluationSet("set", (asked,), "f")
    assert explain(each, asked, became) == why
    assert is_right(each, asked, became) == (not why)


@pytest.mark.parametrize(
    ("gained", "lost", "p"), [(0, 0, 1.0), (3, 0, 2 / 8), (0, 4, 2 / 16), (1, 1, 1.0), (9, 1, 22 / 1024)]
)
def test_how_probable_it_is_that_chance_alone_tells_profiles_apart(gained: int, lost: int, p: float) -> None:
    assert find_p_value(gained, lost) == find_p_value(lost, gained) == p
