"""LangGraph's checkpointer for PostgreSQL, which stores every step and many steps in one write.

The tables keep the meaning that LangGraph's `AsyncPostgresSaver` gives them, so its statements still find, list and
delete what is in them. A row of `checkpoints` is a checkpoint with its parent and metadata. Its content is in packs
(`packs`), which are rows of `checkpoint_blobs`. A checkpoint names its packs as if they were channels: LangGraph's
statements join them, and its pruning knows which ones are still needed. Rows that `AsyncPostgresSaver` wrote are read
as they are. Reasons and figures: docs/decisions/01-state-and-checkpoints.md.

The class overrides private names of langgraph-checkpoint-postgres, so pyproject.toml pins that package's minor version;
`tests/adapters/postgres/test_checkpoint_internals.py` lists the names.
"""

import asyncio
import copy
import json
from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, nullcontext
from operator import itemgetter
from typing import Any, LiteralString, Self
from uuid import UUID

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
from langgraph.checkpoint.serde.types import ERROR
from psycopg import AsyncCursor
from psycopg.rows import DictRow, dict_row, scalar_row

from app.adapters.postgres.checkpoints.buffer import WriteBuffer
from app.adapters.postgres.checkpoints.packs import PACKED, Blob, Pack, TaskWrites, unpack
from app.adapters.postgres.pool import ALL_WORKSPACES, Everywhere, Pool, borrow, translated_errors
from app.adapters.postgres.row_security import secure
from domain.errors import DamagedState
from domain.runs import NEW_THREAD
from domain.threads import split_key, state_key

KNOWN_CHECKPOINTS = 1024
"""Number of recent checkpoints for which the saver remembers which pack holds which value. The successor of a forgotten
one stores its values again, which only costs bytes."""

_PLAIN = frozenset({type(None), bool, int, float, str})
"""Types of values that are stored with the checkpoint instead of as blobs, as LangGraph does."""

# LangGraph's SELECT, except that packed writes are read from their pack.
_SELECT: LiteralString = f"""
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
            ON w.type = '{PACKED}' AND p.thread_id = w.thread_id AND p.checkpoint_ns = w.checkpoint_ns
            AND p.channel = w.task_id AND p.version = ''
        WHERE w.thread_id = checkpoints.thread_id AND w.checkpoint_ns = checkpoints.checkpoint_ns
            AND w.checkpoint_id = checkpoints.checkpoint_id
    ) AS pending_writes
FROM checkpoints """

_WriteRow = tuple[bytes, bytes, bytes, bytes, bytes, bytes]
"""An element of `pending_writes`: task id, channel, type, blob, task path, index."""

_LOCK = 0x61736B6A
"""Held while LangGraph's tables are created or changed."""
_PAUSE = 0.1

_Places = dict[str, tuple[Any, str]]
"""By channel: the version of its value, and the name of the pack that holds it."""


@asynccontextmanager
async def open_saver(pool: Pool, workspace_id: str | Everywhere = "") -> AsyncIterator["PackedSaver"]:
    """Open a saver and create its tables, which LangGraph migrates itself. Leaving the context stores what is
    buffered. `workspace_id` is that of a configuration that names none, which otherwise finds nothing."""
    saver = PackedSaver(pool, workspace_id)
    with translated_errors():
        async with borrow(pool, ALL_WORKSPACES) as connection:
            # Replicas that start together would create the tables at the same time, which fails in all but one. We ask
            # again and again: a statement that waited for the lock would keep CREATE INDEX CONCURRENTLY from its end.
            cursor = connection.cursor(row_factory=scalar_row)
            while not await (await cursor.execute("SELECT pg_try_advisory_lock(%s)", [_LOCK])).fetchone():  # noqa: ASYNC110
                await asyncio.sleep(_PAUSE)
            try:
                await saver.within(ALL_WORKSPACES).setup()
                await secure(connection)
            finally:
                await connection.execute("SELECT pg_advisory_unlock(%s)", [_LOCK])
    try:
        yield saver
    finally:
        await saver.aclose()


class PackedSaver(AsyncPostgresSaver):
    """Stores the state of every step at about the price of one state per turn.

    A put serialises its value and returns. `WriteBuffer` stores what a thread has put when `flush` is called, when the
    thread is read, or after a pause; until then no other process sees it.
    """

    SELECT_SQL = _SELECT

    def __init__(self, pool: Pool, workspace_id: str | Everywhere = "") -> None:
        super().__init__(pool)
        self._pool = pool
        self._workspace_id = workspace_id
        # The base class guards a shared connection with this lock; here each caller has its own from the pool.
        self.lock = nullcontext()  # type: ignore[assignment]
        self._buffer = WriteBuffer(pool, on_lost=self._forget)
        self._places: OrderedDict[tuple[str, str, str], _Places] = OrderedDict()
        self._loaded: dict[Blob, Any] | None = None

    def within(self, workspace_id: str | Everywhere) -> Self:
        """Return the same saver for one workspace. They share what is buffered."""
        saver = copy.copy(self)
        saver._workspace_id = workspace_id
        return saver

    async def flush(self, key: str) -> None:
        """Store everything that was put into the thread with this key. Raises what `WriteBuffer.flush` raises."""
        await self._buffer.flush(key)

    async def aclose(self) -> None:
        """Store everything that is buffered. What cannot be stored now is lost, and logged."""
        await self._buffer.close()

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Buffer a checkpoint. `new_versions` is not used: the saver knows which values of the parent are stored."""
        workspace_id, key, namespace = self._read_place(config)
        pack = await self._buffer.open_pack(workspace_id, key, namespace)
        parent = config["configurable"].get("checkpoint_id")
        known = self._places.get((key, namespace, parent), {}) if parent else {}
        places = self._put(pack, config, checkpoint, metadata, known)
        self._remember((key, namespace, checkpoint["id"]), places)
        self._buffer.note_put(key)
        return _make_config(key, namespace, checkpoint["id"])

    def pack_alone(
        self, config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata
    ) -> tuple[str, bytes, str]:
        """Pack the first checkpoint of a thread, for whoever stores it with other rows of the thread. Returns the name
        and the content of its pack, and its row of `checkpoints` as JSON."""
        pack = Pack()
        self._put(pack, config, checkpoint, metadata, {})
        return pack.name, pack.encode(), pack.rows[checkpoint["id"]]

    def _put(
        self,
        pack: Pack,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        known: _Places,
    ) -> _Places:
        """Put a checkpoint into a pack, without the values that are in other packs already. Returns the places of all
        values."""
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
            "ns": self._read_place(config)[2],
            "id": checkpoint["id"],
            "parent": config["configurable"].get("checkpoint_id"),
            "checkpoint": {
                "v": checkpoint["v"],
                "pack": pack.name,
                "channel_versions": dict.fromkeys([pack.name, *(name for _, name in places.values())], ""),
            },
            "metadata": get_serializable_checkpoint_metadata(config, metadata),
        }
        held = self.serde.dumps_typed({**checkpoint, "channel_values": plain})
        pack.put_checkpoint(checkpoint["id"], held, json.dumps(row))
        return places

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Buffer what a task wrote on top of a checkpoint."""
        if not writes:
            return
        if writes[-1][0] == ERROR and isinstance(writes[-1][1], asyncio.CancelledError):
            # What a step wrote before it was cancelled lacks what follows it: with it, the run would end there.
            writes = writes[-1:]
        workspace_id, key, namespace = self._read_place(config)
        pack = await self._buffer.open_pack(workspace_id, key, namespace)
        replaces = all(channel in WRITES_IDX_MAP for channel, _ in writes)
        numbered = [
            (WRITES_IDX_MAP.get(channel, position), channel, value) for position, (channel, value) in enumerate(writes)
        ]
        pack.put_writes(
            config["configurable"]["checkpoint_id"], (task_id, task_path, replaces, self.serde.dumps_typed(numbered))
        )
        self._buffer.note_put(key)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return a checkpoint, after storing what is buffered of its thread; None at once where the configuration says
        that the thread has none."""
        if config["configurable"].get(NEW_THREAD):
            return None
        workspace_id, key, _ = self._read_place(config)
        await self._buffer.store(key)
        found = await super(PackedSaver, self.within(workspace_id)).aget_tuple(_rename(config, key))
        if found is not None:
            _advance_ids_beyond(found.checkpoint["id"])
        return found

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """List checkpoints, after storing what is buffered."""
        if config is None:
            workspace_id, keys = self._workspace_id, self._buffer.keys
        else:
            workspace_id, key, _ = self._read_place(config)
            config, keys = _rename(config, key), [key]
        for key in keys:
            await self._buffer.store(key)
        within = self.within(workspace_id)
        # Most values of a checkpoint are those of the one before it. Nobody changes a value that was read.
        within._loaded = {}
        async for found in super(PackedSaver, within).alist(config, filter=filter, before=before, limit=limit):
            yield found

    async def adelete_thread(self, thread_id: str) -> None:
        """Delete a thread, including what is buffered of it."""
        key = self._find_key(self._workspace_id, thread_id)
        await self._buffer.store(key)
        await super().adelete_thread(key)
        self._forget(key)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Delete earlier checkpoints, including what is buffered. A pack goes with the last checkpoint that needs
        it."""
        keys = [self._find_key(self._workspace_id, thread_id) for thread_id in thread_ids]
        for key in keys:
            await self._buffer.store(key)
        await super().aprune(keys, strategy=strategy)
        for key in keys:
            self._forget(key)

    # The method of AsyncPostgresSaver looks for channels in columns, and finds packs there.
    aget_delta_channel_history = BaseCheckpointSaver.aget_delta_channel_history

    async def _load_checkpoint_tuple(self, value: DictRow) -> CheckpointTuple:
        """Read a row of `_SELECT`. Raises `DamagedState`."""
        try:
            return await self._unpack_checkpoint_tuple(value)
        except Exception as error:
            # The database is not asked here, so any error comes from the stored bytes.
            raise DamagedState(split_key(value["thread_id"])[1], value["checkpoint_id"]) from error

    async def _unpack_checkpoint_tuple(self, value: DictRow) -> CheckpointTuple:
        name, checkpoint_id = value["checkpoint"].get("pack"), value["checkpoint_id"]
        key, namespace, parent = value["thread_id"], value["checkpoint_ns"], value["parent_checkpoint_id"]
        config = _make_config(key, namespace, checkpoint_id)
        parent_config = _make_config(key, namespace, parent) if parent else None
        if name is None:
            unpacked = await super()._load_checkpoint_tuple({**value, "pending_writes": None})
            writes = self._read_writes(checkpoint_id, [], value["pending_writes"])
            return unpacked._replace(config=config, parent_config=parent_config, pending_writes=writes)
        packs = {channel.decode(): unpack(bytes(body)) for channel, _, body in value["channel_values"] or []}
        if lost := value["checkpoint"]["channel_versions"].keys() - packs:
            raise LookupError(f"its packs are missing: {', '.join(sorted(lost))}")
        checkpoint = self.serde.loads_typed(packs[name].checkpoints[checkpoint_id])
        places: _Places = {}
        for channel, version in checkpoint["channel_versions"].items():
            for holder, pack in packs.items():
                if (blob := pack.blobs.get((channel, version))) is not None:
                    checkpoint["channel_values"][channel] = self._load(blob)
                    places[channel] = (version, holder)
                    break
        self._remember((key, namespace, checkpoint_id), places)
        return CheckpointTuple(
            config,
            checkpoint,
            value["metadata"],
            parent_config,
            self._read_writes(checkpoint_id, packs[name].writes.get(checkpoint_id, []), value["pending_writes"]),
        )

    def _load(self, blob: Blob) -> Any:
        """Return the value of a blob; while checkpoints are listed, one that is the same for all of them."""
        if self._loaded is None:
            return self.serde.loads_typed(blob)
        if blob not in self._loaded:
            self._loaded[blob] = self.serde.loads_typed(blob)
        return self._loaded[blob]

    def _read_writes(
        self, checkpoint_id: str, packed: Sequence[TaskWrites], rows: list[_WriteRow] | None
    ) -> list[tuple[str, str, Any]]:
        """Return what tasks wrote on top of a checkpoint, in the order in which LangGraph applies it.

        `packed` are the writes in the checkpoint's own pack. `rows` are later ones: written by LangGraph's saver, or in
        later packs.
        """
        found: dict[tuple[str, int], tuple[tuple[str, str, int], str, Any]] = {}
        late: list[tuple[bytes, list[TaskWrites]]] = []
        for task, channel, type_, value, path, index in rows or []:
            if type_.decode() != PACKED:
                key = writes_sort_key(path.decode(), task.decode(), int(index))
                found[key[1:]] = (key, channel.decode(), self.serde.loads_typed((type_.decode(), value)))
            elif value:
                late.append((task, unpack(bytes(value)).writes[checkpoint_id]))
        late.sort(key=itemgetter(0))
        for task_id, task_path, replaces, blob in [*packed, *(writes for _, later in late for writes in later)]:
            for position, name, written in self.serde.loads_typed(blob):
                key = writes_sort_key(task_path, task_id, position)
                if replaces or key[1:] not in found:
                    found[key[1:]] = (key, name, written)
        return [(key[1], name, written) for key, name, written in sorted(found.values(), key=itemgetter(0))]

    @asynccontextmanager
    async def _cursor(self, *, pipeline: bool = False) -> AsyncIterator[AsyncCursor[DictRow]]:
        """Open a cursor that sees the workspace. LangGraph's methods do all their work with it."""
        async with (
            borrow(self._pool, self._workspace_id) as connection,
            connection.pipeline() if pipeline else nullcontext(),
            connection.cursor(binary=True, row_factory=dict_row) as cursor,
        ):
            yield cursor

    def _read_place(self, config: RunnableConfig) -> tuple[str | Everywhere, str, str]:
        """Return the workspace that a configuration names, the key of its thread, and the namespace that a subgraph has
        within the thread."""
        place = config["configurable"]
        workspace_id = place.get("workspace_id", self._workspace_id)
        return workspace_id, self._find_key(workspace_id, place["thread_id"]), place.get("checkpoint_ns", "")

    def _find_key(self, workspace_id: str | Everywhere, thread_id: Any) -> str:
        """Return the key of a thread. Where all workspaces are served, threads are named by their keys."""
        return state_key(workspace_id, thread_id) if isinstance(workspace_id, str) else str(thread_id)

    def _remember(self, key: tuple[str, str, str], places: _Places) -> None:
        self._places[key] = places
        self._places.move_to_end(key)
        if len(self._places) > KNOWN_CHECKPOINTS:
            self._places.popitem(last=False)

    def _forget(self, key: str) -> None:
        """Forget where the thread's values are: the packs that its checkpoints would refer to are gone."""
        for place in [place for place in self._places if place[0] == key]:
            del self._places[place]


def _rename(config: RunnableConfig, key: str) -> RunnableConfig:
    """Return the configuration for LangGraph's own statements, which find the thread by its key."""
    return {**config, "configurable": {**config["configurable"], "thread_id": key}}


def _make_config(key: str, namespace: str, checkpoint_id: str) -> RunnableConfig:
    workspace_id, thread_id = split_key(key)
    place = {"thread_id": thread_id, "checkpoint_ns": namespace, "checkpoint_id": checkpoint_id}
    return {"configurable": place | ({"workspace_id": workspace_id} if workspace_id else {})}


def _advance_ids_beyond(checkpoint_id: str) -> None:
    """Make the ids that this process generates greater than this one.

    Checkpoint ids are times, and the greatest is the thread's latest state: a server whose clock is behind would
    otherwise add states that the next turn ignores.
    """
    read = UUID(checkpoint_id)
    if read.version == 6:
        ticks = ((read.int >> 80) << 12) | ((read.int >> 64) & 0xFFF)
        ids._last_v6_timestamp = max(ids._last_v6_timestamp or 0, ticks)  # type: ignore[assignment]  # None at first
