"""Every table of a workspace in partitions, as an engine that shares workspaces out would lay them out
(docs/operations/scaling.md)."""

import re
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from psycopg import AsyncConnection
from psycopg.conninfo import conninfo_to_dict

from app.adapters.embedded import Servers
from app.adapters.postgres import migrations
from app.adapters.postgres.documents.store import PostgresDocumentStore
from app.adapters.postgres.library.library import PostgresLibrary
from app.adapters.postgres.pool import Pool
from app.adapters.postgres.vectors import vector_index
from app.adapters.postgres.vectors.backlog import PostgresEmbeddingBacklog
from app.adapters.postgres.vectors.choosing import choose_embedder
from domain.scope import Scope
from tests.adapters.postgres import test_postgres
from tests.adapters.postgres.test_postgres import documents, library  # noqa: F401 - fixtures
from tests.adapters.postgres.test_postgres_schema import OtherModel
from tests.conftest import create_database
from tests.contracts.corpus import store, vector_of

TABLE = re.compile(r"^CREATE TABLE (\w+) \(\n(.*?)\n\)( WITH \(.*?\))?;$", re.DOTALL | re.MULTILINE)


def share_out(schema: str) -> str:
    """Make of each table whose rows its workspace tells apart one in four partitions."""

    def divide(table: re.Match[str]) -> str:
        name, columns, settings = table.groups()
        if name == "workspaces" or not re.search(r"PRIMARY KEY \(.*workspace_id.*\)", columns):
            return table.group()
        parts = [
            f"CREATE TABLE {name}_{n} PARTITION OF {name} FOR VALUES WITH (modulus 4, remainder {n}){settings or ''};"
            for n in range(4)
        ]
        return "\n".join([f"CREATE TABLE {name} (\n{columns}\n) PARTITION BY HASH (workspace_id);", *parts])

    return TABLE.sub(divide, schema)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def template(servers: Servers, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[str]:
    here = tmp_path_factory.mktemp("migrations")
    shutil.copytree(Path(migrations.__file__).parent, here, dirs_exist_ok=True)
    [schema] = here.glob("versions/0001_*.sql")
    schema.write_text(share_out(schema.read_text()))
    async with create_database(servers, "template1") as url:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(migrations, "__file__", str(here / "__init__.py"))
            await migrations.upgrade(url)
        yield str(conninfo_to_dict(url)["dbname"])


class TestLibrary(test_postgres.TestPostgresLibrary):
    pass


class TestDocumentStore(test_postgres.TestPostgresDocumentStore):
    pass


async def test_a_graph_lies_in_the_partition_of_its_workspace(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    stored, found = PostgresDocumentStore(pool), PostgresLibrary(pool)
    texts = [f"paragraph {n}" for n in range(20)]
    await store(stored, "a", "one", texts)
    query = vector_of("paragraph 7")
    exact = await found.search_dense(Scope("a"), query, 5)
    monkeypatch.setattr(vector_index, "EXACT_ROWS", 5)
    await vector_index.tend_indexes(pool)
    assert await found.search_dense(Scope("a"), query, 5) == exact
    async with await AsyncConnection.connect(str(pool.conninfo)) as connection:
        cursor = await connection.execute(
            "SELECT indrelid::regclass::text, indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)",
            [vector_index.name_index("a")],
        )
        [(table, valid)] = await cursor.fetchall()
        assert re.fullmatch("chunks_[0-3]", table)
        assert valid
    await choose_embedder(pool, OtherModel("other", 96), again=True)
    assert await PostgresEmbeddingBacklog(pool).count_all() == len(texts)
