"""Scoring units by the token vectors that are stored for their chunks."""

from collections.abc import Sequence

import numpy as np
import pytest

from app.adapters.embeddings.onnx import OnnxEmbedder
from app.adapters.rerankers.late_interaction import (
    DIMENSIONS,
    LateInteractionEncoder,
    compare,
    compress_places,
    project,
    read_projection,
)
from app.adapters.rerankers.unit_scorer import ENCODED, LateInteractionUnitScorer
from app.ingest.chunking import split
from domain.documents import ParsedDocument, Section, embedding_text
from domain.ports.library import TokenChunk
from domain.ports.unit_scoring import Stretch
from domain.scope import Scope
from domain.text.blocks import Span
from tests.unit_scorers import NoTokens

SCOPE = Scope("default")
QUESTION = "How often must the smoke detectors be tested?"
TITLE = "Building rules"
TEXT = (
    "# Safety\n\nThe `east` wing was built in 1974. Smoke detectors are tested once a month by the caretaker.\n\n"
    "```sh\nalarmctl reset --wing east\n```\n\n"
    "Fees in euros, 2026\n\nService | Price\n--- | ---\nNew key | 40\nLost badge | 15\n\n"
    + "> Knead the dough for ten minutes and let it rise in a warm place, as the kitchen says.\n\n" * 8
    + "The caretaker keeps the log of all alarms."
)
ANSWER = "Smoke detectors are tested once a month by the caretaker."


class Stored(NoTokens):
    """A library in memory that counts its reads."""

    def __init__(self, chunks: Sequence[TokenChunk]) -> None:
        self.chunks = list(chunks)
        self.reads = 0

    async def read_token_chunks(self, scope: Scope, places: Sequence[tuple[str, int, int]]) -> list[TokenChunk]:
        self.reads += 1
        return self.chunks


async def store(text: str, embedder: OnnxEmbedder) -> Stored:
    """The chunks of the text as ingestion stores them."""
    chunks = split(ParsedDocument(TITLE, text, "text/markdown", (Section(0, len(text), (TITLE,)),)))
    encoded = await LateInteractionEncoder(embedder).encode(
        [embedding_text(TITLE, chunk.heading_path, chunk.text, chunk.lead) for chunk in chunks]
    )
    return Stored(
        [
            TokenChunk(
                "d", chunk.start, chunk.text, TITLE, chunk.heading_path, chunk.lead, vectors.tokens, vectors.places
            )
            for chunk, vectors in zip(chunks, encoded, strict=True)
        ]
    )


def stretch(text: str, *units: str, start: int = 0, document_id: str = "d") -> Stretch:
    """The part of the text from `start`, with the units that have these words."""
    part = text[start:]
    spans: list[tuple[Span, ...]] = [((at := part.index(unit), at + len(unit)),) for unit in units]
    return Stretch(document_id, start, part, TITLE, tuple(spans))


@pytest.mark.parametrize(
    "unit", [ANSWER, "alarmctl reset --wing east", "Lost badge | 15", "The caretaker keeps the log"]
)
async def test_a_unit_is_compared_by_exactly_its_tokens(unit: str, embedder: OnnxEmbedder) -> None:
    stored = await store(TEXT, embedder)
    [[scored]] = await LateInteractionUnitScorer(embedder, stored).score(
        SCOPE, QUESTION, [stretch(TEXT, unit, start=10)]
    )
    at = TEXT.index(unit)
    [chunk] = [each for each in stored.chunks if each.start <= at < each.start + len(each.text)]
    embedded = embedding_text(chunk.title, chunk.heading_path, chunk.text, chunk.lead)
    first, words = (len(embedder._tokenize([text])[0][1]) for text in (embedded[: embedded.rindex(unit)], unit))
    tokens = chunk.tokens[first * DIMENSIONS // 2 : (first + words) * DIMENSIONS // 2]
    question = project(await embedder.embed_query_tokens(QUESTION), read_projection())
    assert scored is not None
    assert scored.tokens == pytest.approx(compare(question, [tokens])[0], abs=1e-3)


def test_places_that_two_bytes_cannot_hold_are_not_stored() -> None:
    assert compress_places(np.array([0, 65_535], dtype=np.int32)) == b"\0\0\xff\xff"
    assert compress_places(np.array([0, 65_536], dtype=np.int32)) == b""


async def test_a_unit_that_several_chunks_hold_is_compared_by_all_its_tokens(embedder: OnnxEmbedder) -> None:
    stored = await store(TEXT, embedder)
    assert len(stored.chunks) > 1
    scorer = LateInteractionUnitScorer(embedder, stored)
    [[whole, answer]] = await scorer.score(SCOPE, QUESTION, [stretch(TEXT, TEXT, ANSWER)])
    assert whole is not None
    assert answer is not None
    assert whole.tokens >= answer.tokens
    assert whole.whole < answer.whole


async def test_what_belongs_to_a_unit_counts(embedder: OnnxEmbedder) -> None:
    scorer = LateInteractionUnitScorer(embedder, await store(TEXT, embedder))
    row, header = (stretch(TEXT, text).units[0][0] for text in ("New key | 40", "Fees in euros, 2026"))
    both = Stretch("d", 0, TEXT, TITLE, ((row,), (row, header)))
    [[alone, together]] = await scorer.score(SCOPE, "What are the fees in euros?", [both])
    assert alone is not None
    assert together is not None
    assert together.tokens > alone.tokens + 0.05


async def test_stored_vectors_make_the_model_read_the_question_alone(embedder: OnnxEmbedder) -> None:
    stored = await store(TEXT, embedder)
    scorer = LateInteractionUnitScorer(embedder, stored)
    scorer._encoder = None  # type: ignore[assignment]
    with pytest.raises(AttributeError):
        await scorer.score(SCOPE, QUESTION, [stretch(TEXT, ANSWER, document_id="other")])
    [[answer, dough]] = await scorer.score(SCOPE, QUESTION, [stretch(TEXT, ANSWER, "Knead the dough")])
    assert answer is not None
    assert dough is not None
    assert answer.tokens > 0.6 > dough.tokens


async def test_without_stored_vectors_the_text_gives_about_the_same(embedder: OnnxEmbedder) -> None:
    asked = [stretch(TEXT, ANSWER, "Knead the dough", "New key | 40")]
    [from_store] = await LateInteractionUnitScorer(embedder, await store(TEXT, embedder)).score(SCOPE, QUESTION, asked)
    [from_text] = await LateInteractionUnitScorer(embedder, NoTokens()).score(SCOPE, QUESTION, asked)
    for one, other in zip(from_store, from_text, strict=True):
        assert one is not None
        assert other is not None
        assert one.tokens == pytest.approx(other.tokens, abs=0.1)


async def test_vectors_of_another_text_are_not_used(embedder: OnnxEmbedder) -> None:
    stored = await store(TEXT, embedder)
    changed = TEXT.replace("once a month", "twice a year")
    asked = [stretch(changed, ANSWER.replace("once a month", "twice a year"))]
    [[scored]] = await LateInteractionUnitScorer(embedder, stored).score(SCOPE, QUESTION, asked)
    [[expected]] = await LateInteractionUnitScorer(embedder, NoTokens()).score(SCOPE, QUESTION, asked)
    # The chunk further down is unchanged, so the stretch has some vectors and is not embedded.
    assert scored is None
    assert expected is not None
    stored.chunks = [
        TokenChunk("d", each.start, each.text, each.title, each.heading_path, each.lead, each.tokens[: DIMENSIONS // 2])
        for each in stored.chunks
    ]
    [[again]] = await LateInteractionUnitScorer(embedder, stored).score(SCOPE, QUESTION, [stretch(TEXT, ANSWER)])
    assert again is not None


async def test_few_pieces_are_embedded(embedder: OnnxEmbedder) -> None:
    paragraph = "The caretaker keeps the log of all alarms. " * 13 + "\n\n"
    asked = [stretch(paragraph, paragraph.strip(), document_id=f"{number}") for number in range(ENCODED + 3)]
    scored = await LateInteractionUnitScorer(embedder, NoTokens()).score(SCOPE, QUESTION, asked)
    assert [each is None for [each] in scored] == [False] * ENCODED + [True] * 3


async def test_the_second_step_that_asks_does_not_read_again(embedder: OnnxEmbedder) -> None:
    stored = await store(TEXT, embedder)
    scorer = LateInteractionUnitScorer(embedder, stored)
    asked = [stretch(TEXT, ANSWER)]
    first = await scorer.score(SCOPE, QUESTION, asked)
    assert await scorer.score(SCOPE, QUESTION, [stretch(TEXT, ANSWER)]) == first
    assert stored.reads == 1
    await scorer.score(SCOPE, QUESTION, asked)
    await scorer.score(Scope("other"), QUESTION, asked)
    assert stored.reads == 3


async def test_without_words_nothing_is_known(embedder: OnnxEmbedder) -> None:
    scorer = LateInteractionUnitScorer(embedder, await store(TEXT, embedder))
    assert await scorer.score(SCOPE, "?!", [stretch(TEXT, ANSWER)]) == [[None]]
    assert await scorer.score(SCOPE, QUESTION, [Stretch("d", 0, TEXT, TITLE, (((104, 105),),))]) == [[None]]
    assert await scorer.score(SCOPE, QUESTION, []) == []
