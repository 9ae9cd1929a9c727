"""Runs against a table that langchain-postgres itself creates and fills."""

import itertools
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

import numpy as np
import psycopg
import pytest
import pytest_asyncio
from langchain_core.documents import Document as LangChainDocument
from langchain_core.embeddings import Embeddings
from langchain_postgres import Column, PGEngine, PGVectorStore
from langchain_postgres.v2.hybrid_search_config import HybridSearchConfig
from sqlalchemy.ext.asyncio import create_async_engine

from app.adapters.embeddings.onnx import OnnxEmbedder
from app.adapters.pgvectorstore.documents import PgVectorStoreDocuments
from app.adapters.pgvectorstore.library import PgVectorStoreLibrary
from app.adapters.pgvectorstore.mapping import TableMapping, read_mapping
from app.adapters.pgvectorstore.opening import open_table
from app.adapters.pgvectorstore.table import Table
from app.answering.requests import Ask
from app.settings import Settings
from app.wiring.services import open_services
from domain.documents import Document
from domain.errors import (
    ConfigurationError,
    DatabaseUnavailable,
    InputError,
    LibraryChanged,
    UnknownDocument,
)
from domain.library.browsing import View
from domain.ports.documents import DocumentContent, DocumentStore, StoredAs
from domain.ports.library import Library
from domain.scope import Scope
from tests.asking import ask
from tests.conftest import HANDBOOK
from tests.contracts.corpus import DIMENSION, store, vector_of
from tests.contracts.library import BATTERY, INTERLEUKIN, VERSION, WARRANTY, LibraryContract

_IDS = UUID("0d6c1c0a-0f0e-4c7e-9d4e-6b4c7a2f8b11")


class Vectors(Embeddings):
    """The contract's vectors, as LangChain asks for them."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [vector_of(text).tolist() for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return [float(value) for value in vector_of(text)]


@asynccontextmanager
async def make_store(
    url: str, name: str = "team", *, hybrid: bool = True, embeddings: Embeddings | None = None
) -> AsyncIterator[PGVectorStore]:
    """A new table with the team in a column of its own and everything else in the metadata."""
    engine = create_async_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    try:
        pg_engine = PGEngine.from_engine(engine)
        config = HybridSearchConfig(tsv_column="content_tsv", tsv_lang="pg_catalog.english") if hybrid else None
        await pg_engine.ainit_vectorstore_table(
            name, DIMENSION, metadata_columns=[Column("team", "TEXT")], hybrid_search_config=config
        )
        yield await PGVectorStore.create(
            pg_engine,
            embeddings or Vectors(),
            name,
            metadata_columns=["team"],
            hybrid_search_config=config,
        )
    finally:
        await engine.dispose()


MAPPING: dict[str, Any] = {
    "table": "team",
    "words": "content_tsv",
    "workspace": "team",
    "document": "document_id",
    "headings": ["Header 1"],
    "position": "number",
}


class FilledByLangChain(PgVectorStoreDocuments):
    """Documents written by `PGVectorStore`, so that what we read is what it writes."""

    def __init__(self, table: Table, writer: PGVectorStore) -> None:
        super().__init__(table)
        self._writer = writer
        self._chunks: dict[str, list[str]] = {}

    async def find(self, workspace_id: str, source: str, **_: Collection[str] | None) -> Document | None:
        return None

    async def replace(self, workspace_id: str, content: DocumentContent) -> tuple[Document, StoredAs]:
        document_id = str(uuid5(_IDS, f"{workspace_id} {content.source}"))
        await self.delete(workspace_id, document_id)
        ids = [str(uuid5(_IDS, f"{document_id} {chunk.index}")) for chunk in content.chunks]
        await self._writer.aadd_embeddings(
            [chunk.text for chunk in content.chunks],
            [content.embeddings[chunk.content_hash].embedding.tolist() for chunk in content.chunks],
            [
                {
                    "team": workspace_id,
                    "document_id": document_id,
                    "title": content.parsed.title,
                    "Header 1": content.parsed.title,
                    "start_index": chunk.start,
                    "page": chunk.page,
                    "number": chunk.index,
                    **content.metadata,
                }
                for chunk in content.chunks
            ],
            ids,
        )
        self._chunks[document_id] = ids
        found = await self.get(workspace_id, document_id)
        assert found is not None
        return found, "added"

    async def delete(self, workspace_id: str, document_id: str) -> bool:
        if ids := self._chunks.pop(document_id, None):
            await self._writer.adelete(ids)
        return ids is not None


@pytest_asyncio.fixture
async def writer(database_url: str) -> AsyncIterator[PGVectorStore]:
    async with make_store(database_url) as made:
        yield made


@pytest_asyncio.fixture
async def table(database_url: str, writer: PGVectorStore) -> AsyncIterator[Table]:
    async with open_table(database_url, TableMapping(**MAPPING), DIMENSION) as opened:
        yield opened


@pytest.fixture
def library(table: Table) -> PgVectorStoreLibrary:
    return PgVectorStoreLibrary(table)


@pytest.fixture
def documents(table: Table, writer: PGVectorStore) -> FilledByLangChain:
    return FilledByLangChain(table, writer)


NO_TITLES = "no index leads from a title to its chunks"
NO_VOCABULARY = "the table has no list of its words"
DEVIATIONS = {
    "test_lexical_search_finds_words_of_title_and_heading": "PGVectorStore indexes the words of the content alone",
    "test_related_chunks_share_what_the_examples_add_to_the_query": "the table does not count terms",
    "test_passages_come_whole_and_in_the_order_asked_for": "LangChain's loaders know no boxes on a page",
    "test_documents_are_found_by_their_titles": NO_TITLES,
    "test_titles_come_most_recent_first": "the table does not say when a row was written",
    "test_the_nearest_known_word_is_suggested_for_a_misspelt_one": NO_VOCABULARY,
    "test_the_most_common_of_the_nearest_words_is_meant": NO_VOCABULARY,
    "test_only_words_that_the_workspace_holds_now_are_suggested": NO_VOCABULARY,
    "test_the_number_of_corrected_words_is_limited": NO_VOCABULARY,
    "test_words_of_the_language_are_right": NO_VOCABULARY,
}
"""Contract tests that such a table fails, with the reason."""


class TestPgVectorStoreLibrary(LibraryContract):
    SPELLINGS: tuple[tuple[str, str], ...] = (
        ("IL-6", INTERLEUKIN),
        ("COVID‑19 patient", INTERLEUKIN),
        ("2.1", VERSION),
        ("batteries", BATTERY),
    )

    async def test_codes_and_accents_are_not_levelled(self, library: Library, documents: DocumentStore) -> None:
        await store(documents, "a", "falke.md", [WARRANTY, BATTERY, INTERLEUKIN, VERSION])
        for query in ("il6", "v naive"):
            assert await library.search_lexical(Scope("a"), query, 1) == [], query


for _name in DEVIATIONS:
    setattr(TestPgVectorStoreLibrary, _name, None)


async def test_what_it_cannot_do_finds_nothing_and_does_no_harm(
    library: PgVectorStoreLibrary, documents: FilledByLangChain
) -> None:
    await store(documents, "a", "falke.md", [WARRANTY, BATTERY], title="Falke")
    assert await library.search_titled(Scope("a"), ["Falke"], vector_of(BATTERY)) == []
    assert await library.suggest_words(Scope("a"), ["waranty"], None, "en") == {}
    ids = [match.chunk_id for match in await library.search_dense(Scope("a"), vector_of(BATTERY), 2)]
    assert await library.score_related(Scope("a"), "battery", {ids[0]: 1.0}, ids) == []
    assert await library.read_tokens(Scope("a"), ids) == {}
    assert await library.read_token_chunks(Scope("a"), [("d", 0, 99)]) == []
    assert {each.title for each in await library.list_recent(Scope("a"), 5)} == {"Falke"}
    listed = await library.list_documents(Scope("a"), 5)
    assert ([document.title for document in listed.documents], listed.total) == (["Falke"], 1)


async def test_a_passage_has_its_page_and_no_box(library: PgVectorStoreLibrary, documents: FilledByLangChain) -> None:
    await store(documents, "a", "falke.md", [WARRANTY, BATTERY], title="Falke")
    [match, _] = await library.search_dense(Scope("a"), vector_of(BATTERY), 2)
    [passage] = await library.read_passages(Scope("a"), [match.chunk_id])
    assert (passage.text, passage.title, passage.heading_path) == (BATTERY, "Falke", ("Falke",))
    assert (passage.page, passage.chunk_index) == (1, 1)
    assert (passage.start, passage.end) == (len(WARRANTY) + 2, len(WARRANTY) + 2 + len(BATTERY))
    assert passage.lines[0].start == passage.lines[0].end


async def test_a_workspace_with_few_rows_gets_all_of_them(
    database_url: str, writer: PGVectorStore, library: PgVectorStoreLibrary
) -> None:
    """`PGVectorStore` itself does not: it filters what the index has found."""
    rng = np.random.default_rng(7)
    rows = rng.standard_normal((600, DIMENSION)).astype(np.float32)
    teams = ["small" if number % 60 == 0 else "large" for number in range(len(rows))]
    # Row by row, as `aadd_embeddings` writes them, this takes seconds.
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        async with (
            connection.cursor() as cursor,
            cursor.copy("COPY team (langchain_id, content, embedding, content_tsv, team) FROM STDIN") as copy,
        ):
            for number, (row, team) in enumerate(zip(rows, teams, strict=True)):
                await copy.write_row((uuid5(_IDS, str(number)), f"Row {number}", str(row.tolist()), "", team))
        await connection.execute("SET maintenance_work_mem = '64MB'")
        await connection.execute("CREATE INDEX team_hnsw ON team USING hnsw (embedding vector_cosine_ops)")
        await connection.execute("ANALYZE team")
    question = rng.standard_normal(DIMENSION).astype(np.float32)
    theirs = await writer.asimilarity_search_with_score_by_vector(question.tolist(), k=10, filter={"team": "small"})
    ours = await library.search_dense(Scope("small"), question, 10)
    assert len(theirs) < len(ours) == 10
    exact = 1 - rows @ question / np.linalg.norm(rows, axis=1) / np.linalg.norm(question)
    best = sorted((n for n, team in enumerate(teams) if team == "small"), key=lambda n: exact[n])
    assert [match.chunk_id for match in ours] == [str(uuid5(_IDS, str(number))) for number in best]


async def test_a_table_as_langchain_makes_it_needs_nothing_but_its_name(database_url: str) -> None:
    """No words, no workspace, no place of a chunk in its document, pages from 0."""
    async with make_store(database_url, "plain", hybrid=False) as writer:
        texts = {WARRANTY: "/docs/falke.pdf", BATTERY: "/docs/falke.pdf", VERSION: None}
        await writer.aadd_documents(
            [
                LangChainDocument(text, metadata={"source": source, "page": 0} if source else {})
                for text, source in texts.items()
            ]
        )
        mapping = TableMapping(table="plain", first_page=0)
        url = database_url.replace("postgresql://", "postgresql+asyncpg://")
        async with open_table(url, mapping, DIMENSION) as table:
            library, documents = PgVectorStoreLibrary(table), PgVectorStoreDocuments(table)
            scope = Scope("default")
            matches = await library.search_dense(scope, vector_of(BATTERY), 10)
            passages = await library.read_passages(scope, [match.chunk_id for match in matches])
            assert {p.text for p in passages} == set(texts)
            assert (passages[0].text, passages[0].title, passages[0].page) == (BATTERY, "/docs/falke.pdf", 1)
            assert next(p for p in passages if p.text == VERSION).document_id in {m.chunk_id for m in matches}
            # Their places are unknown, so none may look like a neighbour of another.
            places = sorted((p.start, p.end) for p in passages)
            assert all(end + 100 < start for (_, end), (start, _) in itertools.pairwise(places))
            assert [p.text for p in await library.read_around(scope, [matches[0].chunk_id], 4, 1)] == [BATTERY]
            assert await library.search_lexical(scope, "battery", 5) == []
            assert await library.score_lexical(scope, "battery", [matches[0].chunk_id]) == []
            assert await library.search_dense(Scope("legal"), vector_of(BATTERY), 10) == []
            listed = await documents.list("default")
            assert [(d.id, d.chunks) for d in listed if d.id.startswith("/")] == [("/docs/falke.pdf", 2)]


async def test_rows_that_are_not_filled_yet_are_passed_over(database_url: str) -> None:
    scope, zeros = Scope("default"), str([0.0] * DIMENSION)
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        await connection.execute("DROP TABLE IF EXISTS unfilled")
        await connection.execute(
            f"CREATE TABLE unfilled (langchain_id text PRIMARY KEY, content text, embedding vector({DIMENSION}))"
        )
        for row in (
            ("whole", WARRANTY, str(vector_of(WARRANTY).tolist())),
            ("no vector", BATTERY, None),
            ("no text", None, str(vector_of(BATTERY).tolist())),
            ("zeros", VERSION, zeros),
        ):
            await connection.execute("INSERT INTO unfilled VALUES (%s, %s, %s)", row)
    async with open_table(database_url, TableMapping(table="unfilled"), DIMENSION) as table:
        library = PgVectorStoreLibrary(table)
        everything = ["whole", "no vector", "no text", "zeros"]
        found = await library.search_dense(scope, vector_of(BATTERY), 10)
        scored = await library.score_dense(scope, vector_of(BATTERY), everything)
        passages = await library.read_passages(scope, everything)
    assert [match.chunk_id for match in found] == [match.chunk_id for match in scored] == ["whole"]
    assert {passage.text for passage in passages} == {WARRANTY, VERSION}


async def test_the_documents_are_shown_and_not_changed(table: Table, documents: FilledByLangChain) -> None:
    stored = await store(documents, "a", "falke.md", [WARRANTY, BATTERY], title="Falke")
    reading: DocumentStore = PgVectorStoreDocuments(table)
    assert (await reading.get("a", stored.id)) == stored
    assert (stored.title, stored.chunks, stored.characters) == ("Falke", 2, len(WARRANTY) + len(BATTERY))
    assert await reading.get_text("a", stored.id) == f"{WARRANTY}\n\n{BATTERY}"
    assert await reading.get("b", stored.id) is None
    assert await reading.get_text("b", stored.id) is None
    assert not await reading.is_untouched("a")
    for words, total in (("falke", 1), ("other", 0)):
        found = await reading.browse(Scope("a"), View(words))
        assert (found.all, found.total, list(found.documents)) == (1, total, [stored][:total])
    assert (await reading.browse(Scope("a", groups=frozenset({"x"})), View())).all == 0
    for change in (reading.find("a", "x"), reading.delete("a", stored.id), reading.clear("a")):
        with pytest.raises(InputError, match="only reads it"):
            await change


async def test_the_connections_cannot_write(table: Table, documents: FilledByLangChain) -> None:
    await store(documents, "a", "falke.md", [WARRANTY])
    with pytest.raises(DatabaseUnavailable, match="can be read only"):
        await table.fetch("DELETE FROM {table}", Scope("a"))


async def test_a_table_that_was_dropped_is_said_without_its_statements(
    database_url: str, table: Table, library: PgVectorStoreLibrary, caplog: pytest.LogCaptureFixture
) -> None:
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        await connection.execute("DROP TABLE team")
    with pytest.raises(LibraryChanged, match="was dropped or changed") as raised:
        await library.search_lexical(Scope("a"), "battery", 5)
    assert not raised.value.retryable
    assert "relation" not in raised.value.message
    assert 'relation "public.team" does not exist' in caplog.text


async def test_no_two_fingerprints_are_alike(table: Table, documents: FilledByLangChain) -> None:
    stored = await store(documents, "a", "falke.md", [WARRANTY])
    scope = Scope("a", (stored.id,))
    assert await documents.corpus_fingerprint(scope) != await documents.corpus_fingerprint(scope)
    for wrong in (Scope("a", (stored.id, "gone")), Scope("b", (stored.id,)), Scope("a", ("\0",))):
        with pytest.raises(UnknownDocument):
            await documents.corpus_fingerprint(wrong)


async def test_a_mapping_that_does_not_fit_is_refused(database_url: str, writer: PGVectorStore) -> None:
    for changes, says in (
        ({"table": "nothing"}, r"no table public\.nothing.*ASKGRAPH_PGVECTORSTORE_URL"),
        ({"schema": "other"}, r"no table other\.team"),
        ({"content": "text"}, r"no column 'text'; it has langchain_id, content"),
        ({"embedding": "content"}, "'content'.*is of type text, not vector"),
        ({"content": "langchain_id"}, "'langchain_id'.*is of type uuid, not text"),
        ({"words": "content"}, "'content'.*is of type text, not tsvector"),
        ({"workspace": "owner", "metadata": "none"}, "neither a column 'owner' nor metadata"),
    ):
        with pytest.raises(ConfigurationError, match=says):
            async with open_table(database_url, TableMapping(**(MAPPING | changes)), DIMENSION):
                pass


async def test_a_database_that_does_not_answer_is_said() -> None:
    with pytest.raises(DatabaseUnavailable, match=r"public\.team does not answer: .*127\.0\.0\.1"):
        async with open_table("postgresql://127.0.0.1:9/team", TableMapping(**MAPPING), DIMENSION):
            pass


async def test_vectors_of_another_dimension_are_refused(database_url: str, documents: FilledByLangChain) -> None:
    await store(documents, "a", "falke.md", [WARRANTY])
    with pytest.raises(ConfigurationError, match=r"public\.team have 384 dimensions.*1536"):
        async with open_table(database_url, TableMapping(**MAPPING), 1536):
            pass


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ('table = ""', "table: "),
        ("tabel = 'x'", "table: Field required; tabel: Extra"),
        ("table = 'a%b'", "table: "),
        ("table", "cannot be used"),
        ("table = 'x'\nfirst_page = 2", "first_page: "),
    ],
)
def test_a_mapping_that_is_wrong_is_said(tmp_path: Path, content: str, says: str) -> None:
    file = tmp_path / "table.toml"
    file.write_text(content)
    with pytest.raises(ConfigurationError, match=says):
        read_mapping(file)
    with pytest.raises(ConfigurationError, match="No such file"):
        read_mapping(tmp_path / "none.toml")


class Local(Embeddings):
    """The model that ships, as LangChain asks for it."""

    def __init__(self, embedder: OnnxEmbedder) -> None:
        self._embedder = embedder

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[float(value) for value in row] for row in await self._embedder.embed_passages(texts)]

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        raise NotImplementedError

    def embed_query(self, text: str) -> list[float]:
        raise NotImplementedError


TEAM = [
    ("falke.pdf", 0, "The Falke weather station has a warranty of 36 months from the date of purchase."),
    ("falke.pdf", 1, "The battery of the Falke lasts 14 months. Replace it with two AA lithium cells."),
    ("amsel.pdf", 0, "The Amsel rain gauge has a warranty of 24 months. Clean its funnel every 8 weeks."),
]


@pytest.mark.parametrize("hybrid", [True, False])
async def test_questions_are_answered_from_it(
    settings: Settings, database_url: str, embedder: OnnxEmbedder, tmp_path: Path, hybrid: bool
) -> None:
    mapping = tmp_path / "table.toml"
    words = 'words = "content_tsv"\n' if hybrid else ""
    mapping.write_text(f'table = "team"\nfirst_page = 0\n{words}')
    reading = settings.model_copy(update={"pgvectorstore": mapping})
    async with (
        make_store(database_url, hybrid=hybrid, embeddings=Local(embedder)) as writer,
        open_services(reading) as services,
        services.make_run_manager() as turns,
    ):
        documents = [LangChainDocument(text, metadata={"source": name, "page": page}) for name, page, text in TEAM]
        ids = await writer.aadd_documents(documents)

        done = await ask(services, "How long is the warranty of the Falke?")
        assert done["warnings"] == []
        assert "36 months" in done["answer"]
        citation = done["citations"][0]
        assert (citation["document_id"], citation["page"], citation["boxes"]) == ("falke.pdf", 1, [])
        assert citation["chunk_id"] == ids[0]

        chosen = await ask(services, "How long is the warranty of the Amsel?", scope=Scope("default", ("amsel.pdf",)))
        assert chosen["warnings"] == []
        assert "24 months" in chosen["answer"]
        assert {c["document_id"] for c in chosen["citations"]} == {"amsel.pdf"}

        await writer.adelete(ids[:1])
        changed = documents[0].model_copy(update={"page_content": TEAM[0][2].replace("36", "60")})
        await writer.aadd_documents([changed])
        again = await ask(services, "How long is the warranty of the Falke?")
        assert (again["cached"], again["warnings"]) == (False, [])
        assert "60 months" in again["answer"]

        with pytest.raises(InputError, match="only reads it"):
            await services.library.ingestion.add("default", "new.md", HANDBOOK)
        with pytest.raises(UnknownDocument):
            await turns.ask(Ask("How long?", scope=Scope("default", ("gone.pdf",))))
