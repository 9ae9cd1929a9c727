"""Finished answers in Redis or Valkey."""

import logging
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, TypeVar, cast

import orjson
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError

from domain.errors import ConfigurationError

logger = logging.getLogger(__name__)

TIMEOUT_SECONDS = 0.25
"""For connecting and for each reply: what a dead cache may cost an answer, once."""
PAUSE_SECONDS = 5.0
"""After a failure the cache is left alone for this long, so that it costs the next answers nothing."""

Result = TypeVar("Result")


class RedisAnswerCache:
    """Finished answers, kept for `ttl`. Never raises; see `domain.ports.AnswerCache`."""

    def __init__(
        self, redis_url: str, *, ttl: timedelta = timedelta(hours=24), pause_seconds: float = PAUSE_SECONDS
    ) -> None:
        try:
            self._redis = self._connect(redis_url)
        except ValueError as error:
            raise ConfigurationError(f"REDIS_URL is not an address of a Redis server: {error}") from error
        self._ttl = ttl
        self._pause_seconds = pause_seconds
        self._paused_until = 0.0
        self._gone = False

    @staticmethod
    def _connect(redis_url: str) -> Redis:
        return Redis.from_url(
            redis_url,
            socket_timeout=TIMEOUT_SECONDS,
            socket_connect_timeout=TIMEOUT_SECONDS,
            # A connection that the server has closed meanwhile is opened again once, without waiting. A server that
            # did not answer in time is not asked twice.
            retry=Retry(NoBackoff(), 1, supported_errors=(RedisConnectionError,)),
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._redis.aclose()

    async def get(self, key: str) -> list[dict[str, Any]] | None:
        stored = await self._try(lambda: self._redis.get(_answer_key(key)))
        if stored is None:
            return None
        try:
            return _read_events(stored)
        except ValueError:
            logger.warning("A stored answer cannot be read; answering anew.")
            return None

    async def put(self, workspace_id: str, key: str, events: list[dict[str, Any]]) -> None:
        async def store() -> None:
            async with self._redis.pipeline(transaction=True) as pipeline:
                pipeline.set(_answer_key(key), orjson.dumps(events), ex=self._ttl)
                pipeline.zadd(_index_key(workspace_id), {key: time.time()})
                # Keys whose answers have expired leave the index here; it expires itself with its last answer.
                pipeline.zremrangebyscore(_index_key(workspace_id), 0, time.time() - self._ttl.total_seconds())
                pipeline.expire(_index_key(workspace_id), self._ttl)
                await pipeline.execute()

        await self._try(store)

    async def forget(self, workspace_id: str) -> None:
        async def drop() -> None:
            keys = cast(list[bytes], await self._redis.zrange(_index_key(workspace_id), 0, -1))
            await self._redis.unlink(_index_key(workspace_id), *(_answer_key(key.decode()) for key in keys))

        await self._try(drop)

    async def is_up(self) -> bool:
        async def ask() -> bool:
            return bool(await self._redis.ping())

        return await self._try(ask) is True

    async def _try(self, call: Callable[[], Awaitable[Result]]) -> Result | None:
        if time.monotonic() < self._paused_until:
            return None
        try:
            result = await call()
        except (RedisError, OSError) as error:
            if not self._gone:
                logger.warning("The answer cache does not answer; going on without it: %s", error)
            self._gone = True
            self._paused_until = time.monotonic() + self._pause_seconds
            return None
        if self._gone:
            logger.info("The answer cache is back.")
            self._gone = False
        return result


def _read_events(stored: bytes | str) -> list[dict[str, Any]]:
    events = orjson.loads(stored)
    if not (isinstance(events, list) and events and all(isinstance(event, dict) for event in events)):
        raise ValueError("not a list of events")
    return cast(list[dict[str, Any]], events)


def _answer_key(key: str) -> str:
    return f"askgraph:answer:{key}"


def _index_key(workspace_id: str) -> str:
    return f"askgraph:answers:{workspace_id}"
