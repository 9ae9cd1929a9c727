"""Erases from Redis or Valkey: cached answers, and the events of runs."""

from collections.abc import Sequence
from typing import Any, cast

from app.adapters.redis.connection import RedisServer
from app.adapters.redis.streams import events_key
from domain.history.erasure import Needles
from domain.ports.answers import AnswerCache

_ALL = "askgraph:*"
_EVENTS = events_key("*")
_EVERY = 1_000_000_000
_NO_KEY = "askgraph:none"
"""Does not exist; the server refuses to delete nothing."""


class RedisEraser:
    """Implements `CacheEraser`. Never raises: what cannot be reached is found by the search, or expires in a day."""

    def __init__(self, server: RedisServer, answers: AnswerCache) -> None:
        self._server = server
        self._redis = server.client
        self._answers = answers

    async def erase(self, workspace_id: str, run_ids: Sequence[str], needles: Needles, *, dry_run: bool = False) -> int:
        async def drop() -> int:
            # Also runs that were shown the document and did not cite it.
            shown = {key.decode() for key in await self._find(_EVENTS, needles)}
            events = [*shown | {events_key(run_id) for run_id in run_ids}, _NO_KEY]
            return int(await (self._redis.exists if dry_run else self._redis.unlink)(*events))

        answers = await self._answers.list_stored(workspace_id, _EVERY)
        if not dry_run:
            await self._answers.forget(workspace_id)
        return len(answers) + (await self._server.attempt(drop) or 0)

    async def search(self, needles: Needles) -> int:
        return len(await self._server.attempt(lambda: self._find(_ALL, needles)) or [])

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
