"""Conversations found again by their transcripts, in Redis. Without it, each question begins a thread of its own."""

from datetime import timedelta

from app.adapters.redis.connection import PREFIX, RedisServer

_TTL = timedelta(days=30)


class RedisConversations:
    """A `ConversationIndex`. `namespace` identifies the database that holds the threads."""

    def __init__(self, redis: RedisServer, namespace: str) -> None:
        self._redis = redis
        self._namespace = namespace

    async def find(self, key: str) -> str | None:
        """Return the place that is remembered for the key."""

        async def get() -> bytes | str | None:
            return await self._redis.client.get(self._locate(key))

        place = await self._redis.attempt(get)
        return place.decode() if isinstance(place, bytes) else place

    async def remember(self, key: str, place: str) -> None:
        """Remember the place for a while."""

        async def put() -> bool:
            return bool(await self._redis.client.set(self._locate(key), place, ex=_TTL))

        await self._redis.attempt(put)

    async def forget(self, key: str) -> None:
        """Forget the place."""

        async def delete() -> int:
            return int(await self._redis.client.delete(self._locate(key)))

        await self._redis.attempt(delete)

    def _locate(self, key: str) -> str:
        return f"{PREFIX}:{self._namespace}:conversation:{key}"
