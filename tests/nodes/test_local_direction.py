"""Sentences that point in opposite directions."""

import pytest

from app.adapters.embeddings.onnx import OnnxEmbedder
from nodes.local.verification.direction import find_opposition, read_axes


async def oppose(one: str, other: str, embedder: OnnxEmbedder) -> float:
    first, second = await embedder.embed_passages([one, other])
    return find_opposition(first, second, await read_axes(embedder))


@pytest.mark.parametrize(
    ("one", "same", "opposite"),
    [
        (
            "Vitamin D increases bone density in older women.",
            "In older women, bone density goes up with vitamin D.",
            "Vitamin D decreases bone density in older women.",
        ),
        (
            "The price of coffee depends on the weather in Brazil.",
            "Weather in Brazil decides the price of coffee.",
            "The price of coffee does not depend on the weather in Brazil.",
        ),
    ],
)
async def test_the_opposite_lies_farther_along_the_axes_than_the_same(
    one: str, same: str, opposite: str, embedder: OnnxEmbedder
) -> None:
    assert await oppose(one, opposite, embedder) > 2 * await oppose(one, same, embedder)
    assert await oppose(one, one, embedder) == pytest.approx(0.0, abs=1e-6)


async def test_sentences_about_different_things_oppose_nothing(embedder: OnnxEmbedder) -> None:
    assert await oppose("Vitamin D increases bone density.", "The canteen does not open on Sundays.", embedder) == 0.0
