"""Port: conversations that a client keeps itself, found again by their messages."""

from typing import Protocol


class ConversationIndex(Protocol):
    """Remembers which thread holds the conversation of a transcript."""

    async def take(self, transcript: str) -> str | None:
        """Return the id of the thread whose conversation is exactly this transcript (a digest), and forget it: the
        question that comes now changes the conversation. None where it is not known."""
        ...

    async def remember(self, transcript: str, thread_id: str) -> None:
        """Note that the thread's conversation is now this transcript."""
        ...
