"""Documents that are stored first and embedded later, on a real database with the real model."""

import asyncio
from collections.abc import Sequence
from functools import partial

import pytest
import pytest_asyncio

from app.adapters.embeddings.onnx import OnnxEmbedder
from app.adapters.postgres.documents.store import PostgresDocumentStore
from app.adapters.postgres.library.library import PostgresLibrary
from app.adapters.postgres.pool import ALL_WORKSPACES, Pool, borrow
from app.adapters.postgres.vectors import backlog as backlog_module
from app.adapters.postgres.vectors.backlog import PostgresEmbeddingBacklog
from app.adapters.redis.answers import RedisAnswerCache
from app.adapters.redis.connection import RedisServer
from app.adapters.rerankers.late_interaction import LateInteractionEncoder, LateInteractionReranker
from app.ingest.embedding import CLAIMED_SECONDS, DELAY_SECONDS, embed_backlog
from app.ingest.parser_workers import ParserWorkers
from app.ingest.pipeline import WHOLE, Ingestion
from domain.errors import EmbedderUnavailable
from domain.ports.documents import ChunkVectors
from domain.scope import Scope
from nodes.context import Ledger

TEAM = "team"
SCOPE = Scope(TEAM)
QUESTION = "Which gauge measures rain?"


def write_report(sections: int) -> bytes:
    text = (
        "The {0}th station stands on a hill of {0} metres and is visited every {0} days by the keeper, who reads the "
        "gauge for rain, rinses the bucket, wipes the panel and notes the height of the snow in a book of {0} pages."
    )
    return "\n\n".join(f"## Station {n}\n\n{text.format(n)}" for n in range(1, sections + 1)).encode()


LONG = write_report(2 * WHOLE)
SHORT = b"# Rain\n\nRain is measured with a tipping bucket gauge that has to be rinsed every month.\n"


class Switch:
    """An encoder that can be down, and that counts what it encodes."""

    def __init__(self, encoder: LateInteractionEncoder) -> None:
        self.encoder = encoder
        self.is_down = False
        self.texts: list[str] = []

    async def encode(self, texts: Sequence[str]) -> list[ChunkVectors]:
        if self.is_down:
            raise EmbedderUnavailable
        self.texts += texts
        return await self.encoder.encode(texts)


@pytest.fixture
def library(pool: Pool) -> PostgresLibrary:
    return PostgresLibrary(pool)


@pytest.fixture
def backlog(pool: Pool) -> PostgresEmbeddingBacklog:
    return PostgresEmbeddingBacklog(pool)


@pytest.fixture
def encoder(embedder: OnnxEmbedder) -> Switch:
    return Switch(LateInteractionEncoder(embedder))


@pytest_asyncio.fixture
async def ingestion(
    store: PostgresDocumentStore,
    encoder: Switch,
    redis_server: RedisServer,
    backlog: PostgresEmbeddingBacklog,
    parsers: ParserWorkers,
) -> Ingestion:
    return Ingestion(store, encoder, RedisAnswerCache(redis_server), parsers, backlog=backlog)


async def embed_all(backlog: PostgresEmbeddingBacklog, encoder: Switch) -> None:
    while await embed_backlog(backlog, encoder) is not None:
        assert not encoder.is_down


async def test_words_find_a_document_before_it_is_embedded_and_its_meaning_does_afterwards(
    ingestion: Ingestion,
    library: PostgresLibrary,
    backlog: PostgresEmbeddingBacklog,
    store: PostgresDocumentStore,
    encoder: Switch,
    embedder: OnnxEmbedder,
) -> None:
    question = await embedder.embed_query(QUESTION)
    report = await ingestion.add(TEAM, "long.md", LONG, later=True)
    assert report.status == "added"
    assert not encoder.texts
    words = await library.search_lexical(SCOPE, "rain gauge", 200)
    assert len(words) == report.chunks
    ids = [match.chunk_id for match in words]
    assert await library.search_dense(SCOPE, question, 5) == []
    assert await library.search_titled(SCOPE, ["long.md"], question) == []
    assert await library.score_dense(SCOPE, question, ids) == []
    assert await library.count_unembedded(SCOPE) == 1
    [document] = await store.list(TEAM)
    assert document.to_embed == document.chunks == await backlog.count(TEAM)
    before = await store.corpus_fingerprint(SCOPE), await store.corpus_fingerprint(Scope(TEAM, (document.id,)))

    await embed_all(backlog, encoder)
    assert len(await library.search_dense(SCOPE, question, 5)) == 5
    assert await library.count_unembedded(SCOPE) == 0
    [document] = await store.list(TEAM)
    assert document.to_embed == 0
    assert len(await library.read_tokens(SCOPE, ids)) == report.chunks
    after = await store.corpus_fingerprint(SCOPE), await store.corpus_fingerprint(Scope(TEAM, (document.id,)))
    assert not set(before) & set(after)


async def test_a_short_document_does_not_wait_for_a_long_one(
    ingestion: Ingestion, backlog: PostgresEmbeddingBacklog, encoder: Switch, library: PostgresLibrary
) -> None:
    long = await ingestion.add(TEAM, "long.md", LONG, later=True)
    short = await ingestion.add("other", "short.md", SHORT, later=True)
    assert long.document_id
    assert short.document_id
    while await backlog.count("other", short.document_id):
        assert await backlog.embed_some(encoder)
    assert await backlog.count(TEAM, long.document_id) >= long.chunks / 2 - backlog_module.BATCH
    assert await library.count_unembedded(SCOPE) == 1
    assert await library.count_unembedded(Scope("other")) == 0


async def test_workers_share_the_backlog_and_take_over_what_a_dead_one_had(
    ingestion: Ingestion,
    backlog: PostgresEmbeddingBacklog,
    encoder: Switch,
    pool: Pool,
) -> None:
    await ingestion.add(TEAM, "long.md", LONG, later=True)
    await asyncio.gather(*(embed_all(backlog, encoder) for _ in range(3)))
    assert len(encoder.texts) == len(set(encoder.texts))
    assert await backlog.count_all() == 0
    assert await backlog.is_empty()

    await ingestion.add(TEAM, "short.md", SHORT, later=True)
    async with borrow(pool, ALL_WORKSPACES) as connection:
        await connection.execute("UPDATE chunks_to_embed SET claimed_until = now() + interval '1 minute'")
    assert await embed_backlog(backlog, encoder) == CLAIMED_SECONDS
    async with borrow(pool, ALL_WORKSPACES) as connection:
        await connection.execute("UPDATE chunks_to_embed SET claimed_until = now() - interval '1 second'")
    assert await embed_backlog(backlog, encoder) is None


async def test_the_backlog_waits_for_a_model_that_is_down(
    ingestion: Ingestion, backlog: PostgresEmbeddingBacklog, encoder: Switch
) -> None:
    await ingestion.add(TEAM, "short.md", SHORT, later=True)
    encoder.is_down = True
    assert await embed_backlog(backlog, encoder) == DELAY_SECONDS
    encoder.is_down = False
    assert await embed_backlog(backlog, encoder) is None
    assert await backlog.count_all() == 0


async def test_a_document_that_is_changed_or_deleted_leaves_nothing_to_embed(
    ingestion: Ingestion, backlog: PostgresEmbeddingBacklog, encoder: Switch, library: PostgresLibrary
) -> None:
    await ingestion.add(TEAM, "long.md", LONG, later=True)
    changed = await ingestion.add(TEAM, "long.md", SHORT, later=True)
    assert changed.document_id
    assert await backlog.count(TEAM) == changed.chunks
    await ingestion.delete(TEAM, changed.document_id)
    assert await backlog.count_all() == 0
    assert await embed_backlog(backlog, encoder) is None


async def test_a_chunk_that_is_deleted_while_it_is_embedded_is_left_alone(
    ingestion: Ingestion, backlog: PostgresEmbeddingBacklog, encoder: Switch, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = await ingestion.add(TEAM, "short.md", SHORT, later=True)
    assert report.document_id
    encode = encoder.encode

    async def encode_late(delete: partial[object], texts: Sequence[str]) -> list[ChunkVectors]:
        await ingestion.delete(TEAM, str(report.document_id))
        return await encode(texts)

    monkeypatch.setattr(encoder, "encode", partial(encode_late, partial(int)))
    await backlog.embed_some(encoder)
    assert await backlog.count_all() == 0


async def test_who_waits_for_a_long_document_gets_it_embedded(
    ingestion: Ingestion, backlog: PostgresEmbeddingBacklog
) -> None:
    report = await ingestion.add(TEAM, "long.md", LONG)
    assert report.chunks == report.embedded > WHOLE
    assert await backlog.count_all() == 0


async def test_a_long_document_is_kept_with_a_note_where_the_model_is_down(
    ingestion: Ingestion, backlog: PostgresEmbeddingBacklog, encoder: Switch, library: PostgresLibrary
) -> None:
    encoder.is_down = True
    report = await ingestion.add(TEAM, "long.md", LONG)
    assert report.status == "added"
    assert "words" in (report.note or "")
    assert await backlog.count(TEAM) == report.chunks
    assert await library.search_lexical(SCOPE, "snow", 5)


async def test_reranking_embeds_few_of_the_passages_that_are_not_embedded_yet(
    ingestion: Ingestion,
    backlog: PostgresEmbeddingBacklog,
    library: PostgresLibrary,
    embedder: OnnxEmbedder,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await ingestion.add(TEAM, "short.md", SHORT)
    await ingestion.add(TEAM, "long.md", LONG, later=True)
    matches = await library.search_lexical(SCOPE, "rain gauge bucket", 20)
    passages = await library.read_passages(SCOPE, [match.chunk_id for match in matches])
    reranker = LateInteractionReranker(embedder, library)
    encoder = Switch(reranker._encoder)
    monkeypatch.setattr(reranker, "_encoder", encoder)
    scores = await reranker.score(SCOPE, QUESTION, passages, Ledger())
    assert len(scores) == len(passages) == 20
    assert len(encoder.texts) == 4
    assert max(scores) == scores[[passage.source for passage in passages].index("short.md")]


async def test_a_document_that_is_stored_is_reported_so_when_the_disk_is_full_then(
    ingestion: Ingestion, pool: Pool, store: PostgresDocumentStore
) -> None:
    async with borrow(pool, ALL_WORKSPACES) as connection:
        await connection.execute(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
            "$$BEGIN RAISE EXCEPTION 'no space left' USING ERRCODE = 'disk_full'; END$$"
        )
        await connection.execute("CREATE TRIGGER refuse BEFORE UPDATE ON chunks FOR EACH ROW EXECUTE FUNCTION refuse()")
    report = await ingestion.add(TEAM, "long.md", LONG)
    assert (report.status, [document.source for document in await store.list(TEAM)]) == ("added", ["long.md"])
    assert report.note is not None
