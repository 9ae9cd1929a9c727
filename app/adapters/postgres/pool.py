"""Connections to PostgreSQL: the pool, sessions for the queries of a workspace, and translated errors."""

import asyncio
import logging
import select
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from enum import Enum
from functools import lru_cache, partial
from time import monotonic
from typing import Any, LiteralString

import orjson
import psycopg
from psycopg import AsyncConnection, AsyncCursor
from psycopg.pq import TransactionStatus
from psycopg.rows import DictRow, dict_row
from psycopg.types.json import Jsonb
from psycopg_pool import AsyncConnectionPool, PoolClosed, PoolTimeout

from app.adapters.postgres.row_security import HOW_TO_CREATE, find_role
from app.support.spans import span
from domain.errors import ConfigurationError, DatabaseFull, DatabaseUnavailable, InputError, Saturated
from domain.scope import Scope

logger = logging.getLogger("askgraph.postgres")


class Everywhere(Enum):
    """Stands for all workspaces. No workspace can have this name, because it is no string."""

    EVERYWHERE = "all workspaces"


Realm = Scope | str | Everywhere
"""The rows that a connection sees: of a workspace, of that part of it that a scope's groups may read, or all."""

ALL_WORKSPACES = Everywhere.EVERYWHERE
"""The one exception to row-level security: maintenance, which sees every row. It has a few users, which
`tests/adapters/postgres/test_row_security.py` lists: building indexes, choosing the embedding model, the
backlog of embeddings, retention, erasure's final search, costs and checks of all workspaces, and cached answers."""

_IDENTITY: LiteralString = """
    SELECT (SELECT system_identifier FROM pg_control_system()) AS system, oid
    FROM pg_database WHERE datname = current_database()
"""

WAIT_SECONDS = 5.0
"""Longest wait for the server to answer before the database counts as unavailable."""

TURN_SECONDS = 60.0
"""Longest wait for one of the pool's connections while others use them."""

QUERY_SECONDS = 10.0
"""Longest duration of a query before the database counts as unavailable."""

TRUSTED_SECONDS = 5.0
"""Time after its last use during which a connection is lent without asking the server. A connection that a restart or
an administrator has ended is found out by its socket, which then has something to read."""

ABANDONED_SECONDS = 60.0
"""Time after which the server ends an idle transaction. A process that is frozen in the middle of one would otherwise
keep its locks for as long as it is frozen."""

_SETTINGS = {
    # Without iterative scans a filtered HNSW search returns too few rows. Our statements sort what comes out of order.
    "hnsw.iterative_scan": "relaxed_order",
    "hnsw.max_scan_tuples": "40000",
    # A lexical search reads the whole list of terms that wait to be indexed, so it is kept short. `load` raises this.
    "gin_pending_list_limit": "256kB",
    # Each of our statements has an index to use. With outdated statistics after a load, and an array operator that
    # costs a hundred times its estimate, the planner would read whole tables, including other workspaces.
    "enable_seqscan": "off",
    # The planner overestimates scans of arrays and vectors, and compiling them would take longer than running them.
    "jit": "off",
    # A search has a branch that compares every chunk. The planner would start processes for it, in workspaces so large
    # that the branch is never executed.
    "max_parallel_workers_per_gather": "0",
    "idle_in_transaction_session_timeout": f"{ABANDONED_SECONDS:.0f}s",
}


# Of the session, not of the transaction: most checkouts find the connection as they need it, and cost no round trip.
_TURN_TO: LiteralString = """
    SELECT set_config('role', %(role)s, false), set_config('askgraph.workspace', %(workspace)s, false),
        set_config('askgraph.groups', %(groups)s, false)
"""


class _Connection(AsyncConnection[DictRow]):
    """A connection that records when it was last used, and which rows it sees."""

    used = 0.0
    role: str | None = None
    """The role that sees one workspace; None where the server has none for us."""
    sees: tuple[str, str] | Everywhere | None = None
    """The workspace and the groups of the rows that it sees; None if that is not known."""

    async def turn_to(self, sees: tuple[str, str] | Everywhere) -> None:
        """Show these rows from now on."""
        self.sees = None
        workspace, groups = ("", "") if isinstance(sees, Everywhere) else sees
        role = "none" if isinstance(sees, Everywhere) or self.role is None else self.role
        await self.execute(_TURN_TO, {"role": role, "workspace": workspace, "groups": groups})
        self.sees = sees


class Pool(AsyncConnectionPool[AsyncConnection[DictRow]]):
    """A pool that tells a server that does not answer from connections that are all in use.

    Borrowers wait for their turn in front of psycopg's own line, so that no more of them enter it than there are
    connections. `PoolTimeout` then means that the server does not answer, and a busy process only makes them wait.
    """

    def __init__(self, database_url: str, *, max_size: int, **options: Any) -> None:
        super().__init__(database_url, max_size=max_size, **options)
        self._turns = asyncio.Semaphore(max_size)
        self._is_away = False
        self._lent_at = 0.0
        """Monotonic time at which a connection was last lent."""
        self.waiting = 0
        """Number of borrowers that wait for their turn."""

    async def getconn(self, timeout: float | None = None) -> AsyncConnection[DictRow]:
        await self._wait_for_turn()
        try:
            while True:
                began = monotonic()
                try:
                    connection = await super().getconn(timeout)
                    break
                except PoolTimeout:
                    # A pool that still grows has fewer connections than turns. Others get them, so the server answers.
                    self._is_away = self._lent_at < began
                    if self._is_away:
                        raise
        except BaseException:
            self._turns.release()
            raise
        self._is_away, self._lent_at = False, monotonic()
        return connection

    async def putconn(self, conn: AsyncConnection[DictRow]) -> None:
        # Not in psycopg's `reset`, with which another task would take the connection back. Tables of others have
        # connections of another class.
        if isinstance(conn, _Connection):
            conn.used = monotonic()
        try:
            await super().putconn(conn)
        finally:
            self._turns.release()

    async def fetch(self, realm: Realm, query: LiteralString, *, prepare: bool = True, **params: Any) -> list[DictRow]:
        """Do what `Session.fetch` does, in a session of its own (`open_session`)."""
        async with open_session(self, realm) as session:
            return await session.fetch(query, prepare=prepare, **params)

    async def fetch_one(
        self, realm: Realm, query: LiteralString, *, prepare: bool = True, **params: Any
    ) -> DictRow | None:
        """The same for `Session.fetch_one`."""
        async with open_session(self, realm) as session:
            return await session.fetch_one(query, prepare=prepare, **params)

    async def execute(self, realm: Realm, query: LiteralString, **params: Any) -> int:
        """The same for `Session.execute`. Returns the number of rows."""
        async with open_session(self, realm) as session:
            return (await session.execute(query, **params)).rowcount

    async def _wait_for_turn(self) -> None:
        """Raise `PoolTimeout` where those whose turn it is get no connection either, and `Saturated` after
        `TURN_SECONDS`."""
        if not self._turns.locked():
            await self._turns.acquire()
            return
        self.waiting += 1
        turn = asyncio.ensure_future(self._turns.acquire())
        try:
            deadline = monotonic() + TURN_SECONDS
            while not (await asyncio.wait({turn}, timeout=WAIT_SECONDS))[0]:
                if self._is_away:
                    raise PoolTimeout("the server does not answer")
                if monotonic() > deadline:
                    raise Saturated("Every connection to the database has been in use for a minute.")
        except BaseException:
            if not turn.cancel() and not turn.cancelled():
                self._turns.release()
            raise
        finally:
            self.waiting -= 1


def write_json(value: object) -> Jsonb:
    """Return a value as a parameter of type `jsonb`, which orjson writes: what each run stores is long."""
    return Jsonb(value, orjson.dumps)


@asynccontextmanager
async def open_pool(database_url: str, *, max_size: int = 16, vectors: bool = True) -> AsyncIterator[Pool]:
    """Open a pool of connections for our queries and for LangGraph's `AsyncPostgresSaver`, which requires autocommit,
    dict rows and `prepare_threshold=0`.

    Without `vectors` the connections cannot read or write vectors, which saves importing NumPy, and one of them is
    opened at once instead of two.

    The schema must exist (`migrations.upgrade`). Each connection is checked before it is lent, so callers never see one
    that the server has dropped (docs/decisions/16-search-at-scale.md).

    Raises `DatabaseUnavailable` if the server does not answer, and `ConfigurationError` if the schema is missing.
    """
    with translated_errors():
        # A pool retries silently on any error. Our own first connection raises it.
        async with await AsyncConnection.connect(database_url, connect_timeout=int(WAIT_SECONDS)) as first:
            await _require_schema(first)
            role = await find_role(first)
    if role is None:
        logger.warning("Row-level security is not enforced. An administrator can have it enforced: %s", HOW_TO_CREATE)
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
        # The pool doubles its delay between attempts for at most this long, and starts afresh for the next caller. Kept
        # short, it reconnects soon after the server is back.
        reconnect_timeout=WAIT_SECONDS,
        check=_check,
        configure=partial(_configure_for_vectors if vectors else _configure, role=role),
        open=False,
    )
    async with pool:
        yield pool


async def find_pooler_problem(database_url: str) -> str | None:
    """Return what is wrong where a pooler gives each transaction whichever connection is free, and what to do; None
    where each session keeps its own. Raises `DatabaseUnavailable`.

    Ours keep workspace, role and prepared statements in their session, and listen: with such a pooler, tenants would be
    mixed up.
    """
    served: list[tuple[int, ...]] = []
    with translated_errors():
        async with (
            asyncio.timeout(WAIT_SECONDS),
            await AsyncConnection.connect(database_url, autocommit=True, prepare_threshold=None) as one,
            await AsyncConnection.connect(database_url, autocommit=True, prepare_threshold=None) as other,
        ):
            for _ in range(3):
                rows = [await (await each.execute("SELECT pg_backend_pid()")).fetchone() for each in (one, other)]
                served.append(tuple(row[0] for row in rows if row))
    if len(set(served)) == 1 and len(set(served[0])) == 2:
        return None
    return (
        "DATABASE_URL leads to a pooler that gives each transaction another connection, such as PgBouncer with "
        "pool_mode = transaction. Name the server itself, or the pooler's session mode (often another port)."
    )


async def _require_schema(connection: AsyncConnection[Any]) -> None:
    row = await (await connection.execute("SELECT to_regclass('chunks') IS NULL")).fetchone()
    if row is None or row[0]:
        raise ConfigurationError("The database has not been prepared: its schema is missing.")


async def _configure(connection: AsyncConnection[DictRow], *, role: str | None) -> None:
    assert isinstance(connection, _Connection)
    connection.role = role
    for name, value in _SETTINGS.items():
        await connection.execute("SELECT set_config(%s, %s, false)", (name, value))
    # Whoever does not say which workspace sees none.
    await connection.turn_to(("", "{}"))
    connection.used = monotonic()


async def _configure_for_vectors(connection: AsyncConnection[DictRow], *, role: str | None) -> None:
    # It imports NumPy, which a command that only reads rows does without.
    from pgvector.psycopg import register_vector_async  # type: ignore[import-untyped]

    await register_vector_async(connection)
    await _configure(connection, role=role)


async def _check(connection: AsyncConnection[DictRow]) -> None:
    """Raise if the connection is closed or the server does not answer."""
    assert isinstance(connection, _Connection)
    if monotonic() - connection.used < TRUSTED_SECONDS and not _is_readable(connection.fileno()):
        return
    try:
        async with asyncio.timeout(WAIT_SECONDS):
            await Pool.check_connection(connection)
    except TimeoutError as error:
        raise psycopg.OperationalError("the server does not answer") from error


def _is_readable(descriptor: int) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))


async def read_identity(pool: Pool) -> str:
    """Return an id of this database that does not depend on its address. Raises `DatabaseUnavailable`."""
    with translated_errors():
        async with pool.connection() as connection:
            row = await (await connection.execute(_IDENTITY)).fetchone()
    assert row is not None
    return f"{row['system']}-{row['oid']}"


@contextmanager
def translated_errors() -> Iterator[None]:
    """Translate psycopg's errors into ours. No other place does."""
    try:
        yield
    except (psycopg.DataError, psycopg.errors.ProgramLimitExceeded, UnicodeEncodeError) as error:
        raise InputError(
            "The database cannot store this: it has NUL characters, a name that is too long, or a number out of range."
        ) from error
    except psycopg.errors.DiskFull as error:
        raise DatabaseFull from error
    except psycopg.errors.ReadOnlySqlTransaction as error:
        raise DatabaseUnavailable(
            "The database can be read only: it is a standby, or was set so, as some providers do when its disk is full."
        ) from error
    except (
        psycopg.OperationalError,
        psycopg.InterfaceError,
        psycopg.errors.IdleInTransactionSessionTimeout,
        PoolTimeout,
        PoolClosed,
        TimeoutError,
    ) as error:
        raise DatabaseUnavailable from error


def write_array(texts: Iterable[str]) -> str:
    """Return an array literal of PostgreSQL."""
    quoted = (text.replace("\\", "\\\\").replace('"', '\\"') for text in sorted(texts))
    return "{" + ",".join(f'"{text}"' for text in quoted) + "}"


class Session:
    """A connection for the queries of one workspace. Every statement gets the workspace's id as `%(workspace_id)s`."""

    def __init__(self, connection: AsyncConnection[DictRow], realm: Realm) -> None:
        self._connection = connection
        self._sees = sees = _read_realm(realm)
        self.workspace_id = "" if isinstance(sees, Everywhere) else sees[0]

    async def fetch(self, query: LiteralString, *, prepare: bool = True, **params: Any) -> list[DictRow]:
        """Return all rows. With `prepare=False` the server plans for the given parameters, which suits statements whose
        best plan depends on them."""
        cursor = await self.execute(query, prepare=prepare, **params)
        return await cursor.fetchall()

    async def fetch_one(self, query: LiteralString, *, prepare: bool = True, **params: Any) -> DictRow | None:
        """Return the first row, or None."""
        return await (await self.execute(query, prepare=prepare, **params)).fetchone()

    async def execute(self, query: LiteralString, *, prepare: bool = True, **params: Any) -> AsyncCursor[DictRow]:
        """Run a statement and return its cursor."""
        parameters = params | {"workspace_id": self.workspace_id}
        with span(_name(query), {"db.system.name": "postgresql", "db.query.text": query}, leaf=True):
            return await self._connection.execute(query, parameters, prepare=prepare, binary=True)

    @asynccontextmanager
    async def copying(self) -> AsyncIterator[None]:
        """Allow `copy` within this context. PostgreSQL has no COPY under row-level security, so the rows are written as
        the tables' owner: the caller must see to it that they are of this workspace."""
        connection = self._connection
        assert isinstance(connection, _Connection)
        assert connection.info.transaction_status == TransactionStatus.INTRANS
        connection.sees = None
        await connection.execute("SET LOCAL ROLE NONE")
        yield
        await connection.turn_to(self._sees)

    async def copy(self, statement: LiteralString, types: list[str], rows: Iterable[tuple[Any, ...]]) -> None:
        """Insert rows with binary COPY, which is by far the fastest way."""
        async with self._connection.cursor() as cursor, cursor.copy(statement) as copy:
            copy.set_types(types)
            for row in rows:
                await copy.write_row(row)


@asynccontextmanager
async def borrow(pool: Pool, realm: Realm) -> AsyncIterator[AsyncConnection[DictRow]]:
    """Borrow a connection that sees the rows of one workspace, or of all. No other code takes one from the pool."""
    sees = _read_realm(realm)
    async with pool.connection() as connection:
        assert isinstance(connection, _Connection)
        if connection.sees != sees:
            async with asyncio.timeout(QUERY_SECONDS):
                await connection.turn_to(sees)
        yield connection


@asynccontextmanager
async def open_session(pool: Pool, realm: Realm, *, transaction: bool = False) -> AsyncIterator[Session]:
    """Borrow a connection. Each statement commits by itself, or all together with `transaction`.

    Raises `DatabaseUnavailable`, `Saturated`, and `InputError` for text that PostgreSQL cannot store, such as a NUL
    character.
    """
    with translated_errors():
        # Reads and small writes are bounded, in case the server hangs. A transaction may have much to write.
        async with (
            borrow(pool, realm) as connection,
            connection.transaction() if transaction else asyncio.timeout(QUERY_SECONDS),
        ):
            yield Session(connection, realm)


@lru_cache
def _name(query: str) -> str:
    """Return the first word of a statement, such as `SELECT`, for its span."""
    return next(words[0] for line in query.splitlines() if (words := line.split()) and not words[0].startswith("--"))


def _read_realm(realm: Realm) -> tuple[str, str] | Everywhere:
    """Return the workspace, and the groups as an array literal; empty text for the rows of all groups."""
    match realm:
        case Everywhere():
            return realm
        case Scope():
            return realm.workspace_id, "" if realm.groups is None else write_array(realm.groups)
    return realm, ""
