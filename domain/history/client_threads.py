"""Threads as clients of LangGraph's Agent Server know them: with notes of the client, and with branches inside.

There a thread holds all its branches, and goes on in the one that was made last. Here each branch is a thread of its
own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

MOST_EMPTY = 1000
"""Threads that a caller may have made in a workspace and that nobody has asked in: each may hold 20 kB of notes."""

ThreadOrder = Literal["thread_id", "status", "created_at", "updated_at"]


@dataclass(frozen=True, slots=True)
class ThreadBranch:
    """A thread in which another one goes on."""

    thread_id: str
    checkpoint_id: str
    """The checkpoint from which it went on."""


@dataclass(frozen=True, slots=True)
class ClientThread:
    """A thread, and the branches in which it goes on."""

    thread_id: str
    created_at: datetime
    updated_at: datetime
    metadata: dict[str, Any]
    """Notes of the client."""
    busy: bool
    """True while a run of the thread or of a branch is not over."""
    branches: Sequence[ThreadBranch] = ()
    """Oldest first."""

    @property
    def head(self) -> str:
        """The id of the thread in which it goes on: the last branch, or itself."""
        return self.branches[-1].thread_id if self.branches else self.thread_id

    @property
    def parts(self) -> list[str]:
        """The ids of the thread and its branches, oldest first."""
        return [self.thread_id, *(branch.thread_id for branch in self.branches)]
