import asyncio
import re
from collections.abc import AsyncIterator

import numpy as np
import pytest
import pytest_asyncio

from app.adapters.circuit import THRESHOLD
from app.adapters.embeddings import openai as openai_embeddings
from app.adapters.embeddings.onnx import OnnxEmbedder
from app.adapters.embeddings.openai import REQUEST_TEXTS, OpenAIEmbedder
from app.adapters.prices import read_prices
from domain.errors import ConfigurationError, EmbedderUnavailable
from tests.contracts.chat_model import Sink
from tests.contracts.embedder import BREAD, PARIS, EmbedderContract
from tests.wire.embeddings import EmbeddingsServer, Fault, serve_embeddings


@pytest_asyncio.fixture
async def server(embedder: OnnxEmbedder) -> AsyncIterator[EmbeddingsServer]:
    async with serve_embeddings(embedder) as server:
        yield server


@pytest_asyncio.fixture
async def model(server: EmbeddingsServer) -> AsyncIterator[OpenAIEmbedder]:
    model = connect(server)
    yield model
    await model.aclose()


@pytest.fixture
def few_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai_embeddings, "PASSAGE_RETRIES", 1)


def connect(server: EmbeddingsServer, spec: str = "openai:text-embedding-3-small", key: str = "key") -> OpenAIEmbedder:
    return OpenAIEmbedder(spec, api_key=key, base_url=server.base_url, prices=read_prices())


class TestContract(EmbedderContract):
    """`OpenAIEmbedder` over the real protocol."""


@pytest.mark.parametrize(
    ("spec", "name", "sent"),
    [
        ("openai:text-embedding-3-small", "openai:text-embedding-3-small@1536", None),
        ("openai:text-embedding-3-small@1536", "openai:text-embedding-3-small@1536", None),
        ("openai:text-embedding-3-small@256", "openai:text-embedding-3-small@256", 256),
        ("openai:text-embedding-3-large", "openai:text-embedding-3-large@3072", None),
        ("openai:@cf/baai/bge-base-en-v1.5@768", "openai:@cf/baai/bge-base-en-v1.5@768", 768),
    ],
)
async def test_the_dimension_belongs_to_the_name_and_is_asked_for_where_it_is_not_the_models_own(
    server: EmbeddingsServer, spec: str, name: str, sent: int | None
) -> None:
    model = connect(server, spec)
    assert model.name == name
    assert model.name.endswith(f"@{model.dimension}")
    assert len(await model.embed_query("word")) == model.dimension
    assert server.requests[-1].get("dimensions") == sent
    await model.aclose()


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ("openai:nomic-embed-text", "openai:nomic-embed-text@768"),
        ("openai:text-embedding-3-large@4001", "cannot be indexed"),
        ("openai:text-embedding-3-large@0", "cannot be indexed"),
        ("openai:", "names no embedding model"),
        ("openai:two words@256", "names no embedding model"),
    ],
)
def test_a_model_that_cannot_be_used_is_refused_before_it_is_asked(spec: str, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        OpenAIEmbedder(spec, api_key="", base_url=None, prices=read_prices())


async def test_a_server_that_knows_neither_dimensions_nor_base64(server: EmbeddingsServer) -> None:
    server.behaviour.takes_dimensions = False
    server.behaviour.knows_base64 = False
    model = connect(server, "openai:bge-m3@384")
    paris, _ = await model.embed_passages([PARIS, BREAD])
    again, _ = await model.embed_passages([PARIS, BREAD])
    np.testing.assert_allclose(paris, again, atol=1e-6)
    assert ["dimensions" in body for body in server.requests] == [True, False, False]
    await model.aclose()


@pytest.mark.parametrize(
    ("spec", "question", "passage", "fields"),
    [
        ("openai:intfloat/multilingual-e5-small@384", f"query: {PARIS}", f"passage: {PARIS}", {}),
        ("openai:nomic-embed-text:v1.5@768", f"search_query: {PARIS}", f"search_document: {PARIS}", {}),
        (
            "openai:BAAI/bge-small-en-v1.5@384",
            f"Represent this sentence for searching relevant passages: {PARIS}",
            PARIS,
            {},
        ),
        ("openai:voyage-3.5@1024", PARIS, PARIS, {"input_type": ("query", "document")}),
        ("openai:text-embedding-3-small", PARIS, PARIS, {}),
    ],
)
async def test_a_model_is_told_what_is_a_question_and_what_a_passage(
    server: EmbeddingsServer, spec: str, question: str, passage: str, fields: dict[str, tuple[str, str]]
) -> None:
    model = connect(server, spec)
    await model.embed_query(PARIS)
    await model.embed_passages([PARIS])
    asked, told = server.requests
    assert (asked["input"], told["input"]) == ([question], [passage])
    for name in ("input_type", "task"):
        assert (asked.get(name), told.get(name)) == fields.get(name, (None, None))
    await model.aclose()


async def test_many_texts_are_parted_into_requests(
    model: OpenAIEmbedder, server: EmbeddingsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openai_embeddings, "REQUEST_TEXTS", 3)
    monkeypatch.setattr(openai_embeddings, "REQUEST_BYTES", 80)
    texts = ["one", "two", "three", "four", BREAD, PARIS, PARIS * 3]
    vectors = await model.embed_passages(texts)
    assert sorted(body["input"] for body in server.requests) == sorted([texts[:3], texts[3:5], [PARIS], [PARIS * 3]])
    np.testing.assert_allclose(vectors[-1], (await model.embed_passages(texts[-1:]))[0], atol=1e-4)


@pytest.mark.parametrize(
    "too_long",
    [
        (413, "`inputs` must have less than 300 tokens."),
        (500, "input (900 tokens) is too large to process. increase the physical batch size"),
    ],
)
async def test_a_server_that_takes_few_texts_and_short_ones(
    model: OpenAIEmbedder, server: EmbeddingsServer, too_long: tuple[int, str]
) -> None:
    server.behaviour.too_long = too_long
    server.behaviour.most_inputs = 2
    server.behaviour.longest_input = 300
    sink = Sink()
    texts = [PARIS, BREAD, PARIS, "word " * 200 + BREAD, BREAD]
    vectors = await model.embed_passages(texts, sink)
    np.testing.assert_allclose(vectors[[0, 1]], vectors[[2, 4]], atol=1e-4)
    assert len(server.served) == len(texts), "no text is embedded twice"
    assert len(sink.usage) == 3
    asked = len(server.requests)
    assert asked < 10, "no wait cures a length"
    await model.embed_passages(texts)
    assert len(server.requests) - asked == 3, "what the server takes is remembered"


@pytest.mark.parametrize("status", [500, 400])
async def test_a_text_that_the_model_fails_at_keeps_no_other_waiting(
    model: OpenAIEmbedder, server: EmbeddingsServer, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    server.behaviour.fails_at, server.behaviour.fails_with = "NaN", status
    vectors = await model.embed_passages([PARIS, BREAD, "NaN in it", PARIS, f"{BREAD} {'bread ' * 100} NaN"])
    np.testing.assert_allclose(vectors[0], vectors[3], atol=1e-4)
    assert (vectors[1] @ vectors[4] > 0.5) == (status == 400), "what is refused is cut"
    assert "NaN in it" in caplog.text


async def test_what_a_call_costs_is_recorded_once(model: OpenAIEmbedder) -> None:
    sink = Sink()
    await model.embed_query(PARIS, sink)
    await model.embed_query(PARIS, sink)
    [usage] = sink.usage
    assert (usage.model, usage.output_tokens) == ("text-embedding-3-small", 0)
    assert usage.cost == pytest.approx(usage.input_tokens * 0.02e-6)
    assert usage.input_tokens > 0


@pytest.mark.parametrize("below", ["", "/v1/", "/v1/embeddings?api-version=2024"])
async def test_an_address_that_is_not_written_to_its_end_is_completed(server: EmbeddingsServer, below: str) -> None:
    address = server.base_url.removesuffix("/v1") + below
    model = OpenAIEmbedder("openai:text-embedding-3-small", api_key="key", base_url=address, prices=read_prices())
    assert await model.check() is None
    assert (await model.embed_passages([PARIS])).shape == (1, 1536)
    await model.aclose()


async def test_a_rate_limit_is_waited_for(model: OpenAIEmbedder, server: EmbeddingsServer) -> None:
    server.behaviour.faults = ["rate_limit", "rate_limit", "server_error"]
    assert (await model.embed_passages([PARIS])).shape == (1, 1536)
    server.behaviour.faults = ["rate_limit"]
    assert (await model.embed_query(PARIS)).shape == (1536,)
    assert len(server.requests) == 6


@pytest.mark.usefixtures("few_retries")
@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("rate_limit", "no more requests"),
        ("no_quota", "no quota left"),
        ("server_error", "had an error \\(500\\)"),
        ("unauthorized", "ASKGRAPH_EMBEDDINGS_API_KEY"),
        ("malformed", "violates its protocol"),
        ("short", "1535 dimensions, not of 1536.*=openai:text-embedding-3-small@1535"),
        ("one_missing", "0 vectors came"),
    ],
)
async def test_what_goes_wrong_is_said(server: EmbeddingsServer, fault: Fault, said: str) -> None:
    server.behaviour.fault = fault
    model = connect(server)
    with pytest.raises(EmbedderUnavailable, match=said):
        await model.embed_query(PARIS)
    with pytest.raises(EmbedderUnavailable, match=said):
        await model.embed_passages([PARIS])
    assert await model.check() == model.problem
    assert model.problem
    assert model.is_misfit == (fault == "short")
    server.behaviour.fault = None
    another = connect(server)
    await another.embed_query(PARIS)
    assert await another.check() is None
    await model.aclose()
    await another.aclose()


async def test_nobody_waits_for_long(server: EmbeddingsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PASSAGE_SECONDS", "QUERY_SECONDS", "CHECK_SECONDS"):
        monkeypatch.setattr(openai_embeddings, name, 0.2)
    monkeypatch.setattr(openai_embeddings, "PASSAGE_RETRIES", 0)
    server.behaviour.fault = "stall"
    server.behaviour.stall = 0.5
    model = connect(server)
    with pytest.raises(EmbedderUnavailable, match="took too long"):
        await model.embed_query(PARIS)
    with pytest.raises(EmbedderUnavailable, match="took too long"):
        await model.embed_passages([PARIS])
    assert "took too long" in str(await model.check())
    await model.aclose()


async def test_a_server_that_is_not_there() -> None:
    model = OpenAIEmbedder("openai:bge@384", api_key="", base_url="http://127.0.0.1:9/v1", prices=read_prices())
    with pytest.raises(EmbedderUnavailable, match=r"127\.0\.0\.1:9/v1/ does not answer"):
        await model.embed_query(PARIS)
    await model.aclose()


@pytest.mark.usefixtures("few_retries")
async def test_a_server_that_is_down_is_asked_no_more_for_a_while(
    model: OpenAIEmbedder, server: EmbeddingsServer
) -> None:
    server.behaviour.fault = "server_error"
    for _ in range(THRESHOLD):
        with pytest.raises(EmbedderUnavailable, match="had an error"):
            await model.embed_query(PARIS)
    asked = len(server.requests)
    with pytest.raises(EmbedderUnavailable, match="is not answering; it is tried again in"):
        await model.embed_passages([PARIS])
    assert len(server.requests) == asked
    assert re.search(r"not answering.* UTC: .* had an error", str(model.problem))


async def test_a_request_that_fails_ends_the_others(model: OpenAIEmbedder, server: EmbeddingsServer) -> None:
    server.behaviour.faults = ["unauthorized"]
    server.behaviour.seconds = 0.2
    with pytest.raises(EmbedderUnavailable):
        await model.embed_passages(["x"] * REQUEST_TEXTS * 6)
    await asyncio.sleep(0.3)
    assert len(server.requests) < 6
