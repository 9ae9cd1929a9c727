"""What texts share with others (`domain.text.sketch`): those that documents hold, held, and held when deleted."""

from typing import Any

from psycopg import AsyncConnection
from psycopg.rows import tuple_row

from domain.text.sketch import sketch

TABLES = ("documents", "document_revisions", "document_marks")

# The condition is that of the policies, which do not apply to the view's owner. An earlier text has the groups that it
# had, or those of its document.
VIEW = """
CREATE VIEW sketches_of_workspace AS SELECT * FROM (
    SELECT workspace_id, document_id, groups, sketch, true AS is_current FROM documents
    UNION ALL
    SELECT revision.workspace_id, revision.document_id, coalesce(nullif(own.groups, '{}'), document.groups),
        revision.sketch, false
    FROM document_revisions AS revision JOIN documents AS document
        ON (document.workspace_id, document.document_id) = (revision.workspace_id, revision.document_id)
        LEFT JOIN revision_groups AS own ON (own.workspace_id, own.document_id, own.revision)
            = (revision.workspace_id, revision.document_id, revision.revision)
    UNION ALL
    SELECT workspace_id, document_id, groups, sketch, false FROM document_marks AS mark
    WHERE NOT EXISTS (
        SELECT FROM documents
        WHERE documents.workspace_id = mark.workspace_id AND documents.document_id = mark.document_id
    )
) AS held WHERE (workspace_id = (SELECT current_setting('askgraph.workspace', true))) IS TRUE
"""


def list_statements() -> list[str]:
    return [
        *(f"ALTER TABLE {table} ADD sketch bigint[] NOT NULL DEFAULT '{{}}'" for table in TABLES),
        VIEW,
    ]


async def move_rows(connection: AsyncConnection[Any]) -> None:
    """Sketch the texts that are there, one at a time."""
    cursor = connection.cursor(row_factory=tuple_row)
    for table in TABLES[:2]:
        listed = await cursor.execute(f"SELECT workspace_id, document_id, revision FROM {table}")
        for key in await listed.fetchall():
            at = f"{table} WHERE (workspace_id, document_id, revision) = (%s, %s, %s)"
            [(text,)] = await (await cursor.execute(f"SELECT text FROM {at}", key)).fetchall()
            changed = at.replace(" WHERE", " SET sketch = %s WHERE")
            await cursor.execute(f"UPDATE {changed}", [sketch(text), *key])
    for table in TABLES:
        await cursor.execute(f"CREATE INDEX {table}_by_sketch ON {table} USING gin (workspace_id, sketch)")
