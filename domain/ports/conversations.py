"""Port: conversations that a client keeps itself, found again by what it sends."""

from typing import Protocol


class ConversationIndex(Protocol):
    """Remembers which thread holds a conversation."""

    async def find(self, key: str) -> str | None:
        """Return what was remembered last under the key (a digest); None where nothing is."""
        ...

    async def remember(self, key: str, place: str) -> None:
        """Remember where the conversation is: the id of its thread, and whatever else finds it."""
        ...

    async def forget(self, key: str) -> None:
        """Forget what is under the key, if anything: the conversation has gone on."""
        ...
