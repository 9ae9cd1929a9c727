"""Lists of runs: what a list shows of each, and the filter that chooses them."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from domain.errors import FilterError, InputError
from domain.history.feedback import Complaint, Rating
from domain.library.where import MAX_CONDITIONS, Condition, Where

RUN_FIELDS: Final[dict[str, type]] = {
    "run_id": str,
    "thread_id": str,
    "question": str,
    "mode": str,
    "route": str,
    "outcome": str,
    "verification": str,
    "answered_by": str,
    "error": str,
    "rating": str,
    "complaint": str,
    "comment": str,
    "asked_by": str,
    "models": str,
    "documents": str,
    "confidence": float,
    "top_score": float,
    "retries": float,
    "candidates": float,
    "sources": float,
    "citations": float,
    "cost": float,
    "ms": float,
    "warnings": float,
    "degraded": float,
    "outdated": float,
    "cached": bool,
    "replay": bool,
}
"""The fields of a run that a filter may test, and the type of each. `citations`, `warnings` and `degraded` are numbers
of them, `outdated` is that of the cited documents that were replaced or deleted since; `rating`, `complaint` and
`comment` are what a reader said of the answer. `models` (called) and `documents` (cited, by title) hold several values,
of which one has to pass."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

MOST_RUNS = 200
"""Runs of one page of a list."""
MOST_WORDS = 20
"""Words of a search for runs."""
MOST_EXAMINED = 10_000
"""Runs that are looked at to sum them up."""


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One run, as a list shows it."""

    run_id: str
    thread_id: str
    started_at: datetime
    question: str
    mode: str
    route: str
    outcome: str | None
    confidence: float
    top_score: float | None
    retries: int
    candidates: int
    sources: int
    citations: int
    verification: str
    cached: bool
    answered_by: str
    cost: float | None
    ms: float | None
    warnings: int
    degraded: int
    outdated: int
    """Number of the cited documents that were replaced or deleted since."""
    error: str | None
    replay: bool
    """True for a run that continues from a saved state."""
    reasons: list[str]
    """Codes of the reasons for its outcome."""
    rating: Rating | None
    """What a reader said of the answer; None where nobody did."""
    complaint: Complaint | None
    """What the reader found wrong."""
    comment: str
    asked_by: str
    """The name of the caller; empty where that is not on record."""
    models: list[str]
    """The language models that were called."""
    documents: list[str]
    """The titles of the cited documents."""


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Which runs to list: since when, and which conditions hold, one of several groups of them."""

    since: datetime
    alternatives: tuple[Where, ...] = ()
    """Empty: all runs."""
    limit: int = field(default=50)
    after: tuple[datetime, str] | None = None
    """The start and the id of the last run of the page before."""
    until: datetime | None = None
    """Runs that began before it; None: all up to now."""
    words: tuple[str, ...] = ()
    """All of them stand in the question or the answer, as parts of words and in upper or lower case."""


def read_words(text: str) -> tuple[str, ...]:
    """Return the words to search runs for. Raises `FilterError`."""
    words = tuple(text.split())
    if len(words) > MOST_WORDS:
        raise FilterError(f"Runs are searched for at most {MOST_WORDS} words; these are {len(words)}.")
    return words


def parse_run_filter(*texts: str | None) -> tuple[Where, ...]:
    """Read filters over runs, such as `outcome == abstained or retries > 0 and cost >= 0.01`, all of which have to
    hold. Raises `FilterError`."""
    alternatives: tuple[Where, ...] = ()
    for text in filter(None, texts):
        read = Where.parse_alternatives(text)
        alternatives = tuple(
            Where.of([*one.conditions, *other.conditions]) for one in alternatives or (Where(),) for other in read
        )
        if len(alternatives) > MAX_CONDITIONS:
            raise FilterError(f"The filters have more than {MAX_CONDITIONS} alternatives together.")
    for where in alternatives:
        for condition in where.conditions:
            _check(condition)
    return alternatives


def _check(condition: Condition) -> None:
    expected = RUN_FIELDS.get(condition.key)
    if expected is None:
        raise FilterError(f"A run has no {condition.key!r}. It has: {', '.join(sorted(RUN_FIELDS))}.")
    values = condition.value if isinstance(condition.value, tuple) else (condition.value,)
    if not all(_fits(value, expected) for value in values):
        kind = {str: "text, in quotes where it looks like a number", float: "a number", bool: "true or false"}[expected]
        raise FilterError(f"{condition.key!r} is compared with {kind}, not with {_show(values)}.")


def _fits(value: object, expected: type) -> bool:
    return (
        isinstance(value, bool)
        if expected is bool
        else isinstance(value, str) == (expected is str) and (not isinstance(value, bool))
    )


def _show(values: Iterable[object]) -> str:
    return ", ".join(json.dumps(value, ensure_ascii=False) for value in values)


def write_cursor(at: datetime, last: str) -> str:
    """Write where the next page of a list of runs or threads begins: after the one of this time and id."""
    return f"{(at - _EPOCH) // _MICROSECOND}-{last}"


def read_cursor(text: str) -> tuple[datetime, str]:
    """Read what `write_cursor` wrote. Raises `InputError`."""
    at, _, last = text.partition("-")
    try:
        return _EPOCH + int(at) * _MICROSECOND, last
    except (ValueError, OverflowError):
        raise InputError("`after` is the `next` of the page before; this is none.") from None
