"""Chunks that hold a term are counted for each set of groups that documents have."""

from typing import Any

from psycopg import AsyncConnection
from psycopg.rows import tuple_row

from app.adapters.postgres.documents.frequencies import CHUNKS, number_audience

COLUMNS = f"""
-- `audience`: a number for `groups`, which may be too long for an index. The term {CHUNKS} stands for all chunks.
ALTER TABLE term_frequencies ADD audience bigint NOT NULL DEFAULT 0, ADD groups text[] NOT NULL DEFAULT '{{}}';
ALTER TABLE term_frequencies DROP CONSTRAINT term_frequencies_pkey, ADD PRIMARY KEY (workspace_id, term, audience);
-- Its policy is made anew, with the groups in it (row_security.py).
DROP POLICY IF EXISTS of_workspace ON term_frequencies;
INSERT INTO term_frequencies (workspace_id, term, chunks) SELECT workspace_id, {CHUNKS}, chunks FROM workspaces;
"""

_LIST = "SELECT DISTINCT workspace_id, groups FROM documents WHERE groups != '{}'"
_MOVE = f"""
    WITH counted AS (
        SELECT term, count(*)::int AS chunks
        FROM chunk_terms JOIN documents USING (workspace_id, document_id), unnest(terms || {CHUNKS}) AS term
        WHERE workspace_id = %(workspace_id)s AND groups = %(groups)s GROUP BY term
    ), taken AS (
        UPDATE term_frequencies AS f SET chunks = f.chunks - counted.chunks FROM counted
        WHERE f.workspace_id = %(workspace_id)s AND f.term = counted.term AND f.audience = 0
    )
    INSERT INTO term_frequencies (workspace_id, term, audience, groups, chunks)
    SELECT %(workspace_id)s, term, %(audience)s, %(groups)s, chunks FROM counted
"""


def list_statements() -> list[str]:
    return [COLUMNS]


async def move_rows(connection: AsyncConnection[Any]) -> None:
    """Take what documents of groups have from the numbers of those without."""
    cursor = connection.cursor(row_factory=tuple_row)
    for workspace_id, groups in await (await cursor.execute(_LIST)).fetchall():
        moved = {"workspace_id": workspace_id, "groups": groups, "audience": number_audience(groups)}
        await cursor.execute(_MOVE, moved)
