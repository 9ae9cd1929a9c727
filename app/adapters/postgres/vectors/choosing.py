"""Choosing the embedding model of the index.

Vectors of different models cannot be compared. So choosing another model drops all embeddings in one short transaction,
and lists all chunks in the backlog: workers embed them again, and words find them meanwhile. Nobody changes a document
during the transaction, because every change holds a shared lock on the row that names the model
(`embedding_model.hold_index`).
"""

from typing import Any, LiteralString

from psycopg import AsyncConnection, errors
from psycopg.sql import SQL, Composed, Literal

from app.adapters.postgres.documents.chunks import ROUND
from app.adapters.postgres.pool import ALL_WORKSPACES, Pool, borrow, translated_errors
from app.adapters.postgres.vectors.backlog import ASK_FOR_WORKER
from app.adapters.postgres.vectors.embedding_model import fetch_value, name_setting, read_dimension, read_model
from domain.errors import ConfigurationError, DatabaseUnavailable
from domain.ports.embedding import Embedder

LOCK_TIMEOUT = "3s"
"""Longest wait for readers of the table. Other readers wait behind it."""

_INLINE = 1_900
"""Largest dimension for which a vector fits into its row: a page holds 8 kB."""
_SHORT = 768
"""Largest dimension for which several rows fit into a page with their texts."""

_ADD: LiteralString = """
    INSERT INTO embedding_model (name, dimension) VALUES (%(name)s, %(dimension)s) ON CONFLICT DO NOTHING
"""
_LOCK: LiteralString = "SELECT name FROM embedding_model FOR UPDATE"
# Erasing what is forgotten deletes chunks without asking for the model. Searches go on.
_STOP_DELETIONS: LiteralString = "LOCK TABLE chunks IN SHARE MODE"
_CHANGE: LiteralString = "UPDATE embedding_model SET name = %(name)s, dimension = %(dimension)s"
_IS_FILLED: LiteralString = "SELECT EXISTS (SELECT FROM chunks)"

# An operator may have shared `chunks` out to partitions: it then has no storage parameters of its own.
_IS_SHARED_OUT: LiteralString = "SELECT relkind = 'p' FROM pg_class WHERE oid = 'chunks'::regclass"

_LIST_ALL: LiteralString = """
    INSERT INTO chunks_to_embed (chunk_id, workspace_id, document_id, round)
    SELECT id, workspace_id, document_id, chunk_index / %(round)s
    FROM chunks JOIN chunk_places USING (workspace_id) WHERE chunk_id = id
    ON CONFLICT DO NOTHING
"""
# Invalidates the cached answers.
_ADVANCE: LiteralString = "UPDATE workspaces SET generation = generation + 1, corpus = gen_random_uuid()"


async def choose_embedder(pool: Pool, embedder: Embedder, *, again: bool = False) -> bool:
    """Make `embedder` the model of the index, and return False if it is that already. Where documents are stored, this
    is done only with `again`: they are embedded again.

    Raises `ConfigurationError` if the stored vectors come from another model and are to stay, or if another object of
    the database depends on them, and `DatabaseUnavailable`, also if others read the table for too long.
    """
    named = {"name": embedder.name, "dimension": embedder.dimension}
    with translated_errors():
        async with borrow(pool, ALL_WORKSPACES) as connection:
            await connection.execute(_ADD, named)
            if await _is_of(connection, embedder):
                return False
            try:
                async with connection.transaction():
                    stored = await fetch_value(connection, _LOCK)
                    # Another process may have been quicker.
                    if await _is_of(connection, embedder):
                        return False
                    if not again and await fetch_value(connection, _IS_FILLED):
                        raise ConfigurationError(
                            f"The index was built with the embedding model {stored!r} and cannot be searched with "
                            f"{embedder.name!r}. Either set ASKGRAPH_EMBEDDINGS={name_setting(stored)}, or embed all "
                            "documents again with this one: askgraph ingest --embed-again"
                        )
                    await connection.execute("SELECT set_config('lock_timeout', %s, true)", [LOCK_TIMEOUT])
                    await connection.execute(_STOP_DELETIONS)
                    await connection.execute(_CHANGE, named)
                    await connection.execute(_LIST_ALL, {"round": ROUND})
                    await connection.execute(ASK_FOR_WORKER)
                    await connection.execute(_ADVANCE)
                    await connection.execute(_renew_column(embedder.dimension))
                    if not await fetch_value(connection, _IS_SHARED_OUT):
                        await connection.execute(_set_target(embedder.dimension))
            except (errors.LockNotAvailable, errors.DeadlockDetected) as error:
                raise DatabaseUnavailable(
                    "Something holds the table of chunks for a long time, such as a backup or the building of an "
                    "index. Run the same command again afterwards; nothing has changed."
                ) from error
            except errors.DependentObjectsStillExist as error:
                raise ConfigurationError(
                    f"An object depends on the embeddings: {error.diag.message_detail} Drop that object, run the same "
                    "command again, then create the object again."
                ) from error
    return True


async def _is_of(connection: AsyncConnection[Any], embedder: Embedder) -> bool:
    found = (await read_model(connection), await read_dimension(connection))
    return found == (embedder.name, embedder.dimension)


def _renew_column(dimension: int) -> Composed:
    """Return the statement that drops all embeddings, with the indexes on them, at once: no row is read or written. A
    row gives the space back when it is embedded again."""
    return SQL("""
        ALTER TABLE chunks
            DROP COLUMN embedding,
            ADD COLUMN embedding vector({dimension}),
            ALTER COLUMN embedding SET STORAGE {storage}
    """).format(
        dimension=Literal(dimension),
        # The exact search reads every embedding of a workspace, so they stay in their rows if they fit.
        storage=SQL("PLAIN" if dimension <= _INLINE else "EXTERNAL"),
    )


def _set_target(dimension: int) -> Composed:
    return SQL("ALTER TABLE chunks SET (toast_tuple_target = {})").format(
        Literal(4096 if dimension <= _SHORT else 8160)
    )
