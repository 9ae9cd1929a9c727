"""The embedding model of the index.

Vectors of different models cannot be compared, so the model's name and dimension are stored with the index. Searches
and changes name the model of their vectors, and are refused if the index has another one. `choosing` replaces the
model.
"""

from typing import Any, LiteralString

from psycopg import AsyncConnection
from psycopg.rows import scalar_row

from app.adapters.postgres.pool import ALL_WORKSPACES, Pool, Session, borrow, translated_errors
from domain.errors import EmbedderReplaced
from domain.ports.embedding import Embedder

# These statements belong to no workspace, because all workspaces share one model.
_READ: LiteralString = "SELECT name FROM embedding_model"
_SHARE: LiteralString = "SELECT name FROM embedding_model FOR SHARE"
_DIMENSION: LiteralString = """
    SELECT atttypmod FROM pg_attribute WHERE attrelid = 'chunks'::regclass AND attname = 'embedding'
"""


def name_setting(model: str) -> str:
    """Return the value of `ASKGRAPH_EMBEDDINGS` for the model of this name."""
    # Only messages ask for it, and it imports ONNX Runtime, which commands that search nothing do without.
    from app.adapters.embeddings.onnx import OnnxEmbedder

    if model.startswith("openai:"):
        return model
    if model.startswith("multilingual-"):
        return "multilingual"
    return "local" if model == OnnxEmbedder.name else f"folder:PATH or package:MODULE of {model!r}"


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
    """Check the model of the index, and prevent it from being replaced until the session's transaction ends. `model`
    None accepts any.

    Raises `EmbedderReplaced` if it is another one.
    """
    _compare(await session.fetch_one(_SHARE), model)


async def read_model(connection: AsyncConnection[Any]) -> str:
    """Return the name of the index's model."""
    return str(await fetch_value(connection, _READ))


async def read_dimension(connection: AsyncConnection[Any]) -> int:
    """Return the dimension of the index's vectors."""
    return int(await fetch_value(connection, _DIMENSION))


async def fetch_value(connection: AsyncConnection[Any], query: LiteralString) -> Any:
    """Return the first value of the first row."""
    return await (await connection.cursor(row_factory=scalar_row).execute(query)).fetchone()


def _compare(row: dict[str, Any] | None, model: str | None) -> None:
    if row is not None and model is not None and row["name"] != model:
        raise EmbedderReplaced(_explain(row["name"]))


def _explain(stored: str) -> str:
    setting = name_setting(stored)
    return f"The documents have since been embedded with {stored}. Restart with ASKGRAPH_EMBEDDINGS={setting}."
