from collections.abc import Sequence

import numpy as np
import pytest

from app.adapters.embeddings.onnx import OnnxEmbedder
from app.adapters.rerankers.late_interaction import (
    DIMENSIONS,
    LateInteractionEncoder,
    LateInteractionReranker,
    compare,
    compress,
)
from domain.documents import Passage, embedding_text
from domain.scope import Scope
from nodes.context import Ledger
from tests.contracts.reranker import RerankerContract
from tests.unit_scorers import NoTokens

SCOPE = Scope("default")
QUESTION = "How often must the smoke detectors be tested?"
ANSWER = "Smoke detectors are tested once a month by the caretaker, who signs the log."
RELATED = "The smoke detectors in the east wing were bought from Halden Ltd. in 2019."
UNRELATED = "Knead the dough for ten minutes and let it rise in a warm place."


class Shelf(NoTokens):
    """Token vectors in memory, and what was asked for."""

    def __init__(self, stored: dict[str, bytes]) -> None:
        self.stored = stored

    async def read_tokens(self, scope: Scope, chunk_ids: Sequence[str]) -> dict[str, bytes]:
        return {chunk_id: self.stored[chunk_id] for chunk_id in chunk_ids if chunk_id in self.stored}


def passage(chunk_id: str, text: str) -> Passage:
    return Passage(chunk_id, 0, "d", "Building rules", text, 0, len(text), heading_path=("Building rules", "Safety"))


PASSAGES = [passage("unrelated", UNRELATED), passage("answer", ANSWER), passage("related", RELATED)]


class TestLateInteractionReranker(RerankerContract):
    @pytest.fixture
    def reranker(self, embedder: OnnxEmbedder) -> LateInteractionReranker:
        return LateInteractionReranker(embedder, Shelf({}))


async def test_stored_vectors_give_the_same_scores_as_the_text(embedder: OnnxEmbedder) -> None:
    texts = [embedding_text(p.title, p.heading_path, p.text) for p in PASSAGES]
    encoded = await LateInteractionEncoder(embedder).encode(texts)
    shelf = Shelf({p.chunk_id: vectors.tokens for p, vectors in zip(PASSAGES, encoded, strict=True)})
    from_shelf = await LateInteractionReranker(embedder, shelf).score(SCOPE, QUESTION, PASSAGES, Ledger())
    from_text = await LateInteractionReranker(embedder, Shelf({})).score(SCOPE, QUESTION, PASSAGES, Ledger())
    assert from_shelf == pytest.approx(from_text, abs=1e-3)


async def test_what_is_stored_is_used(embedder: OnnxEmbedder) -> None:
    [vectors] = await LateInteractionEncoder(embedder).encode([ANSWER])
    swapped = Shelf({"unrelated": vectors.tokens})
    unrelated, _, related = await LateInteractionReranker(embedder, swapped).score(SCOPE, QUESTION, PASSAGES, Ledger())
    assert unrelated > related


async def test_one_run_gives_both_the_embedding_and_48_bytes_a_word(embedder: OnnxEmbedder) -> None:
    texts = [ANSWER * 3, UNRELATED, "..."]
    encoded = await LateInteractionEncoder(embedder).encode(texts)
    np.testing.assert_allclose([v.embedding for v in encoded], await embedder.embed_passages(texts), atol=1e-4)
    words = len(await embedder.embed_query_tokens(UNRELATED))
    assert len(encoded[1].tokens) == 48 * words
    assert encoded[2].tokens == b""


async def test_nothing_to_compare_scores_nothing(embedder: OnnxEmbedder) -> None:
    reranker = LateInteractionReranker(embedder, Shelf({}))
    assert await reranker.score(SCOPE, QUESTION, [], Ledger()) == []
    assert await reranker.score(SCOPE, "?!", PASSAGES[:1], Ledger()) == [0.0]


def test_four_bits_a_value_keep_the_vectors() -> None:
    rows = np.random.default_rng(5).normal(size=(200, DIMENSIONS)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    assert all(len(compress(row[None])) == DIMENSIONS / 2 for row in rows)
    likeness = [compare(row[None], [compress(row[None])])[0] for row in rows]
    assert min(likeness) > 0.9
    assert np.mean(likeness) > 0.98


def test_scores_are_the_mean_over_question_tokens_of_the_best_match() -> None:
    rows = np.random.default_rng(6).normal(size=(30, DIMENSIONS)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    question = rows[:4]
    passages = [rows[10:], rows[10:10], rows[:10]]
    expected = [(question @ passage.T).max(axis=1).mean() if len(passage) else 0 for passage in passages]
    assert compare(question, [compress(passage) for passage in passages]) == pytest.approx(expected, abs=0.02)
