"""The database schema, as Alembic migrations that run from code: there is no alembic.ini to find or to forget."""

import asyncio
import threading
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import URL, make_url
from sqlalchemy.exc import OperationalError, ProgrammingError

from domain.errors import ConfigurationError, DatabaseUnavailable

# Alembic keeps the running migration in module globals; other processes are kept out by the lock in env.py.
_one_at_a_time = threading.Lock()


async def upgrade(database_url: str, revision: str = "head") -> None:
    """Bring the database's schema to `revision`. Does nothing where it is there already.

    Two processes may do this at once: the second waits for the first.

    Raises `DatabaseUnavailable`, and `ConfigurationError` where the server lacks pgvector or the role may not
    create what is needed.
    """
    await asyncio.to_thread(_upgrade, database_url, revision)


def _upgrade(database_url: str, revision: str) -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.attributes["url"] = _driver_url(database_url)
    try:
        with _one_at_a_time:
            command.upgrade(config, revision)
    except OperationalError as error:
        raise DatabaseUnavailable(f"The database could not be prepared: {error.orig}") from error
    except ProgrammingError as error:
        raise ConfigurationError(f"The database schema could not be created: {error.orig}") from error


def _driver_url(database_url: str) -> URL:
    # SQLAlchemy takes "postgresql://" for psycopg2, which is not installed, and does not know "postgres://" at all.
    return make_url(database_url.replace("postgres://", "postgresql://", 1)).set(drivername="postgresql+psycopg")
