"""Compares two profiles on the same questions."""

from dataclasses import dataclass
from math import comb

from app.evaluation.evaluation import Evaluated, Result
from app.evaluation.scoring import is_right, pair_up


@dataclass(frozen=True, slots=True)
class Comparison:
    """The changes from one profile to another."""

    before: str
    after: str
    differences: dict[str, float]
    """After minus before, for each metric that both have."""
    p_value: float
    """How probable it is that chance alone tells the two profiles apart by as many questions as this, or by more."""
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
    flips = [(question.id, a, b) for (question, _), a, b in zip(old, was, now, strict=True) if a != b]
    gained, lost = ([id for id, _, right in flips if right is kind] for kind in (True, False))
    return Comparison(
        before=before.profile,
        after=after.profile,
        differences={n: after.metrics[n] - v for n, v in before.metrics.items() if n in after.metrics},
        p_value=find_p_value(len(gained), len(lost)),
        gained=gained,
        lost=lost,
    )


def find_p_value(gained: int, lost: int) -> float:
    """Return the two-sided p-value of a sign test: each question that came out otherwise might as well have been lost
    as gained (McNemar, Psychometrika 12, 1947, in its exact form)."""
    changed = gained + lost
    rarer = sum(comb(changed, number) for number in range(min(gained, lost) + 1))
    return min(1.0, 2 * rarer / (1 << changed))
