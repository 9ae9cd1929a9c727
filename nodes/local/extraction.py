"""Finds the sentences that answer a question."""

from collections.abc import Sequence
from dataclasses import dataclass

from domain.documents import Source
from domain.ports import Embedder
from domain.sentences import split_sentences
from domain.terms import analyse

_EMBEDDED = 24
"""Sentences that are embedded; the others were left behind lexically. Keeps the step within 150 ms."""


@dataclass(frozen=True, slots=True)
class Quote:
    """A sentence that answers: `start`-`end` of the document of source `number`, and exactly the text there."""

    number: int
    start: int
    end: int
    text: str
    score: float


async def extract(question: str, sources: Sequence[Source], embedder: Embedder, *, max_sentences: int) -> list[Quote]:
    """The few sentences of `sources` that answer best, in reading order; none where there are no sources.

    Raises `EmbedderUnavailable`.
    """
    wanted = set(analyse(question))
    seen: set[tuple[str, int, int]] = set()
    found: list[tuple[float, Quote]] = []
    for source in sources:
        for start, end in split_sentences(source["text"]):
            place = (source["document_id"], source["start"] + start, source["start"] + end)
            if place in seen:
                continue
            seen.add(place)
            text = source["text"][start:end]
            coverage = len(wanted & set(analyse(text))) / max(1, len(wanted))
            found.append((coverage, Quote(source["number"], place[1], place[2], text, 0.0)))
    found.sort(key=lambda item: -item[0])
    found = found[:_EMBEDDED]
    if not found:
        return []
    vector = await embedder.embed_query(question)
    vectors = await embedder.embed_passages([quote.text for _, quote in found])
    ranked = sorted(
        (
            Quote(quote.number, quote.start, quote.end, quote.text, float(vectors[row] @ vector) + coverage)
            for row, (coverage, quote) in enumerate(found)
        ),
        key=lambda quote: -quote.score,
    )
    return sorted(ranked[:max_sentences], key=lambda quote: (quote.number, quote.start))
