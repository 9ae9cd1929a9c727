"""That this process lives, as the others see it: its heartbeats, and what is done about those that have none.

A process is a worker in procrastinate's sense, whether it takes jobs from the queue or only executes the runs that it
has accepted itself. The jobs of a worker without heartbeats are given back, and whoever takes one begins it again.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from time import monotonic
from typing import Any

from psycopg import AsyncConnection
from psycopg.rows import DictRow, dict_row

from app.adapters.postgres import queue_sql
from app.adapters.postgres.jobs import RETRY_SECONDS
from app.adapters.postgres.pool import WAIT_SECONDS, translated_errors
from app.adapters.postgres.queue_schema import check_schema
from app.cancelling import end_tasks
from domain.errors import AskgraphError, DatabaseUnavailable

logger = logging.getLogger("askgraph.presence")

BEAT_SECONDS = 2.0
"""Between two heartbeats, and two looks for the jobs of the dead."""

STALLED_SECONDS = 8.0
"""Without a heartbeat for as long as this, a process counts as dead. An event loop that models keep busy is a second or
two late, and a connection that was lost takes as long to be replaced: three heartbeats may be missed, and a reader
waits ten seconds at most."""

FORGOTTEN_SECONDS = 60.0
"""Without a heartbeat for as long as this, a process is forgotten. Its jobs have been given back long since."""

Connection = AsyncConnection[DictRow]
Check = Callable[[Connection, list[int]], Awaitable[None]]


class Presence:
    """The heartbeats of this process, on a connection of their own: questions that wait for one of the pool's must not
    make it look dead. They begin with the first registration, so that a command which accepts no run costs nothing."""

    def __init__(self, database_url: str, check: Check) -> None:
        """`check` is called with each heartbeat, with its connection and the numbers of this process, its own first."""
        self._database_url = database_url
        self._check = check
        self._worker_id: int | None = None
        self._registering = asyncio.Lock()
        self._beating: asyncio.Task[None] | None = None
        self._answering_since = float("-inf")
        self._list_workers: Callable[[], list[int]] | None = None

    @property
    def worker_id(self) -> int | None:
        """Under which this process is registered."""
        return self._worker_id

    async def register(self) -> int:
        """The number that this process is known by. Raises `DatabaseUnavailable`, and `ConfigurationError` where the
        queue's schema is of another version."""
        async with self._registering:
            if self._worker_id is None:
                with translated_errors():
                    async with await self._connect() as connection:
                        if self._beating is None:
                            await check_schema(connection)
                        self._worker_id = await _register(connection)
                if self._beating is None:
                    self._beating = asyncio.create_task(self._beat_forever(), name="heartbeats")
            return self._worker_id

    def rescue(self, list_workers: Callable[[], list[int]] | None) -> None:
        """Give back the jobs of the dead, for a process that takes jobs; with None, no more. Also send the heartbeats
        of its workers, whose numbers `list_workers` returns: procrastinate does not notice when its own fail, because
        its watch over them ends at once where no job is periodic."""
        self._list_workers = list_workers

    async def close(self) -> None:
        """End the heartbeats. What this process still holds is anybody's at once."""
        if self._beating is not None:
            await end_tasks(self._beating)
        if self._worker_id is not None:
            # A database that is gone finds out by itself.
            with suppress(AskgraphError), translated_errors():
                async with asyncio.timeout(WAIT_SECONDS), await self._connect() as connection:
                    await connection.execute(queue_sql.UNREGISTER_WORKER, {"worker_id": self._worker_id})
                    await connection.execute(queue_sql.RESCUE_JOBS, {"seconds": STALLED_SECONDS})
            self._worker_id = None

    async def _connect(self) -> Connection:
        return await AsyncConnection.connect(
            self._database_url,
            autocommit=True,
            row_factory=dict_row,
            connect_timeout=int(WAIT_SECONDS),
            application_name="askgraph presence",
        )

    async def _beat_forever(self) -> None:
        while True:
            try:
                with translated_errors():
                    async with await self._connect() as connection:
                        while True:
                            async with asyncio.timeout(WAIT_SECONDS):
                                await self._beat(connection)
                            await asyncio.sleep(BEAT_SECONDS)
            except DatabaseUnavailable:
                if self._answering_since != float("inf"):
                    logger.warning("The database does not answer: no heartbeats until it does.")
                self._answering_since = float("inf")
            except Exception:
                # Whatever it is: without heartbeats, others would take what is executed here.
                logger.exception("A heartbeat failed.")
            await asyncio.sleep(RETRY_SECONDS)

    async def _beat(self, connection: Connection) -> None:
        assert self._worker_id is not None
        ids = [self._worker_id, *(self._list_workers() if self._list_workers else [])]
        rows = await _fetch(connection, queue_sql.BEAT, worker_ids=ids)
        if self._answering_since == float("inf"):
            logger.warning("The database answers again.")
            self._answering_since = monotonic()
        if self._worker_id not in [row["id"] for row in rows]:
            # Forgotten after a long absence: what this process held is others' now.
            self._worker_id = await _register(connection)
            ids[0] = self._worker_id
        await self._check(connection, ids)
        # After the database was away, everybody's heartbeats are old: those who live get the time to send one.
        if self._list_workers and monotonic() - self._answering_since > STALLED_SECONDS:
            if rescued := await _fetch(connection, queue_sql.RESCUE_JOBS, seconds=STALLED_SECONDS):
                logger.warning("%d jobs of a process that is gone are done again.", len(rescued))
            await _fetch(connection, queue_sql.PRUNE_WORKERS, seconds=FORGOTTEN_SECONDS)


async def _register(connection: Connection) -> int:
    [row] = await _fetch(connection, queue_sql.REGISTER_WORKER)
    return int(row["worker_id"])


async def _fetch(connection: Connection, statement: Any, **params: Any) -> list[DictRow]:
    return await (await connection.execute(statement, params)).fetchall()
