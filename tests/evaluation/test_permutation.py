"""The permutation test compared with values computed by hand and with SciPy's."""

import random

import numpy as np
import pytest
from scipy.stats import permutation_test

from app.evaluation.permutation import RESAMPLES, find_p_value


def compute_with_scipy(before: list[float], after: list[float]) -> float:
    outcome = permutation_test(
        (np.array(before), np.array(after)),
        lambda one, other, axis: (other - one).mean(axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=RESAMPLES,
        rng=np.random.default_rng(1),
    )
    return float(outcome.pvalue)


def test_known_values() -> None:
    assert find_p_value([0.1, 0.2], [0.1, 0.2]) == 1
    # Two of the 2^3 equally likely sign changes are as far from zero.
    assert find_p_value([0, 0, 0], [1, 1, 1]) == 2 / 8
    # The sign of the fourth, which did not change, makes no difference.
    assert find_p_value([0, 0, 0, 0], [1, 1, 1, 0]) == 4 / 16
    assert find_p_value([0] * 40, [1] * 40) == 1 / (RESAMPLES + 1)
    assert find_p_value([0, 1] * 20, [1, 0] * 20) == 1


@pytest.mark.parametrize("seed", range(10))
def test_few_questions_give_exactly_the_value_of_scipy(seed: int) -> None:
    chance = random.Random(seed)
    before, after = ([chance.choice((0, 0.5, 1)) for _ in range(2 + seed)] for _ in range(2))
    assert find_p_value(before, after) == pytest.approx(compute_with_scipy(before, after), abs=1e-12)


@pytest.mark.parametrize("shift", [0.0, 0.05, 0.1])
def test_many_questions_give_the_value_of_scipy_but_for_chance(shift: float) -> None:
    chance = random.Random(5)
    before = [chance.random() for _ in range(60)]
    after = [value + chance.gauss(shift, 0.2) for value in before]
    assert find_p_value(before, after) == pytest.approx(compute_with_scipy(before, after), abs=0.02)
    assert find_p_value(before, after) == find_p_value(before, after)
