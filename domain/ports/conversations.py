"""Port: conversations that a client keeps itself, found again by what it sends."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from domain.history.client_threads import ClientThread, ThreadOrder
from domain.scope import Scope


class ConversationIndex(Protocol):
    """Remembers which thread holds a conversation."""

    async def find(self, key: str) -> str | None:
        """Return what was remembered last under the key (a digest); None where nothing is."""

    async def remember(self, key: str, place: str) -> None:
        """Remember where the conversation is: the id of its thread, and whatever else finds it."""

    async def forget(self, key: str) -> None:
        """Forget what is under the key, if anything: the conversation has gone on."""


class ClientThreads(Protocol):
    """Raises `DatabaseUnavailable`."""

    async def create(self, workspace_id: str, thread_id: str, metadata: Mapping[str, Any], caller: str) -> bool:
        """Create a thread, which counts as one in which the caller has asked. False, and nothing changed, where the
        workspace has one of this id. Raises `InputError` where the caller has made `MOST_EMPTY` and asked in none."""

    async def note(self, workspace_id: str, thread_id: str, metadata: Mapping[str, Any]) -> None:
        """Add notes; each replaces an earlier one of its name."""

    async def branch(self, workspace_id: str, thread_id: str, branch_id: str, checkpoint_id: str) -> None:
        """Note that the thread goes on in `branch_id`, which exists, from a checkpoint."""

    async def read(self, workspace_id: str, thread_id: str) -> ClientThread | None:
        """Return the thread; None where the workspace has none of this id."""

    async def search(
        self,
        asker: Scope,
        metadata: Mapping[str, Any],
        ids: Sequence[str] | None,
        busy: bool | None,
        limit: int,
        offset: int,
        order: ThreadOrder = "updated_at",
        *,
        ascending: bool = False,
    ) -> list[ClientThread]:
        """Return the threads that are open to the asker's groups, and have these notes: conversations, and those that
        clients have made. No branches. If `busy` is not None, only those that are, or are not. Those that are equal in
        `order` come by their ids."""
