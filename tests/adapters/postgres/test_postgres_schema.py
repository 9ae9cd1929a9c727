import asyncio
import re
import signal
import sys
from collections.abc import AsyncIterator
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import pytest
import pytest_asyncio
from blockbuster import blockbuster_ctx
from langchain_core.embeddings import Embeddings
from langchain_postgres import PGEngine, PGVectorStore
from psycopg import AsyncConnection
from psycopg.conninfo import make_conninfo
from psycopg.sql import SQL, Identifier
from sqlalchemy.ext.asyncio import create_async_engine

from app.adapters.embedded import Servers
from app.adapters.postgres import conversations, documents, library, migrations
from app.adapters.postgres.conversations.threads import PostgresThreadStore
from app.adapters.postgres.documents.store import PostgresDocumentStore
from app.adapters.postgres.library.library import PostgresLibrary
from app.adapters.postgres.migrations import upgrade
from app.adapters.postgres.monitoring import examine
from app.adapters.postgres.pool import open_pool
from app.adapters.postgres.queue import ingestions, runs
from domain.errors import ConfigurationError, DatabaseUnavailable
from domain.ports.embedding import Vector
from domain.ports.models import UsageSink
from domain.scope import Scope
from tests.conftest import create_database
from tests.contracts.corpus import store, vector_of


async def fetch_value(url: str, query: Any) -> Any:
    async with await AsyncConnection.connect(url, autocommit=True) as connection:
        row = await (await connection.execute(query)).fetchone()
    return row[0] if row else None


@pytest_asyncio.fixture
async def bare_url(servers: Servers) -> AsyncIterator[str]:
    """An empty database."""
    async with create_database(servers, "template1") as url:
        yield url


def test_every_revision_has_a_number_of_its_own() -> None:
    numbers = [path.name[:4] for path in (Path(migrations.__file__).parent / "versions").glob("0*.sql")]
    assert len(set(numbers)) == len(numbers)


async def test_upgrading_again_changes_nothing(database_url: str) -> None:
    before = await fetch_value(database_url, "SELECT revision FROM schema_version")
    await upgrade(database_url)
    assert await fetch_value(database_url, "SELECT revision FROM schema_version") == before


@pytest.mark.parametrize(("revision", "says"), [("9999", "newer askgraph"), ("0007", "between two releases")])
async def test_a_database_of_another_version_is_left_alone(database_url: str, revision: str, says: str) -> None:
    other = f"UPDATE schema_version SET revision = '{revision}' RETURNING revision"
    assert await fetch_value(database_url, other) == revision
    with pytest.raises(ConfigurationError, match=says):
        await upgrade(database_url)
    assert await fetch_value(database_url, "SELECT revision FROM schema_version") == revision


async def test_upgrading_blocks_no_event_loop(bare_url: str) -> None:
    """`langgraph dev` watches for that, and makes the schema itself in a new home."""
    with blockbuster_ctx():
        await upgrade(bare_url)


async def test_a_role_that_may_not_create_pgvector_is_told_who_may(servers: Servers) -> None:
    async with create_database(servers, "template0") as url:
        with pytest.raises(ConfigurationError, match=r'create extension "vector"\. A superuser prepares'):
            await upgrade(url)


async def test_upgrading_is_no_news(bare_url: str) -> None:
    code = (
        "import asyncio, logging, sys; from app.adapters.postgres.migrations import upgrade; "
        "logging.basicConfig(level=logging.INFO); asyncio.run(upgrade(sys.argv[1]))"
    )
    said = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, bare_url, stdout=said, stderr=said)
    assert await process.communicate() == (b"", b"")
    assert process.returncode == 0


async def test_two_processes_and_two_threads_upgrade_at_once(bare_url: str) -> None:
    code = (
        "import asyncio, sys; from app.adapters.postgres.migrations import upgrade; asyncio.run(upgrade(sys.argv[1]))"
    )
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, bare_url)
    await asyncio.gather(upgrade(bare_url), upgrade(bare_url))
    assert await process.wait() == 0
    assert await fetch_value(bare_url, "SELECT count(*) FROM schema_version") == 1


async def test_a_process_that_waits_for_another_says_so_and_can_be_stopped(bare_url: str) -> None:
    code = (
        "import asyncio, sys; from app.adapters.postgres.migrations import upgrade; asyncio.run(upgrade(sys.argv[1]))"
    )
    async with await AsyncConnection.connect(bare_url) as other:
        await other.execute("SELECT pg_advisory_xact_lock(%s)", [migrations._LOCK])
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", code, bare_url, stderr=asyncio.subprocess.PIPE
        )
        assert process.stderr is not None
        assert b"Another process upgrades" in await process.stderr.readline()
        process.send_signal(signal.SIGINT)
        await process.communicate()
    assert process.returncode == -signal.SIGINT
    await upgrade(bare_url)


async def test_a_server_that_only_lets_read_is_said_to(database_url: str, bare_url: str) -> None:
    for url in (database_url, bare_url):
        async with await AsyncConnection.connect(url, autocommit=True) as connection:
            name = Identifier(connection.info.dbname)
            await connection.execute(SQL("ALTER DATABASE {} SET default_transaction_read_only = on").format(name))
    with pytest.raises(ConfigurationError, match="read-only"):
        await upgrade(bare_url)
    await upgrade(database_url)
    async with open_pool(database_url) as pool:
        with pytest.raises(DatabaseUnavailable, match="read only"):
            await PostgresThreadStore(pool).claim("a", "thread")


async def test_every_table_of_ours_knows_its_workspace(database_url: str) -> None:
    without = await fetch_value(
        database_url,
        """
        SELECT array_agg(relname ORDER BY relname) FROM pg_class c
        WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND NOT EXISTS
            (SELECT FROM pg_attribute WHERE attrelid = c.oid AND attname = 'workspace_id' AND attnotnull)
        """,
    )
    owners = ["api_keys", "audit_log", "browser_sessions"]
    assert without == [*owners, "embedding_model", "housekeeping", "schema_version"]


# Copied rows hold their workspace. The others are about the state of an index, the numbering of files, and the work and
# the leases of a process.
OF_NO_WORKSPACE = {
    "ASK_FOR_WORKER",
    "_COPY_CHUNKS",
    "_COPY_PLACES",
    "_COPY_TERMS",
    "_COPY_TO_EMBED",
    "_COPY_TOKENS",
    "DROP_UNNEEDED",
    "LOCK_UNNEEDED",
    "_TAKE_DROPPED",
    "_FORGET",
    "_COUNT_DROPPED",
    "_NUMBER_ARRIVAL",
    "_ACCEPT",
    "_TAKE",
    "_EXTEND",
    "_HAND_BACK",
}


def test_every_statement_is_bound_to_a_workspace() -> None:
    modules = [
        import_module(module.name)
        for package in (library, documents, conversations)
        for module in iter_modules(package.__path__, f"{package.__name__}.")
    ]
    statements = [
        (name, text)
        for module in [*modules, runs, ingestions]
        for name, value in vars(module).items()
        for text in (value.values() if isinstance(value, dict) else value if isinstance(value, tuple) else [value])
        if isinstance(text, str) and re.match(r"(\s|--.*\n)*(SELECT|WITH|INSERT|UPDATE|DELETE|COPY|SET)\b", text)
    ]
    assert len(statements) > 40
    assert {name for name, text in statements if "%(workspace_id)s" not in text} == OF_NO_WORKSPACE


async def test_a_server_that_does_not_answer_is_unavailable() -> None:
    nobody = "postgresql://askgraph@127.0.0.1:1/askgraph"
    with pytest.raises(DatabaseUnavailable):
        await upgrade(nobody)
    with pytest.raises(DatabaseUnavailable):
        async with open_pool(nobody):
            pass


async def test_a_database_without_the_schema_is_refused(bare_url: str) -> None:
    with pytest.raises(ConfigurationError, match="has not been prepared"):
        async with open_pool(bare_url):
            pass


async def test_a_role_that_may_not_create_the_schema_is_refused(bare_url: str) -> None:
    async with await AsyncConnection.connect(bare_url, autocommit=True) as connection:
        await connection.execute("REVOKE CREATE ON SCHEMA public FROM pg_database_owner")
    with pytest.raises(ConfigurationError, match="permission denied"):
        await upgrade(bare_url)


async def test_a_database_that_does_not_hold_every_text_is_refused(bare_url: str) -> None:
    async with await AsyncConnection.connect(bare_url, dbname="postgres", autocommit=True) as connection:
        await connection.execute("DROP DATABASE IF EXISTS ascii")
        await connection.execute("CREATE DATABASE ascii ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0")
    ascii_url = make_conninfo(bare_url, dbname="ascii")
    with pytest.raises(ConfigurationError, match=r"has the encoding SQL_ASCII.*ENCODING 'UTF8' TEMPLATE template0"):
        await upgrade(ascii_url)
    [found] = [each async for each in examine(ascii_url)]
    assert found.remedy is not None
    assert "ENCODING 'UTF8'" in found.remedy


class OtherModel:
    """Has a name and a dimension. Nothing is embedded with it."""

    def __init__(self, name: str, dimension: int) -> None:
        self.name = name
        self.dimension = dimension

    async def embed_query(self, text: str, sink: UsageSink | None = None) -> Vector:
        raise NotImplementedError

    async def embed_passages(self, texts: Any, sink: Any = None) -> Vector:
        raise NotImplementedError


class CorpusEmbeddings(Embeddings):
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return [float(value) for value in vector_of(text)]


async def test_langchain_reads_our_chunks(database_url: str) -> None:
    async with open_pool(database_url) as pool:
        documents = PostgresDocumentStore(pool)
        document = await store(documents, "a", "falke.md", ["Alpha", "Beta"], title="Falke")
        await store(documents, "b", "falke.md", ["Alpha", "Gamma"], title="Other")
        ids = {m.chunk_id for m in await PostgresLibrary(pool).search_dense(Scope("a"), vector_of("Beta"), 5)}
    engine = create_async_engine(database_url.replace("postgresql://", "postgresql+psycopg://"))
    try:
        langchain = await PGVectorStore.create(
            engine=PGEngine.from_engine(engine),
            embedding_service=CorpusEmbeddings(),
            table_name="chunks",
            id_column="id",
            content_column="content",
            embedding_column="embedding",
            metadata_columns=["workspace_id", "document_id"],
            metadata_json_column="metadata",
        )
        found = await langchain.asimilarity_search_with_score("Beta", k=10, filter={"workspace_id": "a"})
    finally:
        await engine.dispose()
    assert [d.page_content for d, _ in found] == ["Beta", "Alpha"]
    assert found[0][1] == pytest.approx(0, abs=1e-5)
    assert {str(d.id) for d, _ in found} == ids
    metadata = found[0][0].metadata
    assert (metadata["workspace_id"], str(metadata["document_id"])) == ("a", document.id)
    assert (metadata["title"], metadata["source"]) == ("Falke", "falke.md")
