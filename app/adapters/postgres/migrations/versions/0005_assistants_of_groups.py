"""Assistants belong to groups, and are found by their name as `fold_name` compares it."""

from collections import defaultdict
from typing import Any

from psycopg import AsyncConnection
from psycopg.rows import tuple_row

from domain.people.names import fold_name

COLUMNS = """
-- `groups`: the same in all versions. `key`: what the name is compared by.
ALTER TABLE assistants ADD groups text[] NOT NULL DEFAULT '{}', ADD key text;
DROP INDEX assistants_by_name;
-- Its policy is made anew, with the groups in it (row_security.py).
DROP POLICY IF EXISTS of_workspace ON assistants;
"""

_LIST = """
    SELECT workspace_id, assistant_id, version, current, name FROM assistants
    ORDER BY current DESC, updated_at
"""
_SET = """
    UPDATE assistants SET name = %s, key = %s WHERE (workspace_id, assistant_id, version) = (%s, %s, %s)
"""
_INDEX = """
ALTER TABLE assistants ALTER key SET NOT NULL;
CREATE UNIQUE INDEX assistants_by_name ON assistants (workspace_id, key) WHERE current;
"""


def list_statements() -> list[str]:
    return [COLUMNS]


async def move_rows(connection: AsyncConnection[Any]) -> None:
    """Note the keys. Of assistants whose names are the same by now, the later ones get a number."""
    cursor = connection.cursor(row_factory=tuple_row)
    taken: dict[str, set[str]] = defaultdict(set)
    for workspace_id, assistant_id, version, current, name in await (await cursor.execute(_LIST)).fetchall():
        number, wanted = 1, name
        while current and fold_name(name) in taken[workspace_id]:
            number += 1
            name = f"{wanted[:50]} ({number})"
        if current:
            taken[workspace_id].add(fold_name(name))
        await cursor.execute(_SET, [name, fold_name(name), workspace_id, assistant_id, version])
    await cursor.execute(_INDEX)
