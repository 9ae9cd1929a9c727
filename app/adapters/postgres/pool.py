"""Connections: how they are opened, configured and lent out, and what their failures are called."""

import asyncio
import select
import struct
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from time import monotonic
from typing import Any, LiteralString

import psycopg
from psycopg import AsyncConnection, AsyncCursor
from psycopg.adapt import Dumper
from psycopg.pq import Format
from psycopg.rows import DictRow, dict_row
from psycopg_pool import AsyncConnectionPool, PoolClosed, PoolTimeout

from domain.errors import ConfigurationError, DatabaseUnavailable, InputError

_IDENTITY: LiteralString = """
    SELECT (SELECT system_identifier FROM pg_control_system()) AS system, oid
    FROM pg_database WHERE datname = current_database()
"""

Pool = AsyncConnectionPool[AsyncConnection[DictRow]]

WAIT_SECONDS = 5.0
"""How long a caller waits for a connection, and a connection for the server, before the database counts as gone."""

QUERY_SECONDS = 10.0
"""How long a query may take before the database counts as gone."""

TRUSTED_SECONDS = 5.0
"""For how long after its last use a connection is lent without asking the server, unless the server has said
something: what ends a connection, be it a restart or an administrator, is in its socket."""

ABANDONED_SECONDS = 60.0
"""How long a transaction may wait for its process before the server ends it: one that was frozen in the middle would
keep from others what it has locked for as long as it is away."""

_SETTINGS = {
    # Without iterative scans a filtered HNSW search returns too few rows; relaxed order is put right by sorting.
    "hnsw.iterative_scan": "relaxed_order",
    "hnsw.ef_search": "300",
    "hnsw.max_scan_tuples": "40000",
    # A search by words reads what waits to be indexed from end to end, so it is kept short; `load` knows better.
    "gin_pending_list_limit": "256kB",
    # Every statement of ours has an index to use. Statistics that lag behind a load, and an operator on arrays that
    # costs a hundred times what the planner thinks, make it read whole tables, other workspaces included.
    "enable_seqscan": "off",
    # The planner overestimates scans over arrays and vectors, and compiling them takes longer than running them.
    "jit": "off",
    "idle_in_transaction_session_timeout": f"{ABANDONED_SECONDS:.0f}s",
}


class _Connection(AsyncConnection[DictRow]):
    """A connection that knows when it was last used."""

    used = 0.0


class Integers(list[int]):
    """Many integers as one parameter, `int4[]`."""


class _IntegersDumper(Dumper):
    """Writes an array in one piece. psycopg hands each element to a dumper of its own, which takes ten times as
    long."""

    format = Format.BINARY
    oid = 1007

    def dump(self, obj: Any) -> bytes:
        count = len(obj)
        pairs = [4] * (2 * count)  # each element is its size in bytes and its value
        pairs[1::2] = obj
        return struct.pack(f">{5 + 2 * count}i", 1, 0, 23, count, 1, *pairs)


@asynccontextmanager
async def open_pool(database_url: str, *, max_size: int = 16, vectors: bool = True) -> AsyncIterator[Pool]:
    """A pool of connections for our queries and for LangGraph's `AsyncPostgresSaver`, which requires autocommit,
    dict rows and `prepare_threshold=0`.

    Without `vectors` the connections cannot read or write vectors, which saves importing NumPy, and one of them is
    opened at once instead of two.

    The schema must exist (`migrations.upgrade`). Each connection is checked before it is lent, so that one the
    server has dropped is replaced and no caller sees it (docs/decisions/16-search-at-scale.md).

    Raises `DatabaseUnavailable` where the server does not answer, `ConfigurationError` where the schema is missing.
    """
    with translated_errors():
        # A pool retries in silence whatever is wrong; a first connection of our own says what it is.
        async with await AsyncConnection.connect(database_url, connect_timeout=int(WAIT_SECONDS)) as first:
            await _require_schema(first)
    pool = Pool(
        database_url,
        connection_class=_Connection,
        kwargs={
            "autocommit": True,
            "row_factory": dict_row,
            "prepare_threshold": 0,
            "connect_timeout": int(WAIT_SECONDS),
            "application_name": "askgraph",
        },
        min_size=2 if vectors else 1,
        max_size=max_size,
        timeout=WAIT_SECONDS,
        # The pool doubles its delay between attempts for as long as this: kept short, it is back soon after the
        # server is, because a caller that finds no connection starts afresh.
        reconnect_timeout=WAIT_SECONDS,
        check=_check,
        reset=_note_use,
        configure=_configure_for_vectors if vectors else _configure,
        open=False,
    )
    async with pool:
        yield pool


async def _require_schema(connection: AsyncConnection[Any]) -> None:
    row = await (await connection.execute("SELECT to_regclass('chunks') IS NULL")).fetchone()
    if row is None or row[0]:
        raise ConfigurationError("The database has not been prepared: it lacks the schema.")


async def _configure(connection: AsyncConnection[DictRow]) -> None:
    connection.adapters.register_dumper(Integers, _IntegersDumper)
    for name, value in _SETTINGS.items():
        await connection.execute("SELECT set_config(%s, %s, false)", (name, value))
    await _note_use(connection)


async def _configure_for_vectors(connection: AsyncConnection[DictRow]) -> None:
    # It imports NumPy, which a command that only reads rows does without.
    from pgvector.psycopg import register_vector_async  # type: ignore[import-untyped]

    await register_vector_async(connection)
    await _configure(connection)


async def _check(connection: AsyncConnection[DictRow]) -> None:
    """Refuse a connection that is gone, or whose server does not answer."""
    assert isinstance(connection, _Connection)
    if monotonic() - connection.used < TRUSTED_SECONDS and not _is_readable(connection.fileno()):
        return
    try:
        async with asyncio.timeout(WAIT_SECONDS):
            await Pool.check_connection(connection)
    except TimeoutError as error:
        raise psycopg.OperationalError("the server does not answer") from error


async def _note_use(connection: AsyncConnection[DictRow]) -> None:
    assert isinstance(connection, _Connection)
    connection.used = monotonic()


def _is_readable(descriptor: int) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))


async def ping(pool: Pool) -> None:
    """Return once the server has answered.

    Raises `DatabaseUnavailable` where it does not.
    """
    with translated_errors():
        async with asyncio.timeout(WAIT_SECONDS), pool.connection() as connection:
            await connection.execute("SELECT 1")


async def read_identity(pool: Pool) -> str:
    """What tells this database from any other, whatever address it is reached at.

    Raises `DatabaseUnavailable`.
    """
    with translated_errors():
        async with pool.connection() as connection:
            row = await (await connection.execute(_IDENTITY)).fetchone()
    assert row is not None
    return f"{row['system']}-{row['oid']}"


@contextmanager
def translated_errors() -> Iterator[None]:
    """The one place where psycopg's errors become ours."""
    try:
        yield
    except (psycopg.DataError, psycopg.errors.ProgramLimitExceeded, UnicodeEncodeError) as error:
        raise InputError(f"The database cannot hold this text: {error}") from error
    except (
        psycopg.OperationalError,
        psycopg.InterfaceError,
        psycopg.errors.IdleInTransactionSessionTimeout,
        PoolTimeout,
        PoolClosed,
        TimeoutError,
    ) as error:
        raise DatabaseUnavailable from error


class Session:
    """A connection for the queries of one workspace. Every statement of ours passes here and finds the workspace's
    id as `%(workspace_id)s`."""

    def __init__(self, connection: AsyncConnection[DictRow], workspace_id: str) -> None:
        self._connection = connection
        self.workspace_id = workspace_id

    async def fetch(self, query: LiteralString, *, prepare: bool = True, **params: Any) -> list[DictRow]:
        """All rows. With `prepare=False` the server plans for these very parameters, for statements whose best plan
        depends on them."""
        cursor = await self.execute(query, prepare=prepare, **params)
        return await cursor.fetchall()

    async def fetch_one(self, query: LiteralString, **params: Any) -> DictRow | None:
        """The first row, if there is one."""
        return await (await self.execute(query, **params)).fetchone()

    async def execute(self, query: LiteralString, *, prepare: bool = True, **params: Any) -> AsyncCursor[DictRow]:
        """Run a statement; the cursor holds what it returned."""
        parameters = params | {"workspace_id": self.workspace_id}
        return await self._connection.execute(query, parameters, prepare=prepare, binary=True)

    async def copy(self, statement: LiteralString, types: list[str], rows: Iterable[tuple[Any, ...]]) -> None:
        """Load rows with binary COPY, by far the fastest way in."""
        async with self._connection.cursor() as cursor, cursor.copy(statement) as copy:
            copy.set_types(types)
            for row in rows:
                await copy.write_row(row)


@asynccontextmanager
async def open_session(pool: Pool, workspace_id: str, *, transaction: bool = False) -> AsyncIterator[Session]:
    """Borrow a connection; each statement commits by itself, or all together where `transaction` says so.

    Raises `DatabaseUnavailable`, and `InputError` for text that PostgreSQL cannot hold, such as a NUL character.
    """
    with translated_errors():
        # A change may have much to write; whatever only reads or adds a row is bounded, for a server that hangs.
        async with asyncio.timeout(None if transaction else QUERY_SECONDS), pool.connection() as connection:
            if transaction:
                async with connection.transaction():
                    yield Session(connection, workspace_id)
            else:
                yield Session(connection, workspace_id)
