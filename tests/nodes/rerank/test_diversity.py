import numpy as np
import pytest

from domain.ports.embedding import Vector
from nodes.ranking.diversity import diversify


def directions(*degrees: float) -> Vector:
    angles = np.radians(degrees)
    return np.array([np.cos(angles), np.sin(angles)], dtype=np.float32).T


RELEVANCE = [0.9, 0.88, 0.6, 0.1]
SAYING = directions(0, 2, 80, 90)


@pytest.mark.parametrize("share", [1.0, 0.6, 0.0])
def test_each_choice_maximises_the_formula_of_its_authors(share: float) -> None:
    draw = np.random.default_rng(4)
    embeddings = draw.normal(size=(30, 8)).astype(np.float32)
    embeddings /= np.linalg.norm(embeddings, axis=1, keepdims=True)
    relevance = draw.random(30).tolist()
    chosen = diversify(relevance, embeddings, 6, share)
    assert len(set(chosen)) == 6
    for step, choice in enumerate(chosen):
        before = chosen[:step]

        def gain(index: int, before: list[int] = before) -> float:
            nearest = max((float(embeddings[index] @ embeddings[other]) for other in before), default=0.0)
            return share * float(relevance[index]) - (1 - share) * max(nearest, 0.0)

        best = max(gain(index) for index in range(30) if index not in before)
        assert gain(choice) == pytest.approx(best, abs=1e-6)


@pytest.mark.parametrize(("count", "keep"), [(0, 5), (2, 5)])
def test_no_more_is_chosen_than_there_is(count: int, keep: int) -> None:
    assert len(diversify(RELEVANCE[:count], SAYING[:count], keep, 0.5)) == count
