"""Finished answers in Redis or Valkey; see docs/decisions/04-answer-cache.md."""

import logging
import time
import zlib
from datetime import timedelta
from typing import cast

from redis.asyncio import Redis

from app.adapters.redis.connection import RedisServer, locate
from domain.ports.answers import AnswerCounts, AnswerKey, EncodedAnswer

logger = logging.getLogger("askgraph.redis")

# KEYS: the answer, the workspace's counts. ARGV: the documents' state.
_FIND = """
local stored = redis.call('HMGET', KEYS[1], 'corpus', 'events', 'done', 'sum')
local found = stored[1] == ARGV[1]
redis.call('HINCRBY', KEYS[2], found and 'hits' or 'misses', 1)
return found and stored
"""

# Removes expired answers from the index, which itself expires with its last answer.
# KEYS: the answer, the index of answers. ARGV: digest, now, time before which answers have expired, seconds; then the
# answer's fields.
_PUT = """
redis.call('HSET', KEYS[1], unpack(ARGV, 5))
redis.call('EXPIRE', KEYS[1], ARGV[4])
redis.call('ZADD', KEYS[2], ARGV[2], ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[2], 0, ARGV[3])
redis.call('EXPIRE', KEYS[2], ARGV[4])
return 1
"""


class RedisAnswerCache:
    """Finished answers, kept for `ttl`. Never raises; see `domain.ports.answers.AnswerCache`."""

    def __init__(self, server: RedisServer, *, namespace: str = "", ttl: timedelta = timedelta(hours=24)) -> None:
        """`namespace` separates databases that share the server."""
        self._server = server
        self._namespace = namespace
        self._ttl = ttl
        self._find = server.register_script(_FIND)
        self._put = server.register_script(_PUT)

    async def put(self, key: AnswerKey, answer: EncodedAnswer) -> None:
        now = time.time()
        arguments: list[str | bytes | int] = [key.digest, str(now), str(now - self._ttl.total_seconds())]
        arguments += [int(self._ttl.total_seconds()), "corpus", key.corpus, "events", answer.events]
        arguments += ["done", answer.done, "sum", _sum_up(answer)]
        keys = [self._locate(key.workspace_id, *names) for names in (("answer", key.digest), ("answers",))]
        await self._server.run(self._put, keys, arguments)

    async def forget(self, workspace_id: str) -> None:
        async def drop(redis: Redis) -> None:
            index = self._locate(workspace_id, "answers")
            digests = cast(list[bytes], await redis.zrange(index, 0, -1))
            await redis.unlink(index, *(self._locate(workspace_id, "answer", digest.decode()) for digest in digests))

        await self._server.attempt(drop)

    async def find(self, key: AnswerKey) -> EncodedAnswer | None:
        keys = [self._locate(key.workspace_id, *names) for names in (("answer", key.digest), ("counts",))]
        found = await self._server.run(self._find, keys, [key.corpus])
        # One that cannot be read is answered again, and replaced.
        return _read_answer(found) if found else None

    async def count(self, workspace_id: str) -> AnswerCounts:
        key, names = self._locate(workspace_id, "counts"), ["hits", "misses"]
        counts = await self._server.attempt(lambda redis: redis.hmget(key, names)) or [None, None]
        return AnswerCounts(*(int(count or 0) for count in counts))

    async def count_stored(self, workspace_id: str) -> int:
        key, oldest = self._locate(workspace_id, "answers"), time.time() - self._ttl.total_seconds()
        return await self._server.attempt(lambda redis: redis.zcount(key, oldest, "+inf")) or 0

    def _locate(self, workspace_id: str, *names: str) -> str:
        return locate(workspace_id, self._namespace, *names)


def _read_answer(stored: list[bytes | None]) -> EncodedAnswer | None:
    """Decode the fields. Returns None where they are not what was stored, through a fault or by another hand."""
    _, events, done, checksum = stored
    if not (events and done):
        return None
    answer = EncodedAnswer(events, done)
    if checksum != _sum_up(answer).encode():
        logger.warning("A cached answer fails its checksum, and is ignored.")
        return None
    return answer


def _sum_up(answer: EncodedAnswer) -> str:
    return str(zlib.crc32(answer.done, zlib.crc32(answer.events)))
