"""The events of runs in Redis or Valkey, one stream a run, and the channel over which runs are stopped."""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from itertools import islice
from typing import Any, cast

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from app.adapters.redis.connection import TIMEOUT_SECONDS, RedisServer
from app.support.cancelling import end_tasks
from domain.streams import StreamedEvent

logger = logging.getLogger(__name__)

KEPT_SECONDS = 3600
"""After the last event: whoever comes back later than that finds how the run ended in its row."""
KEPT_EVENTS = 10_000
"""In one stream, about: ten times the longest answer of the modes that ship, a token an event. Where a run has more,
its first ones go, and `done` carries the whole answer all the same."""
GATHER_SECONDS = 0.01
"""How long the first event waits for others to be written with it: at 32 runs of 50 tokens a second that is 16 of them,
at a sixth of the CPU that each alone would take. Neither whoever follows in the run's own process waits for it, nor
`flush`."""
BATCH = 200
"""Events written or read in one go, so that neither the server nor the loop stands still for long after an outage."""
PENDING = 50_000
"""Events that wait while the server is gone, at most: half a minute of 32 runs, about 20 MB."""
WAIT_SECONDS = 1.0
"""How long a follower waits for an event before it hears that there was none, and the pause after a failure."""
FOLLOWERS = 10_000
"""Connections that wait for events, one a follower: as many as a server takes unless it is told otherwise."""

STOPS = "askgraph:stops"

Entries = list[tuple[bytes, dict[bytes, bytes]]]
"""Ids, and fields by their names."""

# KEYS: the streams. ARGV: how many events to keep and for how many seconds; then of each event the place of its stream
# in KEYS, its id, its type and its data. Returns the place in the batch of each event that was refused, and why. One
# command and one reply for the whole batch: that is a third of what a pipeline's many replies cost the client.
APPEND = """
local refused = {}
for at = 3, #ARGV, 4 do
  local added = redis.pcall('XADD', KEYS[tonumber(ARGV[at])], 'MAXLEN', '~', ARGV[1], ARGV[at + 1],
                            't', ARGV[at + 2], 'd', ARGV[at + 3])
  if type(added) == 'table' then
    refused[#refused + 1] = {(at - 3) / 4, added.err}
  end
end
for _, key in ipairs(KEYS) do
  redis.call('EXPIRE', key, ARGV[2])
end
return refused
"""


class RedisRunStreams:
    """See `domain.streams.RunStreams`. Belongs to one event loop, and is closed with `close`."""

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
        self._script = server.client.register_script(APPEND)
        self._waiting = Redis.from_url(
            redis_url,
            max_connections=FOLLOWERS,
            socket_connect_timeout=TIMEOUT_SECONDS,
            # Of a reply that may take as long as the server is asked to wait.
            socket_timeout=WAIT_SECONDS + TIMEOUT_SECONDS,
            # Whoever waits tries again by itself.
            retry=Retry(NoBackoff(), 0),
        )
        self._gather_seconds = gather_seconds
        self._kept_events = kept_events
        self._bound = pending
        self._pending: deque[tuple[str, StreamedEvent]] = deque()
        self._appended = 0
        self._settled = 0
        """How many of those appended were stored or refused."""
        self._progress = asyncio.Event()
        self._hurry = asyncio.Event()
        self._reached = True
        self._dropping = False
        self._refused: set[str] = set()
        """Runs of which that was said."""
        self._writer: asyncio.Task[None] | None = None
        self._listener: asyncio.Task[None] | None = None
        self._tell: list[Callable[[str], None]] = []

    async def close(self) -> None:
        """Write what is pending, unless the server is gone, and close the connections."""
        await self._settle()
        await end_tasks(*(task for task in (self._writer, self._listener) if task is not None))
        await self._waiting.aclose()

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
        # Batches hold the events of all runs in the order in which they came: those of one are not told apart.
        await self._settle()

    async def follow(self, run_id: str, after: str | None = None) -> AsyncGenerator[StreamedEvent | None]:
        last = after or "0"
        while True:
            try:
                reply: Any = await self._waiting.xread(
                    {_key(run_id): last}, count=BATCH, block=int(WAIT_SECONDS * 1000)
                )
            except (RedisError, OSError) as error:
                logger.debug("cannot follow run %s: %s", run_id, error)
                yield None
                await asyncio.sleep(WAIT_SECONDS)
                continue
            if not reply:
                yield None
                continue
            # The one stream that was asked for: its name and its entries.
            for entry_id, fields in cast(Entries, reply[0][1]):
                event = StreamedEvent(entry_id.decode(), fields[b"t"].decode(), fields[b"d"])
                last = event.id
                yield event
                if event.is_end:
                    return
            # A reader that takes them all at once must not keep the others, and the heartbeats, waiting.
            await asyncio.sleep(0)

    async def request_stop(self, run_id: str) -> None:
        await self._server.attempt(lambda: self._server.client.publish(STOPS, run_id))

    def on_stop(self, tell: Callable[[str], None]) -> None:
        self._tell.append(tell)
        if self._listener is None:
            self._listener = asyncio.create_task(self._listen())

    async def _settle(self) -> None:
        upto = self._appended
        while self._settled < upto and self._reached:
            self._hurry.set()
            await self._progress.wait()

    async def _write(self) -> None:
        """Until nothing is pending."""
        while self._pending:
            await self._gather()
            batch = list(islice(self._pending, BATCH))
            refused = await self._server.attempt(lambda batch=batch: self._store(batch))  # type: ignore[misc]
            self._reached = refused is not None
            if refused is not None:
                for place, problem in refused:
                    self._say_refused(batch[place][0], problem)
                for _ in batch:
                    self._pending.popleft()
                self._settled += len(batch)
                self._dropping = False
            self._progress.set()
            self._progress.clear()
            if refused is None:
                await asyncio.sleep(WAIT_SECONDS)

    async def _gather(self) -> None:
        """Let other events join the batch, unless somebody waits for it."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._gather_seconds):
                await self._hurry.wait()
        self._hurry.clear()

    async def _store(self, batch: list[tuple[str, StreamedEvent]]) -> list[tuple[int, bytes]]:
        """The places in the batch of those that were refused, and why."""
        places: dict[str, int] = {}
        arguments: list[str | int | bytes] = [self._kept_events, KEPT_SECONDS]
        for run_id, event in batch:
            place = places.setdefault(_key(run_id), len(places) + 1)
            arguments += (place, event.id, event.type, event.data)
        refused: list[tuple[int, bytes]] = await self._script(keys=list(places), args=arguments)
        return refused

    def _say_refused(self, run_id: str, problem: bytes) -> None:
        if run_id not in self._refused:
            self._refused.add(run_id)
            logger.warning(
                "Redis refuses events of run %s, because another process has taken the run over or they are there "
                "already: %s",
                run_id,
                problem.decode(),
            )

    async def _listen(self) -> None:
        """To those who ask for a stop, for as long as the process lives."""
        while True:
            try:
                async with self._waiting.pubsub(ignore_subscribe_messages=True) as channel:
                    await channel.subscribe(STOPS)
                    async for message in channel.listen():
                        for tell in self._tell:
                            tell(message["data"].decode())
            except (RedisError, OSError) as error:
                logger.debug("requests to stop are not heard: %s", error)
            await asyncio.sleep(WAIT_SECONDS)


def _key(run_id: str) -> str:
    return f"askgraph:events:{run_id}"
