"""The workspaces of a deployment."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from domain.people.access import Caller


@dataclass(frozen=True, slots=True)
class WorkspaceSize:
    """What a caller may read in a workspace."""

    id: str
    """Its name."""
    documents: int
    """Documents in it."""
    threads: int
    """Conversations; see `domain.runs.Conversation`."""


class WorkspaceCatalog(Protocol):
    """Knows which workspaces hold something. Raises `DatabaseUnavailable`."""

    async def list(self, caller: Caller) -> Sequence[WorkspaceSize]:
        """Return the workspaces that the caller may enter and that hold something that the caller may read, by name,
        at most `MOST`."""


MOST = 1_000
"""Number of workspaces that are listed."""
