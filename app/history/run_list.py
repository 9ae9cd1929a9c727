"""Lists the runs of a workspace, a page at a time."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from app.history.costs import parse_since
from domain.errors import InputError
from domain.history.run_lists import MOST_RUNS, RunFilter, parse_run_filter, read_cursor, write_cursor
from domain.ports.runs import RunLog
from domain.scope import Scope


async def list_runs(
    log: RunLog,
    asker: Scope,
    *,
    since: str = "7d",
    where: str | Sequence[str] | None = None,
    limit: int = 50,
    after: str | None = None,
) -> dict[str, Any]:
    """Return `{since, runs, next}`: runs that have ended, newest first. `next` is the `after` of the next page; None
    where there is no more.

    Raises `InputError`, `FilterError` and `DatabaseUnavailable`.
    """
    if not 1 <= limit <= MOST_RUNS:
        raise InputError(f"The limit is {limit}; it has to be from 1 to {MOST_RUNS}.")
    start = parse_since(since)
    texts = [where] if isinstance(where, str | None) else where
    # One more than is shown tells whether there is another page.
    wanted = RunFilter(start, parse_run_filter(*texts), limit + 1, None if after is None else read_cursor(after))
    found = await log.list_runs(asker, wanted)
    shown = found[:limit]
    return {
        "since": start.isoformat(timespec="seconds"),
        "runs": [asdict(run) | {"started_at": run.started_at.isoformat()} for run in shown],
        "next": write_cursor(shown[-1]) if len(found) > limit else None,
    }
