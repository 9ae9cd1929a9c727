"""Which model the stored vectors come from.

Vectors of two models cannot be compared, so the model's name and dimension live with the index: whoever searches or
stores says which model its vectors are of, and is refused where the index is another's. Going over from one to another
is `reembedding.py`.
"""

from typing import Any, LiteralString

from psycopg import AsyncConnection
from psycopg.rows import scalar_row
from psycopg.sql import SQL, Composed, Identifier, Literal

from app.adapters.postgres.pool import Pool, Session, translated_errors
from domain.errors import ConfigurationError, EmbedderReplaced
from domain.ports.embedding import Embedder

_INLINE = 1_900
"""Dimensions up to which a vector fits into its row: a page holds 8 kB."""
_SHORT = 768
"""Dimensions up to which several rows fit into a page, and the text of each need not be moved out for it."""

# These statements belong to no workspace: the vectors of all are of one model.
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
    """What `ASKGRAPH_EMBEDDINGS` has to be for the model of this name."""
    return model if model.startswith("openai:") else "local"


async def pin_embedder(pool: Pool, embedder: Embedder) -> None:
    """Remember which model fills the index, or refuse one that does not fit what is there. Another model takes over
    while nothing is stored.

    Raises `ConfigurationError` where the stored vectors come from another model, `DatabaseUnavailable`.
    """
    named = {"name": embedder.name, "dimension": embedder.dimension}
    wanted = (embedder.name, embedder.dimension)
    with translated_errors():
        async with pool.connection() as connection:
            await connection.execute(_ADD, named)
            if (await read_model(connection), await read_dimension(connection, "chunks")) == wanted:
                return
            async with connection.transaction():
                # Nobody stores anything from here on.
                stored = await fetch_value(connection, _LOCK)
                if await fetch_value(connection, _IS_FILLED):
                    raise ConfigurationError(
                        f"The index was built with the embedding model {stored!r} and cannot be searched with "
                        f"{embedder.name!r}. Go back to the former (ASKGRAPH_EMBEDDINGS={name_setting(stored)}), or "
                        f"embed the documents anew: askgraph reindex --embeddings {name_setting(embedder.name)}"
                    )
                await connection.execute(_CHANGE, named)
                for graph in await list_graphs(connection, "chunks"):
                    await connection.execute(SQL("DROP INDEX {}").format(Identifier(graph)))
                await connection.execute(describe_column("chunks", embedder.dimension))


async def find_problem(pool: Pool, embedder: Embedder) -> str | None:
    """What to do where the index is of another model; None where it is not.

    Raises `DatabaseUnavailable`.
    """
    with translated_errors():
        async with pool.connection() as connection:
            stored = await read_model(connection)
    return None if stored == embedder.name else _explain(stored)


async def require_embedder(session: Session, model: str | None) -> None:
    """Raises `EmbedderReplaced` where the index is of another model than `model`; None is any."""
    _compare(await session.fetch_one(_READ), model)


async def hold_index(session: Session, model: str | None = None) -> None:
    """Have the index of the session's transaction stay what it is until that ends: it is not exchanged meanwhile.

    Raises `EmbedderReplaced` where it is of another model than `model`; None is any.
    """
    _compare(await session.fetch_one(_SHARE), model)


async def read_model(connection: AsyncConnection[Any]) -> str:
    """The name of the model that the index is of."""
    return str(await fetch_value(connection, _READ))


async def read_dimension(connection: AsyncConnection[Any], table: str) -> int:
    """Of the vectors that the table takes."""
    return int(await fetch_value(connection, _DIMENSION, [table]))


async def list_graphs(connection: AsyncConnection[Any], table: str) -> list[str]:
    """The names of the table's vector indexes."""
    cursor = connection.cursor(row_factory=scalar_row)
    return await (await cursor.execute(_GRAPHS, [table, table])).fetchall()


async def fetch_value(connection: AsyncConnection[Any], query: LiteralString, params: Any = None) -> Any:
    """The first value of the first row."""
    cursor = connection.cursor(row_factory=scalar_row)
    return await (await cursor.execute(query, params)).fetchone()


def describe_column(table: str, dimension: int) -> Composed:
    """The statement that has the table take vectors of this dimension. It must hold none."""
    return SQL("""
        ALTER TABLE {table}
            ALTER COLUMN embedding TYPE vector({dimension}),
            ALTER COLUMN embedding SET STORAGE {storage},
            SET (toast_tuple_target = {target})
    """).format(
        table=Identifier(table),
        dimension=Literal(dimension),
        # The exact search reads every embedding of a workspace: they stay in the row where they can.
        storage=SQL("PLAIN" if dimension <= _INLINE else "EXTERNAL"),
        target=Literal(4096 if dimension <= _SHORT else 8160),
    )


def _compare(row: dict[str, Any] | None, model: str | None) -> None:
    if row is not None and model is not None and row["name"] != model:
        raise EmbedderReplaced(_explain(row["name"]))


def _explain(stored: str) -> str:
    return f"The documents were embedded anew, with {stored}. Restart with ASKGRAPH_EMBEDDINGS={name_setting(stored)}."
