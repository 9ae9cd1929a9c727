"""The write buffer: keeps what threads have put until it is stored, many steps in one statement."""

import asyncio
import json
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, LiteralString

from app.adapters.postgres.checkpoints.packs import PACKED, Pack
from app.adapters.postgres.pool import QUERY_SECONDS, Everywhere, Pool, borrow, translated_errors
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
_STORE: LiteralString = f"""
WITH found AS (
    SELECT c.*, NOT EXISTS (
        SELECT FROM accepted_runs AS run
        WHERE run.workspace_id = c.metadata ->> 'workspace_id' AND run.run_id = c.metadata ->> 'run_id'
            AND run.attempt > (c.metadata ->> 'attempt')::integer
    ) AS latest
    FROM jsonb_to_recordset(%(rows)s::jsonb -> 'checkpoints')
        AS c (ns text, id text, parent text, checkpoint jsonb, metadata jsonb)
), packs AS (
    INSERT INTO checkpoint_blobs (thread_id, checkpoint_ns, channel, version, type, blob)
    SELECT %(thread_id)s, p.ns, p.name, '', '{PACKED}', p.body
    FROM ROWS FROM (
        jsonb_to_recordset(%(rows)s::jsonb -> 'packs') AS (ns text, name text), unnest(%(bodies)s::bytea[])
    ) AS p (ns, name, body)
    WHERE coalesce((SELECT bool_or(latest) FROM found), true)
    ON CONFLICT DO NOTHING
), late_writes AS (
    INSERT INTO checkpoint_writes (thread_id, checkpoint_ns, checkpoint_id, task_id, idx, channel, type, blob)
    SELECT %(thread_id)s, w.ns, w.id, w.name, 0, '', '{PACKED}', ''
    FROM jsonb_to_recordset(%(rows)s::jsonb -> 'late') AS w (ns text, id text, name text)
    WHERE coalesce((SELECT bool_or(latest) FROM found), true)
    ON CONFLICT DO NOTHING
)
INSERT INTO checkpoints (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, checkpoint, metadata)
SELECT %(thread_id)s, ns, id, parent, checkpoint, metadata FROM found WHERE latest
ON CONFLICT (thread_id, checkpoint_ns, checkpoint_id)
DO UPDATE SET checkpoint = EXCLUDED.checkpoint, metadata = EXCLUDED.metadata
"""


@dataclass(slots=True)
class _Thread:
    """The puts of a thread that the database does not have yet."""

    workspace_id: str | Everywhere
    packs: dict[str, Pack] = field(default_factory=dict)
    """Packs that still grow, by namespace."""
    size: int = 0
    """Bytes in `packs`."""
    waiting: deque[tuple[dict[str, Any], int]] = field(default_factory=deque)
    """Complete packs: the parameters of `_STORE`, and their bytes."""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while `waiting` is being stored."""
    put_at: float = 0.0
    """Time of the last put, by the loop's clock."""
    timer: asyncio.TimerHandle | None = None


class WriteBuffer:
    """Buffers what threads put, and stores it after `FLUSH_SECONDS`, at `FLUSH_BYTES`, or when somebody asks.

    While the database does not answer, up to `MAX_BUFFERED` bytes wait for it, and are then stored in order.
    """

    def __init__(self, pool: Pool, on_lost: Callable[[str], None]) -> None:
        """`on_lost` is called with a thread's id when the database has refused its puts, which are then lost."""
        self._pool = pool
        self._on_lost = on_lost
        self._loop = asyncio.get_running_loop()
        self._threads: dict[str, _Thread] = {}
        self._size = 0
        self._refused: dict[str, Exception] = {}
        self._writers = asyncio.Semaphore(WRITERS)
        self._flushing: set[asyncio.Task[None]] = set()

    @property
    def keys(self) -> list[str]:
        """The threads that have puts to store: their keys (`domain.threads`), as everywhere here."""
        return list(self._threads)

    async def open_pack(self, workspace_id: str | Everywhere, key: str, namespace: str) -> Pack:
        """Return the pack that the next put goes into, once there is room. Call `note_put` after putting.

        Raises `DatabaseUnavailable` if the buffer is full and the database does not answer.
        """
        if self._size > MAX_BUFFERED:
            await self.store(key)
        if (thread := self._threads.get(key)) is None:
            thread = self._threads[key] = _Thread(workspace_id)
        if (pack := thread.packs.get(namespace)) is None:
            pack = thread.packs[namespace] = Pack()
        return pack

    def note_put(self, key: str) -> None:
        """Count what has just been put, and have it stored in time. Nothing may be awaited since `open_pack`."""
        thread = self._threads[key]
        size = sum(pack.size for pack in thread.packs.values())
        self._size += size - thread.size
        thread.size = size
        thread.put_at = self._loop.time()
        if size >= FLUSH_BYTES:
            self._start_storing(key, thread)
        elif thread.timer is None:
            self._set_timer(key, thread, FLUSH_SECONDS)

    async def flush(self, key: str) -> None:
        """Store the thread's puts, and wait for it.

        Raises `DatabaseUnavailable` if the database does not answer; the write is then tried again every
        `RETRY_SECONDS`, and by the next caller. Raises anything else that the database has refused the puts with, such
        as `InputError` for text that it cannot hold; they are then lost.
        """
        await self.store(key)
        if refused := self._refused.pop(key, None):
            raise refused

    async def store(self, key: str) -> None:
        """Store the thread's puts, but keep errors other than `DatabaseUnavailable` for the caller of `flush`."""
        if thread := self._threads.get(key):
            await self._store(key, thread)

    async def close(self) -> None:
        """Store everything. What cannot be stored now is lost, and logged."""
        keys = self.keys
        # All at once: with a database that hangs, each takes as long as all.
        ends = await asyncio.gather(*(self.flush(key) for key in keys), return_exceptions=True)
        for key, end in zip(keys, ends, strict=True):
            if isinstance(end, Exception):
                logger.error("States of thread %s are lost.", key, exc_info=end)
        for thread in self._threads.values():
            if thread.timer is not None:
                thread.timer.cancel()
        await asyncio.gather(*self._flushing)

    async def _store(self, key: str, thread: _Thread) -> None:
        async with thread.lock:
            if thread.timer is not None:
                thread.timer.cancel()
                thread.timer = None
            if thread.packs:
                thread.waiting.append((_make_parameters(key, thread.packs), thread.size))
                thread.packs, thread.size = {}, 0
            try:
                while thread.waiting:
                    parameters, size = thread.waiting[0]
                    with translated_errors():
                        async with (
                            self._writers,
                            borrow(self._pool, thread.workspace_id) as connection,
                            asyncio.timeout(QUERY_SECONDS),
                        ):
                            await connection.execute(_STORE, parameters, binary=True)
                    thread.waiting.popleft()
                    self._size -= size
            except (DatabaseUnavailable, asyncio.CancelledError):
                if thread.timer is None:
                    self._set_timer(key, thread, RETRY_SECONDS)
                raise
            except Exception as error:  # noqa: BLE001 - raised by `flush`, which may not be the caller now
                # Another try would be refused too, and later puts may refer to values in the refused ones.
                self._size -= thread.size + sum(size for _, size in thread.waiting)
                thread.packs, thread.size = {}, 0
                thread.waiting.clear()
                self._on_lost(key)
                self._refused[key] = error
            if not thread.packs and self._threads.get(key) is thread:
                del self._threads[key]

    def _set_timer(self, key: str, thread: _Thread, seconds: float) -> None:
        thread.timer = self._loop.call_later(seconds, self._end_timer, key, thread)

    def _end_timer(self, key: str, thread: _Thread) -> None:
        thread.timer = None
        # Setting the timer again here is cheaper than a new timer for every put.
        remaining = thread.put_at + FLUSH_SECONDS - self._loop.time()
        if remaining > 0:
            self._set_timer(key, thread, remaining)
        else:
            self._start_storing(key, thread)

    def _start_storing(self, key: str, thread: _Thread) -> None:
        async def store() -> None:
            try:
                await self._store(key, thread)
            except DatabaseUnavailable as error:
                logger.warning("States of thread %s wait for the database: %s", key, error.message)

        task = self._loop.create_task(store())
        self._flushing.add(task)
        task.add_done_callback(self._flushing.discard)


def _make_parameters(key: str, packs: dict[str, Pack]) -> dict[str, Any]:
    late = [
        {"ns": namespace, "id": checkpoint_id, "name": pack.name}
        for namespace, pack in packs.items()
        for checkpoint_id in pack.writes
        if checkpoint_id not in pack.checkpoints
    ]
    named = [{"ns": namespace, "name": pack.name} for namespace, pack in packs.items()]
    checkpoints = ",".join(row for pack in packs.values() for row in pack.rows.values())
    return {
        "thread_id": key,
        # The rows are JSON already: they were serialised when they were put.
        "rows": f'{{"packs": {json.dumps(named)}, "late": {json.dumps(late)}, "checkpoints": [{checkpoints}]}}',
        "bodies": [pack.encode() for pack in packs.values()],
    }
