"""Checks that the installed procrastinate and the database have the same schema version."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from psycopg import AsyncConnection

from app.adapters.postgres.pool import translated_errors
from domain.errors import ConfigurationError


def read_version() -> str:
    """Return the schema version of the installed procrastinate, without importing it, which takes 0.2 s."""
    spec = find_spec("procrastinate")
    assert spec is not None
    assert spec.origin is not None
    return max(file.stem for file in (Path(spec.origin).parent / "sql" / "migrations").glob("*.sql"))


async def check_schema(connection: AsyncConnection[Any]) -> None:
    """Raise `ConfigurationError` if the database's schema has another version than the installed procrastinate."""
    with translated_errors():
        row = await (await connection.execute("SELECT max(version) AS version FROM queue_schema")).fetchone()
    installed = read_version()
    found = row["version"] if row else None
    if found != installed:
        raise ConfigurationError(
            f"The installed procrastinate needs the database schema {installed}, and the database has {found}. Install "
            "the version that constraints.txt names, or run the migrations between the two (in procrastinate's "
            "package, in sql/migrations) and set queue_schema.version."
        )
