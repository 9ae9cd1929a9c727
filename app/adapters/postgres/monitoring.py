"""Asks the database how it is and what it holds, over connections of its own: a pool that is in use is no outage."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import LiteralString

import psycopg
from psycopg import AsyncConnection
from psycopg.rows import DictRow, dict_row

from app.adapters.postgres.migrations import find_encoding_problem, find_newest, find_revision
from app.adapters.postgres.pool import WAIT_SECONDS, find_pooler_problem, translated_errors
from domain.errors import DatabaseUnavailable
from domain.health import Diagnosis, QueueDepth

# A new table needs space on the disk, and its commit waits for the write-ahead log. Reading works on a full disk.
_WRITE: LiteralString = "CREATE TEMP TABLE askgraph_can_write ON COMMIT DROP AS SELECT 1 AS written"

_FIND_EXTENSION: LiteralString = """
    SELECT coalesce(installed_version, default_version) AS version FROM pg_available_extensions WHERE name = 'vector'
"""

OLDEST = 15
"""The oldest major version of PostgreSQL that our statements run on."""

_MEASURE_QUEUES: LiteralString = """
    SELECT queue, count(*) FILTER (WHERE state = 'queued') AS waiting,
        count(*) FILTER (WHERE state = 'running') AS running,
        coalesce(extract(epoch FROM now() - min(accepted_at) FILTER (WHERE state = 'queued')), 0)::float8
            AS oldest_seconds
    FROM (
        SELECT 'runs' AS queue, state, accepted_at FROM accepted_runs WHERE state IN ('queued', 'running')
        UNION ALL
        SELECT 'ingestions', state, accepted_at FROM ingestions WHERE state IN ('queued', 'running')
    ) AS unfinished
    GROUP BY queue
"""

_MEASURE_FEEDBACK: LiteralString = """
    SELECT rating, count(*) AS given FROM feedback WHERE given_at > now() - interval '1 day' GROUP BY rating
"""


@asynccontextmanager
async def _connect(database_url: str) -> AsyncIterator[AsyncConnection[DictRow]]:
    with translated_errors():
        async with (
            asyncio.timeout(WAIT_SECONDS),
            await AsyncConnection.connect(
                database_url,
                autocommit=True,
                row_factory=dict_row,
                connect_timeout=int(WAIT_SECONDS),
                application_name="askgraph monitoring",
            ) as connection,
        ):
            yield connection


async def try_to_write(database_url: str) -> None:
    """Write to the database. Raises `DatabaseUnavailable` if it does not answer or only reads, and `DatabaseFull`."""
    async with _connect(database_url) as connection:
        try:
            async with connection.transaction():
                await connection.execute(_WRITE)
        except psycopg.errors.ReadOnlySqlTransaction as error:
            raise DatabaseUnavailable(f"The database answers, but cannot write: {error}") from error


async def examine(database_url: str) -> AsyncIterator[Diagnosis]:
    """Examine a database without changing it. Raises `DatabaseUnavailable` where it does not answer."""
    async with _connect(database_url) as connection:
        version = connection.info.server_version // 10000
        too_old = f"askgraph needs PostgreSQL {OLDEST} or newer." if version < OLDEST else None
        problem = find_encoding_problem(connection)
        yield Diagnosis("database", f"PostgreSQL {version} answers", too_old or problem)
        if not problem and (problem := await find_pooler_problem(database_url)):
            yield Diagnosis("connections", "change with every transaction", problem)
        if problem:
            return
        row = await (await connection.execute(_FIND_EXTENSION)).fetchone()
        extension = row["version"] if row else None
        yield Diagnosis(
            "pgvector",
            extension or "missing",
            None if extension else "Install pgvector on the server; `CREATE EXTENSION vector` as its superuser.",
        )
        revision, newest = await find_revision(connection), find_newest()
        remedy = None
        if revision is None or revision < newest:
            remedy = "Start `askgraph serve` or `askgraph worker` once: it brings the schema up to date."
        elif revision > newest:
            remedy = "The database belongs to a newer askgraph. Upgrade this one."
        yield Diagnosis("schema", f"revision {revision or 'none'} of {newest}", remedy)
    try:
        await try_to_write(database_url)
        yield Diagnosis("write", "the database writes")
    except DatabaseUnavailable as error:
        yield Diagnosis("write", error.message, "Look at the disk of the database, and whether this is a standby.")


async def measure_queues(database_url: str) -> dict[str, QueueDepth]:
    """Return the depth of the queues `runs` and `ingestions`. Raises `DatabaseUnavailable`."""
    async with _connect(database_url) as connection:
        rows = await (await connection.execute(_MEASURE_QUEUES)).fetchall()
    found = {row.pop("queue"): QueueDepth(**row) for row in rows}
    return {queue: found.get(queue, QueueDepth(0, 0, 0.0)) for queue in ("runs", "ingestions")}


async def measure_feedback(database_url: str) -> dict[str, int]:
    """Return how many answers were rated `up` and `down` in the last 24 hours. Raises `DatabaseUnavailable`."""
    async with _connect(database_url) as connection:
        rows = await (await connection.execute(_MEASURE_FEEDBACK)).fetchall()
    return {"up": 0, "down": 0} | {row["rating"]: row["given"] for row in rows}
