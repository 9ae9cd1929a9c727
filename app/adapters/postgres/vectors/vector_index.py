"""The vector indexes: one HNSW graph for each large workspace, none for small ones.

A search that compares every embedding of a small workspace is fast and misses nothing. A graph over all workspaces
would have to be walked past the rows of others, and every row of every workspace would have to be entered into it,
which costs more than all else that a load does. So a workspace gets a graph of its own once it is worth one, built in
one go, which takes a fifth of the time that entering its rows one by one takes; from then on every change keeps it up
to date. Searches compare everything for as long as the graph is not there. docs/decisions/16-search-at-scale.md.
"""

import asyncio
import logging
from hashlib import blake2b
from typing import Any

import psycopg
from psycopg import AsyncConnection
from psycopg.sql import SQL, Composed, Identifier, Literal

from app.adapters.postgres.pool import WAIT_SECONDS, Pool, translated_errors
from app.adapters.postgres.vectors.embedding_model import read_dimension
from domain.errors import AskgraphError

logger = logging.getLogger("askgraph.postgres")

EXACT_ROWS = 4_000
"""Up to this many chunks in scope every one is compared (measured: 1.2 µs each); a workspace with more has a graph."""

_GRAPH_BYTES = 1_800
"""Memory of one row while a graph is built, beside its vector in half precision: its neighbours, rounded up."""
_MEMORY_MB = (64, 2_048)
"""At least and at most for a build. A graph that does not fit is finished row by row."""

_LOCK = 0x61736B67
"""Advisory lock of the one build that may run: two would wait for each other's snapshots."""
LOCK_TIMEOUT = "60s"
"""How long a build waits for transactions that were there before it, such as a backup's."""
CLOSE_SECONDS = 5.0
"""How long a build may go on when the process wants to end. What it leaves unfinished is built anew after the next
change."""

_DROP = SQL("DROP INDEX CONCURRENTLY IF EXISTS {name}")
_SIZES = "SELECT workspace_id, chunks FROM workspaces"
_INDEXES = """
    SELECT relname, indisvalid FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
    WHERE indrelid = 'chunks'::regclass
"""


def name_index(workspace_id: str, table: str = "chunks") -> str:
    """The name of the workspace's graph, whether there is one or not."""
    return f"{table}_of_{blake2b(workspace_id.encode(), digest_size=12).hexdigest()}"


def describe_index(workspace_id: str, dimension: int, *, table: str = "chunks", concurrently: bool = True) -> Composed:
    """The statement that builds the workspace's graph."""
    # The condition is written as the searches write it, so that the planner recognises it; see sql.SEARCH_DENSE.
    return SQL("""
        CREATE INDEX {concurrently} {name} ON {table}
        USING hnsw ((embedding::halfvec({dimension})) halfvec_cosine_ops) WITH (m = 16, ef_construction = 64)
        WHERE (workspace_id = {workspace_id}) IS TRUE
    """).format(
        concurrently=SQL("CONCURRENTLY" if concurrently else ""),
        name=Identifier(name_index(workspace_id, table)),
        table=Identifier(table),
        dimension=Literal(dimension),
        workspace_id=Literal(workspace_id),
    )


def is_due(chunks: int, ready: bool) -> bool:
    """Whether a workspace lacks the graph that its size calls for, or has one that it hardly needs any more."""
    return chunks <= EXACT_ROWS // 2 if ready else chunks > EXACT_ROWS


class VectorIndexes:
    """The graphs of all workspaces, seen to in the background, by one task at a time: however many changes come
    while a graph is built, they open no further connection."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._task: asyncio.Task[None] | None = None
        self._changed = False

    def tend(self) -> None:
        """Have the graphs looked at; where that is going on already, once more at its end."""
        self._changed = True
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._tend())

    async def wait(self) -> None:
        """Return once they have been looked at."""
        if self._task is not None:
            await asyncio.wait([self._task])

    async def close(self) -> None:
        """Let a build end, or end it where it takes too long."""
        if self._task is None:
            return
        _, unfinished = await asyncio.wait([self._task], timeout=CLOSE_SECONDS)
        if unfinished:
            self._task.cancel()
            await self.wait()

    async def _tend(self) -> None:
        while self._changed:
            self._changed = False
            await tend_indexes(self._pool)


async def tend_indexes(pool: Pool) -> None:
    """Build the graph of every workspace whose size calls for one, and drop those that are no longer worth it. Reads
    and writes go on meanwhile. Where another process is at it, this is left to that process.

    A failure is logged and raises nothing: searches do without a graph, and the next change tries again.
    """
    try:
        with translated_errors():
            # A connection of its own: what is set for the builds, and the lock, end with it.
            async with await AsyncConnection.connect(
                str(pool.conninfo),
                autocommit=True,
                connect_timeout=int(WAIT_SECONDS),
                application_name="askgraph index",
            ) as connection:
                await _tend(connection)
    except (AskgraphError, psycopg.Error):
        _warn()


async def _tend(connection: AsyncConnection[Any]) -> None:
    await connection.execute("SELECT set_config('lock_timeout', %s, false)", [LOCK_TIMEOUT])
    failed: set[str] = set()
    # Who finds the lock taken leaves its work to the holder, who therefore looks again after giving the lock back.
    while await _list_due(connection, failed) and await _take_lock(connection):
        for workspace_id, chunks in await _list_due(connection, failed):
            try:
                await renew(connection, workspace_id, chunks)
            # Also what no later try can change, such as a role that does not own the table.
            except psycopg.Error:
                _warn()
                failed.add(workspace_id)
        await connection.execute("SELECT pg_advisory_unlock(%s)", [_LOCK])


async def _list_due(connection: AsyncConnection[Any], failed: set[str]) -> list[tuple[str, int]]:
    """The workspaces that lack a graph, or have one that they hardly need or that was left unfinished, and how many
    chunks they have."""
    ready = dict(await (await connection.execute(_INDEXES)).fetchall())
    return [
        (workspace_id, chunks)
        for workspace_id, chunks in await (await connection.execute(_SIZES)).fetchall()
        if workspace_id not in failed
        and (ready.get(name := name_index(workspace_id)) is False or is_due(chunks, name in ready))
    ]


async def renew(connection: AsyncConnection[Any], workspace_id: str, chunks: int, table: str = "chunks") -> None:
    """Build the graph of a workspace of so many chunks; one that is not worth it has none afterwards. Sets what the
    session builds with."""
    drop = _DROP.format(name=Identifier(name_index(workspace_id, table)))
    # Also what an interrupted build has left, which searches do not use.
    await connection.execute(drop)
    if chunks <= EXACT_ROWS:
        return
    dimension = await read_dimension(connection, table)
    megabytes = min(max((chunks * (_GRAPH_BYTES + 2 * dimension)) >> 20, _MEMORY_MB[0]), _MEMORY_MB[1])
    await connection.execute("SELECT set_config('maintenance_work_mem', %s, false)", [f"{megabytes}MB"])
    create = describe_index(workspace_id, dimension, table=table)
    try:
        await connection.execute(create)
    except (psycopg.errors.DiskFull, psycopg.errors.OutOfMemory):
        # Workers share the graph in /dev/shm, which a container may have little of; one process needs none.
        await connection.execute(drop)
        await connection.execute("SET max_parallel_maintenance_workers = 0")
        await connection.execute(create)


async def _take_lock(connection: AsyncConnection[Any]) -> bool:
    row = await (await connection.execute("SELECT pg_try_advisory_lock(%s)", [_LOCK])).fetchone()
    return row is not None and bool(row[0])


def _warn() -> None:
    logger.warning("The vector index of a workspace could not be built.", exc_info=True)
