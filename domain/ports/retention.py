"""Saved states: reading all of them, and deleting what is not kept."""

from collections.abc import AsyncIterator
from typing import Protocol

from domain.history.retention import Cuts, Policy, Pruned, SavedState


class Retention(Protocol):
    """Deletes what is not to be kept, and reports it. Several processes may do so at once, and runs go on meanwhile.

    With `dry_run` nothing is deleted, and the counts are those of what would have been. Raises `DatabaseUnavailable`.
    """

    async def read_policy(self) -> Policy | None:
        """Return the policy that was chosen; None where none was."""

    async def keep_policy(self, policy: Policy) -> None:
        """Keep a policy for all processes, in place of the one before."""

    async def delete_threads(self, cuts: Cuts, *, after: str, dry_run: bool) -> tuple[Pruned, str | None]:
        """Delete a batch of the threads past their cut in which no run goes on: their states, runs and tapes. What
        their runs cost stays known. Begins `after` a thread, and returns the last that it looked at; None at the
        end."""

    async def delete_steps(self, cuts: Cuts, *, dry_run: bool) -> Pruned:
        """Delete states and tapes past the cut for steps, but not a thread's last state."""

    async def delete_revisions(self, cuts: Cuts, *, dry_run: bool) -> Pruned:
        """Delete superseded revisions of documents that no recorded run cites."""

    async def delete_orphans(self, cuts: Cuts, *, dry_run: bool) -> Pruned:
        """Delete states whose thread does not exist, and runs past the cut whose thread does not."""

    async def delete_ingestions(self, cuts: Cuts, *, dry_run: bool) -> Pruned:
        """Delete ingestions that have ended before the cut; not the documents."""


class SavedStates(Protocol):
    """Checkpoints. Raises `DatabaseUnavailable`."""

    async def count(self, workspace_id: str | None) -> int:
        """Of the workspace, or of all."""

    async def list_ids(self, workspace_id: str, thread_id: str, after: str, limit: int) -> list[str]:
        """Return the ids of the thread's checkpoints past one, oldest first."""

    def read(self, workspace_id: str | None, thread_id: str | None = None) -> AsyncIterator[SavedState]:
        """Of the workspace, or of all, and of the thread where one is named; by thread and oldest first, a few at a
        time."""
