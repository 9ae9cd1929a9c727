"""grade keeps the better attempt."""

from typing import Any

import pytest
from langgraph.runtime import Runtime

from app.adapters.embeddings.onnx import OnnxEmbedder
from app.wiring.services import Services
from domain.ports.judgement import Grade
from domain.profile import MODES
from domain.scope import Scope
from domain.state import Attempt
from nodes.grade.step import RETRY_MARGIN, GradeInput, grade, level_of
from nodes.rerank.step import RerankInput, rerank
from nodes.retrieve.step import RetrieveInput, retrieve
from tests.nodes.nodes_alone import make_runtime, make_state
from tests.sources import make_source

QUESTION = "How long is the warranty of the Falke?"


@pytest.mark.parametrize(("previous_gain", "kept"), [(RETRY_MARGIN, "earlier"), (-2 * RETRY_MARGIN, "retry")])
async def test_a_retry_has_to_be_clearly_better(
    services: Services, library: dict[str, str], previous_gain: float, kept: str
) -> None:
    runtime = Runtime(context=services.make_context())
    scope = {"scope": Scope("default").to_json(), "profile": services.modes["standard"].model_dump()}
    found = await retrieve(
        RetrieveInput(
            question=QUESTION,
            standalone_question=QUESTION,
            query=QUESTION,
            queries_tried=[],
            long_forms={},
            retries=0,
            focus=[],
            language="en",
            **scope,  # type: ignore[typeddict-item]
        ),
        runtime,
    )
    ranked = await rerank(
        RerankInput(**found, focus=[], **scope),  # type: ignore[typeddict-item]
        runtime,
    )
    sources = ranked["sources"]
    confidence = (await services.models.judges.grader.grade(QUESTION, sources, scope=Scope("default"))).confidence
    earlier = Attempt(
        query="earlier",
        candidates=ranked["candidates"][:1],
        sources=sources[:1],
        confidence=confidence + previous_gain,
        missing=[],
    )
    graded = await grade(
        GradeInput(
            question=QUESTION,
            turns=[],
            standalone_question=QUESTION,
            query="retry",
            candidates=ranked["candidates"],
            sources=sources,
            previous=earlier,
            scope=Scope("default").to_json(),
            profile=MODES["standard"].model_dump(),
        ),
        runtime,
    )
    assert graded["query"] == kept
    assert (graded["candidates"] == ranked["candidates"]) == (kept == "retry")
    assert graded["previous"] is None


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
    assert update["missing"] == [f"word{number}" for number in range(10)]
