"""The log of what callers changed."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

LONGEST_TARGETS = 1_000
"""Characters of an entry's targets together."""


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """A write or an administrative act, done or refused; or, with the action `refused`, requests of a minute that were
    refused because of who sent them."""

    caller: str
    """`owner`, `key:` with the key's id, `oidc:` with a token's subject, or `unknown`."""
    action: str
    """Method and path, with the names of its parts in the place of ids, or a command."""
    targets: tuple[str, ...]
    """What was changed, such as the names of added files, each whole: what is forgotten is erased here, too."""
    status: int
    """HTTP status of the outcome."""
    workspace_id: str | None = None
    address: str | None = None
    """The client's IP address; None for a command."""
    at: datetime | None = None
    """None until it is stored."""


def fit_targets(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names for which an entry has room, and how many there are more."""
    named, kept, room = list(names), list[str](), LONGEST_TARGETS
    for name in named:
        room -= len(name)
        if room < 0:
            return (*kept, f"and {len(named) - len(kept):,} more")
        kept.append(name)
    return tuple(kept)


class AuditLog(Protocol):
    """Keeps entries. Raises `DatabaseUnavailable`."""

    async def add(self, entry: AuditEntry) -> None:
        """Store an entry with the time of now."""

    async def list(self, since: datetime, limit: int) -> Sequence[AuditEntry]:
        """Return the latest entries since then, newest first."""

    async def delete_before(self, cut: datetime) -> None:
        """Delete older entries."""
