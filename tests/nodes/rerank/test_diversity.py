import numpy as np
import pytest

from domain.ports.embedding import Vector
from nodes.ranking.diversity import diversify


def directions(*degrees: float) -> Vector:
    angles = np.radians(degrees)
    return np.array([np.cos(angles), np.sin(angles)], dtype=np.float32).T


RELEVANCE = [0.9, 0.88, 0.6, 0.1]
SAYING = directions(0, 2, 80, 90)


def test_relevance_alone_keeps_the_order() -> None:
    assert diversify(RELEVANCE, SAYING, 4, 1.0) == [0, 1, 2, 3]


def test_what_says_the_same_as_a_chosen_one_comes_later() -> None:
    assert diversify(RELEVANCE, SAYING, 3, 0.7) == [0, 2, 1]


def test_difference_alone_takes_the_farthest() -> None:
    assert diversify(RELEVANCE, SAYING, 2, 0.0) == [0, 3]


def test_each_choice_maximises_the_formula_of_its_authors() -> None:
    draw = np.random.default_rng(4)
    embeddings = draw.normal(size=(30, 8)).astype(np.float32)
    embeddings /= np.linalg.norm(embeddings, axis=1, keepdims=True)
    relevance = draw.random(30).tolist()
    chosen = diversify(relevance, embeddings, 6, 0.6)
    assert len(set(chosen)) == 6
    for step, choice in enumerate(chosen):
        before = chosen[:step]

        def gain(index: int, before: list[int] = before) -> float:
            nearest = max((float(embeddings[index] @ embeddings[other]) for other in before), default=0.0)
            return 0.6 * float(relevance[index]) - 0.4 * max(nearest, 0.0)

        best = max(gain(index) for index in range(30) if index not in before)
        assert gain(choice) == pytest.approx(best, abs=1e-6)


@pytest.mark.parametrize(("count", "keep"), [(0, 5), (2, 5)])
def test_no_more_is_chosen_than_there_is(count: int, keep: int) -> None:
    assert len(diversify(RELEVANCE[:count], SAYING[:count], keep, 0.5)) == count
