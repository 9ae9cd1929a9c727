"""LangGraph's saved states in Postgres: every step's, and many in one write.

Stock's tables keep their meaning, so that its statements find, list and delete what is in them. A row of `checkpoints`
is a checkpoint with its parent and its metadata. What it holds is in **packs**: a pack is a compressed row of
`checkpoint_blobs` that the checkpoints of one write share, with what was written on top of them. A checkpoint names its
packs as if they were channels: so stock's statements join them, and its pruning knows which are still needed. Rows that
stock itself wrote are read as they are. Why: docs/decisions/01-state-and-checkpoints.md.
"""

import asyncio
import json
import logging
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from functools import lru_cache
from operator import itemgetter
from secrets import token_hex
from time import time_ns
from typing import Any, NamedTuple
from uuid import UUID

import ormsgpack
import zstandard
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_serializable_checkpoint_metadata,
    writes_sort_key,
)
from langgraph.checkpoint.base import id as ids
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from psycopg.rows import DictRow

from app.adapters.postgres.pool import QUERY_SECONDS, Pool, translated_errors
from domain.errors import DamagedState, DatabaseUnavailable

logger = logging.getLogger("askgraph.checkpoints")

FLUSH_SECONDS = 1.0
"""How long after a thread's last put its puts are stored, unless somebody asks for it sooner: a step that takes longer
leaves its predecessor's state behind when the process dies."""

FLUSH_BYTES = 2**20
"""Of a thread's puts; more are not kept back."""

RETRY_SECONDS = 1.0
"""How long after a write that failed it is tried again."""

MAX_BUFFERED = 64 * 2**20
"""Bytes of all threads that may wait for a database that is away; beyond, a put waits for it, and fails with it."""

WRITERS = 4
"""How many threads' puts are stored at once. A connection of one's own for each of many turns that end together takes
connections from searches, and most are new to the statement."""

KNOWN_CHECKPOINTS = 1024
"""Of how many checkpoints it is remembered which pack holds which value. The successor of one that is forgotten stores
its values again, which costs bytes and nothing else."""

_PLAIN = frozenset({type(None), bool, int, float, str})
"""Types of values that are kept with the checkpoint, as stock does."""

_PACKED = "msgpack.zst"
_LEVEL = 3
"""Of zstd. Level 9 takes five times as long for 6 % less."""

# States of an attempt at a run that another one has followed are not stored: the process that made them was away for so
# long that it lost the run's lease, and does not know it yet. The thread has gone on without them.
_STORE = f"""
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
    SELECT %(thread_id)s, p.ns, p.name, '', '{_PACKED}', p.body
    FROM ROWS FROM (
        jsonb_to_recordset(%(rows)s::jsonb -> 'packs') AS (ns text, name text), unnest(%(bodies)s::bytea[])
    ) AS p (ns, name, body)
    WHERE coalesce((SELECT bool_or(latest) FROM found), true)
    ON CONFLICT DO NOTHING
), late_writes AS (
    INSERT INTO checkpoint_writes (thread_id, checkpoint_ns, checkpoint_id, task_id, idx, channel, type, blob)
    SELECT %(thread_id)s, w.ns, w.id, w.name, 0, '', '{_PACKED}', ''
    FROM jsonb_to_recordset(%(rows)s::jsonb -> 'late') AS w (ns text, id text, name text)
    WHERE coalesce((SELECT bool_or(latest) FROM found), true)
    ON CONFLICT DO NOTHING
)
INSERT INTO checkpoints (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, checkpoint, metadata)
SELECT %(thread_id)s, ns, id, parent, checkpoint, metadata FROM found WHERE latest
ON CONFLICT (thread_id, checkpoint_ns, checkpoint_id)
DO UPDATE SET checkpoint = EXCLUDED.checkpoint, metadata = EXCLUDED.metadata
"""

_SELECT = f"""
SELECT thread_id, checkpoint, checkpoint_ns, checkpoint_id, parent_checkpoint_id, metadata,
    (
        SELECT array_agg(ARRAY[b.channel::bytea, b.type::bytea, b.blob])
        FROM jsonb_each_text(checkpoint -> 'channel_versions') AS v
        JOIN checkpoint_blobs b
            ON b.thread_id = checkpoints.thread_id AND b.checkpoint_ns = checkpoints.checkpoint_ns
            AND b.channel = v.key AND b.version = v.value
    ) AS channel_values,
    (
        SELECT array_agg(ARRAY[
            convert_to(w.task_id, 'UTF8'), convert_to(w.channel, 'UTF8'), w.type::bytea, coalesce(p.blob, w.blob),
            convert_to(w.task_path, 'UTF8'), w.idx::text::bytea
        ])
        FROM checkpoint_writes w
        LEFT JOIN checkpoint_blobs p
            ON w.type = '{_PACKED}' AND p.thread_id = w.thread_id AND p.checkpoint_ns = w.checkpoint_ns
            AND p.channel = w.task_id AND p.version = ''
        WHERE w.thread_id = checkpoints.thread_id AND w.checkpoint_ns = checkpoints.checkpoint_ns
            AND w.checkpoint_id = checkpoints.checkpoint_id
    ) AS pending_writes
FROM checkpoints """
"""Stock's, but where a row of `checkpoint_writes` says that the writes are in a pack, it is the pack that comes."""

_Blob = tuple[str, bytes]
"""A value as the serialiser gave it: its type, and its bytes."""

_Writes = tuple[str, str, bool, _Blob]
"""What a task wrote in one go: its id and path; whether it takes the place of what it wrote before, as errors and
interrupts do, where of ordinary writes the first counts; and a list of index, channel and value."""

_WriteRow = tuple[bytes, bytes, bytes, bytes, bytes, bytes]
"""As stock's statements select it: task id, channel, type, blob, task path, index."""

Upgrade = Callable[[Checkpoint], Checkpoint]
"""Gives the fields of a saved state their present names; LangGraph drops those that it does not know."""

_Places = dict[str, tuple[Any, str]]
"""By channel: the version of its value, and the pack that holds it."""


@asynccontextmanager
async def open_saver(pool: Pool, upgrade: Upgrade | None = None) -> AsyncIterator["PackedSaver"]:
    """A saver, its tables made; it migrates them itself, under names of its own. Leaving stores what is buffered.
    `upgrade` is applied to each checkpoint that is read."""
    saver = PackedSaver(pool, upgrade)
    with translated_errors():
        await saver.setup()
    try:
        yield saver
    finally:
        await saver.aclose()


@dataclass(slots=True)
class _Pack:
    """What one write stores of one namespace of a thread."""

    name: str
    """Begins with the time, so that those of a thread sort by it."""
    size: int = 0
    """Bytes in it."""
    blobs: dict[tuple[str, Any], _Blob] = field(default_factory=dict)
    """By channel and version."""
    checkpoints: dict[str, _Blob] = field(default_factory=dict)
    """By id, without the values that are blobs."""
    rows: dict[str, str] = field(default_factory=dict)
    """The same checkpoints' rows, as JSON."""
    writes: dict[str, list[_Writes]] = field(default_factory=dict)
    """By the id of the checkpoint on top of which they were made, be it in this pack or an earlier one."""

    def put_blob(self, channel: str, version: Any, blob: _Blob) -> None:
        self.blobs[channel, version] = blob
        self.size += len(blob[1])

    def put_checkpoint(self, checkpoint_id: str, held: _Blob, row: str) -> None:
        self.checkpoints[checkpoint_id] = held
        self.rows[checkpoint_id] = row
        self.size += len(held[1]) + len(row)

    def put_writes(self, checkpoint_id: str, writes: _Writes) -> None:
        self.writes.setdefault(checkpoint_id, []).append(writes)
        self.size += len(writes[3][1])

    def encode(self) -> bytes:
        blobs = [(*place, *blob) for place, blob in self.blobs.items()]
        content = ormsgpack.packb((blobs, self.checkpoints, self.writes))
        return zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True).compress(content)


class _Unpacked(NamedTuple):
    blobs: dict[tuple[str, Any], _Blob]
    checkpoints: dict[str, _Blob]
    writes: dict[str, list[_Writes]]


@dataclass(slots=True)
class _Buffer:
    """What a thread has put and the database does not have yet."""

    packs: dict[str, _Pack] = field(default_factory=dict)
    """By namespace, still growing."""
    size: int = 0
    """Bytes in them."""
    waiting: deque[tuple[dict[str, Any], int]] = field(default_factory=deque)
    """Complete: the parameters of the statement that stores them, and the bytes they take up."""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while they are being stored."""
    put_at: float = 0.0
    """When the last put was, by the loop's clock."""
    timer: asyncio.TimerHandle | None = None


class PackedSaver(AsyncPostgresSaver):
    """Stores every step's state at about the price of one (docs/decisions/01-state-and-checkpoints.md).

    A put serialises and returns. What a thread has put is stored in one statement by `flush`, by whoever reads the
    thread, or once nothing has been put for `FLUSH_SECONDS`; until then no other process sees it. While the database
    is away, puts wait for it, `MAX_BUFFERED` bytes of them, and then are stored in order.
    """

    SELECT_SQL = _SELECT

    def __init__(self, pool: Pool, upgrade: Upgrade | None = None) -> None:
        super().__init__(pool)
        self._upgrade = upgrade
        # Stock's own guards a connection that is shared; a pool hands each caller one of its own.
        self.lock = nullcontext()  # type: ignore[assignment]
        self._pool = pool
        self._buffers: dict[str, _Buffer] = {}
        self._buffered = 0
        self._refused: dict[str, Exception] = {}
        self._writers = asyncio.Semaphore(WRITERS)
        self._flushing: set[asyncio.Task[None]] = set()
        self._places: OrderedDict[tuple[str, str, str], _Places] = OrderedDict()

    async def flush(self, thread_id: str) -> None:
        """Return once everything that was put into the thread is stored.

        Raises `DatabaseUnavailable` where the database does not answer; it is tried again every `RETRY_SECONDS`, and
        by whoever asks next. Raises what else the database says, `InputError` for text that it cannot hold: then the
        puts are lost.
        """
        await self._store_buffered(thread_id)
        if refused := self._refused.pop(thread_id, None):
            raise refused

    async def aclose(self) -> None:
        """Store what is buffered. What cannot be stored now is lost, and logged."""
        threads = list(self._buffers)
        # All at once: with a database that hangs, each takes as long as all.
        ends = await asyncio.gather(*(self.flush(thread_id) for thread_id in threads), return_exceptions=True)
        for thread_id, end in zip(threads, ends, strict=True):
            if isinstance(end, Exception):
                logger.error("states of thread %s are lost", thread_id, exc_info=end)
        for buffer in self._buffers.values():
            if buffer.timer is not None:
                buffer.timer.cancel()
        await asyncio.gather(*self._flushing)

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Buffer a checkpoint. `new_versions` is not needed: what is stored of the parent is known here."""
        thread_id, namespace = _read_place(config)
        buffer = await self._admit(thread_id)
        pack = _open_pack(buffer, namespace)
        before, parent = pack.size, config["configurable"].get("checkpoint_id")
        known = self._places.get((thread_id, namespace, parent), {}) if parent else {}
        plain: dict[str, Any] = {}
        places: _Places = {}
        for channel, value in checkpoint["channel_values"].items():
            if type(value) in _PLAIN:
                plain[channel] = value
                continue
            version = checkpoint["channel_versions"].get(channel)
            place = known.get(channel)
            if place is None or place[0] != version:
                pack.put_blob(channel, version, self.serde.dumps_typed(value))
                place = (version, pack.name)
            places[channel] = place
        row = {
            "ns": namespace,
            "id": checkpoint["id"],
            "parent": parent,
            "checkpoint": {
                "v": checkpoint["v"],
                "pack": pack.name,
                "channel_versions": dict.fromkeys([pack.name, *(name for _, name in places.values())], ""),
            },
            "metadata": get_serializable_checkpoint_metadata(config, metadata),
        }
        held = self.serde.dumps_typed({**checkpoint, "channel_values": plain})
        pack.put_checkpoint(checkpoint["id"], held, json.dumps(row))
        self._remember((thread_id, namespace, checkpoint["id"]), places)
        self._grow(thread_id, buffer, pack.size - before)
        return _make_config(thread_id, namespace, checkpoint["id"])

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Buffer what a task wrote on top of a checkpoint."""
        if not writes:
            return
        thread_id, namespace = _read_place(config)
        buffer = await self._admit(thread_id)
        pack = _open_pack(buffer, namespace)
        before = pack.size
        pack.put_writes(
            config["configurable"]["checkpoint_id"],
            (
                task_id,
                task_path,
                all(channel in WRITES_IDX_MAP for channel, _ in writes),
                self.serde.dumps_typed(
                    [
                        (WRITES_IDX_MAP.get(channel, position), channel, value)
                        for position, (channel, value) in enumerate(writes)
                    ]
                ),
            ),
        )
        self._grow(thread_id, buffer, pack.size - before)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """As stock, with what is buffered stored first."""
        await self._store_buffered(_read_place(config)[0])
        found = await super().aget_tuple(config)
        if found is not None:
            _go_on_from(found.checkpoint["id"])
        return found

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """As stock, with what is buffered stored first."""
        for thread_id in [_read_place(config)[0]] if config else list(self._buffers):
            await self._store_buffered(thread_id)
        async for found in super().alist(config, filter=filter, before=before, limit=limit):
            yield found

    async def adelete_thread(self, thread_id: str) -> None:
        """As stock, what is buffered included."""
        await self._store_buffered(str(thread_id))
        await super().adelete_thread(thread_id)
        self._forget(str(thread_id))

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """As stock, what is buffered included. A pack goes when no checkpoint is left that needs it."""
        for thread_id in thread_ids:
            await self._store_buffered(str(thread_id))
        await super().aprune(thread_ids, strategy=strategy)
        for thread_id in thread_ids:
            self._forget(str(thread_id))

    # Stock's own looks for channels in columns.
    aget_delta_channel_history = BaseCheckpointSaver.aget_delta_channel_history

    async def _load_checkpoint_tuple(self, value: DictRow) -> CheckpointTuple:
        """Raises `DamagedState`."""
        try:
            found = await self._unpack_checkpoint_tuple(value)
            return found if self._upgrade is None else found._replace(checkpoint=self._upgrade(found.checkpoint))
        except Exception as error:
            # Nothing is asked of the database here: whatever it is, it comes of the bytes that were stored.
            raise DamagedState(value["thread_id"], value["checkpoint_id"]) from error

    async def _unpack_checkpoint_tuple(self, value: DictRow) -> CheckpointTuple:
        name, checkpoint_id = value["checkpoint"].get("pack"), value["checkpoint_id"]
        if name is None:
            stocks = await super()._load_checkpoint_tuple({**value, "pending_writes": None})
            return stocks._replace(pending_writes=self._read_writes(checkpoint_id, [], value["pending_writes"]))
        packs = {channel.decode(): _unpack(bytes(body)) for channel, _, body in value["channel_values"] or []}
        if lost := value["checkpoint"]["channel_versions"].keys() - packs:
            raise LookupError(f"packs that it refers to are gone: {', '.join(sorted(lost))}")
        checkpoint = self.serde.loads_typed(packs[name].checkpoints[checkpoint_id])
        places: _Places = {}
        for channel, version in checkpoint["channel_versions"].items():
            for holder, pack in packs.items():
                if (blob := pack.blobs.get((channel, version))) is not None:
                    checkpoint["channel_values"][channel] = self.serde.loads_typed(blob)
                    places[channel] = (version, holder)
                    break
        thread_id, namespace, parent = value["thread_id"], value["checkpoint_ns"], value["parent_checkpoint_id"]
        self._remember((thread_id, namespace, checkpoint_id), places)
        return CheckpointTuple(
            _make_config(thread_id, namespace, checkpoint_id),
            checkpoint,
            value["metadata"],
            _make_config(thread_id, namespace, parent) if parent else None,
            self._read_writes(checkpoint_id, packs[name].writes.get(checkpoint_id, []), value["pending_writes"]),
        )

    def _read_writes(
        self, checkpoint_id: str, packed: Sequence[_Writes], rows: list[_WriteRow] | None
    ) -> list[tuple[str, str, Any]]:
        """What tasks wrote on top of a checkpoint, in the order in which LangGraph applies it: what its pack holds, and
        what came later, in rows of stock's or in later packs."""
        found: dict[tuple[str, int], tuple[tuple[str, str, int], str, Any]] = {}
        late: list[tuple[bytes, list[_Writes]]] = []
        for task, channel, type_, value, path, index in rows or []:
            if type_.decode() != _PACKED:
                key = writes_sort_key(path.decode(), task.decode(), int(index))
                found[key[1:]] = (key, channel.decode(), self.serde.loads_typed((type_.decode(), value)))
            elif value:
                late.append((task, _unpack(bytes(value)).writes[checkpoint_id]))
        late.sort(key=itemgetter(0))
        for task_id, task_path, replaces, blob in [*packed, *(writes for _, later in late for writes in later)]:
            for position, name, written in self.serde.loads_typed(blob):
                key = writes_sort_key(task_path, task_id, position)
                if replaces or key[1:] not in found:
                    found[key[1:]] = (key, name, written)
        return [(key[1], name, written) for key, name, written in sorted(found.values(), key=itemgetter(0))]

    async def _store_buffered(self, thread_id: str) -> None:
        """Without raising what the database refused, which is for whoever has put it."""
        if buffer := self._buffers.get(thread_id):
            await self._store(thread_id, buffer)

    async def _store(self, thread_id: str, buffer: _Buffer) -> None:
        async with buffer.lock:
            if buffer.timer is not None:
                buffer.timer.cancel()
                buffer.timer = None
            if buffer.packs:
                buffer.waiting.append((_make_parameters(thread_id, buffer.packs), buffer.size))
                buffer.packs, buffer.size = {}, 0
            try:
                while buffer.waiting:
                    parameters, size = buffer.waiting[0]
                    with translated_errors():
                        async with (
                            asyncio.timeout(QUERY_SECONDS),
                            self._writers,
                            self._pool.connection() as connection,
                        ):
                            await connection.execute(_STORE, parameters, binary=True)
                    buffer.waiting.popleft()
                    self._buffered -= size
            except (DatabaseUnavailable, asyncio.CancelledError):
                if buffer.timer is None:
                    self._set_timer(thread_id, buffer, RETRY_SECONDS)
                raise
            except Exception as error:  # noqa: BLE001 - handed on by `flush`, which may not be who is asking now
                # The same again would be refused again, and what has been put since may refer to it.
                self._buffered -= buffer.size + sum(size for _, size in buffer.waiting)
                buffer.packs, buffer.size = {}, 0
                buffer.waiting.clear()
                self._forget(thread_id)
                self._refused[thread_id] = error
            if not buffer.packs and self._buffers.get(thread_id) is buffer:
                del self._buffers[thread_id]

    async def _admit(self, thread_id: str) -> _Buffer:
        """The thread's buffer, once there is room for more."""
        if self._buffered > MAX_BUFFERED:
            await self._store_buffered(thread_id)
        buffer = self._buffers.get(thread_id)
        if buffer is None:
            buffer = self._buffers[thread_id] = _Buffer()
        return buffer

    def _grow(self, thread_id: str, buffer: _Buffer, size: int) -> None:
        buffer.size += size
        self._buffered += size
        buffer.put_at = self.loop.time()
        if buffer.size >= FLUSH_BYTES:
            self._start_flush(thread_id, buffer)
        elif buffer.timer is None:
            self._set_timer(thread_id, buffer, FLUSH_SECONDS)

    def _set_timer(self, thread_id: str, buffer: _Buffer, seconds: float) -> None:
        buffer.timer = self.loop.call_later(seconds, self._end_timer, thread_id, buffer)

    def _end_timer(self, thread_id: str, buffer: _Buffer) -> None:
        buffer.timer = None
        # Cheaper than a new timer for every put.
        remaining = buffer.put_at + FLUSH_SECONDS - self.loop.time()
        if remaining > 0:
            self._set_timer(thread_id, buffer, remaining)
        else:
            self._start_flush(thread_id, buffer)

    def _start_flush(self, thread_id: str, buffer: _Buffer) -> None:
        async def store() -> None:
            try:
                await self._store(thread_id, buffer)
            except DatabaseUnavailable as error:
                logger.warning("states of thread %s wait for the database: %s", thread_id, error.message)

        task = self.loop.create_task(store())
        self._flushing.add(task)
        task.add_done_callback(self._flushing.discard)

    def _remember(self, key: tuple[str, str, str], places: _Places) -> None:
        self._places[key] = places
        self._places.move_to_end(key)
        if len(self._places) > KNOWN_CHECKPOINTS:
            self._places.popitem(last=False)

    def _forget(self, thread_id: str) -> None:
        """What its checkpoints would refer to is gone."""
        for key in [key for key in self._places if key[0] == thread_id]:
            del self._places[key]


def _read_place(config: RunnableConfig) -> tuple[str, str]:
    """The thread, and the namespace in it that a subgraph has for itself."""
    return str(config["configurable"]["thread_id"]), config["configurable"].get("checkpoint_ns", "")


def _make_config(thread_id: str, namespace: str, checkpoint_id: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": namespace, "checkpoint_id": checkpoint_id}}


def _go_on_from(checkpoint_id: str) -> None:
    """Let the ids that this process makes be greater. They are times, and the greatest is a thread's last state: that
    of a server whose clock is behind would be forgotten by the next turn."""
    read = UUID(checkpoint_id)
    if read.version == 6:
        ticks = ((read.int >> 80) << 12) | ((read.int >> 64) & 0xFFF)
        ids._last_v6_timestamp = max(ids._last_v6_timestamp or 0, ticks)  # type: ignore[assignment]  # None at first


def _open_pack(buffer: _Buffer, namespace: str) -> _Pack:
    pack = buffer.packs.get(namespace)
    if pack is None:
        pack = buffer.packs[namespace] = _Pack(f"{time_ns() // 1000:x}{token_hex(2)}")
    return pack


def _make_parameters(thread_id: str, packs: dict[str, _Pack]) -> dict[str, Any]:
    late = [
        {"ns": namespace, "id": checkpoint_id, "name": pack.name}
        for namespace, pack in packs.items()
        for checkpoint_id in pack.writes
        if checkpoint_id not in pack.checkpoints
    ]
    named = [{"ns": namespace, "name": pack.name} for namespace, pack in packs.items()]
    checkpoints = ",".join(row for pack in packs.values() for row in pack.rows.values())
    return {
        "thread_id": thread_id,
        # The rows were made JSON when they were put.
        "rows": f'{{"packs": {json.dumps(named)}, "late": {json.dumps(late)}, "checkpoints": [{checkpoints}]}}',
        "bodies": [pack.encode() for pack in packs.values()],
    }


@lru_cache(maxsize=32)
def _unpack(body: bytes) -> _Unpacked:
    """What a pack holds. The checkpoints of one write are mostly read together."""
    blobs, checkpoints, writes = ormsgpack.unpackb(zstandard.ZstdDecompressor().decompress(body))
    return _Unpacked(
        {(channel, version): (type_, blob) for channel, version, type_, blob in blobs},
        checkpoints,
        writes,
    )
