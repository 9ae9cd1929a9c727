"""The embedding model of the index.

Vectors of different models cannot be compared, so the model's name and dimension are stored with the index. Searches
and changes name the model of their vectors, and are refused if the index has another one. `reembedding` replaces the
model.
"""

from typing import Any, LiteralString

from psycopg import AsyncConnection
from psycopg.rows import scalar_row
from psycopg.sql import SQL, Composed, Identifier, Literal

from app.adapters.postgres.pool import ALL_WORKSPACES, Pool, Session, borrow, translated_errors
from domain.errors import ConfigurationError, EmbedderReplaced
from domain.ports.embedding import Embedder

_INLINE = 1_900
"""Largest dimension for which a vector fits into its row: a page holds 8 kB."""
_SHORT = 768
"""Largest dimension for which several rows fit into a page with their texts."""

# These statements belong to no workspace, because all workspaces share one model.
_READ: LiteralString = "SELECT name FROM embedding_model"
_SHARE: LiteralString = "SELECT name FROM embedding_model FOR SHARE"
_LOCK: LiteralString = "SELECT name FROM embedding_model FOR UPDATE"
_ADD: LiteralString = """
    INSERT INTO embedding_model (name, dimension) VALUES (%(name)s, %(dimension)s) ON CONFLICT DO NOTHING
"""
_CHANGE: LiteralString = "UPDATE embedding_model SET name = %(name)s, dimension = %(dimension)s"
_IS_FILLED: LiteralString = "SELECT EXISTS (SELECT FROM chunks)"
_DIMENSION: LiteralString = """
    SELECT atttypmod FROM pg_attribute WHERE attrelid = %s::regclass AND attname = 'embedding'
"""
_GRAPHS: LiteralString = """
    SELECT relname FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
    WHERE indrelid = %s::regclass AND starts_with(relname, %s || '_of_')
"""


def name_setting(model: str) -> str:
    """Return the value of `ASKGRAPH_EMBEDDINGS` for the model of this name."""
    if model.startswith("openai:"):
        return model
    return "multilingual" if model.startswith("multilingual-") else "local"


async def pin_embedder(pool: Pool, embedder: Embedder) -> None:
    """Record the model of the index. A different model replaces the recorded one as long as nothing is stored.

    Raises `ConfigurationError` if the stored vectors come from another model, and `DatabaseUnavailable`.
    """
    named = {"name": embedder.name, "dimension": embedder.dimension}
    wanted = (embedder.name, embedder.dimension)
    with translated_errors():
        async with borrow(pool, ALL_WORKSPACES) as connection:
            await connection.execute(_ADD, named)
            if (await read_model(connection), await read_dimension(connection, "chunks")) == wanted:
                return
            async with connection.transaction():
                # From here on nobody else stores anything.
                stored = await fetch_value(connection, _LOCK)
                if await fetch_value(connection, _IS_FILLED):
                    raise ConfigurationError(
                        f"The index was built with the embedding model {stored!r} and cannot be searched with "
                        f"{embedder.name!r}. Either set ASKGRAPH_EMBEDDINGS={name_setting(stored)}, or embed the "
                        f"documents again: askgraph reindex --embeddings {name_setting(embedder.name)}"
                    )
                await connection.execute(_CHANGE, named)
                for graph in await list_graphs(connection, "chunks"):
                    await connection.execute(SQL("DROP INDEX {}").format(Identifier(graph)))
                await connection.execute(describe_column("chunks", embedder.dimension))


async def find_problem(pool: Pool, embedder: Embedder) -> str | None:
    """Return what to do if the index has another model, or None if it has this one.

    Raises `DatabaseUnavailable`.
    """
    with translated_errors():
        async with borrow(pool, ALL_WORKSPACES) as connection:
            stored = await read_model(connection)
    return None if stored == embedder.name else _explain(stored)


async def require_embedder(session: Session, model: str | None) -> None:
    """Check the model of the index. `model` None accepts any.

    Raises `EmbedderReplaced` if it is another one.
    """
    _compare(await session.fetch_one(_READ), model)


async def hold_index(session: Session, model: str | None = None) -> None:
    """Check the model of the index, and prevent the index from being exchanged until the session's transaction ends.
    `model` None accepts any.

    Raises `EmbedderReplaced` if it is another one.
    """
    _compare(await session.fetch_one(_SHARE), model)


async def read_model(connection: AsyncConnection[Any]) -> str:
    """Return the name of the index's model."""
    return str(await fetch_value(connection, _READ))


async def read_dimension(connection: AsyncConnection[Any], table: str) -> int:
    """Return the dimension of the table's vectors."""
    return int(await fetch_value(connection, _DIMENSION, [table]))


async def list_graphs(connection: AsyncConnection[Any], table: str) -> list[str]:
    """Return the names of the table's vector indexes."""
    cursor = connection.cursor(row_factory=scalar_row)
    return await (await cursor.execute(_GRAPHS, [table, table])).fetchall()


async def fetch_value(connection: AsyncConnection[Any], query: LiteralString, params: Any = None) -> Any:
    """Return the first value of the first row."""
    cursor = connection.cursor(row_factory=scalar_row)
    return await (await cursor.execute(query, params)).fetchone()


def describe_column(table: str, dimension: int) -> Composed:
    """Return the statement that changes the dimension of the table's vectors. The table must be empty."""
    return SQL("""
        ALTER TABLE {table}
            ALTER COLUMN embedding TYPE vector({dimension}),
            ALTER COLUMN embedding SET STORAGE {storage},
            SET (toast_tuple_target = {target})
    """).format(
        table=Identifier(table),
        dimension=Literal(dimension),
        # The exact search reads every embedding of a workspace, so they stay in their rows if they fit.
        storage=SQL("PLAIN" if dimension <= _INLINE else "EXTERNAL"),
        target=Literal(4096 if dimension <= _SHORT else 8160),
    )


def _compare(row: dict[str, Any] | None, model: str | None) -> None:
    if row is not None and model is not None and row["name"] != model:
        raise EmbedderReplaced(_explain(row["name"]))


def _explain(stored: str) -> str:
    setting = name_setting(stored)
    return f"The documents have since been embedded with {stored}. Restart with ASKGRAPH_EMBEDDINGS={setting}."
