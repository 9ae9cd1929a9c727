"""Records what a command of this machine's owner changes without asking a server, which would record it itself."""

from collections.abc import Iterable

from domain.people.access import OWNER
from domain.people.audit import LONGEST_TARGET, AuditEntry, AuditLog


async def record_command(
    log: AuditLog, command: str, workspace_id: str, changed: Iterable[str], *, failed: bool = False
) -> None:
    """Store an entry for `askgraph COMMAND`. Raises `DatabaseUnavailable`."""
    target = ", ".join(changed)[:LONGEST_TARGET]
    await log.add(AuditEntry(OWNER.name, f"askgraph {command}", target, 422 if failed else 200, workspace_id))
