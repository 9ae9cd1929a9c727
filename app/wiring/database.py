"""The database, started or reached, with its schema up to date."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from app.adapters import embedded
from app.adapters.postgres.address import show_place
from app.adapters.postgres.migrations import upgrade
from app.adapters.postgres.pool import Pool, find_pooler_problem, open_pool
from app.settings import Settings, reveal
from domain.errors import ConfigurationError, DatabaseUnavailable


@dataclass(frozen=True, slots=True)
class Database:
    """PostgreSQL, with its schema up to date."""

    url: str
    pool: Pool
    description: str
    """A description for people."""


@asynccontextmanager
async def open_database(settings: Settings) -> AsyncIterator[Database]:
    """Start or reach the database alone, for commands that need no vectors and nothing else.

    Raises `ConfigurationError` and `DatabaseUnavailable`.
    """
    async with (
        start_embedded(settings, cache=False) as started,
        connect(settings, started.database_url or reveal(settings.database_url), vectors=False) as database,
    ):
        yield database


@asynccontextmanager
async def start_embedded(settings: Settings, *, cache: bool) -> AsyncIterator[embedded.Servers]:
    """Start the embedded servers that the settings do not replace."""
    postgres, redis = not settings.database_url, cache and not settings.redis_url
    if not (postgres or redis):
        yield embedded.Servers(database_url=None, redis_url=None)
        return
    async with embedded.open_servers(settings.home, postgres=postgres, redis=redis) as started:
        yield started


def explain(url: str, error: DatabaseUnavailable) -> DatabaseUnavailable:
    """Return the error with its cause, for whoever runs the service."""
    why = " ".join(str(error.__cause__ or error).split()) or "it took too long"
    return DatabaseUnavailable(f"The database at {show_place(url)} (DATABASE_URL): {why}")


@asynccontextmanager
async def connect(settings: Settings, url: str, *, vectors: bool = True) -> AsyncIterator[Database]:
    """Bring the schema of a running database up to date and open a pool of connections.

    Raises `ConfigurationError` and `DatabaseUnavailable`.
    """
    description = f"embedded Postgres in {settings.home}"
    if settings.database_url:
        description = "external Postgres"
        try:
            problem = await find_pooler_problem(url)
        except DatabaseUnavailable as error:
            raise explain(url, error) from error
        if problem:
            raise ConfigurationError(problem)
    await upgrade(url)
    async with open_pool(url, vectors=vectors) as pool:
        yield Database(url, pool, description)
