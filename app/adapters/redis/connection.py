"""Connections to Redis or Valkey, one server or a cluster, and working without it while it does not answer."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar, cast
from urllib.parse import urlsplit

from redis.asyncio import Redis, RedisCluster
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.commands.core import AsyncScript
from redis.exceptions import (
    AskError,
    AuthenticationError,
    ClusterDownError,
    ReadOnlyError,
    RedisClusterException,
    RedisError,
    ResponseError,
    TryAgainError,
)
from redis.exceptions import ConnectionError as RedisConnectionError

from app.support.addresses import describe_address
from domain.errors import ConfigurationError

logger = logging.getLogger("askgraph.redis")

TIMEOUT_SECONDS = 0.5
"""Time limit for connecting and for each reply: what a dead server may cost one answer."""
PAUSE_SECONDS = 5.0
"""Seconds without a call after a failure, so that a dead server costs the next answers nothing."""
CALLS = 16
"""Most calls at once. A burst waits for one of them instead of opening hundreds of connections."""

AWAY = (RedisConnectionError, AskError, ClusterDownError, ReadOnlyError, TryAgainError)
"""Errors of a server that cannot serve now, which another call may find in order again."""

FAILURES = (RedisError, RedisClusterException, OSError, RuntimeError, AttributeError)
"""What a call raises where the server does not answer. The last two come from redis-py: it closes the connections to a
cluster's failed server also where another call has just taken one."""

EVERY_KEY = "{askgraph*"
"""Pattern of our keys, also of those of version 1.0.0, which had one owner for all."""

Result = TypeVar("Result")


def locate(owner: str, *names: str) -> str:
    """Return a key. A cluster keeps all keys of one owner (a workspace, a run, a caller) on one of its servers, so that
    a script may use them together, and spreads the owners over all."""
    return ":".join((f"{{askgraph:{owner}}}", *names))


class Connections:
    """Connections to the server that an address names, or to the cluster that it belongs to.

    Raises `ValueError` for an address that is not valid.
    """

    def __init__(self, redis_url: str, *, timeout_seconds: float, most: int) -> None:
        """`most` is how many connections a server may get."""
        self._url = redis_url
        # A connection that the server has closed, or that leads to a standby, is opened anew once, without waiting. A
        # server that did not answer in time is not asked twice.
        self._options: dict[str, Any] = {
            "max_connections": most,
            "socket_timeout": timeout_seconds,
            "socket_connect_timeout": timeout_seconds,
            "retry": Retry(NoBackoff(), 1, supported_errors=(RedisConnectionError, ReadOnlyError)),
        }
        self.server = Redis.from_url(redis_url, **self._options)
        self._client: Redis | None = None

    async def open(self) -> Redis:
        """Return the client, whose kind the server tells when it is first reached. Of a cluster's we use only what both
        kinds have."""
        if self._client is None:
            is_cluster = (await self.server.info("cluster"))["cluster_enabled"]
            if self._client is None:
                # After several moved keys, redis-py otherwise closes all connections, also those that are being used.
                options = self._options | {"reinitialize_steps": 0}
                self._client = cast(Redis, RedisCluster.from_url(self._url, **options)) if is_cluster else self.server
        # One that does not know its servers yet would send each call to any of them.
        return await self._client.initialize()

    async def close(self) -> None:
        """Close the connections."""
        await self.server.aclose()
        if self._client is not None:
            await self._client.aclose()


def list_servers(client: Redis) -> Sequence[Any]:
    """Return the servers that hold keys, each of which executes commands."""
    return client.get_primaries() if isinstance(client, RedisCluster) else [client]


class RedisServer:
    """One server or a cluster, shared by all its users. No call raises if it does not answer: see `attempt`.

    Raises `ConfigurationError` for an address that is not valid.
    """

    def __init__(
        self, redis_url: str, *, timeout_seconds: float = TIMEOUT_SECONDS, pause_seconds: float = PAUSE_SECONDS
    ) -> None:
        try:
            # Behind a sign in the password that is not encoded, redis-py reads the rest of it as something else.
            if "@" in "".join(urlsplit(redis_url)[2:]):
                raise ValueError
            # Those that are being closed count as well.
            self._connections = Connections(redis_url, timeout_seconds=timeout_seconds, most=2 * CALLS)
        except ValueError:
            # What it says may have a part of the password in it.
            told = describe_address("redis://USER:PASSWORD@HOST:6379, or rediss:// with TLS", redis_url)
            raise ConfigurationError(f"REDIS_URL: {told}") from None
        self._calls = asyncio.Semaphore(CALLS)
        self._pause_seconds = pause_seconds
        self._paused_until = 0.0
        self._gone = False
        self.problem = "does not answer"
        """Why the last call failed that did."""

    async def close(self) -> None:
        """Close the connections."""
        await self._connections.close()

    def register_script(self, script: str) -> AsyncScript:
        """Return a script for `run`."""
        return self._connections.server.register_script(script)

    async def run(self, script: AsyncScript, keys: Sequence[str], arguments: Sequence[str | bytes | int]) -> Any:
        """Return the result of a script on the keys of one owner; None as `attempt` does."""
        return await self.attempt(lambda client: script(keys, arguments, client))

    async def is_up(self) -> bool:
        """Return True if the server answers now."""
        return await self.attempt(lambda client: client.ping()) is not None

    async def attempt(self, call: Callable[[Redis], Awaitable[Result]]) -> Result | None:
        """Return the call's result; None if the server refuses it. None also if the server does not answer, and for a
        while after that without calling it: the outage is logged once, and its end once."""
        async with self._calls:
            if time.monotonic() < self._paused_until:
                return None
            try:
                result = await call(await self._connections.open())
            except FAILURES as error:
                if isinstance(error, ResponseError) and not isinstance(error, AWAY):
                    logger.warning("Redis refuses a call: %s", error)
                    return None
                reason = str(error) or type(error).__name__
                self.problem = f"does not answer: {reason}"
                if any(isinstance(each, AuthenticationError) for each in (error, error.__cause__, error.__context__)):
                    self.problem = f"does not accept the password or name of REDIS_URL, or misses them: {reason}"
                if not self._gone:
                    logger.warning("Redis %s; continuing without it", self.problem)
                self._gone = True
                self._paused_until = time.monotonic() + self._pause_seconds
                return None
            if self._gone:
                logger.info("Redis is back.")
                self._gone = False
            return result
