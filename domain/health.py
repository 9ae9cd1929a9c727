"""Health: each part of the service reports its own problems, and how busy it is."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from time import perf_counter

Check = Callable[[], Awaitable[str | None]]
"""Returns None while the part works, and otherwise the problem in words. Must not raise."""

ANSWERING = "answering/"
"""Prefix of the checks of single language models; the rest of the name is the model's."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check."""

    problem: str | None
    ms: float


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What an examination of one part of a deployment found."""

    part: str
    found: str
    remedy: str | None = None
    """What to do; None where nothing is wrong."""


@dataclass(frozen=True, slots=True)
class QueueDepth:
    """What a queue holds, for all processes."""

    waiting: int
    running: int
    oldest_seconds: float
    """Age of what has waited longest; 0 where nothing waits."""


async def run_checks(checks: Mapping[str, Check]) -> dict[str, Finding]:
    """Run all checks at once."""

    async def run(check: Check) -> Finding:
        started = perf_counter()
        problem = await check()
        return Finding(problem, round(1000 * (perf_counter() - started), 2))

    return dict(zip(checks, await asyncio.gather(*map(run, checks.values())), strict=True))
