"""grade alone."""

from typing import Any

import pytest

from app.adapters.embeddings.onnx import OnnxEmbedder
from domain.ports.judgement import Grade
from domain.state import Judgement, level_of
from nodes.grade.step import grade
from nodes.prompting.answerers import LOCAL
from tests.nodes.nodes_alone import make_runtime, make_state
from tests.sources import make_source


class Grader:
    """Misses a dozen words."""

    async def grade(self, *_: Any, **__: Any) -> Grade:
        return Grade(confidence=0.5, missing=[f"word{number}" for number in range(12)])


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


@pytest.mark.parametrize(("added", "confidence"), [("", 0.7), (" More of it.", 0.5)], ids=["nothing new", "more text"])
async def test_the_judgement_stands_where_a_retry_brought_nothing(
    embedder: OnnxEmbedder, added: str, confidence: float
) -> None:
    text = "Lunch costs nine francs."
    before = Judgement(confidence=0.7, missing=["price"], graded_by="m", characters=len(text))
    state = make_state(sources=[make_source(text + added)], retries=1, judgement=before)
    update = await grade(state, make_runtime(embedder, [], grader=Grader()))
    assert update["confidence"] == confidence
    assert update["graded_by"] == (LOCAL if added else "m")
