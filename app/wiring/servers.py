"""The servers behind the service: PostgreSQL, and Redis or Valkey; embedded ones unless the settings name others."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from app.adapters.postgres.monitoring import try_to_write
from app.adapters.redis.connection import RedisServer
from app.settings import Settings, reveal
from app.wiring.database import Database, connect, start_embedded
from domain.errors import AskgraphError
from domain.health import Check


@dataclass(frozen=True, slots=True)
class Servers:
    """The database and the cache server, both running."""

    database: Database
    redis: RedisServer
    redis_url: str
    parts: Mapping[str, str]
    """A description of each server for people."""

    def checks(self) -> dict[str, Check]:
        """Health checks of both servers."""

        async def check_database() -> str | None:
            try:
                await try_to_write(self.database.url)
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
        started = await stack.enter_async_context(start_embedded(settings, cache=True))
        if started.redis_url:
            redis_url, cache = started.redis_url, f"embedded Valkey in {settings.home}"
        database = await stack.enter_async_context(connect(settings, started.database_url or database_url))
        redis = RedisServer(redis_url)
        stack.push_async_callback(redis.close)
        yield Servers(database, redis, redis_url, {"database": database.description, "cache": cache})
