"""What is kept of conversations, and for how long."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from typing import Any, Protocol, Self

from domain.spans import parse_span

STEPS_OF = 100
"""Of how many of a thread's latest runs every step is kept, unless a policy says otherwise."""

KEEP = "keep"
"""A span without an end."""


def parse_age(text: str) -> timedelta | None:
    """The span that `text` names in hours, days or weeks; None where it is none. Not in minutes, because who says `3m`
    of what is deleted may mean months."""
    return None if text.strip().endswith("m") else parse_span(text)


@dataclass(frozen=True, slots=True)
class Cuts:
    """Before when a thread's last run must have begun for the thread to go; None where none goes."""

    default: datetime | None
    by_workspace: Mapping[str, datetime | None] = field(default_factory=dict)
    workspace_id: str | None = None
    """Look at this workspace only."""


@dataclass(frozen=True, slots=True)
class Policy:
    """For how long threads are kept after their last run began, and of how many of a thread's runs every step is."""

    older_than: timedelta | None = None
    """None: for ever."""
    by_workspace: Mapping[str, timedelta | None] = field(default_factory=dict)
    """Of workspaces that have a span of their own."""
    steps_of: int = STEPS_OF

    @classmethod
    def parse(cls, text: str) -> Self:
        """The policy that a setting such as `90d,acme=7d,legal=keep` names. Raises `ValueError`."""
        older_than: timedelta | None = None
        by_workspace: dict[str, timedelta | None] = {}
        for part in filter(None, map(str.strip, text.split(","))):
            name, separator, span = part.rpartition("=")
            read = None if span.strip() == KEEP else parse_age(span)
            if read is None and span.strip() != KEEP:
                raise ValueError(f"{part!r} names no span; give one in h, d or w, as in 90d or acme=7d, or {KEEP}")
            if separator:
                by_workspace[name.strip()] = read
            else:
                older_than = read
        return cls(older_than, by_workspace)

    def cut(self, now: datetime, workspace_id: str | None = None) -> Cuts:
        """The times that the policy's spans before `now` come to."""
        by_workspace = {name: _go_back(now, span) for name, span in self.by_workspace.items()}
        return Cuts(_go_back(now, self.older_than), by_workspace, workspace_id)


def _go_back(now: datetime, span: timedelta | None) -> datetime | None:
    try:
        return None if span is None else now - span
    except OverflowError:
        # Before there were years: nothing is as old.
        return None


@dataclass(frozen=True, slots=True)
class Pruned:
    """How many rows went, and how many bytes of values were in them as the database stored them."""

    threads: int = 0
    runs: int = 0
    tapes: int = 0
    thinned: int = 0
    """Threads of which steps of older runs went."""
    states: int = 0
    """Checkpoints."""
    values: int = 0
    """Values of checkpoints, and what steps wrote."""
    ingestions: int = 0
    """What became of files that were taken in to be read later."""
    bytes: int = 0

    def __add__(self, other: "Pruned") -> "Pruned":
        return Pruned(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


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

    async def delete_orphans(self, cuts: Cuts, *, after: str, dry_run: bool) -> tuple[Pruned, str | None]:
        """States whose thread does not exist, and runs past the cut whose thread does not."""
        ...

    async def delete_ingestions(self, cuts: Cuts, *, after: str, dry_run: bool) -> tuple[Pruned, str | None]:
        """Ingestions that have ended before the cut, all at once; not the documents."""
        ...


@dataclass(frozen=True, slots=True)
class SavedState:
    """A checkpoint as it is stored."""

    thread_id: str
    checkpoint_id: str
    metadata: Mapping[str, Any]
    values: Mapping[str, Any]
    """The state's fields; none where they cannot be read."""
    unreadable: Mapping[str, str]
    """Why a field cannot be read, by its name."""


class SavedStates(Protocol):
    """Checkpoints. Raises `DatabaseUnavailable`."""

    async def count(self, workspace_id: str | None) -> int:
        """Of the workspace, or of all."""
        ...

    def read(self, workspace_id: str | None, thread_id: str | None = None) -> AsyncIterator[SavedState]:
        """Of the workspace, or of all, and of the thread where one is named; by thread and oldest first, a few at a
        time."""
        ...
