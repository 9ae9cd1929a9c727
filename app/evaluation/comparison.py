"""Whether one profile does better than another on the same questions, or was only lucky."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import permutation_test

from app.evaluation.evaluation import Evaluated, Result
from app.evaluation.scoring import Pair, is_right, pair_up, score_rankings

RESAMPLES = 9999


@dataclass(frozen=True, slots=True)
class Comparison:
    """What changes from one profile to another."""

    before: str
    after: str
    differences: dict[str, float]
    """Of each metric that both have: after minus before."""
    p_values: dict[str, float]
    """How likely chance alone makes a difference of this size, by a paired permutation test (Smucker, Allan &
    Carterette, CIKM 2007): of `ndcg@10` per question, and of `right`, whether each question came out right."""
    gained: list[str]
    """Questions that come out right only after."""
    lost: list[str]
    """Questions that came out right only before."""


def compare(each: Evaluated) -> list[Comparison]:
    """The first profile against each of the others."""
    return [_compare(each, each.results[0], other) for other in each.results[1:]]


def _compare(each: Evaluated, before: Result, after: Result) -> Comparison:
    old, new = pair_up(each.set, before.outcomes), pair_up(each.set, after.outcomes)
    was, now = [is_right(each.set, *pair) for pair in old], [is_right(each.set, *pair) for pair in new]
    p_values = {"right": find_p_value([float(x) for x in was], [float(x) for x in now])}
    gains = _list_ndcg(old), _list_ndcg(new)
    if gains[0]:
        p_values["ndcg@10"] = find_p_value(*gains)
    flips = [(question.id, a, b) for (question, _), a, b in zip(old, was, now, strict=True) if a != b]
    return Comparison(
        before=before.profile,
        after=after.profile,
        differences={n: after.metrics[n] - v for n, v in before.metrics.items() if n in after.metrics},
        p_values=p_values,
        gained=[id for id, _, right in flips if right],
        lost=[id for id, right, _ in flips if right],
    )


def _list_ndcg(pairs: Sequence[Pair]) -> list[float]:
    return [row["ndcg@10"] for row in score_rankings(pairs).values()]


def find_p_value(before: Sequence[float], after: Sequence[float]) -> float:
    """The two-sided p of a paired permutation test of the mean. The same values give the same p."""
    if list(before) == list(after):
        return 1.0
    outcome = permutation_test(
        (np.array(before), np.array(after)),
        lambda one, other, axis: (other - one).mean(axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=RESAMPLES,
        batch=500,
        rng=np.random.default_rng(0),
    )
    return float(outcome.pvalue)
