"""Groups the runs that did not go well by what went wrong, as far as their records and their readers tell."""

from collections.abc import Callable
from dataclasses import replace

from typing_extensions import TypedDict

from app.history.run_list import read_all
from domain.history.run_lists import MOST_EXAMINED, RunFilter, RunSummary
from domain.outcome import ANSWERS
from domain.ports.runs import RunLog
from domain.scope import Scope

_EXAMPLES = 3

_CAUSES: tuple[tuple[str, Callable[[RunSummary], bool]], ...] = (
    ("stopped by the reader", lambda run: run.error == "stopped"),
    ("failed", lambda run: run.error is not None),
    (
        "abstained, and a reader says that the documents do answer",
        lambda run: run.outcome == "abstained" and run.complaint == "not_found",
    ),
    (
        "outdated document: a reader complained, and what the answer cites was replaced or deleted since",
        lambda run: run.rating == "down" and run.outdated > 0,
    ),
    ("a reader complained of the answer", lambda run: run.rating == "down"),
    ("over budget", lambda run: "over_budget" in run.reasons),
    ("nothing found", lambda run: run.outcome == "abstained" and run.candidates == 0),
    ("found, and nothing kept", lambda run: run.outcome == "abstained" and run.sources == 0),
    ("kept, and nothing could be quoted", lambda run: "nothing_quotable" in run.reasons),
    ("the model said that the sources do not answer", lambda run: "model_abstained" in run.reasons),
    ("kept, and judged not to answer", lambda run: run.outcome == "abstained"),
    ("claims without support were withdrawn", lambda run: run.verification in ("unsupported", "reconciled")),
    ("answered without a citation", lambda run: run.outcome in ANSWERS and run.citations == 0),
    ("outdated document: what the answer cites was replaced or deleted since", lambda run: run.outdated > 0),
    ("answered with a caveat", lambda run: run.outcome == "answered_with_caveat"),
    ("fell back to less than the mode asked for", lambda run: run.degraded > 0),
    ("had to ask back", lambda run: run.outcome == "asked_back"),
    ("searched again", lambda run: run.retries > 0),
)
"""The causes, the gravest first: a run is counted once."""


class Example(TypedDict):
    """A run of a group."""

    run_id: str
    question: str
    mode: str
    detail: str
    """The error; or what the reader said; or the codes of the reasons."""


class Group(TypedDict):
    """Runs with the same cause."""

    cause: str
    """What went wrong."""
    runs: int
    """Number of these runs."""
    by_mode: dict[str, int]
    """Number of them by mode."""
    examples: list[Example]
    """The latest."""


class Failures(TypedDict):
    """What did not go well, the most frequent cause first."""

    since: str
    """From when on runs are looked at."""
    runs: int
    """All that were looked at; answers from the cache and replays are not."""
    failures: int
    """Those that did not go well."""
    groups: list[Group]


async def group_failures(log: RunLog, asker: Scope, wanted: RunFilter) -> Failures:
    """Group those of the runs that did not go well. Raises `DatabaseUnavailable`."""
    groups: dict[str, Group] = {}
    examined = 0
    async for run in read_all(log, asker, replace(wanted, limit=MOST_EXAMINED)):
        if run.cached or run.replay:
            continue
        examined += 1
        if (cause := next((cause for cause, applies in _CAUSES if applies(run)), None)) is not None:
            _add(groups.setdefault(cause, Group(cause=cause, runs=0, by_mode={}, examples=[])), run)
    ordered = sorted(groups.values(), key=lambda group: -group["runs"])
    return Failures(
        since=wanted.since.isoformat(timespec="seconds"),
        runs=examined,
        failures=sum(group["runs"] for group in ordered),
        groups=ordered,
    )


def _add(group: Group, run: RunSummary) -> None:
    group["runs"] += 1
    group["by_mode"][run.mode] = group["by_mode"].get(run.mode, 0) + 1
    if len(group["examples"]) < _EXAMPLES:
        said = ": ".join(part for part in (run.complaint, run.comment) if part)
        detail = run.error or said or ", ".join(run.reasons)
        group["examples"].append(Example(run_id=run.run_id, question=run.question, mode=run.mode, detail=detail))
