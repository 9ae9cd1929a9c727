"""Logs how far the files that wait to be read, and then their passages that wait to be embedded, have come."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from time import monotonic

from app.support.cancelling import end_tasks
from domain.errors import Unavailable

logger = logging.getLogger("askgraph.ingestions")

LOOK_SECONDS = 1.0
"""Interval of looks at what is left."""

TELL_SECONDS = 30.0
"""A line is logged at least so often while there is something to do, and with each tenth of it."""

Count = Callable[[], Awaitable[tuple[int, int]]]
"""Returns the number of files that are not read, and of passages that are not embedded. Raises `Unavailable`."""


class QueueProgress:
    """Logs a line at the start, on the way and at the end. Asks nothing while there is nothing to do."""

    def __init__(self, count: Count) -> None:
        self._count = count
        self._following: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Follow the queue until it is empty, unless that is being done. To be called with each file."""
        if self._following is None or self._following.done():
            self._following = asyncio.create_task(self._follow())

    async def close(self) -> None:
        """Stop following it."""
        if self._following is not None:
            await end_tasks(self._following)

    async def _follow(self) -> None:
        # The next file begins again.
        with suppress(Unavailable):
            await self._tell(0, "Files", "read")
            await self._tell(1, "Passages", "embedded")

    async def _tell(self, which: int, things: str, done: str) -> None:
        began = told = monotonic()
        total = left = (await self._count())[which]
        tenths = 0
        if total:
            logger.info("%s to be %s: %d.", things, done, total)
        while left:
            await asyncio.sleep(LOOK_SECONDS)
            before, left = left, (await self._count())[which]
            total += max(0, left - before)
            ended, now = total - left, monotonic()
            if not left:
                logger.info("%s %s: %d, in %.0f s.", things, done, total, now - began)
            elif ended * 10 // total > tenths or now - told >= TELL_SECONDS:
                rest = f"about {(now - began) * left / ended:.0f} s left" if ended else "none yet"
                logger.info("%s %s: %d of %d (%d %%), %s.", things, done, ended, total, 100 * ended // total, rest)
                told = now
            tenths = ended * 10 // total
