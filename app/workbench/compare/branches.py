"""The branches of a run: a tree of runs that continue from each other's saved states."""

from collections.abc import Sequence
from typing import Any

from typing_extensions import TypedDict

from domain.runs import RunRecord

MOST_BRANCHES = 100
"""Runs of a tree that are shown."""
_LONGEST = 300
"""Characters of an answer."""


class Branch(TypedDict):
    """A run of the tree."""

    run_id: str
    thread_id: str
    parent: str | None
    """The run that it continues; null for the first, and where that one is gone."""
    forked_from: dict[str, Any] | None
    """`checkpoint_id`, the names of what was `changed`, and where given the `node` that ran again and `until`."""
    started_at: str
    mode: str
    outcome: str | None
    error: str | None
    answer: str
    """Its beginning."""
    confidence: float
    ms: float | None
    cost: float | None


class Branches(TypedDict):
    """A tree of runs, oldest first, so that every run follows its parent."""

    runs: list[Branch]
    more: bool
    """True where there are more than are shown."""


def describe_branches(family: Sequence[RunRecord]) -> Branches:
    """Describe the runs of a tree, of which at most one more is given than is shown."""
    shown = family[:MOST_BRANCHES]
    known = {run.run_id for run in shown}
    return Branches(runs=[_describe(run, known) for run in shown], more=len(family) > MOST_BRANCHES)


def _describe(run: RunRecord, known: set[str]) -> Branch:
    parent = (run.forked_from or {}).get("run_id")
    return Branch(
        run_id=run.run_id,
        thread_id=run.thread_id,
        parent=parent if parent in known else None,
        forked_from=run.forked_from,
        started_at=run.started_at.isoformat(),
        mode=run.mode,
        outcome=run.outcome,
        error=run.error,
        answer=run.answer[:_LONGEST],
        confidence=run.confidence,
        ms=run.timings.get("total"),
        cost=run.cost,
    )
