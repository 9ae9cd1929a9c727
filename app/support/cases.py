"""Works through many cases, a few at a time: what evaluations and replays of many runs are made with."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, TypeVar

Case = TypeVar("Case")
Result = TypeVar("Result")


async def work_through(
    cases: Mapping[str, Case],
    work: Callable[[Case], Awaitable[Result]],
    *,
    at_once: int,
    report: Callable[[int, int], None],
) -> dict[str, Result]:
    """Return the result of each case, in their order. `report` is called with how many are done, of how many. The first
    error ends all of them."""
    results: dict[str, Result] = {}
    waiting = iter(cases)
    report(0, len(cases))

    async def take() -> None:
        for key in waiting:
            results[key] = await work(cases[key])
            report(len(results), len(cases))

    await work_side_by_side(take, at_once)
    return {key: results[key] for key in cases}


async def work_side_by_side(work: Callable[[], Coroutine[Any, Any, None]], workers: int) -> None:
    """Run `work` several times concurrently. Raises the first error, which cancels the others."""
    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(workers):
                group.create_task(work())
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from errors
