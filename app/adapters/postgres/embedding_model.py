"""Which model the stored vectors come from."""

from typing import LiteralString

from app.adapters.postgres.pool import Pool, translated_errors
from domain.errors import ConfigurationError
from domain.ports import Embedder

COLUMN_DIMENSION = 384
"""Of `chunks.embedding`, fixed by the first migration."""

# The one statement that belongs to no workspace: the vectors of all share an index. Another model may take over
# while nothing is stored.
_PIN: LiteralString = """
    WITH pinned AS (
        INSERT INTO embedding_model AS m (name, dimension) VALUES (%(name)s, %(dimension)s)
        ON CONFLICT (one_row) DO UPDATE SET name = excluded.name, dimension = excluded.dimension
            WHERE NOT EXISTS (SELECT FROM chunks)
        RETURNING name
    )
    SELECT name FROM pinned
    UNION ALL
    SELECT name FROM embedding_model WHERE NOT EXISTS (SELECT FROM pinned)
"""


async def pin_embedder(pool: Pool, embedder: Embedder) -> None:
    """Remember which model fills the index, or refuse one that does not fit what is there.

    Raises `ConfigurationError` where the stored vectors come from another model or the dimension does not fit the
    column, `DatabaseUnavailable`.
    """
    if embedder.dimension != COLUMN_DIMENSION:
        raise ConfigurationError(
            f"The embedding model {embedder.name!r} makes vectors of {embedder.dimension} dimensions; "
            f"the index holds vectors of {COLUMN_DIMENSION}."
        )
    with translated_errors():
        async with pool.connection() as connection:
            cursor = await connection.execute(_PIN, {"name": embedder.name, "dimension": embedder.dimension})
            row = await cursor.fetchone()
    if row is not None and row["name"] != embedder.name:
        raise ConfigurationError(
            f"The index was built with the embedding model {row['name']!r} and cannot be searched with "
            f"{embedder.name!r}. Go back to the former, or load the documents into an empty database."
        )
