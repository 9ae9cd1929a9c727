"""Retention of conversations."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from typing import Any, Self

from domain.text.durations import parse_span

KEEP = "keep"
"""The word for an unlimited span."""


def parse_age(text: str) -> timedelta | None:
    """Return the span that `text` names in hours, days or weeks; None where it is none. Minutes are refused: `3m` might
    be meant as months, and what is deleted is gone."""
    return None if text.strip().endswith("m") else parse_span(text)


@dataclass(frozen=True, slots=True)
class Cuts:
    """Cut-off times: a thread whose last run began before is deleted. None: no thread is."""

    default: datetime | None
    by_workspace: Mapping[str, datetime | None] = field(default_factory=dict)
    workspace_id: str | None = None
    """The only workspace to look at; None: all."""
    steps: datetime | None = None
    """Steps and tapes of runs before it are deleted, but a thread keeps its last state. None: all are kept."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The time that threads are kept after their last run began, and the time that steps and tapes of runs are."""

    older_than: timedelta | None = None
    """None: for ever."""
    by_workspace: Mapping[str, timedelta | None] = field(default_factory=dict)
    """Spans of workspaces that have their own."""
    steps_for: timedelta | None = None
    """None: as long as their thread is kept."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a setting such as `90d,acme=7d,legal=keep`. Raises `ValueError`."""
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

    @classmethod
    def of_days(cls, days: float | None, by_workspace: Mapping[str, float | None], steps_days: float | None) -> Self:
        """Make a policy of spans in days; None: for ever."""
        own = {name: _read_days(span) for name, span in by_workspace.items()}
        return cls(_read_days(days), own, _read_days(steps_days))

    def as_days(self) -> dict[str, Any]:
        """Return what `of_days` takes."""
        return {
            "days": _count_days(self.older_than),
            "by_workspace": {name: _count_days(span) for name, span in self.by_workspace.items()},
            "steps_days": _count_days(self.steps_for),
        }

    def cut(self, now: datetime, workspace_id: str | None = None) -> Cuts:
        """Return the cut-off times of the policy at `now`."""
        by_workspace = {name: _go_back(now, span) for name, span in self.by_workspace.items()}
        return Cuts(_go_back(now, self.older_than), by_workspace, workspace_id, _go_back(now, self.steps_for))


def _read_days(days: float | None) -> timedelta | None:
    return None if days is None else timedelta(days=days)


def _count_days(span: timedelta | None) -> float | None:
    return None if span is None else span / timedelta(days=1)


def _go_back(now: datetime, span: timedelta | None) -> datetime | None:
    try:
        return None if span is None else now - span
    except OverflowError:
        # The cut-off would lie before year 1: nothing is that old.
        return None


@dataclass(frozen=True, slots=True)
class Pruned:
    """Numbers of deleted rows, and the stored size of their values in bytes."""

    threads: int = 0
    runs: int = 0
    tapes: int = 0
    states: int = 0
    """Checkpoints."""
    ingestions: int = 0
    """Reports on files that were accepted to be read later."""
    revisions: int = 0
    """Superseded revisions of documents."""
    bytes: int = 0

    def __add__(self, other: "Pruned") -> "Pruned":
        return Pruned(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


@dataclass(frozen=True, slots=True)
class SavedState:
    """A stored checkpoint."""

    thread_id: str
    checkpoint_id: str
    metadata: Mapping[str, Any]
    values: Mapping[str, Any]
    """Empty where it cannot be read."""
    unreadable: str
    """Why it cannot be read; empty where it can be."""
