"""`ConversationIndex` in Redis."""

from tests.contracts.conversation_index import ConversationIndexContract


class TestRedisConversations(ConversationIndexContract):
    pass
