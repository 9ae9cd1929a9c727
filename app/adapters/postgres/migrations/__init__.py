"""The database schema as Alembic migrations. They run from code, without an alembic.ini."""

import asyncio
import logging
import threading
from pathlib import Path
from typing import Any

import psycopg

from app.adapters.postgres.pool import translated_errors
from app.adapters.postgres.row_security import secure
from domain.errors import ConfigurationError, DatabaseUnavailable

# Alembic keeps the running migration in module globals; other processes are kept out by the lock in env.py.
_one_at_a_time = threading.Lock()


async def upgrade(database_url: str) -> None:
    """Upgrade the database's schema to the newest, and protect its tables. Does nothing where that is done already.

    If two processes do this at once, the second one waits.

    Raises `DatabaseUnavailable`, and `ConfigurationError` if the server lacks pgvector, the database cannot hold every
    text or belongs to a newer version, or the role may not create the schema.
    """
    if not await _is_current(database_url):
        await asyncio.to_thread(_upgrade, database_url)
    with translated_errors():
        async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
            await secure(connection)


async def _is_current(database_url: str) -> bool:
    """Return True if the schema is the newest. Saves importing Alembic, the slowest part of a start.

    Raises `ConfigurationError` if the database cannot hold every text.
    """
    newest = await asyncio.to_thread(find_newest)
    try:
        async with await psycopg.AsyncConnection.connect(database_url) as connection:
            if problem := find_encoding_problem(connection):
                raise ConfigurationError(problem)
            cursor = await connection.execute("SELECT version_num FROM alembic_version")
            return await cursor.fetchone() == (newest,)
    except psycopg.Error:
        # The table or the whole database is missing. If that is an error, the upgrade raises it.
        return False


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
    return max(file.name for file in (Path(__file__).parent / "versions").glob("[0-9]*.py")).split("_")[0]


def _upgrade(database_url: str) -> None:
    # Its first import says already what it is made of, at the level at which `langgraph dev` logs.
    logging.getLogger("alembic").setLevel(logging.WARNING)
    from alembic import command
    from alembic.config import Config
    from alembic.util import CommandError
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError, OperationalError, ProgrammingError

    # SQLAlchemy takes "postgresql://" for psycopg2, which is not installed, and does not accept "postgres://".
    try:
        url = make_url(database_url.replace("postgres://", "postgresql://", 1)).set(drivername="postgresql+psycopg")
    except ArgumentError as error:
        raise ConfigurationError("DATABASE_URL is not an address of a PostgreSQL database.") from error
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.attributes["url"] = url
    try:
        with _one_at_a_time:
            command.upgrade(config, "head")
    except (psycopg.errors.InsufficientPrivilege, psycopg.errors.FeatureNotSupported) as error:
        raise ConfigurationError(
            f"The database schema could not be created: {error.diag.message_primary}. A superuser prepares the "
            "database once: it belongs to the role of DATABASE_URL, and has pgvector (CREATE EXTENSION vector)."
        ) from error
    except OperationalError as error:
        raise DatabaseUnavailable(f"The database could not be prepared: {error.orig}") from error
    except CommandError as error:
        raise ConfigurationError(f"The database belongs to a newer askgraph; upgrade this one. {error}") from error
    except ProgrammingError as error:
        raise ConfigurationError(f"The database schema could not be created: {error.orig}") from error
