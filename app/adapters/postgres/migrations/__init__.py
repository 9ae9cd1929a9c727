"""The database schema: a file of SQL in `versions` for each revision, run once, in order. What moves rows after that is
in a Python file of the same name."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from runpy import run_path
from typing import Any

import psycopg
from psycopg.rows import scalar_row

from app.adapters.postgres.pool import translated_errors
from app.adapters.postgres.row_security import secure
from domain.errors import ConfigurationError, DatabaseUnavailable

logger = logging.getLogger("askgraph.postgres")

MoveRows = Callable[[psycopg.AsyncConnection[Any]], Awaitable[None]]

_LOCK = 1618033988
"""Any number will do that nobody else locks: the first digits of the golden ratio."""


async def upgrade(database_url: str) -> None:
    """Upgrade the database's schema to the newest, and protect its tables. Does nothing where that is done already.

    If two processes do this at once, the second one waits.

    Raises `DatabaseUnavailable`, and `ConfigurationError` if the server lacks pgvector, the database cannot hold every
    text or belongs to a newer version, or the role may not create the schema.
    """
    try:
        async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
            if problem := find_encoding_problem(connection):
                raise ConfigurationError(problem)
            # In a thread, because it reads files, which `langgraph dev` refuses on the event loop.
            newest = await asyncio.to_thread(find_newest)
            if await find_revision(connection) != newest:
                async with connection.transaction():
                    await _upgrade(connection, newest)
    except (psycopg.errors.InsufficientPrivilege, psycopg.errors.FeatureNotSupported) as error:
        raise ConfigurationError(
            f"The database schema could not be created: {error.diag.message_primary}. A superuser prepares the "
            "database once: it belongs to the role of DATABASE_URL, and has pgvector (CREATE EXTENSION vector)."
        ) from error
    except psycopg.OperationalError as error:
        raise DatabaseUnavailable(f"The database could not be prepared: {error}") from error
    except psycopg.Error as error:
        # Such as a server that only lets read, or tables of somebody else.
        raise ConfigurationError(f"The database schema could not be created: {error}") from error
    with translated_errors():
        async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
            await secure(connection)


def find_encoding_problem(connection: psycopg.AsyncConnection[Any]) -> str | None:
    """Return why the database cannot hold every text, and what to do; None where it can."""
    encoding = connection.info.parameter_status("server_encoding")
    if encoding == "UTF8":
        return None
    return (
        f"The database has the encoding {encoding}, which does not hold every text. Make another one for askgraph: "
        "CREATE DATABASE askgraph ENCODING 'UTF8' TEMPLATE template0."
    )


def find_newest() -> str:
    """Return the revision that this version of askgraph needs."""
    return _read_number(_list_versions()[-1])


async def find_revision(connection: psycopg.AsyncConnection[Any]) -> str | None:
    """Return the revision that the database has; None where it has none."""
    async with connection.cursor(row_factory=scalar_row) as cursor:
        await cursor.execute("SELECT to_regclass('schema_version')")
        if await cursor.fetchone() is None:
            return None
        await cursor.execute("SELECT revision FROM schema_version")
        revision: str | None = await cursor.fetchone()
        return revision


def _list_versions() -> list[Path]:
    return sorted((Path(__file__).parent / "versions").glob("[0-9]*.sql"))


def _read_number(version: Path) -> str:
    return version.stem.split("_")[0]


def _load_versions(after: str) -> list[tuple[bytes, MoveRows | None]]:
    """Return the SQL of each version after this one, and what moves rows after it."""
    versions = [version for version in _list_versions() if _read_number(version) > after]
    moving = [version.with_suffix(".py") for version in versions]
    return [
        (version.read_bytes(), run_path(str(mover))["move_rows"] if mover.exists() else None)
        for version, mover in zip(versions, moving, strict=True)
    ]


async def _upgrade(connection: psycopg.AsyncConnection[Any], newest: str) -> None:
    """Run what the database lacks, in the transaction of `connection`."""
    cursor = connection.cursor(row_factory=scalar_row)
    await cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [_LOCK])
    if not await cursor.fetchone():
        logger.warning("Another process upgrades the database's schema; waiting for it.")
        await cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
    # The other may have been of a newer version, too.
    found = await find_revision(connection) or ""
    if found > newest:
        raise ConfigurationError("The database belongs to a newer askgraph; upgrade this one.")
    if found and found not in map(_read_number, await asyncio.to_thread(_list_versions)):
        raise ConfigurationError(
            "The database was made by a version between two releases, and cannot be upgraded. Name another database, "
            "and ingest the documents again."
        )
    await cursor.execute("CREATE TABLE IF NOT EXISTS schema_version (revision text PRIMARY KEY)")
    for sql, move_rows in await asyncio.to_thread(_load_versions, found):
        await cursor.execute(sql)
        if move_rows is not None:
            await move_rows(connection)
    await cursor.execute("DELETE FROM schema_version")
    await cursor.execute("INSERT INTO schema_version VALUES (%s)", [newest])
