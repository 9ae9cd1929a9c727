"""Events of runs in Redis or Valkey, one stream per run."""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import suppress
from itertools import islice
from typing import Any, cast

from redis.asyncio import Redis
from redis.exceptions import ResponseError

from app.adapters.redis.connection import AWAY, FAILURES, TIMEOUT_SECONDS, Connections, RedisServer, locate
from app.support.cancelling import end_tasks
from domain.execution.streams import StreamedEvent

logger = logging.getLogger("askgraph.redis")

KEPT_SECONDS = 3600
"""Seconds that a stream is kept after its last event. A client that returns later finds the outcome in the run's
row."""
KEPT_EVENTS = 10_000
"""Approximate length of a stream: ten times the longest answer of the shipped modes at one token per event. A longer
run loses its first events, but `done` carries the whole answer."""
GATHER_SECONDS = 0.1
"""Seconds that the first event waits to be written together with others: 160 events at 32 runs of 50 tokens a second.
Followers in the run's own process do not wait for it, nor does `flush`; those elsewhere hardly notice so little."""
BATCH = 200
"""Events written or read at once, so that neither the server nor the loop blocks for long after an outage."""
PENDING = 50_000
"""Most events that wait while the server is down: half a minute of 32 runs, about 20 MB."""
WAIT_SECONDS = 1.0
"""Seconds that a follower waits before it is told that there was no event; also the pause after a failure."""
FOLLOWERS = 10_000
"""Most connections that wait for events, one per follower: as many as a server accepts by default."""

Entries = list[tuple[bytes, dict[bytes, bytes]]]
"""Event ids and their fields by name."""


class RedisRunStreams:
    """A `RunStreams`. Belongs to one event loop; close it with `close`."""

    def __init__(
        self,
        server: RedisServer,
        redis_url: str,
        *,
        gather_seconds: float = GATHER_SECONDS,
        kept_events: int = KEPT_EVENTS,
        pending: int = PENDING,
    ) -> None:
        self._server = server
        # A blocking read may take as long as the server is told to wait.
        self._waiting = Connections(redis_url, timeout_seconds=WAIT_SECONDS + TIMEOUT_SECONDS, most=FOLLOWERS)
        self._gather_seconds = gather_seconds
        self._kept_events = kept_events
        self._bound = pending
        self._pending: deque[tuple[str, StreamedEvent]] = deque()
        self._appended = 0
        self._settled = 0
        """Number of appended events that were stored or refused."""
        self._progress = asyncio.Event()
        self._hurry = asyncio.Event()
        self._reached = True
        self._dropping = False
        self._writer: asyncio.Task[None] | None = None

    async def close(self) -> None:
        """Write pending events, unless the server is down, and close the connections."""
        await self._settle()
        if self._writer is not None:
            await end_tasks(self._writer)
        await self._waiting.close()

    def append(self, run_id: str, event: StreamedEvent) -> None:
        if len(self._pending) >= self._bound:
            if not self._dropping:
                logger.warning("Events of runs are lost to other processes: %d wait for Redis.", self._bound)
            self._dropping = True
            return
        self._pending.append((run_id, event))
        self._appended += 1
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write())

    async def flush(self, run_id: str) -> None:
        # A batch holds events of all runs in order of arrival, so that one run's cannot be flushed alone.
        await self._settle()

    async def follow(self, run_id: str, after: str | None = None) -> AsyncGenerator[StreamedEvent | None]:
        last = after or "0"
        while True:
            try:
                redis = await self._waiting.open()
                reply: Any = await redis.xread({events_key(run_id): last}, count=BATCH, block=int(WAIT_SECONDS * 1000))
            except FAILURES as error:
                logger.debug("cannot follow run %s: %s", run_id, error)
                yield None
                await asyncio.sleep(WAIT_SECONDS)
                continue
            if not reply:
                yield None
                continue
            # The reply has one entry, the requested stream: its name and its events.
            for entry_id, fields in cast(Entries, reply[0][1]):
                event = StreamedEvent(entry_id.decode(), fields[b"t"].decode(), fields[b"d"])
                last = event.id
                yield event
                if event.is_end:
                    return
            # A reader that takes all events at once must not block the other runs and the heartbeats.
            await asyncio.sleep(0)

    async def _settle(self) -> None:
        upto = self._appended
        while self._settled < upto and self._reached:
            self._hurry.set()
            await self._progress.wait()

    async def _write(self) -> None:
        """Write batches until no event is pending."""
        while self._pending:
            await self._gather()
            batch = list(islice(self._pending, BATCH))
            self._reached = await self._store(batch)
            if self._reached:
                for _ in batch:
                    self._pending.popleft()
                self._settled += len(batch)
                self._dropping = False
            self._progress.set()
            self._progress.clear()
            if not self._reached:
                await asyncio.sleep(WAIT_SECONDS)

    async def _gather(self) -> None:
        """Let other events join the batch, unless a caller waits for it to be written."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._gather_seconds):
                await self._hurry.wait()
        self._hurry.clear()

    async def _store(self, batch: list[tuple[str, StreamedEvent]]) -> bool:
        """Store a batch. Returns False where the server does not answer."""

        async def write(redis: Redis) -> bool:
            async with redis.pipeline(transaction=False) as pipeline:
                for run_id, event in batch:
                    fields: Any = {"t": event.type, "d": event.data}
                    pipeline.xadd(events_key(run_id), fields, id=event.id, maxlen=self._kept_events)
                for run_id in {run_id for run_id, _ in batch}:
                    pipeline.expire(events_key(run_id), KEPT_SECONDS)
                replies = await pipeline.execute(raise_on_error=False)
            for (run_id, _), reply in zip(batch, replies, strict=False):
                if isinstance(reply, ResponseError) and not isinstance(reply, AWAY):
                    # It is there, stored by a try whose reply was late; or another process has taken the run over.
                    logger.debug("Redis refuses an event of run %s: %s", run_id, reply)
                elif isinstance(reply, Exception):
                    raise reply
            return True

        return await self._server.attempt(write) or False


def events_key(run_id: str) -> str:
    """Return the key of a run's stream."""
    return locate(run_id, "events")
