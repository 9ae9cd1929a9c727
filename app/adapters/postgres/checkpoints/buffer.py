"""The write buffer: keeps what threads have put until it is stored, many steps in one row."""

import asyncio
import logging
from dataclasses import dataclass, field
from typing import LiteralString

from app.adapters.postgres.checkpoints.packs import Owner, Pack
from app.adapters.postgres.pool import Pool, open_session
from domain.errors import DatabaseUnavailable

logger = logging.getLogger("askgraph.checkpoints")

FLUSH_SECONDS = 1.0
"""Idle time after a thread's last put until its puts are stored, unless somebody asks for them sooner. It bounds what a
crash loses: a step that takes longer finds its predecessor's state stored."""

FLUSH_BYTES = 2**20
"""Size of a thread's puts at which they are stored at once."""

RETRY_SECONDS = 1.0
"""Wait before a write that failed is tried again."""

MAX_BUFFERED = 64 * 2**20
"""Bytes of all threads that may wait for a database that does not answer. Beyond it a put waits for the database, and
fails if that still does not answer."""

WRITERS = 4
"""Number of threads whose puts are stored at once. Many turns that end together would otherwise take connections from
searches, and most of those connections would have to prepare the statement first."""

# A process that has lost a run's lease may still put states of its attempt. They are not stored once a later attempt
# has begun, because the thread has gone on without them.
_STORE: LiteralString = """
    INSERT INTO state_packs (workspace_id, thread_id, namespace, run_id, checkpoints, written, pack)
    SELECT %(workspace_id)s, %(thread_id)s, %(namespace)s, %(run_id)s, %(checkpoints)s::text[],
        %(written)s::text[], %(pack)s
    WHERE NOT EXISTS (
        SELECT FROM accepted_runs
        WHERE workspace_id = %(workspace_id)s AND run_id = %(run_id)s AND attempt > %(attempt)s
    )
"""

Place = tuple[str, str]
"""A thread: the ids of its workspace and of itself."""


@dataclass(slots=True)
class _Thread:
    """The puts of a thread that the database does not have yet."""

    packs: list[Pack] = field(default_factory=list)
    """Oldest first."""
    grows: bool = False
    """True while puts go into the last pack; it is not being stored."""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while packs are being stored."""
    put_at: float = 0.0
    """Time of the last put, by the loop's clock."""
    timer: asyncio.TimerHandle | None = None


class WriteBuffer:
    """Buffers what threads put, and stores it after `FLUSH_SECONDS`, at `FLUSH_BYTES`, or when somebody asks.

    While the database does not answer, up to `MAX_BUFFERED` bytes wait for it, and are then stored in order.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._loop = asyncio.get_running_loop()
        self._threads: dict[Place, _Thread] = {}
        self._refused: dict[Place, Exception] = {}
        self._writers = asyncio.Semaphore(WRITERS)
        self._flushing: set[asyncio.Task[None]] = set()

    async def open_pack(self, place: Place, owner: Owner) -> Pack:
        """Return the pack that the next put goes into, once there is room. Call `note_put` after putting.

        Raises `DatabaseUnavailable` if the buffer is full and the database does not answer.
        """
        if sum(pack.size for thread in self._threads.values() for pack in thread.packs) > MAX_BUFFERED:
            await self.store(place)
        thread = self._threads.setdefault(place, _Thread())
        if not thread.grows or thread.packs[-1].owner != owner:
            thread.packs.append(Pack(owner))
            thread.grows = True
        return thread.packs[-1]

    def note_put(self, place: Place) -> None:
        """Have stored in time what has just been put. Nothing may be awaited since `open_pack`."""
        thread = self._threads[place]
        thread.put_at = self._loop.time()
        if thread.packs[-1].size >= FLUSH_BYTES:
            self._start_storing(place, thread)
        elif thread.timer is None:
            self._set_timer(place, thread, FLUSH_SECONDS)

    async def flush(self, place: Place) -> None:
        """Store the thread's puts, and wait for it.

        Raises `DatabaseUnavailable` if the database does not answer; the write is then tried again every
        `RETRY_SECONDS`, and by the next caller. Raises anything else that the database has refused puts with, such as
        `InputError` for text that it cannot hold; they are then lost.
        """
        await self.store(place)
        if refused := self._refused.pop(place, None):
            raise refused

    async def store(self, place: Place) -> None:
        """Store the thread's puts, but keep errors other than `DatabaseUnavailable` for the caller of `flush`."""
        if thread := self._threads.get(place):
            await self._store(place, thread)

    async def close(self) -> None:
        """Store everything. What cannot be stored now is lost, and logged."""
        places = list(self._threads)
        # All at once: with a database that hangs, each takes as long as all.
        ends = await asyncio.gather(*(self.flush(place) for place in places), return_exceptions=True)
        for place, end in zip(places, ends, strict=True):
            if isinstance(end, Exception):
                logger.error("States of thread %s are lost.", "/".join(place), exc_info=end)
        for thread in self._threads.values():
            if thread.timer is not None:
                thread.timer.cancel()
        await asyncio.gather(*self._flushing)

    async def _store(self, place: Place, thread: _Thread) -> None:
        async with thread.lock:
            if thread.timer is not None:
                thread.timer.cancel()
                thread.timer = None
            thread.grows = False
            for pack in list(thread.packs):
                try:
                    await self._insert(place, pack)
                except (DatabaseUnavailable, asyncio.CancelledError):
                    if thread.timer is None:
                        self._set_timer(place, thread, RETRY_SECONDS)
                    raise
                except Exception as error:  # noqa: BLE001 - raised by `flush`, which may not be the caller now
                    # Another try would be refused too.
                    self._refused[place] = error
                del thread.packs[0]
            if not thread.packs and self._threads.get(place) is thread:
                del self._threads[place]

    async def _insert(self, place: Place, pack: Pack) -> None:
        async with self._writers, open_session(self._pool, place[0]) as session:
            await session.execute(
                _STORE,
                thread_id=place[1],
                **pack.owner._asdict(),
                checkpoints=list(pack.checkpoints),
                written=pack.written,
                pack=pack.encode(),
            )

    def _set_timer(self, place: Place, thread: _Thread, seconds: float) -> None:
        thread.timer = self._loop.call_later(seconds, self._end_timer, place, thread)

    def _end_timer(self, place: Place, thread: _Thread) -> None:
        thread.timer = None
        # Setting the timer again here is cheaper than a new timer for every put.
        remaining = thread.put_at + FLUSH_SECONDS - self._loop.time()
        if remaining > 0:
            self._set_timer(place, thread, remaining)
        else:
            self._start_storing(place, thread)

    def _start_storing(self, place: Place, thread: _Thread) -> None:
        async def store() -> None:
            try:
                await self._store(place, thread)
            except DatabaseUnavailable as error:
                logger.warning("States of thread %s wait for the database: %s", "/".join(place), error.message)

        task = self._loop.create_task(store())
        self._flushing.add(task)
        task.add_done_callback(self._flushing.discard)
