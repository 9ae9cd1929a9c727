"""Takes work from the database, and extends the claims on what this process holds."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic

from psycopg import AsyncConnection
from psycopg.rows import DictRow, dict_row

from app.adapters.postgres.pool import WAIT_SECONDS, translated_errors
from app.adapters.postgres.queue import leases
from app.support.cancelling import end_tasks
from domain.errors import DatabaseUnavailable, Unavailable

logger = logging.getLogger("askgraph.worker")

POLL_SECONDS = 1.0
"""Interval at which a task looks for work unasked: some is due now, or the notification of some was lost."""

Connection = AsyncConnection[DictRow]
Perform = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Task:
    """A kind of work."""

    name: str
    """What notifications call it."""
    concurrency: int
    take: Callable[[bool], Awaitable[Perform | None]]
    """Claims what is next and returns what does it; None where there is nothing to do. The argument says whether claims
    that have run out are taken over. Raises `Unavailable`."""
    extend: Callable[[Connection], Awaitable[None]] | None = None
    """Extends the claims on what is being done."""
    poll_seconds: float = POLL_SECONDS


class Pulse:
    """Extends claims, and listens for work, on a connection of its own: a busy pool must not make the process look
    dead. It begins with the first claim, so that a command that accepts no run costs nothing."""

    def __init__(self, database_url: str, extend: Sequence[Callable[[Connection], Awaitable[None]]]) -> None:
        self._database_url = database_url
        self._extend = extend
        self._beating: asyncio.Task[None] | None = None
        self._news: dict[str, asyncio.Event] = {}
        self._answering_since = float("-inf")
        """Monotonic time; infinity while the database does not answer."""

    @property
    def may_rescue(self) -> bool:
        """False for some seconds after an outage of the database, during which nobody could extend a claim."""
        return monotonic() - self._answering_since > leases.LEASE.total_seconds()

    def begin(self) -> None:
        """Begin, unless it goes on already."""
        if self._beating is None:
            self._beating = asyncio.create_task(self._beat_forever(), name="heartbeats")

    def listen(self, name: str) -> asyncio.Event:
        """Return the event that is set when somebody announces work of this name."""
        return self._news.setdefault(name, asyncio.Event())

    async def close(self) -> None:
        """End it."""
        if self._beating is not None:
            await end_tasks(self._beating)

    async def _beat_forever(self) -> None:
        while True:
            try:
                with translated_errors():
                    async with await self._connect() as connection:
                        await connection.execute(f"LISTEN {leases.CHANNEL}")
                        while True:
                            await self._beat(connection)
                            async for heard in connection.notifies(timeout=leases.BEAT_SECONDS):
                                if news := self._news.get(heard.payload):
                                    news.set()
            except DatabaseUnavailable:
                if self._answering_since != float("inf"):
                    logger.warning("The database does not answer: no claim is extended until it does.")
                self._answering_since = float("inf")
            except Exception:
                # Keep trying after any error: without this, other processes take over what is executed here.
                logger.exception("Claims could not be extended.")
            await asyncio.sleep(leases.RETRY_SECONDS)

    async def _connect(self) -> Connection:
        return await AsyncConnection.connect(
            self._database_url,
            autocommit=True,
            row_factory=dict_row,
            connect_timeout=int(WAIT_SECONDS),
            application_name="askgraph queue",
        )

    async def _beat(self, connection: Connection) -> None:
        async with asyncio.timeout(WAIT_SECONDS):
            for extend in self._extend:
                await extend(connection)
            # Also where there is nothing to extend: an outage has to be noticed.
            await connection.execute("SELECT 1")
        if self._answering_since == float("inf"):
            logger.warning("The database answers again.")
            self._answering_since = monotonic()


class Worker:
    """Does the work of several tasks, each of which has its own places, so that none waits for another."""

    def __init__(self, pulse: Pulse, tasks: Sequence[Task]) -> None:
        self._pulse = pulse
        self._performing: set[asyncio.Task[None]] = set()
        self._news = [pulse.listen(task.name) for task in tasks]
        self._stopped: float | None = None
        self._taking = [asyncio.create_task(self._serve(*each)) for each in zip(tasks, self._news, strict=True)]

    def stop(self) -> None:
        """Take nothing more."""
        if self._stopped is None:
            self._stopped = monotonic()
            for news in self._news:
                news.set()

    async def close(self, drain_seconds: float) -> None:
        """End. What is being done gets `drain_seconds` from when it was stopped, and is cancelled then."""
        self.stop()
        assert self._stopped is not None
        deadline = self._stopped + drain_seconds
        # What is being claimed is still begun: nobody else could do it before the claim has run out.
        await asyncio.wait(self._taking, timeout=WAIT_SECONDS)
        await end_tasks(*self._taking)
        if self._performing:
            await asyncio.wait(self._performing, timeout=max(0.0, deadline - monotonic()))
        for task in self._performing:
            task.cancel()
        if self._performing:
            await asyncio.wait(self._performing, timeout=WAIT_SECONDS)

    async def _serve(self, task: Task, news: asyncio.Event) -> None:
        """Do what waits, and look again when some is announced or done, and at intervals."""
        doing: set[asyncio.Task[None]] = set()

        def end(done: asyncio.Task[None]) -> None:
            doing.discard(done)
            self._performing.discard(done)
            news.set()

        while self._stopped is None:
            news.clear()
            try:
                while self._stopped is None and len(doing) < task.concurrency:
                    perform = await task.take(self._pulse.may_rescue)
                    if perform is None:
                        break
                    begun = asyncio.create_task(_perform(task.name, perform))
                    doing.add(begun)
                    self._performing.add(begun)
                    begun.add_done_callback(end)
            except Unavailable as error:
                # `Pulse` logs an outage, once.
                logger.debug("Nothing can be taken of %s: %s", task.name, error.message)
            except Exception:
                logger.exception("Nothing can be taken of %s.", task.name)
            if self._stopped is None:
                with suppress(TimeoutError):
                    async with asyncio.timeout(task.poll_seconds):
                        await news.wait()


async def _perform(name: str, perform: Perform) -> None:
    try:
        await perform()
    except Exception:
        logger.exception("Work of %s failed.", name)
