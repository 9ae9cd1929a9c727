"""Opening the table: checks against its mapping, then connections that cannot write."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg
from pgvector.psycopg import register_vector_async  # type: ignore[import-untyped]
from psycopg import AsyncConnection
from psycopg.rows import DictRow, dict_row
from psycopg.sql import SQL, Identifier

from app.adapters.pgvectorstore.mapping import TableMapping
from app.adapters.pgvectorstore.table import Table
from app.adapters.postgres.address import read_address
from app.adapters.postgres.pool import WAIT_SECONDS, Pool
from domain.errors import ConfigurationError, DatabaseUnavailable

_SETTINGS = {
    # Without iterative scans, a filtered search of an HNSW index returns too few rows.
    "hnsw.iterative_scan": "relaxed_order",
    "hnsw.ef_search": "200",
    "jit": "off",
}


@asynccontextmanager
async def open_table(url: str, mapping: TableMapping, dimension: int) -> AsyncIterator[Table]:
    """Open the table over connections that cannot write. `dimension` is the embedder's.

    `url` may name a driver, as LangChain writes it (`postgresql+psycopg://`).

    Raises `DatabaseUnavailable`, and `ConfigurationError` if there is no such table, it lacks a column, or its vectors
    have another dimension.
    """
    address = read_address(url)
    options: dict[str, Any] = {
        "connect_timeout": int(WAIT_SECONDS),
        "application_name": "askgraph",
        "options": "-c default_transaction_read_only=on",
        "autocommit": True,
        "row_factory": dict_row,
    }
    name = f"{mapping.schema_name}.{mapping.table}"
    try:
        # A pool retries silently whatever is wrong; a connection of its own raises the error.
        async with await AsyncConnection.connect(address, **options) as connection:
            types = await _find_columns(connection, mapping)
            held = await _find_dimension(connection, mapping)
            await _configure(connection)
    except psycopg.OperationalError as error:
        raise DatabaseUnavailable(f"The database of the table {name} does not answer: {error}") from error
    except psycopg.Error as error:
        raise ConfigurationError(f"The table {name} cannot be read: {error}") from error
    if held is not None and held != dimension:
        raise ConfigurationError(
            f"The vectors of the table {name} have {held} dimensions, and the embedding model makes vectors of "
            f"{dimension}. Questions must be embedded by the model that filled the table: set "
            "ASKGRAPH_EMBEDDINGS to it."
        )
    pool = Pool(
        address,
        kwargs=options,
        min_size=1,
        max_size=8,
        timeout=WAIT_SECONDS,
        reconnect_timeout=WAIT_SECONDS,
        check=Pool.check_connection,
        configure=_configure,
        open=False,
    )
    async with pool:
        yield Table(mapping, pool, types)


async def _configure(connection: AsyncConnection[DictRow]) -> None:
    await register_vector_async(connection)
    for name, value in _SETTINGS.items():
        await connection.execute("SELECT set_config(%s, %s, false)", (name, value))


async def _find_columns(connection: AsyncConnection[DictRow], mapping: TableMapping) -> dict[str, str]:
    """Return the SQL types of the table's columns by name. Raises `ConfigurationError`."""
    cursor = await connection.execute(
        """
        SELECT attname, format_type(atttypid, NULL) AS kind FROM pg_attribute
        WHERE attrelid = to_regclass(format('%%I.%%I', %s::text, %s::text)) AND attnum > 0 AND NOT attisdropped
        """,
        (mapping.schema_name, mapping.table),
    )
    types = {row["attname"]: row["kind"] for row in await cursor.fetchall()}
    name = f"{mapping.schema_name}.{mapping.table}"
    if not types:
        raise ConfigurationError(f"There is no table {name} in the database that ASKGRAPH_PGVECTORSTORE_URL names.")
    wanted: dict[str, tuple[str, ...] | None] = {
        mapping.id: None,
        mapping.content: ("text", "character varying", "character"),
        mapping.embedding: ("vector", "halfvec"),
    }
    if mapping.words is not None:
        wanted[mapping.words] = ("tsvector",)
    for column, kinds in wanted.items():
        if column not in types:
            raise ConfigurationError(f"The table {name} has no column {column!r}; it has {', '.join(types)}.")
        if kinds and types[column] not in kinds:
            raise ConfigurationError(
                f"The column {column!r} of the table {name} is of type {types[column]}, not {kinds[0]}."
            )
    if mapping.workspace is not None and not {mapping.workspace, mapping.metadata} & types.keys():
        raise ConfigurationError(f"The table {name} has neither a column {mapping.workspace!r} nor metadata.")
    return types


async def _find_dimension(connection: AsyncConnection[DictRow], mapping: TableMapping) -> int | None:
    """Return the dimension of the first row's vector; None for an empty table."""
    query = SQL("SELECT vector_dims({}) AS held FROM {} LIMIT 1").format(
        Identifier(mapping.embedding), Identifier(mapping.schema_name, mapping.table)
    )
    row = await (await connection.execute(query)).fetchone()
    return row["held"] if row else None
