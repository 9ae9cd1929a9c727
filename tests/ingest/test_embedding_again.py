"""Embedding all documents again with another model, on a real database, while it is used."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import numpy as np
import pytest
import pytest_asyncio
from psycopg import AsyncConnection

from app.adapters.embeddings.onnx import OnnxEmbedder
from app.adapters.embeddings.openai import OpenAIEmbedder
from app.adapters.postgres.documents.store import PostgresDocumentStore
from app.adapters.postgres.library.library import PostgresLibrary
from app.adapters.postgres.pool import ALL_WORKSPACES, Pool, borrow
from app.adapters.postgres.vectors import backlog as backlog_module
from app.adapters.postgres.vectors import choosing, vector_index
from app.adapters.postgres.vectors.backlog import PostgresEmbeddingBacklog
from app.adapters.postgres.vectors.choosing import choose_embedder
from app.adapters.postgres.vectors.embedding_model import find_problem
from app.adapters.prices import read_prices
from app.adapters.redis.answers import RedisAnswerCache
from app.adapters.redis.connection import RedisServer
from app.adapters.rerankers.late_interaction import LateInteractionEncoder
from app.ingest.encoding import TwoModelEncoder
from app.ingest.parser_workers import ParserWorkers
from app.ingest.pipeline import Ingestion
from domain.errors import ConfigurationError, DatabaseUnavailable, EmbedderReplaced, EmbedderUnavailable
from domain.library.similarity import Scale
from domain.ports.documents import PassageEncoder
from domain.ports.embedding import Embedder, Vector
from domain.ports.models import UsageSink
from domain.scope import Scope
from tests.wire.embeddings import EmbeddingsServer, serve_embeddings

TEAM = "team"
SMALL = "openai:text-embedding-3-small"
SUBJECTS = ["rain", "snow", "wind", "fog", "hail", "dew", "frost", "heat", "smoke", "dust", "thunder", "ice"]


def describe(subject: str) -> bytes:
    return f"# The {subject} gauge\n\nThe amount of {subject} is measured at seven, by the person on duty.\n".encode()


@pytest_asyncio.fixture
async def server(embedder: OnnxEmbedder) -> AsyncIterator[EmbeddingsServer]:
    async with serve_embeddings(embedder) as server:
        yield server


@pytest_asyncio.fixture
async def other(server: EmbeddingsServer) -> AsyncIterator[OpenAIEmbedder]:
    """The model that is gone over to."""
    other = connect(server, SMALL)
    yield other
    await other.aclose()


@pytest_asyncio.fixture
async def cache(redis_server: RedisServer) -> RedisAnswerCache:
    return RedisAnswerCache(redis_server)


def connect(server: EmbeddingsServer, spec: str) -> OpenAIEmbedder:
    return OpenAIEmbedder(spec, api_key="key", base_url=server.base_url, prices=read_prices())


def ingest_with(
    documents: PostgresDocumentStore,
    cache: RedisAnswerCache,
    parsers: ParserWorkers,
    local: OnnxEmbedder,
    model: Embedder,
) -> Ingestion:
    return Ingestion(documents, encode_with(model, local), cache, parsers)


def encode_with(model: Embedder, local: OnnxEmbedder) -> PassageEncoder:
    encoder = LateInteractionEncoder(local)
    return encoder if model is local else TwoModelEncoder(model, encoder)


@pytest_asyncio.fixture
async def ingestion(pool: Pool, embedder: OnnxEmbedder, cache: RedisAnswerCache, parsers: ParserWorkers) -> Ingestion:
    """With the model that ships, and twelve documents stored."""
    await choose_embedder(pool, embedder)
    ingestion = ingest_with(PostgresDocumentStore(pool, embedder), cache, parsers, embedder, embedder)
    for subject in SUBJECTS:
        await ingestion.add(TEAM, f"{subject}.md", describe(subject))
    return ingestion


async def embed_again(pool: Pool, model: Embedder, local: OnnxEmbedder) -> int:
    """Choose the model and embed all documents with it. Returns the number of chunks."""
    await choose_embedder(pool, model, again=True)
    backlog = PostgresEmbeddingBacklog(pool, model)
    chunks = 0
    while embedded := await backlog.embed_some(encode_with(model, local)):
        chunks += embedded
    return chunks


async def find(pool: Pool, model: Embedder, subject: str) -> str:
    """The title of what is nearest to a question."""
    library = PostgresLibrary(pool, model)
    vector = await model.embed_query(f"When is {subject} measured?")
    [match] = await library.search_dense(Scope(TEAM), vector, 1)
    [passage] = await library.read_passages(Scope(TEAM), [match.chunk_id])
    return passage.title


async def read_schema(pool: Pool) -> list[str]:
    """Everything that `chunks` is made of and held by, but for the dimension and the indexes of vectors."""
    async with borrow(pool, ALL_WORKSPACES) as connection:
        cursor = await connection.execute("""
            SELECT 'column ' || attname || ' ' || typname || attnotnull || attstorage::text AS part
            FROM pg_attribute JOIN pg_type ON pg_type.oid = atttypid
            WHERE attrelid = 'chunks'::regclass AND attnum > 0 AND NOT attisdropped
            UNION ALL
            SELECT 'index ' || indexdef FROM pg_indexes WHERE tablename = 'chunks' AND indexdef NOT LIKE '%hnsw%'
            UNION ALL
            SELECT 'constraint ' || conrelid::regclass || conname || pg_get_constraintdef(oid) FROM pg_constraint
            WHERE 'chunks'::regclass IN (conrelid, confrelid)
            UNION ALL
            SELECT 'trigger ' || tgname FROM pg_trigger WHERE tgrelid = 'chunks'::regclass AND NOT tgisinternal
            UNION ALL
            SELECT 'policy ' || policyname FROM pg_policies WHERE tablename = 'chunks'
            UNION ALL
            SELECT 'grant ' || coalesce(relacl::text, '') || relrowsecurity FROM pg_class WHERE relname = 'chunks'
            ORDER BY part
        """)
        return [str(row["part"]) for row in await cursor.fetchall()]


class Meanwhile:
    """The model that ships, under another name; before its first batch, something else happens."""

    name = "openai:meanwhile@384"
    dimension = 384
    scale: Scale | None = None

    def __init__(self, model: OnnxEmbedder, happen: Callable[[], Awaitable[Any]]) -> None:
        self.model = model
        self.texts: list[str] = []
        self._happen: Callable[[], Awaitable[Any]] | None = happen

    async def embed_query(self, text: str, sink: UsageSink | None = None) -> Vector:
        return await self.model.embed_query(text)

    async def embed_passages(self, texts: Sequence[str], sink: UsageSink | None = None) -> Vector:
        self.texts += texts
        vectors = await self.model.embed_passages(texts)
        if happen := self._happen:
            self._happen = None
            await happen()
        return vectors


async def test_words_find_the_documents_until_the_other_model_does_and_nothing_else_has_changed(
    ingestion: Ingestion, pool: Pool, embedder: OnnxEmbedder, other: OpenAIEmbedder
) -> None:
    async with borrow(pool, ALL_WORKSPACES) as connection:
        await connection.execute("GRANT SELECT ON chunks TO PUBLIC")
    documents, library = PostgresDocumentStore(pool), PostgresLibrary(pool, other)
    schema, corpus = await read_schema(pool), await documents.corpus_fingerprint(Scope(TEAM))
    listed = await documents.list(TEAM)

    assert await choose_embedder(pool, other, again=True)
    assert await library.search_dense(Scope(TEAM), await other.embed_query("snow"), 3) == []
    [match] = await library.search_lexical(Scope(TEAM), "snow", 1)
    assert await library.read_tokens(Scope(TEAM), [match.chunk_id]), "they are of the model that ships"
    assert await library.count_unembedded(Scope(TEAM)) == len(SUBJECTS)
    assert await documents.corpus_fingerprint(Scope(TEAM)) != corpus

    assert await embed_again(pool, other, embedder) == len(SUBJECTS)
    assert await read_schema(pool) == schema
    assert await documents.list(TEAM) == listed
    for subject in SUBJECTS[:3]:
        assert await find(pool, other, subject) == f"The {subject} gauge"
    assert await documents.delete(TEAM, listed[0].id)
    assert not await choose_embedder(pool, other, again=True)


async def test_who_began_with_the_old_model_searches_and_stores_nothing(
    ingestion: Ingestion, pool: Pool, embedder: OnnxEmbedder, other: OpenAIEmbedder, server: EmbeddingsServer
) -> None:
    library = PostgresLibrary(pool, embedder)
    vector = await embedder.embed_query("When is rain measured?")
    [match] = await library.search_dense(Scope(TEAM), vector, 1)
    assert await find_problem(pool, embedder) is None
    for model in (other, connect(server, "openai:another@384")):
        await choose_embedder(pool, model, again=True)
        with pytest.raises(EmbedderReplaced, match=f"ASKGRAPH_EMBEDDINGS={model.name}"):
            await PostgresEmbeddingBacklog(pool, embedder).embed_some(LateInteractionEncoder(embedder))
        assert await embed_again(pool, model, embedder) == len(SUBJECTS)
        with pytest.raises(EmbedderReplaced, match=f"ASKGRAPH_EMBEDDINGS={model.name}"):
            await library.search_dense(Scope(TEAM), vector, 1)
        with pytest.raises(EmbedderReplaced):
            await library.search_dense(Scope(TEAM, (match.document_id,)), vector, 1)
        assert await library.score_dense(Scope(TEAM), vector, [match.chunk_id]) == []
        assert await library.search_titled(Scope(TEAM), ["The rain gauge"], vector) == []
        with pytest.raises(EmbedderReplaced):
            await ingestion.add(TEAM, "new.md", b"# New\n\nSome text.\n")
        assert await find_problem(pool, embedder)
    assert len(await PostgresDocumentStore(pool).list(TEAM)) == len(SUBJECTS)
    with pytest.raises(ConfigurationError, match="ingest --embed-again"):
        await choose_embedder(pool, embedder)
    await model.aclose()


async def test_what_was_embedded_before_a_crash_is_not_embedded_again_unless_another_model_is_chosen(
    ingestion: Ingestion, pool: Pool, embedder: OnnxEmbedder, other: OpenAIEmbedder, server: EmbeddingsServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(backlog_module, "BATCH", 5)
    server.behaviour.faults = [None, "unauthorized"]
    with pytest.raises(EmbedderUnavailable):
        await embed_again(pool, other, embedder)
    assert await embed_again(pool, other, embedder) == len(SUBJECTS) - 5
    assert len(server.served) == len(set(server.served)) == len(SUBJECTS)
    await choose_embedder(pool, embedder, again=True)
    await PostgresEmbeddingBacklog(pool, embedder).embed_some(LateInteractionEncoder(embedder))
    assert await embed_again(pool, other, embedder) == len(SUBJECTS)
    assert await find(pool, other, "wind") == "The wind gauge"


async def test_of_two_processes_one_chooses(ingestion: Ingestion, pool: Pool, other: OpenAIEmbedder) -> None:
    chosen = await asyncio.gather(*(choose_embedder(pool, other, again=True) for _ in range(3)))
    assert sorted(chosen) == [False, False, True]


async def test_what_is_added_changed_and_deleted_meanwhile_is_covered(
    ingestion: Ingestion, pool: Pool, embedder: OnnxEmbedder, cache: RedisAnswerCache, parsers: ParserWorkers
) -> None:
    async def happen() -> None:
        await ingestion.add(TEAM, "new.md", describe("pollen"))
        await ingestion.add(TEAM, "rain.md", b"# The rain gauge\n\nRain is no longer measured.\n")
        await ingestion.delete(TEAM, before["snow.md"].id)
        await ingestion.add("elsewhere", "x.md", describe("pressure"))

    model = Meanwhile(embedder, happen)
    documents = PostgresDocumentStore(pool, model)
    ingestion = ingest_with(documents, cache, parsers, embedder, model)
    before = {document.source: document for document in await documents.list(TEAM)}
    await embed_again(pool, model, embedder)
    assert len(model.texts) == len(set(model.texts)) == len(SUBJECTS) + 3
    assert await find(pool, model, "pollen") == "The pollen gauge"
    async with borrow(pool, ALL_WORKSPACES) as connection:
        cursor = await connection.execute("""
            SELECT content, embedding IS NULL AS lacks FROM chunks WHERE workspace_id = 'team' ORDER BY content
        """)
        stored = {str(row["content"]): row["lacks"] for row in await cursor.fetchall()}
    assert len(stored) == len(SUBJECTS)
    assert not any(stored.values())
    assert not any("snow" in text for text in stored)
    assert [text for text in stored if "ain " in text] == ["# The rain gauge\n\nRain is no longer measured."]


async def test_a_change_that_was_begun_before_the_choice_is_embedded_again_or_refused(
    ingestion: Ingestion, pool: Pool, embedder: OnnxEmbedder, other: OpenAIEmbedder
) -> None:
    changes = [
        asyncio.create_task(ingestion.add(TEAM, f"{number}.md", describe(f"{number}. kind of ash")))
        for number in range(20)
    ]
    await asyncio.sleep(0.1)
    await choose_embedder(pool, other, again=True)
    outcomes = await asyncio.gather(*changes, return_exceptions=True)
    refused = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
    assert all(isinstance(outcome, EmbedderReplaced) for outcome in refused)
    assert await embed_again(pool, other, embedder) == len(SUBJECTS) + 20 - len(refused)
    async with borrow(pool, ALL_WORKSPACES) as connection:
        cursor = await connection.execute(
            "SELECT count(*) AS chunks, min(vector_dims(embedding)) AS low, max(vector_dims(embedding)) AS high FROM chunks"
        )
        counts = {"chunks": len(SUBJECTS) + 20 - len(refused), "low": 1536, "high": 1536}
        assert await cursor.fetchone() == counts


async def test_large_workspaces_get_their_graph_once_they_are_embedded(
    ingestion: Ingestion, pool: Pool, embedder: OnnxEmbedder, other: OpenAIEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_index, "EXACT_ROWS", 4)
    await vector_index.tend_indexes(pool)
    assert "halfvec(384)" in await read_graph(pool)
    await choose_embedder(pool, other, again=True)
    assert await read_graph(pool) == ""
    indexes = vector_index.VectorIndexes(pool)
    backlog = PostgresEmbeddingBacklog(pool, other, tend_indexes=indexes.tend)
    while await backlog.embed_some(encode_with(other, embedder)):
        pass
    await indexes.wait()
    assert "halfvec(1536)" in await read_graph(pool)
    assert await find(pool, other, "frost") == "The frost gauge"


async def read_graph(pool: Pool) -> str:
    async with borrow(pool, ALL_WORKSPACES) as connection:
        cursor = await connection.execute("SELECT indexdef FROM pg_indexes WHERE indexdef LIKE '%hnsw%'")
        return "".join([str(row["indexdef"]) for row in await cursor.fetchall()])


async def test_nothing_is_changed_while_somebody_reads_for_long(
    ingestion: Ingestion, pool: Pool, database_url: str, embedder: OnnxEmbedder, other: OpenAIEmbedder,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(choosing, "LOCK_TIMEOUT", "50ms")
    async with await AsyncConnection.connect(database_url) as backup:
        await backup.execute("SELECT FROM chunks LIMIT 1")
        with pytest.raises(DatabaseUnavailable, match="Run the same command again"):
            await choose_embedder(pool, other, again=True)
        assert await find(pool, embedder, "snow") == "The snow gauge"
    assert await choose_embedder(pool, other, again=True)


async def test_a_view_on_the_embeddings_is_not_dropped(ingestion: Ingestion, pool: Pool, other: OpenAIEmbedder) -> None:
    async with borrow(pool, ALL_WORKSPACES) as connection:
        await connection.execute("CREATE VIEW theirs AS SELECT embedding FROM chunks")
    with pytest.raises(ConfigurationError, match="view theirs depends on"):
        await choose_embedder(pool, other, again=True)


@pytest.mark.parametrize("spec", [f"{SMALL}@64", SMALL, "openai:text-embedding-3-large"])
async def test_an_empty_index_takes_vectors_of_any_dimension(
    spec: str, pool: Pool, embedder: OnnxEmbedder, cache: RedisAnswerCache, parsers: ParserWorkers,
    server: EmbeddingsServer, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(vector_index, "EXACT_ROWS", 2)
    await choose_embedder(pool, embedder)
    model = connect(server, spec)
    await choose_embedder(pool, model)
    documents = PostgresDocumentStore(pool, model)
    ingestion = ingest_with(documents, cache, parsers, embedder, model)
    for subject in SUBJECTS[:3]:
        await ingestion.add(TEAM, f"{subject}.md", describe(subject))
    await documents.wait_for_indexes()
    assert f"halfvec({model.dimension})" in await read_graph(pool)
    assert await find(pool, model, "snow") == "The snow gauge"
    [document, *_] = await documents.list(TEAM)
    [tokens] = (await PostgresLibrary(pool, model).read_tokens(Scope(TEAM), await read_ids(pool, document.id))).values()
    assert tokens, "reranking is local whatever the index was made with"
    await model.aclose()


async def read_ids(pool: Pool, document_id: str) -> list[str]:
    async with borrow(pool, ALL_WORKSPACES) as connection:
        cursor = await connection.execute("SELECT id::text FROM chunks WHERE document_id = %s", [document_id])
        return [str(row["id"]) for row in await cursor.fetchall()]


async def test_what_stands_above_a_row_of_a_table_is_embedded_with_it_again(
    pool: Pool, embedder: OnnxEmbedder, cache: RedisAnswerCache, parsers: ParserWorkers
) -> None:
    await choose_embedder(pool, embedder)
    rows = "\n".join(f"| Station {number} | {number} m | {'wind and rain ' * 3} |" for number in range(30))
    table = f"# Stations\n\n| Name | Height | Measures |\n| --- | --- | --- |\n{rows}\n".encode()
    documents = PostgresDocumentStore(pool, embedder)
    await ingest_with(documents, cache, parsers, embedder, embedder).add(TEAM, "stations.md", table)

    async def nothing() -> None: ...

    model = Meanwhile(embedder, nothing)
    async with borrow(pool, ALL_WORKSPACES) as connection:
        cursor = await connection.execute("SELECT id, embedding FROM chunks")
        before = {row["id"]: row["embedding"] for row in await cursor.fetchall()}
        await embed_again(pool, model, embedder)
        cursor = await connection.execute("SELECT id, embedding FROM chunks")
        after = {row["id"]: row["embedding"] for row in await cursor.fetchall()}
    assert len(before) > 3
    assert before.keys() == after.keys()
    for chunk_id, vector in before.items():
        np.testing.assert_allclose(vector, after[chunk_id], atol=1e-4)
