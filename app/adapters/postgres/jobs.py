"""What a worker is to do with the jobs of a queue. Apart from the worker, whose import takes long."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

RETRY_SECONDS = 1.0
"""Between two attempts at what failed for no known reason, and to reach a database that is gone."""


@dataclass(frozen=True, slots=True)
class Job:
    """A job as its task sees it."""

    id: int
    attempts: int
    """How often it was begun before."""
    args: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Task:
    """What is done with the jobs of a queue."""

    queue: str
    name: str
    concurrency: int
    perform: Callable[[Job], Awaitable[float | None]]
    """None where the job is done; otherwise, after how many seconds it shall be done again. So are jobs that are
    cancelled, and those that end with an error, after `RETRY_SECONDS`."""
    cron: str | None = None
    """When the queue gets such a job by itself, one for all processes; in UTC."""
