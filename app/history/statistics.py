"""Compares how a service did with what it is meant to do."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from domain.runs import RunStatistics


@dataclass(frozen=True, slots=True)
class Target:
    """What a figure should be, and when somebody should look at it."""

    name: str
    figure: Callable[[RunStatistics], float | None]
    """None where there is nothing to judge by."""
    most: float
    alert: float
    """Greater figures are worth an alert."""
    unit: str = "ms"


def _share(count: Callable[[RunStatistics], int], of: Callable[[RunStatistics], int]) -> Callable[[RunStatistics], Any]:
    def compute(runs: RunStatistics) -> float | None:
        return 100 * count(runs) / of(runs) if of(runs) else None

    return compute


TARGETS = (
    Target("search, p95", lambda runs: runs.retrieval_ms, 200, 500),
    Target("all but writing, p95", lambda runs: runs.own_ms, 500, 1000),
    Target("cached answer, p95", lambda runs: runs.cached_ms, 500, 1000),
    Target("abstained", _share(lambda runs: runs.abstained, lambda runs: runs.answered + runs.abstained), 20, 40, "%"),
    Target("thumbs down", _share(lambda runs: runs.disliked, lambda runs: runs.liked + runs.disliked), 20, 40, "%"),
    Target("degraded", _share(lambda runs: runs.degraded, lambda runs: runs.runs), 1, 5, "%"),
    Target("failed", _share(lambda runs: runs.failed, lambda runs: runs.runs), 0.1, 1, "%"),
    Target(
        "cost a question",
        lambda runs: runs.cost / runs.runs if runs.cost is not None and runs.runs else None,
        0.05,
        0.2,
        "$",
    ),
)
"""Times and cost are the project's targets. The shares are meant to be fitted to one's documents and readers. The rules
in docs/operations/alerts.yml have the same limits."""


def compare(runs: RunStatistics) -> list[dict[str, Any]]:
    """Return `{name, value, unit, target, alert, verdict}` for each target. The verdict is `ok`, `missed`, `alert`, or
    `unknown` where nothing was measured."""
    compared = []
    for target in TARGETS:
        value = target.figure(runs)
        if value is None:
            verdict = "unknown"
        else:
            verdict = "ok" if value <= target.most else "missed" if value <= target.alert else "alert"
        compared.append(
            {
                "name": target.name,
                "value": value,
                "unit": target.unit,
                "target": target.most,
                "alert": target.alert,
                "verdict": verdict,
            }
        )
    return compared
