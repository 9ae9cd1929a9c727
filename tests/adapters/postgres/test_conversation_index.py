"""`ConversationIndex` in Redis."""

import pytest

from app.adapters.redis.connection import RedisServer
from app.adapters.redis.conversations import RedisConversations
from tests.contracts.conversation_index import ConversationIndexContract


@pytest.fixture
async def index(redis_server: RedisServer) -> RedisConversations:
    return RedisConversations(redis_server, "test")


class TestRedisConversations(ConversationIndexContract):
    pass
