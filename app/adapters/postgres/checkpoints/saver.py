"""LangGraph's checkpointer for PostgreSQL, which stores every step and many steps in one row (`packs`).

The states of a thread are in the order in which they were stored, and the last one is its latest. Their ids are times,
by the clocks of several servers. Reasons and figures: docs/decisions/01-state-and-checkpoints.md.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from operator import itemgetter
from typing import Any, LiteralString

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
from langgraph.checkpoint.serde.types import ERROR
from psycopg.rows import DictRow

from app.adapters.postgres.checkpoints.buffer import Place, WriteBuffer
from app.adapters.postgres.checkpoints.packs import Owner, Pack, PackedCheckpoint
from app.adapters.postgres.pool import Pool, open_session
from domain.errors import DamagedState
from domain.runs import NEW_THREAD

PAGE = 200
"""Number of checkpoints whose packs are read together."""

_OF_THREAD: LiteralString = "workspace_id = %(workspace_id)s AND thread_id = %(thread_id)s"

_READ: LiteralString = "SELECT namespace, checkpoints, pack FROM state_packs"

# The last pack with a checkpoint, and those after it, which hold what tasks wrote on top of it.
_READ_LATEST: LiteralString = f"""
    {_READ} WHERE {_OF_THREAD} AND namespace = %(namespace)s AND number >= (
        SELECT max(number) FROM state_packs
        WHERE {_OF_THREAD} AND namespace = %(namespace)s AND checkpoints <> '{{}}'
    )
    ORDER BY number
"""

_READ_THESE: LiteralString = f"""
    {_READ} WHERE {_OF_THREAD} AND (checkpoints && %(ids)s::text[] OR written && %(ids)s::text[]) ORDER BY number
"""

# The checkpoint `before` may be one of another thread or namespace.
_LIST: LiteralString = f"""
    WITH saved AS (
        SELECT id, number, position FROM state_packs CROSS JOIN unnest(checkpoints) WITH ORDINALITY AS c (id, position)
        WHERE {_OF_THREAD} AND (%(namespace)s::text IS NULL OR namespace = %(namespace)s)
            AND (%(only)s::text IS NULL OR id = %(only)s)
            AND (%(run_id)s::text IS NULL OR run_id = %(run_id)s OR id = %(before)s)
    )
    SELECT id FROM saved
    WHERE %(before)s::text IS NULL
        OR coalesce((number, position) < (SELECT number, position FROM saved WHERE id = %(before)s), id < %(before)s)
    ORDER BY number DESC, position DESC LIMIT %(limit)s
"""

_DELETE: LiteralString = f"DELETE FROM state_packs WHERE {_OF_THREAD}"


@asynccontextmanager
async def open_saver(pool: Pool) -> AsyncIterator["PackedSaver"]:
    """Open a saver. Leaving the context stores what is buffered."""
    saver = PackedSaver(pool)
    try:
        yield saver
    finally:
        await saver.aclose()


class PackedSaver(BaseCheckpointSaver[str]):
    """Stores the state of every step at about the price of one state per turn.

    A put serialises its value and returns. `WriteBuffer` stores what a thread has put when `flush` is called, when the
    thread is read, or after a pause; until then no other process sees it.

    A configuration names its thread by `workspace_id`, which is empty where it is missing, and `thread_id`.
    """

    def __init__(self, pool: Pool) -> None:
        super().__init__()
        self._pool = pool
        self._buffer = WriteBuffer(pool)

    async def flush(self, workspace_id: str, thread_id: str) -> None:
        """Store everything that was put into the thread. Raises what `WriteBuffer.flush` raises."""
        await self._buffer.flush((workspace_id, thread_id))

    async def aclose(self) -> None:
        """Store everything that is buffered. What cannot be stored now is lost, and logged."""
        await self._buffer.close()

    def get_next_version(self, current: str | None, channel: None) -> str:
        """Return the version after this one. It is unlike that of another branch of the same checkpoint."""
        number = int(current.split(".")[0]) + 1 if current else 1
        return f"{number:032}.{random.random():016}"

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Buffer a checkpoint. `new_versions` is not used: a pack holds all values of its checkpoints."""
        place = _read_place(config)
        pack = await self._buffer.open_pack(place, _read_owner(config))
        self._put(pack, config, checkpoint, metadata)
        self._buffer.note_put(place)
        return _make_config(place, pack.owner.namespace, checkpoint["id"])

    def _put(self, pack: Pack, config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata) -> None:
        for channel, value in checkpoint["channel_values"].items():
            version = checkpoint["channel_versions"].get(channel)
            if (channel, version) not in pack.values:
                pack.put_value(channel, version, self.serde.dumps_typed(value))
        packed = PackedCheckpoint(
            config["configurable"].get("checkpoint_id"),
            self.serde.dumps_typed(get_serializable_checkpoint_metadata(config, metadata)),
            self.serde.dumps_typed({**checkpoint, "channel_values": {}}),
        )
        pack.put_checkpoint(checkpoint["id"], packed)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Buffer what a task wrote on top of a checkpoint."""
        if not writes:
            return
        if writes[-1][0] == ERROR and isinstance(writes[-1][1], asyncio.CancelledError):
            # What a step wrote before it was cancelled lacks what follows it: with it, the run would end there.
            writes = writes[-1:]
        place = _read_place(config)
        pack = await self._buffer.open_pack(place, _read_owner(config))
        numbered = [
            (WRITES_IDX_MAP.get(channel, position), channel, value) for position, (channel, value) in enumerate(writes)
        ]
        written = self.serde.dumps_typed(numbered)
        pack.put_writes(config["configurable"]["checkpoint_id"], (task_id, task_path, written))
        self._buffer.note_put(place)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return a checkpoint, after storing what is buffered of its thread; None at once where the configuration says
        that the thread has none."""
        wanted = config["configurable"]
        if wanted.get(NEW_THREAD):
            return None
        place = _read_place(config)
        if checkpoint_id := wanted.get("checkpoint_id"):
            rows = await self._fetch(place, _READ_THESE, ids=[checkpoint_id])
        else:
            rows = await self._fetch(place, _READ_LATEST, namespace=wanted.get("checkpoint_ns", ""))
            checkpoint_id = rows[0]["checkpoints"][-1] if rows else ""
        return next(self._read(place, rows, [checkpoint_id]), None)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """List checkpoints of a thread, after storing what is buffered of it."""
        if config is None:
            raise NotImplementedError("Threads are listed one by one.")
        place, wanted = _read_place(config), config["configurable"]
        found = await self._fetch(
            place,
            _LIST,
            namespace=wanted.get("checkpoint_ns"),
            only=wanted.get("checkpoint_id"),
            run_id=(filter or {}).get("run_id"),
            before=before and before["configurable"].get("checkpoint_id"),
            limit=None if filter else limit,
        )
        count = 0
        for start in range(0, len(found), PAGE):
            ids = [row["id"] for row in found[start : start + PAGE]]
            rows = await self._fetch(place, _READ_THESE, ids=ids)
            for read in self._read(place, rows, ids):
                if limit is not None and count >= limit:
                    return
                if (filter or {}).items() <= read.metadata.items():
                    count += 1
                    yield read

    async def adelete_thread(self, thread_id: str) -> None:
        """Delete a thread of no workspace, including what is buffered of it."""
        await self._fetch(("", thread_id), _DELETE)

    async def _fetch(self, place: Place, statement: LiteralString, **params: Any) -> list[DictRow]:
        """Run a statement on a thread, after storing what is buffered of it."""
        await self._buffer.store(place)
        async with open_session(self._pool, place[0]) as session:
            cursor = await session.execute(statement, thread_id=place[1], **params)
            return await cursor.fetchall() if cursor.description else []

    def _read(self, place: Place, rows: Sequence[DictRow], ids: Sequence[str]) -> Iterator[CheckpointTuple]:
        """Read these checkpoints from the rows of their packs. Raises `DamagedState`."""
        packs: list[Pack] = []
        for row in rows:
            with _finding_damage(place, next((name for name in ids if name in row["checkpoints"]), ids[0])):
                packs.append(Pack.decode(Owner(row["namespace"], None, 0), bytes(row["pack"])))
        # Most values of a checkpoint are those of the one before it. Nobody changes a value that was read.
        loaded: dict[tuple[int, str, Any], Any] = {}
        for checkpoint_id in ids:
            number = next((n for n, pack in enumerate(packs) if checkpoint_id in pack.checkpoints), None)
            if number is None:
                continue
            with _finding_damage(place, checkpoint_id):
                pack = packs[number]
                parent, metadata, content = pack.checkpoints[checkpoint_id]
                checkpoint: Checkpoint = self.serde.loads_typed(content)
                for channel, version in checkpoint["channel_versions"].items():
                    if (channel, version) in pack.values:
                        key = number, channel, version
                        if key not in loaded:
                            loaded[key] = self.serde.loads_typed(pack.values[channel, version])
                        checkpoint["channel_values"][channel] = loaded[key]
                read = CheckpointTuple(
                    _make_config(place, pack.owner.namespace, checkpoint_id),
                    checkpoint,
                    self.serde.loads_typed(metadata),
                    _make_config(place, pack.owner.namespace, parent) if parent else None,
                    self._read_writes(checkpoint_id, packs),
                )
            yield read

    def _read_writes(self, checkpoint_id: str, packs: Sequence[Pack]) -> list[tuple[str, str, Any]]:
        """Return what tasks wrote on top of a checkpoint, in the order in which LangGraph applies it."""
        found: dict[tuple[str, int], tuple[tuple[str, str, int], str, Any]] = {}
        for pack in packs:
            for task_id, task_path, blob in pack.writes.get(checkpoint_id, []):
                for index, channel, value in self.serde.loads_typed(blob):
                    # Errors and interrupts replace what the task wrote before; of all else the first counts.
                    if index < 0 or (task_id, index) not in found:
                        found[task_id, index] = writes_sort_key(task_path, task_id, index), channel, value
        return [(key[1], channel, value) for key, channel, value in sorted(found.values(), key=itemgetter(0))]


def _read_place(config: RunnableConfig) -> Place:
    """Return the thread that a configuration names."""
    return config["configurable"].get("workspace_id", ""), str(config["configurable"]["thread_id"])


def _read_owner(config: RunnableConfig) -> Owner:
    """Return who saves with this configuration."""
    metadata = config.get("metadata") or {}
    return Owner(config["configurable"].get("checkpoint_ns", ""), metadata.get("run_id"), metadata.get("attempt", 1))


def _make_config(place: Place, namespace: str, checkpoint_id: str) -> RunnableConfig:
    workspace_id, thread_id = place
    found = {"thread_id": thread_id, "checkpoint_ns": namespace, "checkpoint_id": checkpoint_id}
    return {"configurable": found | ({"workspace_id": workspace_id} if workspace_id else {})}


@contextmanager
def _finding_damage(place: Place, checkpoint_id: str) -> Iterator[None]:
    """Raise `DamagedState` for any error. The database is not asked here, so it comes from the stored bytes."""
    try:
        yield
    except Exception as error:
        raise DamagedState(place[1], checkpoint_id) from error
