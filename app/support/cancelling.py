"""Cancels tasks reliably."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

AGAIN_SECONDS = 0.5


async def end_tasks(*tasks: asyncio.Task[Any]) -> None:
    """Cancel the tasks until they have ended, and ignore their results and errors.

    One cancellation may not do: a driver that waits with `asyncio.wait_for` loses one that comes together with the
    reply (https://bugs.python.org/issue37658).
    """
    left = {task for task in tasks if not task.done()}
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=AGAIN_SECONDS)
    await asyncio.gather(*tasks, return_exceptions=True)


def keep_cancelling(task: asyncio.Task[Any]) -> None:
    """Cancel the task until it has ended, without waiting for that."""
    if not task.done():
        task.cancel()
        asyncio.get_running_loop().call_later(AGAIN_SECONDS, keep_cancelling, task)


async def finish(act: Callable[[], Awaitable[object]]) -> None:
    """Call `act` and let it end even where this task is being cancelled, when each wait of its own would be cut short.

    A server cancels the task that streams to a client who has left.
    """
    await asyncio.shield(asyncio.ensure_future(act()))
