"""What is handed out of an evaluation: its metrics, its files."""

from collections.abc import Sequence
from typing import Any

from app.evaluation.evaluation import Evaluated


def list_metrics(evaluated: Sequence[Evaluated]) -> dict[str, dict[str, Any]]:
    """The metrics by set; where several profiles were asked, by set and profile."""
    return {
        each.set.name: each.results[0].metrics
        if len(each.results) == 1
        else {result.profile: result.metrics for result in each.results}
        for each in evaluated
    }
