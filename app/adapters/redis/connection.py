"""Connections to Redis or Valkey, one server or a cluster, and working without it while it does not answer."""

import asyncio
import hashlib
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from redis.asyncio import BlockingConnectionPool, Connection, ConnectionPool, Redis, SSLConnection
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import (
    AskError,
    ClusterDownError,
    MovedError,
    NoScriptError,
    ReadOnlyError,
    RedisError,
    ResponseError,
    TryAgainError,
)
from redis.exceptions import ConnectionError as RedisConnectionError

from app.support.cancelling import end_tasks
from domain.errors import ConfigurationError

logger = logging.getLogger("askgraph.redis")

TIMEOUT_SECONDS = 0.5
"""Time limit for connecting and for each reply: what a dead server may cost one answer."""
PAUSE_SECONDS = 5.0
"""Seconds without a call after a failure, so that a dead server costs the next answers nothing."""
CONNECTIONS = 16
"""Most connections. A burst waits for one of them instead of opening hundreds at the same time."""
BATCH = 64
"""Most calls sent together, so that the first does not wait long for the last."""

PREFIX = "{askgraph}"
"""Begins every key. A cluster keeps all keys with the same word in braces on one of its servers, so that a script may
use any of them together."""
NO_KEY = f"{PREFIX}:none"
"""A key that does not exist."""

_ELSEWHERE = (AskError, ClusterDownError, ReadOnlyError, TryAgainError)

Result = TypeVar("Result")
Pool = TypeVar("Pool", bound=ConnectionPool)


class _ToOwner(Connection):
    """Leads to that server of a cluster which holds our keys, also after they have moved. A server that belongs to no
    cluster holds them itself."""

    def __init__(self, *, moved_to: list[tuple[str, int]], **options: Any) -> None:
        super().__init__(**options)
        self._address = self.host, self.port
        self._moved_to = moved_to
        """Where the connections of a pool were led last, if anywhere: the server that the address names may be gone."""

    async def _connect(self) -> None:
        if self._moved_to:
            [(self.host, self.port)] = self._moved_to
            try:
                await super()._connect()  # type: ignore[no-untyped-call]
            except BaseException as error:
                self._moved_to.clear()
                if not isinstance(error, OSError):
                    raise
            else:
                return
        self.host, self.port = self._address
        await super()._connect()  # type: ignore[no-untyped-call]

    async def on_connect_check_health(self, check_health: bool = True) -> None:
        try:
            await self._find_owner(check_health)
        except BaseException:
            self._moved_to.clear()
            raise

    async def _find_owner(self, check_health: bool) -> None:
        await super().on_connect_check_health(check_health)
        try:
            await self._ask_for_owner()
        except MovedError as moved:
            await self.disconnect(nowait=True)
            self.host, self.port = moved.host or self.host, moved.port
            try:
                await super()._connect()  # type: ignore[no-untyped-call]
            except OSError as error:
                raise RedisConnectionError(f"{self.host}:{self.port}, which holds our keys: {error}") from error
            await super().on_connect_check_health(check_health)
            await self._ask_for_owner()
            self._moved_to[:] = [(self.host, self.port)]

    async def _ask_for_owner(self) -> None:
        await self.send_command("EXISTS", NO_KEY, check_health=False)
        await super().read_response()

    async def read_response(self, *args: Any, **options: Any) -> Any:
        try:
            return await super().read_response(*args, **options)
        except _ELSEWHERE as error:
            # The next connection finds the new owner.
            await self.disconnect(nowait=True)
            raise RedisConnectionError(str(error)) from error


class _ToOwnerOverTls(_ToOwner, SSLConnection):
    pass


def open_pool(kind: type[Pool], redis_url: str, **options: Any) -> Pool:
    """Return a pool of connections to the server that holds our keys. Raises `ValueError` for an address that is not
    valid."""
    pool = kind.from_url(redis_url, **options)
    if issubclass(pool.connection_class, Connection):
        is_encrypted = issubclass(pool.connection_class, SSLConnection)
        pool.connection_class = _ToOwnerOverTls if is_encrypted else _ToOwner
        pool.connection_kwargs["moved_to"] = []
    return pool


class RedisServer:
    """One server, or that of a cluster which holds our keys, shared by all its users. No call raises if it does not
    answer: see `attempt`.

    Raises `ConfigurationError` for an address that is not valid.
    """

    def __init__(
        self, redis_url: str, *, timeout_seconds: float = TIMEOUT_SECONDS, pause_seconds: float = PAUSE_SECONDS
    ) -> None:
        try:
            pool = open_pool(
                BlockingConnectionPool,
                redis_url,
                max_connections=CONNECTIONS,
                # Seconds that a caller waits for a free connection, while earlier callers use them.
                timeout=4 * timeout_seconds,
                socket_timeout=timeout_seconds,
                socket_connect_timeout=timeout_seconds,
                # A connection that the server has closed is reopened once, without waiting. A server that did not
                # answer in time is not asked twice.
                retry=Retry(NoBackoff(), 1, supported_errors=(RedisConnectionError,)),
            )
        except ValueError as error:
            raise ConfigurationError(f"REDIS_URL is not an address of a Redis server: {error}") from error
        self.client = Redis.from_pool(pool)
        self._timeout_seconds = timeout_seconds
        self._lines: list[ScriptLine] = []
        self._pause_seconds = pause_seconds
        self._paused_until = 0.0
        self._gone = False

    async def close(self) -> None:
        """Close the connections."""
        for line in self._lines:
            await line.close()
        await self.client.aclose()

    def open_line(self, script: str) -> "ScriptLine":
        """Return a connection for calls of this script alone. It connects on first use and is closed together with the
        others."""
        line = ScriptLine(self, script, self._timeout_seconds)
        self._lines.append(line)
        return line

    async def is_up(self) -> bool:
        """Return True if the server answers now."""

        async def ask() -> bool:
            return bool(await self.client.ping())

        return await self.attempt(ask) is True

    async def attempt(self, call: Callable[[], Awaitable[Result]]) -> Result | None:
        """Return the call's result; None if the server does not answer, and for a while after that without calling it.

        The outage is logged once, and its end once.
        """
        if time.monotonic() < self._paused_until:
            return None
        try:
            result = await call()
        except (RedisError, OSError) as error:
            if not self._gone:
                logger.warning("Redis does not answer; continuing without it: %s", str(error) or type(error).__name__)
            self._gone = True
            self._paused_until = time.monotonic() + self._pause_seconds
            return None
        if self._gone:
            logger.info("Redis is back.")
            self._gone = False
        return result


class ScriptLine:
    """Runs one script over its own connection. Calls that arrive while others are in flight are sent together.

    A batch costs little more than one call, and one call costs less than half of one through the client, which takes a
    connection from its pool, arms two timers and wraps each call in a retry.
    """

    def __init__(self, server: RedisServer, script: str, timeout_seconds: float) -> None:
        pool = server.client.connection_pool
        # One time limit per batch instead of two per call.
        self._connection = pool.connection_class(**pool.connection_kwargs | {"socket_timeout": None})
        self._server = server
        self._script = script
        self._digest = hashlib.sha1(script.encode(), usedforsecurity=False).hexdigest()
        self._timeout_seconds = timeout_seconds
        self._waiting: list[tuple[tuple[Any, ...], asyncio.Future[Any]]] = []
        self._sending: asyncio.Task[None] | None = None

    async def call(self, keys: Sequence[str], arguments: Sequence[str | bytes | int]) -> Any:
        """Return the script's result; None if the server does not answer or refuses."""
        reply = asyncio.get_running_loop().create_future()
        self._waiting.append((("EVALSHA", self._digest, len(keys), *keys, *arguments), reply))
        if self._sending is None or self._sending.done():
            self._sending = asyncio.create_task(self._send())
        return await reply

    async def close(self) -> None:
        """Drop the connection and cancel the calls that wait for a reply."""
        if self._sending is not None:
            await end_tasks(self._sending)
        for _, reply in self._waiting:
            reply.cancel()
        await self._connection.disconnect()

    async def _send(self) -> None:
        """Send batches until no call waits."""
        while self._waiting:
            batch, self._waiting = self._waiting[:BATCH], self._waiting[BATCH:]
            commands = [command for command, _ in batch]
            replies: list[Any] | None = None
            try:
                replies = await self._server.attempt(lambda commands=commands: self._exchange(commands))  # type: ignore[misc]
            finally:
                for (_, reply), result in zip(batch, replies or [None] * len(batch), strict=True):
                    if not reply.done():
                        reply.set_result(result)

    async def _exchange(self, commands: list[tuple[Any, ...]]) -> list[Any]:
        try:
            return await self._try_to_exchange(commands)
        except (RedisConnectionError, NoScriptError):
            # The server has closed the connection or lost its scripts.
            return await self._try_to_exchange(commands)

    async def _try_to_exchange(self, commands: list[tuple[Any, ...]]) -> list[Any]:
        connection = self._connection
        try:
            async with asyncio.timeout(self._timeout_seconds):
                if not connection.is_connected:
                    await connection.connect()  # type: ignore[no-untyped-call]
                    await connection.send_command("SCRIPT LOAD", self._script)
                    await connection.read_response()
                await connection.send_packed_command(connection.pack_commands(commands))
                return [await self._read_reply() for _ in commands]
        except BaseException:
            # Unread replies would be taken for those of the next calls.
            await connection.disconnect(nowait=True)
            raise

    async def _read_reply(self) -> Any:
        try:
            return await self._connection.read_response()
        except NoScriptError:
            raise
        except ResponseError as error:
            logger.warning("Redis refuses a call: %s", error)
            return None
