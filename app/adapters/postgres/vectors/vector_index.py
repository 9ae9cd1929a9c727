"""The vector indexes: one HNSW graph for each large workspace, none for small ones.

Comparing every embedding of a small workspace is fast and misses nothing. One graph over all workspaces would make
searches walk past the rows of others, and inserting every row into it would cost more than the rest of a load. So a
workspace gets its own graph once it is large enough. Building it in one go takes a fifth of the time of inserting its
rows one by one; from then on every change updates it. Until it is there, searches compare everything
(docs/decisions/16-search-at-scale.md).
"""

import asyncio
import logging
from hashlib import blake2b
from typing import Any

import psycopg
from psycopg import AsyncConnection
from psycopg.rows import tuple_row
from psycopg.sql import SQL, Identifier, Literal

from app.adapters.postgres.pool import WAIT_SECONDS, Pool, translated_errors
from app.adapters.postgres.vectors.embedding_model import read_dimension
from domain.errors import AskgraphError

logger = logging.getLogger("askgraph.postgres")

EXACT_ROWS = 4_000
"""Largest number of chunks in scope for which a search compares every one (measured: 1.2 µs each). A workspace with
more chunks has a graph."""

_GRAPH_BYTES = 1_800
"""Memory of one row's neighbours while a graph is built, rounded up. Its vector in half precision comes on top."""
_MEMORY_MB = (64, 8_192)
"""Smallest and largest memory of a build. A graph that does not fit is finished row by row."""

_LOCK = 0x61736B67
"""Advisory lock of the only build that may run. Two builds would wait for each other's snapshots."""
LOCK_TIMEOUT = "60s"
"""Time that a build waits for transactions that began before it, such as a backup."""
CLOSE_SECONDS = 5.0
"""Time that a build gets to finish when the process shuts down. An unfinished graph is built again after the next
change."""

# The condition is written as in library/dense.py, so that the planner recognises it there.
_CREATE = SQL("""
    CREATE INDEX CONCURRENTLY {name} ON {table}
    USING hnsw ((embedding::halfvec({dimension})) halfvec_cosine_ops) WITH (m = 16, ef_construction = 64)
    WHERE (workspace_id = {workspace_id}) IS TRUE
""")
_DROP = SQL("DROP INDEX CONCURRENTLY IF EXISTS {name}")
_SIZES = "SELECT workspace_id, chunks FROM workspaces"
_INDEXES = """
    SELECT relname, indisvalid FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
    WHERE relnamespace = current_schema()::regnamespace AND starts_with(relname, 'chunks_of_')
"""
# An operator may have shared `chunks` out to partitions: a graph cannot be built concurrently on all of them at once.
_PART = "SELECT relname FROM pg_class WHERE oid = (SELECT tableoid FROM chunks WHERE workspace_id = %s LIMIT 1)"


def name_index(workspace_id: str) -> str:
    """Return the name of the workspace's graph, which may not exist."""
    return f"chunks_of_{blake2b(workspace_id.encode(), digest_size=12).hexdigest()}"


def is_due(chunks: int, ready: bool) -> bool:
    """Return True if a workspace lacks the graph that its size requires, or has one that it no longer needs.

    `ready` is True if it has a graph. The threshold for dropping is lower, so that a graph does not come and go.
    """
    return chunks <= EXACT_ROWS // 2 if ready else chunks > EXACT_ROWS


class VectorIndexes:
    """Builds and drops the graphs of all workspaces in the background.

    One task does this at a time, so changes that come during a build open no further connection.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._task: asyncio.Task[None] | None = None
        self._changed = False

    def tend(self) -> None:
        """Start tending the graphs in the background. If that is going on already, it is repeated at its end."""
        self._changed = True
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._tend())

    async def wait(self) -> None:
        """Wait until the graphs have been tended."""
        if self._task is not None:
            await asyncio.wait([self._task])

    async def close(self) -> None:
        """Wait for a build, and cancel it after `CLOSE_SECONDS`."""
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
    """Build the graph of every workspace whose size requires one, and drop those no longer needed. Reads and writes go
    on meanwhile. If another process is doing this, it is left to that process.

    Failures are logged and not raised: searches work without a graph, and the next change tries again.
    """
    try:
        with translated_errors():
            # A separate connection: its settings and its lock end with it.
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
    # A process that finds the lock taken leaves its work to the holder, which therefore looks again after unlocking.
    while await _list_due(connection, failed) and await _take_lock(connection):
        for workspace_id, chunks in await _list_due(connection, failed):
            try:
                await renew(connection, workspace_id, chunks)
            # Includes permanent errors, such as a role that does not own the table.
            except psycopg.Error:
                _warn()
                failed.add(workspace_id)
        await connection.execute("SELECT pg_advisory_unlock(%s)", [_LOCK])


async def _list_due(connection: AsyncConnection[Any], failed: set[str]) -> list[tuple[str, int]]:
    """Return the workspaces whose graph is missing, unfinished or no longer needed, with their number of chunks."""
    ready = dict(await (await connection.execute(_INDEXES)).fetchall())
    return [
        (workspace_id, chunks)
        for workspace_id, chunks in await (await connection.execute(_SIZES)).fetchall()
        if workspace_id not in failed
        and (ready.get(name := name_index(workspace_id)) is False or is_due(chunks, name in ready))
    ]


async def renew(connection: AsyncConnection[Any], workspace_id: str, chunks: int) -> None:
    """Build the graph of a workspace of `chunks` chunks, or drop it if the workspace is too small for one. Changes
    settings of the session."""
    drop = _DROP.format(name=Identifier(name_index(workspace_id)))
    # Also drops what an interrupted build has left, which searches do not use.
    await connection.execute(drop)
    if chunks <= EXACT_ROWS:
        return
    dimension = await read_dimension(connection)
    megabytes = min(max((chunks * (_GRAPH_BYTES + 2 * dimension)) >> 20, _MEMORY_MB[0]), _MEMORY_MB[1])
    await connection.execute("SELECT set_config('maintenance_work_mem', %s, false)", [f"{megabytes}MB"])
    cursor = connection.cursor(row_factory=tuple_row)
    part = await (await cursor.execute(_PART, [workspace_id])).fetchone()
    create = _CREATE.format(
        name=Identifier(name_index(workspace_id)),
        table=Identifier(part[0] if part else "chunks"),
        dimension=Literal(dimension),
        workspace_id=Literal(workspace_id),
    )
    try:
        await connection.execute(create)
    except (psycopg.errors.DiskFull, psycopg.errors.OutOfMemory):
        # Parallel workers share the graph in /dev/shm, which is small in some containers. A single process needs none.
        await connection.execute(drop)
        await connection.execute("SET max_parallel_maintenance_workers = 0")
        await connection.execute(create)


async def _take_lock(connection: AsyncConnection[Any]) -> bool:
    row = await (await connection.execute("SELECT pg_try_advisory_lock(%s)", [_LOCK])).fetchone()
    return row is not None and bool(row[0])


def _warn() -> None:
    logger.warning("A vector index could not be built. Until it is, searches compare every chunk.", exc_info=True)
