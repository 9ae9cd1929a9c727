"""Saved states: reading all of them, and deleting what is not kept."""

from collections.abc import AsyncIterator
from typing import Protocol

from domain.history.retention import Cuts, Pruned, SavedState


class Retention(Protocol):
    """Deletes what is not to be kept, a batch a call, whole or not at all, and nothing of a thread in which a run is
    not over. Several processes may do so at once, and runs go on meanwhile.

    Each call begins `after` a thread's id and returns what went and the last id that it looked at, or None at the end.
    With `dry_run` nothing is deleted, and the counts are those of what would have been. Raises `DatabaseUnavailable`.
    """

    async def delete_threads(self, cuts: Cuts, *, after: str, dry_run: bool) -> tuple[Pruned, str | None]:
        """Threads past their cut: their states, runs and tapes. What their runs cost stays known."""
        ...

    async def thin_threads(self, cuts: Cuts, steps_of: int, *, after: str, dry_run: bool) -> tuple[Pruned, str | None]:
        """Of runs past the cut, and of all but the `steps_of` latest of a thread, keep the final state alone."""
        ...

    async def delete_revisions(self, cuts: Cuts, *, after: str, dry_run: bool) -> tuple[Pruned, str | None]:
        """Delete superseded revisions of documents that no recorded run cites."""
        ...

    async def delete_orphans(self, cuts: Cuts, *, after: str, dry_run: bool) -> tuple[Pruned, str | None]:
        """States whose thread does not exist, and runs past the cut whose thread does not."""
        ...

    async def delete_ingestions(self, cuts: Cuts, *, after: str, dry_run: bool) -> tuple[Pruned, str | None]:
        """Ingestions that have ended before the cut, all at once; not the documents."""
        ...


class SavedStates(Protocol):
    """Checkpoints. Raises `DatabaseUnavailable`."""

    async def count(self, workspace_id: str | None) -> int:
        """Of the workspace, or of all."""
        ...

    async def list_ids(self, workspace_id: str, thread_id: str, after: str, limit: int) -> list[str]:
        """Return the ids of the thread's checkpoints past one, oldest first."""
        ...

    def read(self, workspace_id: str | None, thread_id: str | None = None) -> AsyncIterator[SavedState]:
        """Of the workspace, or of all, and of the thread where one is named; by thread and oldest first, a few at a
        time."""
        ...
