"""Conversations found again by their transcripts, in Redis. Without it, each question begins a thread of its own."""

from datetime import timedelta

from app.adapters.redis.connection import RedisServer, locate

_TTL = timedelta(days=30)


class RedisConversations:
    """A `ConversationIndex`. `namespace` identifies the database that holds the threads."""

    def __init__(self, redis: RedisServer, namespace: str) -> None:
        self._redis = redis
        self._namespace = namespace

    async def find(self, key: str) -> str | None:
        """Return the place that is remembered for the key."""
        place = await self._redis.attempt(lambda client: client.get(self._locate(key)))
        return place.decode() if isinstance(place, bytes) else place

    async def remember(self, key: str, place: str) -> None:
        """Remember the place for a while."""
        await self._redis.attempt(lambda client: client.set(self._locate(key), place, ex=_TTL))

    async def forget(self, key: str) -> None:
        """Forget the place."""
        await self._redis.attempt(lambda client: client.delete(self._locate(key)))

    def _locate(self, key: str) -> str:
        return locate(key, self._namespace, "conversation")
