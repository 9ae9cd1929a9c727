"""The contract of `ConversationIndex`. An adapter's tests inherit from the class and provide the fixture `index`."""

from domain.ports.conversations import ConversationIndex


class ConversationIndexContract:
    async def test_a_conversation_is_found_until_it_is_forgotten(self, index: ConversationIndex) -> None:
        assert await index.find("a") is None
        await index.remember("a", "thread-1")
        await index.remember("a", "thread-2")
        await index.remember("b", "thread-3")
        assert [await index.find("a") for _ in range(2)] == ["thread-2", "thread-2"]
        await index.forget("a")
        await index.forget("a")
        assert (await index.find("a"), await index.find("b")) == (None, "thread-3")
