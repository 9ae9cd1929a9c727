"""generate without a model: what is quoted, cited and admitted."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import pytest

from app.adapters.embeddings.onnx import OnnxEmbedder
from domain.documents import Source
from domain.ports.judgement import Quote
from nodes.generate.step import GenerateUpdate, generate
from tests.nodes.nodes_alone import make_runtime, make_state
from tests.sources import make_source

TEXT = "It costs 9 francs. It is blue. Children pay 4 francs. Dogs are free."
SOURCES = [make_source(TEXT, start=100), make_source("Members pay nothing.", number=2, document_id="e", start=30)]


@dataclass
class Finder:
    """Quotes sentences by number: of the first source from 0, and -1 for the only one of the second."""

    sentences: Sequence[int]

    async def find(self, question: str, sources: Sequence[Source], **_: Any) -> list[Quote]:
        return [self._quote(sentence) for sentence in self.sentences]

    def _quote(self, sentence: int) -> Quote:
        if sentence < 0:
            return Quote(2, 30, 50, "Members pay nothing.")
        text = TEXT.split(". ")[sentence].rstrip(".") + "."
        start = 100 + TEXT.index(text)
        return Quote(1, start, start + len(text), text)


async def quote(embedder: OnnxEmbedder, *sentences: int, **fields: Any) -> tuple[GenerateUpdate, list[Any]]:
    events: list[Any] = []
    state = make_state(**{"sources": SOURCES, "confidence": 0.9, "level": "high", **fields})
    update = await generate(state, make_runtime(embedder, events, finder=Finder(sentences)))
    return cast(GenerateUpdate, update), events


@pytest.mark.parametrize("sentences", [(0, 2, -1), (2, 0, -1), (0, 1, 2, -1), (0, -1, 2), (0, 2, 1, -1)])
async def test_a_citation_spans_all_quotes_of_its_source(embedder: OnnxEmbedder, sentences: tuple[int, ...]) -> None:
    update, events = await quote(embedder, *sentences)
    end = TEXT.index(" Dogs")
    assert [(c["marker"], c["start"], c["end"]) for c in update["citations"]] == [(1, 100, 100 + end), (2, 30, 50)]
    text = update["citations"][0]["text"]
    assert text == (TEXT[:end] if 1 in sentences else "It costs 9 francs.\n…\nChildren pay 4 francs.")
    streamed = [event["citation"] for event in events if event["type"] == "citation"]
    assert streamed == update["citations"]


async def test_an_answer_of_enough_confidence_is_plain(embedder: OnnxEmbedder) -> None:
    update, _ = await quote(embedder, 0, confidence=0.6)
    assert (update["outcome"], update["outcome_reasons"]) == ("answered", [])
    assert update["framing"] == {"opening": 0, "closing": 0}
    assert update["answer"] == "It costs 9 francs. [1]"


async def test_an_answer_of_low_confidence_has_a_caveat(embedder: OnnxEmbedder) -> None:
    update, _ = await quote(embedder, 0, confidence=0.599)
    assert update["outcome"] == "answered_with_caveat"
    assert update["outcome_reasons"] == [{"code": "low_confidence", "confidence": 0.599}]
    opening = update["framing"]["opening"]
    assert update["answer"][opening:] == "It costs 9 francs. [1]"
    assert update["turns"][-1]["outcome"] == "answered_with_caveat"


async def test_an_answer_admits_the_names_that_no_source_mentions(embedder: OnnxEmbedder) -> None:
    update, _ = await quote(
        embedder, 0, question="What does it cost in Oslo in 2031?", missing=["oslo", "2031", "cost"]
    )
    assert update["outcome"] == "answered_with_caveat"
    assert update["outcome_reasons"] == [{"code": "missing_words", "words": ["Oslo", "2031"]}]
    claimed = len(update["answer"]) - update["framing"]["closing"]
    assert update["answer"][:claimed] == "It costs 9 francs. [1]"


async def test_an_answer_names_the_parts_that_no_source_answers(embedder: OnnxEmbedder) -> None:
    question = "What does it cost, and who sells it?"
    update, _ = await quote(embedder, 0, question=question, missing=["who sells it?"])
    assert update["outcome_reasons"] == [{"code": "missing_parts", "parts": ["who sells it?"]}]
    assert update["answer"] == "It costs 9 francs. [1]\n\nI found no sure answer to “who sells it?”."


async def test_without_a_quote_it_abstains(embedder: OnnxEmbedder) -> None:
    update, _ = await quote(embedder)
    assert (update["outcome"], update["outcome_reasons"]) == ("abstained", [{"code": "nothing_quotable"}])
    assert (update["confidence"], update["level"], update["citations"]) == (0.0, "none", [])
