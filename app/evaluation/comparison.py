"""Compares two profiles on the same questions."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.evaluation.evaluation import Evaluated, Result
from app.evaluation.permutation import find_p_value
from app.evaluation.scoring import Pair, is_right, pair_up, score_rankings


@dataclass(frozen=True, slots=True)
class Comparison:
    """The changes from one profile to another."""

    before: str
    after: str
    differences: dict[str, float]
    """After minus before, for each metric that both have."""
    p_values: dict[str, float]
    """P-values of a paired permutation test: of `ndcg@10`, if documents are judged, and of `right`, which is 1 for each
    question that came out right."""
    gained: list[str]
    """Ids of the questions that come out right only after."""
    lost: list[str]
    """Questions that came out right only before."""


def compare(each: Evaluated) -> list[Comparison]:
    """Compare the first profile with each of the others."""
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
