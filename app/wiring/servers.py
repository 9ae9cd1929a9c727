"""The servers behind the service: PostgreSQL, and Redis or Valkey; embedded ones unless the settings name others."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from app.adapters import embedded
from app.adapters.postgres.migrations import upgrade
from app.adapters.postgres.pool import Pool, open_pool, ping
from app.adapters.redis.connection import RedisServer
from app.settings import Settings, reveal
from domain.errors import AskgraphError
from domain.health import Check


@dataclass(frozen=True, slots=True)
class Database:
    """PostgreSQL, with its schema up to date."""

    url: str
    pool: Pool
    description: str
    """How it runs, in words."""


@dataclass(frozen=True, slots=True)
class Servers:
    """The database and the cache server, both running."""

    database: Database
    redis: RedisServer
    redis_url: str
    parts: Mapping[str, str]
    """How each server runs, in words."""

    def checks(self) -> dict[str, Check]:
        """Health checks of both servers."""

        async def check_database() -> str | None:
            try:
                await ping(self.database.pool)
            except AskgraphError as error:
                return error.message
            return None

        async def check_cache() -> str | None:
            return None if await self.redis.is_up() else "The cache server does not answer."

        return {"database": check_database, "cache": check_cache}


@asynccontextmanager
async def open_servers(settings: Settings) -> AsyncIterator[Servers]:
    """Start or reach both servers, and close the connections at the end.

    Raises `ConfigurationError` and `DatabaseUnavailable`.
    """
    async with AsyncExitStack() as stack:
        database_url, redis_url = reveal(settings.database_url), reveal(settings.redis_url)
        cache = "external Redis"
        started = await stack.enter_async_context(_start_embedded(settings, cache=True))
        if started.redis_url:
            redis_url, cache = started.redis_url, f"embedded Valkey in {settings.home}"
        database = await stack.enter_async_context(_connect(settings, started.database_url or database_url))
        redis = RedisServer(redis_url)
        stack.push_async_callback(redis.close)
        yield Servers(database, redis, redis_url, {"database": database.description, "cache": cache})


@asynccontextmanager
async def open_database(settings: Settings) -> AsyncIterator[Database]:
    """Start or reach the database alone, for commands that need nothing else.

    Raises `ConfigurationError` and `DatabaseUnavailable`.
    """
    async with (
        _start_embedded(settings, cache=False) as started,
        _connect(settings, started.database_url or reveal(settings.database_url)) as database,
    ):
        yield database


@asynccontextmanager
async def _start_embedded(settings: Settings, *, cache: bool) -> AsyncIterator[embedded.Servers]:
    """Start the embedded servers that the settings do not replace."""
    postgres, redis = not settings.database_url, cache and not settings.redis_url
    if not (postgres or redis):
        yield embedded.Servers(database_url=None, redis_url=None)
        return
    async with embedded.open_servers(settings.home, postgres=postgres, redis=redis) as started:
        yield started


@asynccontextmanager
async def _connect(settings: Settings, url: str) -> AsyncIterator[Database]:
    description = "external Postgres" if settings.database_url else f"embedded Postgres in {settings.home}"
    await upgrade(url)
    async with open_pool(url) as pool:
        yield Database(url, pool, description)
