"""The vector indexes: one HNSW graph for each large workspace, none for small ones.

A search that compares every embedding of a small workspace is fast and misses nothing. A graph over all workspaces
would have to be walked past the rows of others, and every row of every workspace would have to be entered into it,
which costs more than all else that a load does. So a workspace gets a graph of its own once it is worth one, built in
one go, which takes a fifth of the time that entering its rows one by one takes; from then on every change keeps it up
to date. Searches compare everything for as long as the graph is not there. docs/decisions/0026-vector-indexes.md.
"""

import asyncio
import logging
from hashlib import blake2b
from typing import Any

import psycopg
from psycopg import AsyncConnection
from psycopg.sql import SQL, Composed, Identifier, Literal

from app.adapters.postgres.pool import WAIT_SECONDS, Pool, translated_errors
from domain.errors import AskgraphError

logger = logging.getLogger("askgraph.postgres")

EXACT_ROWS = 4_000
"""Up to this many chunks in scope every one is compared (measured: 1.2 µs each); a workspace with more has a graph."""

_GRAPH_BYTES = 2_500
"""Memory of one row while a graph is built: its vector in half precision and its neighbours, rounded up."""
_MEMORY_MB = (64, 2_048)
"""At least and at most for a build. A graph that does not fit is finished row by row."""

_LOCK = 0x61736B67
"""Advisory lock of the one build that may run: two would wait for each other's snapshots."""
_POLL_SECONDS = 0.2
LOCK_TIMEOUT = "60s"
"""How long a build waits for transactions that were there before it, such as a backup's."""

_DROP = SQL("DROP INDEX CONCURRENTLY IF EXISTS {name}")
_STATE = """
    SELECT (SELECT chunks FROM workspaces WHERE workspace_id = %(workspace_id)s) AS chunks,
           (SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%(name)s)) AS ready
"""


def name_index(workspace_id: str) -> str:
    """The name of the workspace's graph, whether there is one or not."""
    return f"chunks_of_{blake2b(workspace_id.encode(), digest_size=12).hexdigest()}"


def describe_index(workspace_id: str, *, concurrently: bool = True) -> Composed:
    """The statement that builds the workspace's graph."""
    # The condition is written as the searches write it, so that the planner recognises it; see sql.SEARCH_DENSE.
    return SQL("""
        CREATE INDEX {concurrently} {name} ON chunks
        USING hnsw ((embedding::halfvec(384)) halfvec_cosine_ops) WITH (m = 16, ef_construction = 64)
        WHERE (workspace_id = {workspace_id}) IS TRUE
    """).format(
        concurrently=SQL("CONCURRENTLY" if concurrently else ""),
        name=Identifier(name_index(workspace_id)),
        workspace_id=Literal(workspace_id),
    )


def is_due(chunks: int, ready: bool) -> bool:
    """Whether a workspace lacks the graph that its size calls for, or has one that it hardly needs any more."""
    return chunks <= EXACT_ROWS // 2 if ready else chunks > EXACT_ROWS


async def tend_index(pool: Pool, workspace_id: str) -> None:
    """Build the workspace's graph, or drop it, where its size calls for that. Reads and writes go on meanwhile; other
    builds are waited for.

    A failure is logged and raises nothing: searches do without a graph, and the next change tries again.
    """
    try:
        with translated_errors():
            # A connection of its own: what is set for the build, and its lock, end with it.
            async with await AsyncConnection.connect(
                str(pool.conninfo),
                autocommit=True,
                connect_timeout=int(WAIT_SECONDS),
                application_name="askgraph index",
            ) as connection:
                await _tend(connection, workspace_id)
    # Also what no later try can change, such as a role that does not own the table: the documents are stored already.
    except (AskgraphError, psycopg.Error):
        logger.warning("The vector index of a workspace could not be built.", exc_info=True)


async def _tend(connection: AsyncConnection[Any], workspace_id: str) -> None:
    # Asked again and again, because a session that waits for the lock inside the server is one of those that the
    # build waits for.
    while not await _take_lock(connection):  # noqa: ASYNC110 - another process may hold it
        await asyncio.sleep(_POLL_SECONDS)
    name = Identifier(name_index(workspace_id))
    cursor = await connection.execute(_STATE, {"workspace_id": workspace_id, "name": name_index(workspace_id)})
    chunks, ready = await cursor.fetchone() or (0, None)
    if not is_due(chunks or 0, bool(ready)):
        return
    # Also what an interrupted build has left, which searches do not use.
    await connection.execute(_DROP.format(name=name))
    if ready:
        return
    await connection.execute("SELECT set_config('lock_timeout', %s, false)", [LOCK_TIMEOUT])
    megabytes = min(max((chunks * _GRAPH_BYTES) >> 20, _MEMORY_MB[0]), _MEMORY_MB[1])
    await connection.execute("SELECT set_config('maintenance_work_mem', %s, false)", [f"{megabytes}MB"])
    create = describe_index(workspace_id)
    try:
        await connection.execute(create)
    except (psycopg.errors.DiskFull, psycopg.errors.OutOfMemory):
        # Workers share the graph in /dev/shm, which a container may have little of; one process needs none.
        await connection.execute(_DROP.format(name=name))
        await connection.execute("SET max_parallel_maintenance_workers = 0")
        await connection.execute(create)


async def _take_lock(connection: AsyncConnection[Any]) -> bool:
    row = await (await connection.execute("SELECT pg_try_advisory_lock(%s)", [_LOCK])).fetchone()
    return row is not None and bool(row[0])
