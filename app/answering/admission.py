"""Admission: how many runs a process takes on, and how many of them search and judge at once."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar

from app.support.metrics import REFUSED
from domain.errors import Saturated

PREPARING = 32
"""Number of runs that search and judge at once; others wait for their turn. Until the model that writes is
asked a run needs the processor, some 0.1 s of it, and a step has 15 s: with 300 of them side by side on two cores,
steps ran out of time and were repeated. From then on it waits for that model, some of which take minutes to their first
word, so the number of answers that are being written is not limited."""

PREPARING_LOCALLY = 4
"""The same where searches and judgements ask nobody outside. Runs then wait for the processor alone, and side by side
all have their first word at the end: of 32, half had theirs after .66 of the time that all took with 8 at once, after
.59 with 4. With fewer, the processor waits for a database that is far away."""


class Visit:
    """A request that may begin a run, until that is decided."""

    def __init__(self) -> None:
        self.is_decided = False


_visit: ContextVar[Visit | None] = ContextVar("visit", default=None)


class Admission:
    """Refuses runs that this process has no room for, before they are accepted. Limits of callers are others:
    `app.access.limits`."""

    def __init__(self, most: int, *, is_local: bool = False) -> None:
        """`is_local`: searches and judgements ask nobody outside."""
        self.most = most
        self.running = 0
        """Number of runs that this process has taken on."""
        self._visits = 0
        """Number of requests that may begin a run."""
        self.preparing = PREPARING_LOCALLY if is_local else PREPARING
        """Number of runs that search and judge at once."""
        self._turns = asyncio.Semaphore(self.preparing)
        self.waiting = 0
        """Number of runs that wait for their turn to search and judge."""

    @contextmanager
    def visit(self) -> Iterator[None]:
        """Let a request in that may begin a run, before anything is done for it. Raises `Saturated` where the requests
        that are in already leave no room for its run: of 1,000 that come at once, most are refused before their body is
        parsed, and those that are accepted do not wait for that."""
        self._refuse_from(self.running + self._visits)
        visit = Visit()
        self._visits += 1
        token = _visit.set(visit)
        try:
            yield
        finally:
            _visit.reset(token)
            self._decide(visit)

    def check(self) -> None:
        """Raise `Saturated` where the process has no room for another run."""
        self._refuse_from(self.running)

    def enter(self) -> None:
        """Count a run, until `leave`. A request that begins it is counted no more."""
        self.running += 1
        if visit := _visit.get():
            self._decide(visit)

    def leave(self) -> None:
        """Count one run less."""
        self.running -= 1

    def _refuse_from(self, number: int) -> None:
        if number >= self.most:
            REFUSED.labels(Saturated().code).inc()
            raise Saturated

    def _decide(self, visit: Visit) -> None:
        if not visit.is_decided:
            visit.is_decided = True
            self._visits -= 1

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
