"""Works through many cases, a few at a time: what evaluations and replays of many runs are made with."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping
from typing import Any, TypeVar

from app.support.cancelling import end_tasks

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


async def tell_progress(
    work: Callable[[Callable[[int, int], None]], Coroutine[Any, Any, Result]],
) -> AsyncGenerator[dict[str, Any] | Result]:
    """Begin work that reports how far it is: yield that, as events, and then its result. Closing this ends it."""
    steps: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
    begun = asyncio.create_task(
        work(lambda done, total: steps.put_nowait({"type": "progress", "done": done, "total": total}))
    )
    begun.add_done_callback(lambda _: steps.put_nowait(None))
    try:
        while (step := await steps.get()) is not None:
            yield step
        yield await begun
    finally:
        await end_tasks(begun)
