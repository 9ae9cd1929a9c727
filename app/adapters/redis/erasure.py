"""Erases from Redis or Valkey: cached answers, and the events of runs."""

import asyncio
import pickle
from collections.abc import Sequence
from typing import Any, cast

from redis.asyncio import Redis
from redis.exceptions import ResponseError

from app.adapters.redis.connection import EVERY_KEY, RedisServer, list_servers
from app.adapters.redis.streams import events_key
from domain.history.erasure import Needles
from domain.ports.answers import AnswerCache

REWRITE_SECONDS = 60.0
"""Longest wait until a server has written its log anew."""


class RedisEraser:
    """Implements `CacheEraser`. Never raises: what cannot be reached is found by the search, or expires in a day."""

    def __init__(self, server: RedisServer, answers: AnswerCache) -> None:
        self._server = server
        self._answers = answers

    async def erase(self, workspace_id: str, run_ids: Sequence[str], *, dry_run: bool = False) -> int:
        async def drop(redis: Redis) -> int:
            # The server refuses to delete nothing.
            keys = [events_key(run_id) for run_id in (*run_ids, "none")]
            return int(await (redis.exists if dry_run else redis.unlink)(*keys))

        answers = await self._answers.count_stored(workspace_id)
        if not dry_run:
            await self._answers.forget(workspace_id)
        dropped = await self._server.attempt(drop) or 0
        if not dry_run:
            await self._server.attempt(_rewrite_logs)
        return answers + dropped

    async def search(self, needles: Needles) -> int | None:
        return await self._server.attempt(lambda redis: _count_keys(redis, needles))


async def _rewrite_logs(redis: Redis) -> None:
    """Have each server write its log of commands anew, without what was deleted, where it keeps one."""
    for server in list_servers(redis):
        if not (await server.execute_command("INFO", "persistence")).get("aof_enabled"):
            continue
        while True:
            try:
                await server.execute_command("BGREWRITEAOF")
                break
            except ResponseError as error:
                if "in progress" not in str(error):
                    raise
                # One is under way, and began before.
                await _wait_for_log(server)
        await _wait_for_log(server)


async def _wait_for_log(server: Any) -> None:
    async with asyncio.timeout(REWRITE_SECONDS):
        while True:
            about = await server.execute_command("INFO", "persistence")
            if not (about["aof_rewrite_in_progress"] or about["aof_rewrite_scheduled"]):
                return
            await asyncio.sleep(0.05)


async def _count_keys(redis: Redis, needles: Needles) -> int:
    """Return how many keys hold a needle, in their names or their values."""
    found = 0
    async for key in redis.scan_iter(match=EVERY_KEY, count=1000):
        # Pickled, each string of bytes stands there as it is.
        found += needles.are_in(pickle.dumps([key, await _read(redis, key)]))
    return found


async def _read(client: Redis, key: bytes) -> Any:
    redis = cast(Any, client)
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
            return await redis.smembers(key)
        case b"list":
            return await redis.lrange(key, 0, -1)
