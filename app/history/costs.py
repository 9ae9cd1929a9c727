"""Sums up the costs of answering from the log of runs."""

from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

from domain.errors import InputError
from domain.ports.runs import RunLog
from domain.runs import CostKey
from domain.text.durations import parse_span


async def read_costs(runs: RunLog, workspace_id: str | None, since: datetime, by: CostKey) -> dict[str, Any]:
    """Return the costs by `by`, dearest first, and their total, of one workspace or of all (None).

    Raises `DatabaseUnavailable`.
    """
    costs, total = await runs.sum_costs(workspace_id, since, by)
    return {
        "since": since.isoformat(timespec="seconds"),
        "by": by,
        "costs": [asdict(spent) for spent in costs],
        "total": asdict(total),
    }


def parse_since(text: str) -> datetime:
    """Parse a start time: a span before now (`30m`, `24h`, `7d`, `2w`), a date or time in ISO 8601, in UTC unless it
    names another zone, or the beginning of `today` or `yesterday` in UTC.

    Raises `InputError`.
    """
    midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    days = {"today": midnight, "yesterday": midnight - timedelta(days=1)}
    if text.strip() in days:
        return days[text.strip()]
    try:
        if (span := parse_span(text)) is not None:
            return datetime.now(UTC) - span
        named = datetime.fromisoformat(text.strip())
    except (ValueError, OverflowError) as error:
        raise InputError(
            f"{text!r} is no time. Give a span in m, h, d or w, such as 7d, a date, such as 2026-11-01, or `yesterday`."
        ) from error
    return named if named.tzinfo else named.replace(tzinfo=UTC)
