import asyncio

import pytest
from psycopg import AsyncConnection
from psycopg.conninfo import conninfo_to_dict
from psycopg.sql import SQL, Identifier

from app.adapters.postgres import monitoring
from app.adapters.postgres import pool as pool_module
from app.adapters.postgres.conversations.threads import PostgresThreadStore
from app.adapters.postgres.documents.store import PostgresDocumentStore
from app.adapters.postgres.library.library import PostgresLibrary
from app.adapters.postgres.monitoring import try_to_write
from app.adapters.postgres.pool import ALL_WORKSPACES, borrow, find_pooler_problem, open_pool, open_session
from app.settings import read_settings
from app.wiring.services import open_services
from domain.errors import ConfigurationError, DatabaseFull, DatabaseUnavailable, InputError, Saturated
from domain.scope import Scope
from tests.contracts.corpus import store
from tests.wire.pooler import serve_pooler

DROP_ALL = """
    -- Returns when they are gone, or after five seconds.
    SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = %s AND pid <> pg_backend_pid()
"""


async def administer(database_url: str, *statements: SQL | str) -> None:
    """Run statements from another database of the same server. `{}` and `%s` stand for this database's name."""
    name = conninfo_to_dict(database_url)["dbname"]
    async with await AsyncConnection.connect(database_url, dbname="postgres", autocommit=True) as connection:
        for statement in statements:
            if isinstance(statement, SQL):
                await connection.execute(statement.format(Identifier(str(name))))
            else:
                await connection.execute(statement.encode(), (name,))


@pytest.mark.parametrize("trusted_seconds", [0.0, 60.0])
async def test_dropped_connections_are_replaced_unnoticed(
    database_url: str, monkeypatch: pytest.MonkeyPatch, trusted_seconds: float
) -> None:
    monkeypatch.setattr(pool_module, "TRUSTED_SECONDS", trusted_seconds)
    async with open_pool(database_url) as pool:
        documents = PostgresDocumentStore(pool)
        await asyncio.gather(*(documents.list("a") for _ in range(8)))
        for _ in range(3):
            await administer(database_url, DROP_ALL)
            await asyncio.gather(*(documents.list("a") for _ in range(8)))
        await store(documents, "a", "x.md", ["It works."])
        assert len(await PostgresLibrary(pool).search_lexical(Scope("a"), "works", 5)) == 1


async def test_a_process_that_freezes_in_the_middle_of_a_change_keeps_no_lock(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(pool_module._SETTINGS, "idle_in_transaction_session_timeout", "100ms")
    async with open_pool(database_url) as pool:
        documents = PostgresDocumentStore(pool)
        document = await store(documents, "a", "x.md", ["It works."])

        async def be_away() -> None:
            async with open_session(pool, "a", transaction=True) as session:
                await session.execute("SELECT FROM documents FOR UPDATE")
                locked.set()
                await resumed.wait()
                await session.execute("SELECT")

        locked, resumed = asyncio.Event(), asyncio.Event()
        away = asyncio.create_task(be_away())
        await locked.wait()
        assert await documents.delete("a", document.id)
        resumed.set()
        with pytest.raises(DatabaseUnavailable):
            await away


async def test_service_goes_on_after_an_outage_of_the_database(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool_module, "WAIT_SECONDS", 1.0)
    async with open_pool(database_url) as pool:
        threads = PostgresThreadStore(pool)
        await threads.claim("a", "t")
        await administer(database_url, SQL("ALTER DATABASE {} ALLOW_CONNECTIONS false"), DROP_ALL)
        for _ in range(3):
            with pytest.raises(DatabaseUnavailable):
                await threads.exists("a", "t")
        with pytest.raises(DatabaseUnavailable):
            await try_to_write(database_url)
        await administer(database_url, SQL("ALTER DATABASE {} ALLOW_CONNECTIONS true"))
        for _ in range(20):
            try:
                assert await threads.exists("a", "t")
                break
            except DatabaseUnavailable:
                continue
        else:
            pytest.fail("the pool did not recover")
        await try_to_write(database_url)


async def test_a_database_that_only_reads_is_noticed(database_url: str) -> None:
    await try_to_write(database_url)
    # As on a full disk, or on a standby.
    with pytest.raises(DatabaseUnavailable, match=r"answers, but cannot write: .*read-only"):
        await try_to_write(f"{database_url}&options=-c%20default_transaction_read_only%3Don")


async def test_a_busy_pool_makes_its_borrowers_wait_and_is_no_outage(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_pool(database_url, max_size=2) as pool:
        threads = PostgresThreadStore(pool)
        async with pool.connection() as one, pool.connection() as two:
            monkeypatch.setattr(pool_module, "WAIT_SECONDS", 0.1)
            waiting = [asyncio.create_task(threads.exists("a", "t")) for _ in range(5)]
            # Far longer than a server may take.
            await asyncio.gather(*(each.execute("SELECT pg_sleep(0.5)") for each in (one, two)))
            assert pool.waiting == 5
            waiting.pop().cancel()
            assert not any(each.done() for each in waiting)
        assert await asyncio.gather(*waiting) == [False] * 4
        assert pool.waiting == 0
        # Who gave up has not kept a turn.
        async with pool.connection(), pool.connection():
            pass
        monkeypatch.setattr(pool_module, "TURN_SECONDS", 0.1)
        async with pool.connection(), pool.connection():
            with pytest.raises(Saturated):
                await threads.exists("a", "t")


async def test_borrowers_of_a_busy_pool_learn_of_an_outage(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_module, "WAIT_SECONDS", 1.0)
    async with open_pool(database_url, max_size=2) as pool:
        threads = PostgresThreadStore(pool)
        await administer(database_url, SQL("ALTER DATABASE {} ALLOW_CONNECTIONS false"), DROP_ALL)
        asked = await asyncio.gather(*(threads.exists("a", "t") for _ in range(20)), return_exceptions=True)
        assert {type(error) for error in asked} == {DatabaseUnavailable}
        await administer(database_url, SQL("ALTER DATABASE {} ALLOW_CONNECTIONS true"))


async def test_a_connection_lost_in_the_middle_of_a_change_changes_nothing(database_url: str) -> None:
    async with open_pool(database_url) as pool:
        documents = PostgresDocumentStore(pool)
        await store(documents, "a", "x.md", ["Earlier words."])
        async with borrow(pool, ALL_WORKSPACES) as blocker, blocker.transaction():
            await blocker.execute("SELECT FROM workspaces FOR UPDATE")
            change = asyncio.create_task(store(documents, "a", "x.md", ["Later words."]))
            waiting = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
            while (await blocker.execute(waiting)).rowcount == 0:
                await blocker.execute("SELECT pg_sleep(0.01), pg_stat_clear_snapshot()")
            await blocker.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE wait_event_type = 'Lock' AND datname = current_database()"
            )
            with pytest.raises(DatabaseUnavailable):
                await change
        [document] = await documents.list("a")
        assert await documents.get_text("a", document.id) == "Earlier words."
        assert len(await PostgresLibrary(pool).search_lexical(Scope("a"), "earlier", 5)) == 1


async def test_text_that_postgres_cannot_store_is_an_input_error(database_url: str) -> None:
    async with open_pool(database_url) as pool:
        for text in ("nul \x00", "lone surrogate \ud800"):
            with pytest.raises(InputError):
                await PostgresThreadStore(pool).claim("a", text)


async def test_a_full_disk_is_named(database_url: str) -> None:
    async with open_pool(database_url) as pool:
        with pytest.raises(DatabaseFull, match="Free some space"):
            async with open_session(pool, "default") as session:
                await session.execute("DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = 'disk_full'; END $$")


async def test_a_pooler_that_mixes_sessions_up_is_refused(database_url: str, redis_url: str) -> None:
    assert await find_pooler_problem(database_url) is None
    async with serve_pooler(database_url) as pooled:
        # What the pooler does to sessions: a setting of one is there in another.
        async with await AsyncConnection.connect(pooled, autocommit=True) as one:
            await one.execute("SET askgraph.workspace = 'acme'")
            async with await AsyncConnection.connect(pooled, autocommit=True) as other:
                [seen] = await (await other.execute("SHOW askgraph.workspace")).fetchone() or [None]
        assert seen == "acme"
        settings = read_settings(DATABASE_URL=pooled, REDIS_URL=redis_url, load_samples=False)
        found = {each.part: each.remedy async for each in monitoring.examine(pooled)}
        assert "pool_mode = transaction" in (found["connections"] or "")
        with pytest.raises(ConfigurationError, match="session mode"):
            async with open_services(settings):
                pass
