"""The workspaces that hold documents or conversations, and how many."""

from collections.abc import Sequence
from typing import LiteralString

from app.adapters.postgres.conversations.threads import OPEN
from app.adapters.postgres.pool import ALL_WORKSPACES, Pool
from app.adapters.postgres.row_security import READABLE
from domain.people.access import Caller
from domain.ports.workspaces import MOST, WorkspaceSize

# Looks once into the index for each workspace with conversations; DISTINCT would read every thread.
_LIST: LiteralString = f"""
    WITH RECURSIVE talking AS (
        (SELECT workspace_id FROM threads WHERE asked <> '' ORDER BY workspace_id LIMIT 1)
        UNION ALL
        SELECT (
            SELECT thread.workspace_id FROM threads AS thread
            WHERE thread.workspace_id > talking.workspace_id AND asked <> '' ORDER BY workspace_id LIMIT 1
        )
        FROM talking WHERE talking.workspace_id IS NOT NULL
    ),
    named AS (SELECT workspace_id FROM workspaces UNION SELECT workspace_id FROM talking)
    SELECT * FROM (
        SELECT workspace_id AS id,
            (
                SELECT count(*) FROM documents
                WHERE documents.workspace_id = named.workspace_id
                    AND {READABLE}
            ) AS documents,
            (
                SELECT count(*) FROM threads AS thread
                WHERE thread.workspace_id = named.workspace_id AND asked <> ''
                    AND {OPEN}
            ) AS threads
        FROM named WHERE %(names)s::text[] IS NULL OR workspace_id = ANY(%(names)s)
    ) AS counted
    WHERE documents + threads > 0 ORDER BY id LIMIT %(most)s
"""


class PostgresWorkspaceCatalog:
    """Implements `WorkspaceCatalog` in PostgreSQL."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def list(self, caller: Caller) -> Sequence[WorkspaceSize]:
        names = None if caller.workspaces is None else sorted(caller.workspaces)
        groups = None if caller.groups is None else sorted(caller.groups)
        rows = await self._pool.fetch(ALL_WORKSPACES, _LIST, prepare=False, names=names, groups=groups, most=MOST)
        return [WorkspaceSize(**row) for row in rows]
