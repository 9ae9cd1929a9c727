"""Heartbeats: show other processes that this one is alive, and rescue the jobs of processes that are not.

A process registers as a worker of procrastinate, even if it only executes runs that it has accepted itself. The jobs of
a worker without heartbeats go back into the queue, and whoever takes one begins it again.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from time import monotonic
from typing import Any, LiteralString

from psycopg import AsyncConnection
from psycopg.rows import DictRow, dict_row

from app.adapters.postgres.pool import WAIT_SECONDS, translated_errors
from app.adapters.postgres.queue.jobs import RETRY_SECONDS
from app.adapters.postgres.queue.leases import RESCUE_JOBS
from app.adapters.postgres.queue.schema import check_schema
from app.support.cancelling import end_tasks
from domain.errors import AskgraphError, DatabaseUnavailable

logger = logging.getLogger("askgraph.presence")

BEAT_SECONDS = 2.0
"""Interval between heartbeats, and between searches for jobs of dead processes."""

STALLED_SECONDS = 8.0
"""Time without a heartbeat after which a process counts as dead. Three heartbeats may be missed: an event loop kept
busy by models is a second or two late, and replacing a lost connection takes as long. A reader waits ten seconds at
most."""

FORGOTTEN_SECONDS = 60.0
"""Time without a heartbeat after which a process is deleted. Its jobs were rescued long before."""

_REGISTER: LiteralString = "SELECT worker_id FROM procrastinate_register_worker_v1()"
_UNREGISTER: LiteralString = "SELECT procrastinate_unregister_worker_v1(%(worker_id)s)::text"
_PRUNE: LiteralString = "SELECT worker_id FROM procrastinate_prune_stalled_workers_v1(%(seconds)s)"

# procrastinate's own function for heartbeats does not return whether the worker is still known.
_BEAT: LiteralString = """
    UPDATE procrastinate_workers SET last_heartbeat = now() WHERE id = ANY (%(worker_ids)s) RETURNING id
"""

Connection = AsyncConnection[DictRow]
Check = Callable[[Connection, list[int]], Awaitable[None]]


class Presence:
    """Sends the heartbeats of this process.

    They use their own connection, so that a busy pool does not make the process look dead. They begin with the first
    registration, so that a command that accepts no run costs nothing.
    """

    def __init__(self, database_url: str, check: Check) -> None:
        """`check` is called with each heartbeat. It gets the connection and this process's worker ids, its own
        first."""
        self._database_url = database_url
        self._check = check
        self._worker_id: int | None = None
        self._registering = asyncio.Lock()
        self._beating: asyncio.Task[None] | None = None
        self._answering_since = float("-inf")
        self._list_workers: Callable[[], list[int]] | None = None

    @property
    def worker_id(self) -> int | None:
        """The id that this process is registered under, or None."""
        return self._worker_id

    async def register(self) -> int:
        """Register this process, unless it is registered, and return its worker id.

        Raises `DatabaseUnavailable`, and `ConfigurationError` if the queue's schema has another version.
        """
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
        """Rescue the jobs of dead processes from now on, or stop with None. Processes that take jobs call this.

        Heartbeats are then also sent for the workers whose ids `list_workers` returns: procrastinate does not notice
        when its own heartbeats fail, because its supervision ends at once if no job is periodic.
        """
        self._list_workers = list_workers

    async def close(self) -> None:
        """Stop the heartbeats and give up at once what this process still holds."""
        if self._beating is not None:
            await end_tasks(self._beating)
        if self._worker_id is not None:
            # If the database is gone, the missing heartbeats have the same effect later.
            with suppress(AskgraphError), translated_errors():
                async with asyncio.timeout(WAIT_SECONDS), await self._connect() as connection:
                    await connection.execute(_UNREGISTER, {"worker_id": self._worker_id})
                    await connection.execute(RESCUE_JOBS, {"seconds": STALLED_SECONDS})
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
                # Keep trying after any error: without heartbeats, other processes take over what is executed here.
                logger.exception("A heartbeat failed.")
            await asyncio.sleep(RETRY_SECONDS)

    async def _beat(self, connection: Connection) -> None:
        assert self._worker_id is not None
        ids = [self._worker_id, *(self._list_workers() if self._list_workers else [])]
        rows = await _fetch(connection, _BEAT, worker_ids=ids)
        if self._answering_since == float("inf"):
            logger.warning("The database answers again.")
            self._answering_since = monotonic()
        if self._worker_id not in [row["id"] for row in rows]:
            # Deleted after a long absence: other processes hold what this one held.
            self._worker_id = await _register(connection)
            ids[0] = self._worker_id
        await self._check(connection, ids)
        # After an outage of the database all heartbeats are old: give living processes time to send one.
        if self._list_workers and monotonic() - self._answering_since > STALLED_SECONDS:
            if rescued := await _fetch(connection, RESCUE_JOBS, seconds=STALLED_SECONDS):
                logger.warning("%d jobs of dead processes are back in the queue.", len(rescued))
            await _fetch(connection, _PRUNE, seconds=FORGOTTEN_SECONDS)


async def _register(connection: Connection) -> int:
    [row] = await _fetch(connection, _REGISTER)
    return int(row["worker_id"])


async def _fetch(connection: Connection, statement: Any, **params: Any) -> list[DictRow]:
    return await (await connection.execute(statement, params)).fetchall()
