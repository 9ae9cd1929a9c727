"""The connections to Redis or Valkey, and what happens while it does not answer."""

import logging
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError

from domain.errors import ConfigurationError

logger = logging.getLogger(__name__)

TIMEOUT_SECONDS = 0.5
"""For connecting and for each reply: what a dead server may cost an answer, once."""
PAUSE_SECONDS = 5.0
"""After a failure the server is left alone for this long, so that it costs the next answers nothing."""
CONNECTIONS = 16
"""At most. A burst waits for one of them, instead of opening hundreds that all connect at the same time."""

Result = TypeVar("Result")


class RedisServer:
    """One server, for all that uses it. Nothing here raises for a server that is gone: see `attempt`.

    Raises `ConfigurationError` where the address is none.
    """

    def __init__(
        self, redis_url: str, *, timeout_seconds: float = TIMEOUT_SECONDS, pause_seconds: float = PAUSE_SECONDS
    ) -> None:
        try:
            pool = BlockingConnectionPool.from_url(
                redis_url,
                max_connections=CONNECTIONS,
                # How long a caller waits for one of them: what the callers before it may take.
                timeout=4 * timeout_seconds,
                socket_timeout=timeout_seconds,
                socket_connect_timeout=timeout_seconds,
                # A connection that the server has closed meanwhile is opened again once, without waiting. A server
                # that did not answer in time is not asked twice.
                retry=Retry(NoBackoff(), 1, supported_errors=(RedisConnectionError,)),
            )
        except ValueError as error:
            raise ConfigurationError(f"REDIS_URL is not an address of a Redis server: {error}") from error
        self.client = Redis.from_pool(pool)
        self._pause_seconds = pause_seconds
        self._paused_until = 0.0
        self._gone = False

    async def close(self) -> None:
        """Close the connections."""
        await self.client.aclose()

    async def is_up(self) -> bool:
        """Whether the server answers now."""

        async def ask() -> bool:
            return bool(await self.client.ping())

        return await self.attempt(ask) is True

    async def attempt(self, call: Callable[[], Awaitable[Result]]) -> Result | None:
        """What the call returns; None where the server does not answer, and for a while after that without asking it.
        The log says so once, and once when it is back."""
        if time.monotonic() < self._paused_until:
            return None
        try:
            result = await call()
        except (RedisError, OSError) as error:
            if not self._gone:
                logger.warning("Redis does not answer; going on without it: %s", error)
            self._gone = True
            self._paused_until = time.monotonic() + self._pause_seconds
            return None
        if self._gone:
            logger.info("Redis is back.")
            self._gone = False
        return result
