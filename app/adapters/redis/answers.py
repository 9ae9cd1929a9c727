"""Finished answers in Redis or Valkey."""

import logging
import time
from datetime import timedelta
from typing import Any, cast

import orjson

from app.adapters.redis.connection import RedisServer

logger = logging.getLogger(__name__)


class RedisAnswerCache:
    """Finished answers, kept for `ttl`. Never raises; see `domain.ports.AnswerCache`."""

    def __init__(self, server: RedisServer, *, ttl: timedelta = timedelta(hours=24)) -> None:
        self._server = server
        self._redis = server.client
        self._ttl = ttl

    async def get(self, key: str) -> list[dict[str, Any]] | None:
        stored = await self._server.attempt(lambda: self._redis.get(_answer_key(key)))
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

        await self._server.attempt(store)

    async def forget(self, workspace_id: str) -> None:
        async def drop() -> None:
            keys = cast(list[bytes], await self._redis.zrange(_index_key(workspace_id), 0, -1))
            await self._redis.unlink(_index_key(workspace_id), *(_answer_key(key.decode()) for key in keys))

        await self._server.attempt(drop)

    async def is_up(self) -> bool:
        return await self._server.is_up()


def _read_events(stored: bytes | str) -> list[dict[str, Any]]:
    events = orjson.loads(stored)
    if not (isinstance(events, list) and events and all(isinstance(event, dict) for event in events)):
        raise ValueError("not a list of events")
    return cast(list[dict[str, Any]], events)


def _answer_key(key: str) -> str:
    return f"askgraph:answer:{key}"


def _index_key(workspace_id: str) -> str:
    return f"askgraph:answers:{workspace_id}"
