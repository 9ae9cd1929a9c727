"""reformulate: which queries it chooses, and that none is searched for twice."""

from typing import Any

import pytest

from app.adapters.embeddings.onnx import OnnxEmbedder
from nodes.reformulate.step import reformulate
from tests.nodes.nodes_alone import make_runtime, make_state


@pytest.mark.parametrize(
    ("missing", "chosen"),
    [
        (["price of A", "First?", "price of B"], {"query": "price of A", "queries": ["price of B"], "retries": 2}),
        (["first"], {"query": "first", "queries": [], "retries": 1}),
        ([f"q{n}" for n in range(9)], {"query": "q0", "queries": ["q1", "q2", "q3"], "retries": 2}),
    ],
    ids=["what is new", "nothing new", "at most as many as the profile allows"],
)
async def test_what_was_asked_for_is_searched_for(
    embedder: OnnxEmbedder, missing: list[str], chosen: dict[str, Any]
) -> None:
    state = make_state(query="first", queries_tried=["first"], missing=missing, retries=1)
    assert await reformulate(state, make_runtime(embedder, [])) == chosen
