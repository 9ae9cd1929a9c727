"""reformulate: which queries it chooses, and that none is searched for twice."""

from collections.abc import Callable
from typing import Any

import pytest

from app.adapters.embeddings.onnx import OnnxEmbedder
from graphs.decisions import decide_retry
from nodes.context import Models
from nodes.prompting.answerers import LOCAL
from nodes.reformulate.step import ReformulateUpdate, Reformulation, reformulate
from tests.nodes.nodes_alone import make_runtime, make_state
from tests.sources import make_source


class Model:
    """Writes these queries, and keeps what it was asked."""

    name = "m"
    sees = False

    def __init__(self, queries: list[str]) -> None:
        self.queries = queries
        self.asked: list[str] = []

    async def judge(self, messages: Any, schema: Any, sink: Any) -> Reformulation:
        self.asked.append("\n".join(message.content for message in messages))
        return Reformulation(queries=self.queries)


async def run(embedder: OnnxEmbedder, model: Model | None, **fields: Any) -> ReformulateUpdate:
    state = make_state(query="first", queries_tried=["first"], **fields)
    models = Models(small=model)  # type: ignore[arg-type]
    return await reformulate(state, make_runtime(embedder, [], models))


async def test_what_the_grading_model_missed_is_searched_for_without_another_call(embedder: OnnxEmbedder) -> None:
    model = Model(["written"])
    update = await run(embedder, model, missing=["price of A", "First?", "price of B"], graded_by="m", retries=1)
    assert update == {"query": "price of A", "queries": ["price of B"], "retries": 2}
    assert model.asked == []


@pytest.mark.parametrize(("missing", "graded_by"), [(["first"], "m"), ([], "m"), (["price"], LOCAL)])
async def test_where_nothing_untried_is_missing_a_model_writes_other_queries(
    embedder: OnnxEmbedder, missing: list[str], graded_by: str
) -> None:
    model = Model(["first", "cost of A", "cost of B"])
    sources = [make_source("It costs much.", title="Prices of 2020")]
    update = await run(embedder, model, missing=missing, graded_by=graded_by, sources=sources)
    assert (update["query"], update["queries"]) == ("cost of A", ["cost of B"])
    assert "- Prices of 2020" in model.asked[0]
    assert "- first" in model.asked[0]


@pytest.mark.parametrize("make", [lambda: None, lambda: Model(["First ?"])], ids=["no model", "nothing new"])
async def test_where_nothing_is_new_the_query_stays(embedder: OnnxEmbedder, make: Callable[[], Model | None]) -> None:
    update = await run(embedder, make(), missing=["price"], graded_by=LOCAL)
    assert update == {"query": "first", "queries": [], "retries": 1}
    assert decide_retry(make_state(query="first", queries_tried=["first"], graded_by=LOCAL)) == "nothing new"


async def test_at_most_as_many_queries_as_the_profile_allows(embedder: OnnxEmbedder) -> None:
    update = await run(embedder, None, missing=[f"query {n}" for n in range(9)], graded_by="m")
    assert [update["query"], *update["queries"]] == [f"query {n}" for n in range(4)]
