"""Conversations found again by their transcripts, in Redis. Without it, each question begins a thread of its own."""

from datetime import timedelta

from app.adapters.redis.connection import RedisServer


class RedisConversations:
    """A `ConversationIndex`. `namespace` identifies the database that holds the threads."""

    def __init__(self, redis: RedisServer, namespace: str, ttl: timedelta = timedelta(days=30)) -> None:
        self._redis = redis
        self._namespace = namespace
        self._ttl = ttl

    async def take(self, transcript: str) -> str | None:
        """Return the thread of this transcript, once."""

        async def get() -> bytes | str | None:
            return await self._redis.client.getdel(self._key(transcript))

        thread_id = await self._redis.attempt(get)
        return thread_id.decode() if isinstance(thread_id, bytes) else thread_id

    async def remember(self, transcript: str, thread_id: str) -> None:
        """Note the thread of this transcript."""

        async def put() -> bool:
            return bool(await self._redis.client.set(self._key(transcript), thread_id, ex=self._ttl))

        await self._redis.attempt(put)

    def _key(self, transcript: str) -> str:
        return f"askgraph:{self._namespace}:conversation:{transcript}"
