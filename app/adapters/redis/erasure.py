"""Erases from Redis or Valkey: cached answers, and the events of runs."""

import asyncio
from collections.abc import Sequence
from typing import Any, cast

from redis.exceptions import ResponseError

from app.adapters.redis.connection import NO_KEY, PREFIX, RedisServer
from app.adapters.redis.streams import events_key
from domain.history.erasure import Needles
from domain.ports.answers import AnswerCache

REWRITE_SECONDS = 60.0
"""Longest wait until the server has written its log anew."""

_ALL = f"{PREFIX}:*"


class RedisEraser:
    """Implements `CacheEraser`. Never raises: what cannot be reached is found by the search, or expires in a day."""

    def __init__(self, server: RedisServer, answers: AnswerCache) -> None:
        self._server = server
        self._redis = server.client
        self._answers = answers

    async def erase(self, workspace_id: str, run_ids: Sequence[str], *, dry_run: bool = False) -> int:
        async def drop() -> int:
            # The server refuses to delete nothing.
            events = [*(events_key(run_id) for run_id in run_ids), NO_KEY]
            return int(await (self._redis.exists if dry_run else self._redis.unlink)(*events))

        answers = await self._answers.count_stored(workspace_id)
        if not dry_run:
            await self._answers.forget(workspace_id)
        dropped = await self._server.attempt(drop) or 0
        if not dry_run:
            await self._server.attempt(self._rewrite_log)
        return answers + dropped

    async def search(self, needles: Needles) -> int | None:
        found = await self._server.attempt(lambda: self._find(_ALL, needles))
        return None if found is None else len(found)

    async def _rewrite_log(self) -> None:
        """Have the server write its log of commands anew, without what was deleted, where it keeps one."""
        if not (await self._redis.info("persistence")).get("aof_enabled"):
            return
        try:
            await self._redis.bgrewriteaof()
        except ResponseError:
            # One is under way, and began before.
            await self._wait_for_log()
            await self._redis.bgrewriteaof()
        await self._wait_for_log()

    async def _wait_for_log(self) -> None:
        async with asyncio.timeout(REWRITE_SECONDS):
            while True:
                about = await self._redis.info("persistence")
                if not (about["aof_rewrite_in_progress"] or about["aof_rewrite_scheduled"]):
                    return
                await asyncio.sleep(0.05)

    async def _find(self, pattern: str, needles: Needles) -> list[bytes]:
        """Return the keys that hold a needle, in their names or their values."""
        wanted = [needle.encode() for needle in needles.texts]
        found = []
        async for key in self._redis.scan_iter(match=pattern, count=1000):
            held = b"\n".join([key, *_flatten(await self._read(key))])
            if any(needle in held for needle in wanted):
                found.append(key)
        return found

    async def _read(self, key: bytes) -> Any:
        redis = cast(Any, self._redis)
        match await redis.type(key):
            case b"string":
                return await redis.get(key)
            case b"hash":
                return await redis.hgetall(key)
            case b"zset":
                return await redis.zrange(key, 0, -1)
            case b"stream":
                return await redis.xrange(key)
            case b"set":
                return list(await redis.smembers(key))
            case b"list":
                return await redis.lrange(key, 0, -1)
        return None


def _flatten(value: Any) -> list[bytes]:
    match value:
        case bytes():
            return [value]
        case dict():
            return [part for pair in value.items() for each in pair for part in _flatten(each)]
        case list() | tuple():
            return [part for each in value for part in _flatten(each)]
    return []
