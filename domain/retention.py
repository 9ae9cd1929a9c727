"""What is kept of conversations, and for how long."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from typing import Any, Self

from domain.text.durations import parse_span

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
