"""Admission: how many runs a process takes on, and how many of them search and judge at once."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from app.support.metrics import REFUSED
from domain.errors import Saturated, TooManyRuns

PREPARING = 32
"""Number of runs that search and judge at once; others wait for their turn. Until its answer is being written a run
needs the processor, some 0.2 s of it, and a step has 15 s: with 300 of them side by side on two cores, steps ran out of
time and were repeated. Writing waits for the model, so the number of answers that are being written is not limited."""


class Admission:
    """Refuses runs that this process has no room for, before they are accepted."""

    def __init__(self, most: int, most_of_a_caller: int | None = None) -> None:
        self.most = most
        self._most_of_a_caller = most_of_a_caller
        self._running = Counter[str]()
        self._turns = asyncio.Semaphore(PREPARING)
        self.waiting = 0
        """Number of runs that wait for their turn to search and judge."""

    @property
    def running(self) -> int:
        """Number of runs that this process has taken on."""
        return self._running.total()

    def check(self, caller: str) -> None:
        """Raise `Saturated` or `TooManyRuns` where the process has no room for another run of the caller."""
        if self._most_of_a_caller is not None and self._running[caller] >= self._most_of_a_caller:
            REFUSED.labels(TooManyRuns().code).inc()
            raise TooManyRuns(
                f"{self._running[caller]} of your questions are being answered, which is as many as you may ask at "
                "once. Wait for one of them."
            )
        if self.running >= self.most:
            REFUSED.labels(Saturated().code).inc()
            raise Saturated

    def enter(self, caller: str) -> None:
        """Count a run of the caller, until `leave`."""
        self._running[caller] += 1

    def leave(self, caller: str) -> None:
        """Count one run of the caller less."""
        self._running[caller] -= 1
        if not self._running[caller]:
            del self._running[caller]

    @asynccontextmanager
    async def take_turn(self) -> AsyncIterator[Callable[[], None]]:
        """Wait for the turn to search and judge. The turn ends with the context, or when the function is called."""
        self.waiting += 1
        try:
            await self._turns.acquire()
        finally:
            self.waiting -= 1
        ended = False

        def end() -> None:
            nonlocal ended
            if not ended:
                ended = True
                self._turns.release()

        try:
            yield end
        finally:
            end()
