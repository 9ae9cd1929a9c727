"""Row-level security: queries that forget the workspace, on purpose, see nothing of another one."""

import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import pytest_asyncio
from psycopg import AsyncConnection
from psycopg.rows import scalar_row
from psycopg.sql import SQL, Identifier

from app.adapters.embedded import Servers, open_servers, postgres
from app.adapters.postgres.documents.store import PostgresDocumentStore
from app.adapters.postgres.pool import ALL_WORKSPACES, Everywhere, Pool, borrow, open_pool, open_session
from app.adapters.postgres.row_security import (
    OF_WORKSPACE,
    OWNERS,
    SERVING_ROLE,
    SHARED,
    VIEWS,
    find_role,
    secure,
)
from domain.errors import InputError
from tests.contracts.corpus import store

POSTGRES = Path(__file__).parents[3] / "app/adapters/postgres"

FILLED: dict[str, Any] = {
    "jsonb": "{}",
    "text": "x",
    "uuid": "00000000-0000-0000-0000-000000000001",
    "bytea": b"x",
    "integer": 1,
    "bigint": 1,
    "real": 1,
    "double precision": 1,
    "boolean": False,
    "timestamp with time zone": "2026-01-01",
    "ARRAY": "{}",
}
"""A value of each type, for the columns that need one."""


async def fetch_values(connection: AsyncConnection[Any], query: Any, *params: Any) -> list[Any]:
    cursor = connection.cursor(row_factory=scalar_row)
    return await (await cursor.execute(query, params)).fetchall()


@pytest_asyncio.fixture
async def secured(pool: Pool) -> AsyncIterator[Pool]:
    """A pool on a database with every table, and a row of the workspace `theirs` in each that has a workspace."""
    async with borrow(pool, ALL_WORKSPACES) as connection:
        await secure(connection)
        for name in OF_WORKSPACE:
            await fill(connection, name)
    yield pool


async def fill(connection: AsyncConnection[Any], name: str) -> None:
    """Insert a row of the workspace `theirs` and the thread `t`, which needs no other row."""
    for key in await fetch_values(
        connection, "SELECT conname FROM pg_constraint WHERE contype = 'f' AND conrelid = %s::regclass", name
    ):
        await connection.execute(SQL("ALTER TABLE {} DROP CONSTRAINT {}").format(Identifier(name), Identifier(key)))
    columns = await (
        await connection.execute(
            """
            SELECT column_name AS name, CASE udt_name WHEN 'vector' THEN udt_name ELSE data_type END AS kind, udt_name
            FROM information_schema.columns
            WHERE table_name = %s AND is_nullable = 'NO' AND column_default IS NULL AND is_identity = 'NO'
            """,
            [name],
        )
    ).fetchall()
    values = {
        column["name"]: FILLED.get(column["kind"], "{1:1}/1000000000" if column["udt_name"] == "sparsevec" else "[1]")
        for column in columns
    }
    values |= {"workspace_id": "theirs"} | ({"thread_id": "t"} if name == "threads" else {})
    names = SQL(", ").join(map(Identifier, values))
    row = SQL(", ").join(SQL("%s") for _ in values)
    await connection.execute(
        SQL("INSERT INTO {} ({}) VALUES ({}) ON CONFLICT DO NOTHING").format(Identifier(name), names, row),
        list(values.values()),
    )


async def count(pool: Pool, name: str, workspace_id: str | Everywhere) -> int:
    async with borrow(pool, workspace_id) as connection:
        [rows] = await fetch_values(connection, SQL("SELECT count(*) FROM {}").format(Identifier(name)))
    return int(rows)


async def test_a_query_without_a_workspace_sees_nothing_of_another(secured: Pool) -> None:
    for name in (*OF_WORKSPACE, *VIEWS):
        seen = [await count(secured, name, workspace_id) for workspace_id in ("mine", "", "theirs")]
        assert (seen[:2], seen[2] > 0) == ([0, 0], True), name
    assert await count(secured, "chunks", ALL_WORKSPACES) == 1


async def test_a_statement_without_a_workspace_changes_nothing_of_another(secured: Pool) -> None:
    async with borrow(secured, "mine") as connection:
        for name in OF_WORKSPACE:
            update = SQL("UPDATE {} SET workspace_id = workspace_id").format(Identifier(name))
            assert (await connection.execute(update)).rowcount == 0, name
            assert (await connection.execute(SQL("DELETE FROM {}").format(Identifier(name)))).rowcount == 0, name
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"):
            await connection.execute("INSERT INTO threads (thread_id, workspace_id) VALUES ('new', 'theirs')")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            await connection.execute("ALTER TABLE chunks DISABLE ROW LEVEL SECURITY")


async def test_every_table_has_a_policy_or_is_shared(secured: Pool) -> None:
    """A new table belongs into one of the lists of `row_security`."""
    async with borrow(secured, ALL_WORKSPACES) as connection:
        tables = await fetch_values(
            connection,
            "SELECT relname::text FROM pg_class WHERE relkind IN ('r', 'p') AND relnamespace = 'public'::regnamespace",
        )
        protected = await fetch_values(
            connection,
            "SELECT relname::text FROM pg_class WHERE relrowsecurity AND EXISTS "
            "(SELECT FROM pg_policy WHERE polrelid = pg_class.oid)",
        )
    assert sorted(tables) == sorted([*OF_WORKSPACE, *SHARED, *OWNERS])
    assert sorted(protected) == sorted(OF_WORKSPACE)


async def test_what_is_unique_or_referred_to_is_so_within_a_workspace(secured: Pool) -> None:
    """Otherwise whoever chooses an id takes it from all, and learns that somebody has it."""
    columns = """
        ARRAY(SELECT attname::text FROM pg_attribute WHERE attrelid = relation AND attnum = ANY (keys)) AS columns
    """
    async with borrow(secured, ALL_WORKSPACES) as connection:
        cursor = await connection.execute(
            f"""
            SELECT relation::regclass::text AS owner, {columns} FROM (
                SELECT indrelid AS relation, indkey::int2[] AS keys FROM pg_index WHERE indisunique
            ) AS unique_index WHERE relation::regclass::text = ANY (%(tables)s)
            UNION ALL
            SELECT relation::regclass::text, {columns} FROM (
                SELECT conrelid AS relation, conkey AS keys FROM pg_constraint WHERE contype = 'f'
            ) AS reference WHERE relation::regclass::text = ANY (%(tables)s)
            """,
            {"tables": list(OF_WORKSPACE)},
        )
        found = await cursor.fetchall()
    assert len(found) >= len(OF_WORKSPACE)
    assert [row for row in found if "workspace_id" not in row["columns"]] == []


def test_all_workspaces_are_seen_in_few_places() -> None:
    users = {str(file.relative_to(POSTGRES)) for file in POSTGRES.rglob("*.py") if "ALL_WORKSPACES" in file.read_text()}
    assert users == {
        "audit.py",  # belongs to no workspace
        "keys.py",  # may open several
        "checkpoints/saved_states.py",  # checks the states of all workspaces, where asked to
        "conversations/feedback.py",  # lists that of all workspaces, where asked to
        "conversations/run_log.py",  # sums costs
        "documents/store.py",  # measures what a key has stored, in whichever workspace
        "documents/originals.py",  # erases files that no document needs
        "erasure/search.py",  # looks everywhere for what was erased
        "erasure/store.py",  # asks which sentences others said too
        "pool.py",
        "queue/housekeeping.py",  # all share one clock
        "queue/ingestions.py",  # takes what is next, whosever it is
        "queue/runs.py",  # the same
        "retention.py",
        "row_security.py",
        "workspaces.py",  # counts what is in each
        "vectors/backlog.py",  # finds whose turn it is
        "vectors/choosing.py",  # all share one model
        "vectors/embedding_model.py",
    }


def test_every_connection_is_borrowed_for_a_workspace() -> None:
    taking = {
        str(file.relative_to(POSTGRES)): number
        for file in POSTGRES.rglob("*.py")
        if (number := file.read_text().count("pool.connection()"))
    }
    # `read_identity` reads no table; `borrow` turns to the workspace.
    assert taking == {"pool.py": 2}


async def test_a_session_turns_to_its_workspace(database_url: str) -> None:
    async with open_pool(database_url, max_size=2) as pool:
        documents = PostgresDocumentStore(pool)
        for workspace_id in ("a", "b"):
            await store(documents, workspace_id, f"{workspace_id}.md", ["Some words"])
        for workspace_id in ("a", "b", "b", "a"):
            async with open_session(pool, workspace_id) as session:
                rows = await session.fetch("SELECT source FROM documents")
            assert [row["source"] for row in rows] == [f"{workspace_id}.md"]
        # A failed statement takes the turn back with it.
        with pytest.raises(InputError):
            async with open_session(pool, "b") as session:
                await session.fetch("SELECT 1 / 0")
        async with open_session(pool, "b") as session:
            assert [row["source"] for row in await session.fetch("SELECT source FROM documents")] == ["b.md"]


async def test_a_server_without_the_role_serves_without_row_level_security(
    database_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As where DATABASE_URL's role may create none."""
    monkeypatch.setattr("app.adapters.postgres.row_security.SERVING_ROLE", "nobody_made_this")
    async with await AsyncConnection.connect(database_url, autocommit=True) as connection:
        await secure(connection)
        assert await find_role(connection) is None
    with caplog.at_level(logging.WARNING):
        async with open_pool(database_url) as pool:
            await store(PostgresDocumentStore(pool), "a", "a.md", ["Some words"])
            assert await count(pool, "documents", "b") == 1
    assert "Row-level security is not enforced" in caplog.text


@pytest.mark.parametrize("granted", ["", f"CREATE ROLE {SERVING_ROLE} NOLOGIN;\n"], ids=["nothing", "the role alone"])
async def test_an_embedded_server_of_an_older_version_gets_what_it_was_not_granted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, granted: str
) -> None:
    with monkeypatch.context() as older:
        older.setattr(postgres, "CREATION", postgres.CREATION.replace(postgres.GRANTS, granted))
        older.setattr(postgres, "GRANTS", granted)
        async with open_servers(tmp_path, redis=False) as servers:
            assert await can_serve(servers) is False
    async with open_servers(tmp_path, redis=False) as servers:
        assert await can_serve(servers) is True
        assert servers.database_url
        async with await AsyncConnection.connect(servers.database_url, autocommit=True) as connection:
            # What `forget` ends the write-ahead log with.
            await connection.execute("CHECKPOINT")
            await connection.execute("SELECT pg_switch_wal()")


async def can_serve(servers: Servers) -> bool:
    assert servers.database_url
    async with await AsyncConnection.connect(servers.database_url) as connection:
        return await find_role(connection) is not None
