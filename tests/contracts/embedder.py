"""Contract of every `Embedder`. An adapter's tests inherit from the class and provide the fixture `model`: a model that
understands English, real or over `tests/wire`."""

import numpy as np
import pytest

from domain.ports.embedding import Embedder

PARIS = "Paris is the capital and largest city of France."
BREAD = "Knead the dough for ten minutes and let it rise."


class EmbedderContract:
    async def test_a_query_is_nearest_to_the_passage_that_answers_it(self, model: Embedder) -> None:
        query = await model.embed_query("What is the capital of France?")
        bread, paris = await model.embed_passages([BREAD, PARIS]) @ query
        assert paris > bread + 0.3

    async def test_vectors_are_of_the_dimension_and_of_unit_length(self, model: Embedder) -> None:
        query = await model.embed_query("How long does bread rise?")
        passages = await model.embed_passages([BREAD, PARIS])
        assert query.shape == (model.dimension,)
        assert passages.shape == (2, model.dimension)
        assert query.dtype == passages.dtype == np.float32
        np.testing.assert_allclose(np.linalg.norm(passages, axis=1), 1, atol=1e-5)
        assert np.linalg.norm(query) == pytest.approx(1, abs=1e-5)

    async def test_passages_keep_their_order_and_do_not_depend_on_batch_mates(self, model: Embedder) -> None:
        texts = [PARIS * 5, BREAD, PARIS, BREAD * 3, "x"]
        together = await model.embed_passages(texts)
        alone = np.concatenate([await model.embed_passages([text]) for text in texts])
        np.testing.assert_allclose(together, alone, atol=1e-4)

    async def test_awkward_text_is_embedded(self, model: Embedder) -> None:
        vectors = await model.embed_passages(["", "\ud800 lone surrogate", "\x00", "word " * 2000])
        assert np.isfinite(vectors).all()
        assert np.isfinite(await model.embed_query("")).all()

    async def test_nothing_gives_no_vectors(self, model: Embedder) -> None:
        assert (await model.embed_passages([])).shape == (0, model.dimension)

    async def test_a_repeated_query_is_not_computed_again(self, model: Embedder) -> None:
        first = await model.embed_query("How long may a passage be?")
        assert await model.embed_query("How long may a passage be?") is first
        with pytest.raises(ValueError, match="read-only"):
            first[0] = 1
