"""The log of what callers changed."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

LONGEST_TARGET = 1_000
"""Characters of an entry's target; names of files are cut there."""


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """A write or an administrative act, done or refused; or, with the action `refused`, requests of a minute that were
    refused because of who sent them."""

    caller: str
    """`owner`, `key:` with the key's id, `oidc:` with a token's subject, or `unknown`."""
    action: str
    """Method and path, or a command."""
    target: str
    """What was changed, such as the names of added files."""
    status: int
    """HTTP status of the outcome."""
    workspace_id: str | None = None
    address: str | None = None
    """The client's IP address; None for a command."""
    at: datetime | None = None
    """None until it is stored."""


class AuditLog(Protocol):
    """Keeps entries. Raises `DatabaseUnavailable`."""

    async def add(self, entry: AuditEntry) -> None:
        """Store an entry with the time of now."""
        ...

    async def list(self, since: datetime, limit: int) -> Sequence[AuditEntry]:
        """Return the latest entries since then, newest first."""
        ...

    async def delete_before(self, cut: datetime) -> None:
        """Delete older entries."""
        ...
