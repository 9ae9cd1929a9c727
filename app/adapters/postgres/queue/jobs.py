"""Jobs and the tasks that perform them. Kept apart from `worker`, whose import takes 0.2 s."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

RETRY_SECONDS = 1.0
"""Wait before a job that failed unexpectedly is done again, and between attempts to reach the database."""


@dataclass(frozen=True, slots=True)
class Job:
    """A job as its task receives it."""

    id: int
    attempts: int
    """Number of times it was begun before."""
    args: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Task:
    """A kind of job, and the function that performs it."""

    queue: str
    name: str
    concurrency: int
    perform: Callable[[Job], Awaitable[float | None]]
    """Does a job. Returns None when the job is done, or the number of seconds after which to do it again. A job that is
    cancelled or raises is done again after `RETRY_SECONDS`."""
    cron: str | None = None
    """Schedule in UTC on which a job is added, once for all processes."""
