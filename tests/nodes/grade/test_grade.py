"""grade alone."""

from typing import Any

import pytest

from app.adapters.embeddings.onnx import OnnxEmbedder
from domain.ports.judgement import Grade
from domain.state import level_of
from nodes.grade.step import grade
from nodes.prompting.answerers import LOCAL
from tests.nodes.nodes_alone import make_runtime, make_state
from tests.sources import make_source, make_turn


class Grader:
    """Misses a dozen words."""

    def __init__(self, confidence: float = 0.5) -> None:
        self._confidence = confidence

    async def grade(self, *_: Any, **__: Any) -> Grade:
        return Grade(confidence=self._confidence, missing=[f"word{number}" for number in range(12)])


@pytest.mark.parametrize(
    ("confidence", "level"),
    [(1.0, "high"), (0.8, "high"), (0.79, "medium"), (0.6, "medium"), (0.59, "low"), (0.4, "low"), (0.39, "none")],
)
def test_a_confidence_has_a_word(confidence: float, level: str) -> None:
    assert level_of(confidence) == level


async def test_the_ten_words_that_matter_most_are_kept(embedder: OnnxEmbedder) -> None:
    state = make_state(sources=[make_source("Lunch costs nine francs.")], candidates=[], query="q")
    update = await grade(state, make_runtime(embedder, [], grader=Grader()))
    assert update["graded_by"] == LOCAL
    assert update["missing"] == [f"word{number}" for number in range(10)]


@pytest.mark.parametrize(
    ("question", "earlier", "level"),
    [("And lunch?", 3, "high"), ("And lunch? (canteen)", 2, "high"), ("And lunch? (canteen)", 3, "medium")],
)
async def test_what_is_taken_from_a_long_conversation_is_not_sure(
    question: str, earlier: int, level: str, embedder: OnnxEmbedder
) -> None:
    turns = [make_turn("Lunch?") for _ in range(earlier)]
    sources = [make_source("Lunch costs nine francs.")]
    state = make_state(sources=sources, candidates=[], query="q", corrected_question=question, turns=turns)
    assert (await grade(state, make_runtime(embedder, [], grader=Grader(0.9))))["level"] == level
