"""Lists the runs of a workspace, a page at a time, and sums up what a list would show."""

from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from typing_extensions import TypedDict

from app.history.costs import parse_since
from domain.errors import InputError
from domain.history.run_lists import (
    MOST_EXAMINED,
    MOST_RUNS,
    RunFilter,
    RunSummary,
    parse_run_filter,
    read_cursor,
    read_words,
    write_cursor,
)
from domain.ports.runs import RunLog
from domain.scope import Scope

_NAMED = 20
"""Names that a filter offers, the most frequent first."""
_HOURLY = timedelta(hours=49)
"""Up to this span, which a day with a change of the clock fits in twice, periods are hours; beyond, days."""


class Period(TypedDict):
    """What the runs that began in a time came to."""

    start: str
    """When the time begins."""
    runs: int
    """Runs that began in it."""
    outcomes: dict[str, int]
    """Number of runs by outcome; of one without, by error."""
    p50_ms: float | None
    """Half of the runs took no longer; None, here and below, where no time is on record."""
    p95_ms: float | None
    """95 % of the runs took no longer."""
    cost: float
    """US dollars, of the runs of known price."""


class RunFigures(TypedDict):
    """What a list of runs comes to, in all and over time."""

    since: str
    """From when on runs are looked at."""
    until: str
    """Until when."""
    total: Period
    periods: list[Period]
    """Hours or days, counted from `since`, without those in which nothing began."""
    days: bool
    """True where the periods are days."""
    asked_by: dict[str, int]
    """By who asked."""
    models: dict[str, int]
    """By language model."""
    documents: dict[str, int]
    """Number of runs by name, the most frequent names."""
    cut: bool
    """True where there are more runs than are looked at: then these are the latest."""


def read_filter(
    since: str = "7d",
    until: str | None = None,
    text: str = "",
    where: str | Sequence[str] | None = None,
    limit: int = MOST_RUNS,
    after: str | None = None,
) -> RunFilter:
    """Read the filters of runs as people write them. Raises `InputError` and `FilterError`."""
    return RunFilter(
        parse_since(since),
        parse_run_filter(*([where] if isinstance(where, str | None) else where)),
        limit,
        None if after is None else read_cursor(after),
        None if until is None else parse_since(until),
        read_words(text),
    )


async def list_runs(log: RunLog, asker: Scope, wanted: RunFilter) -> dict[str, Any]:
    """Return `{since, runs, next}`: runs that have ended, newest first. `next` is the `after` of the next page; None
    where there is no more.

    Raises `InputError` and `DatabaseUnavailable`.
    """
    limit = wanted.limit
    if not 1 <= limit <= MOST_RUNS:
        raise InputError(f"The limit is {limit}; it has to be from 1 to {MOST_RUNS}.")
    # One more than is shown tells whether there is another page.
    found = await log.list_runs(asker, replace(wanted, limit=limit + 1))
    shown = found[:limit]
    return {
        "since": wanted.since.isoformat(timespec="seconds"),
        "runs": [asdict(run) | {"started_at": run.started_at.isoformat()} for run in shown],
        "next": write_cursor(shown[-1].started_at, shown[-1].run_id) if len(found) > limit else None,
    }


async def read_all(log: RunLog, asker: Scope, wanted: RunFilter) -> AsyncIterator[RunSummary]:
    """Yield the runs that pass, up to the filter's limit, page by page. Raises `DatabaseUnavailable`."""
    left, after = wanted.limit, wanted.after
    while left > 0:
        page = await log.list_runs(asker, replace(wanted, limit=min(MOST_RUNS, left), after=after))
        for run in page:
            yield run
        if not page:
            return
        left -= len(page)
        after = page[-1].started_at, page[-1].run_id


async def sum_up_runs(log: RunLog, asker: Scope, wanted: RunFilter) -> RunFigures:
    """Sum up the runs that pass. Raises `DatabaseUnavailable`."""
    until = wanted.until or datetime.now(UTC)
    days = until - wanted.since > _HOURLY
    step = timedelta(days=1) if days else timedelta(hours=1)
    runs = [run async for run in read_all(log, asker, replace(wanted, limit=MOST_EXAMINED))]
    periods: dict[datetime, list[RunSummary]] = {}
    for run in reversed(runs):
        periods.setdefault(wanted.since + (run.started_at - wanted.since) // step * step, []).append(run)
    return RunFigures(
        since=wanted.since.isoformat(timespec="seconds"),
        until=until.isoformat(timespec="seconds"),
        total=_sum_up(wanted.since, runs),
        periods=[_sum_up(start, each) for start, each in periods.items()],
        days=days,
        asked_by=_count(run.asked_by for run in runs if run.asked_by),
        models=_count(model for run in runs for model in run.models),
        documents=_count(title for run in runs for title in run.documents),
        cut=len(runs) == MOST_EXAMINED,
    )


def _count(names: Iterable[str]) -> dict[str, int]:
    return dict(Counter(names).most_common(_NAMED))


def _sum_up(start: datetime, runs: Sequence[RunSummary]) -> Period:
    times = sorted(run.ms for run in runs if run.ms is not None)
    return Period(
        start=start.isoformat(timespec="seconds"),
        runs=len(runs),
        outcomes=dict(Counter(run.error or run.outcome or "no_outcome" for run in runs)),
        p50_ms=_find_percentile(times, 50),
        p95_ms=_find_percentile(times, 95),
        cost=sum(run.cost or 0.0 for run in runs),
    )


def _find_percentile(ordered: Sequence[float], percent: int) -> float | None:
    """Return the nearest rank: the smallest value that this share of the values does not exceed."""
    return ordered[-(-len(ordered) * percent // 100) - 1] if ordered else None
