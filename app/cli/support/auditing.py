"""Records what a command of this machine's owner changes without asking a server, which would record it itself."""

from collections.abc import Iterable

from domain.people.access import OWNER
from domain.people.audit import AuditEntry, AuditLog, fit_targets


async def record_command(
    log: AuditLog, command: str, workspace_id: str, changed: Iterable[str], *, failed: bool = False
) -> None:
    """Store an entry for `askgraph COMMAND`. Raises `DatabaseUnavailable`."""
    status = 422 if failed else 200
    await log.add(AuditEntry(OWNER.name, f"askgraph {command}", fit_targets(changed), status, workspace_id))
