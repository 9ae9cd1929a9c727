"""Finds the sentences that answer a question, without a language model."""

import math
import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from domain.documents import Source
from domain.errors import EmbedderUnavailable
from domain.ports.embedding import Embedder
from domain.ports.judgement import FoundAnswer, Quote
from domain.state import Turn
from domain.text.markers import strip_markers
from domain.text.ranges import Amount, compare, read_amounts
from domain.text.terms import analyse
from nodes.local.extraction.conclusion import conclude
from nodes.local.reading.expectation import drop_kind, meet_expectation
from nodes.local.reading.focus import asks_again, find_documents, read_focus, share_terms
from nodes.local.reading.statements import Statement, read_title, split_statements

_EMBEDDED = 8
"""Number of passages that are embedded, about 5 ms each; the others are sorted out by words and source. Where one
passage answers, five are enough; where two are needed, five lose answers
(docs/measurements/quotes-and-verification.md)."""

COVERAGE = 0.5
"""Weight of covering all words of the question; a cosine of 1 has weight 1 (benchmarks/extraction.py)."""

CONTEXT = 0.75
"""Factor on the weight of a word that only the title, heading, lead-in or sentence before has."""

EXPECTED = 0.15
"""Bonus for a sentence that holds the kind of thing asked for, malus for one that does not
(benchmarks/extraction.py)."""

CARRIED = 0.3
"""Factor on the weight of a word that comes from the conversation and not from the user's question."""

FOCUS = 0.5
"""Weight of the similarity with the question without its subject: otherwise the sentence that names the subject most
beats the one that answers (docs/decisions/10-grading.md)."""

FOCUS_HELD = 0.15
"""Weight of holding all words of the focus."""

CONTINUED = 0.1
"""Bonus for a document that the last answer cites, where the question leans on the conversation."""

SUBJECT = 0.3
"""Factor on the weight of a word that names the subject."""

RELEVANCE = 0.1
"""Weight of the relevance of the source: of two similar sentences, that of the better document wins."""

PROMISE = 0.8
"""Weight of the relevance before anything is embedded: it stands in for the similarity."""

CLOSE = 0.1
"""Distance to the best score up to which a further sentence is quoted (benchmarks/extraction.py)."""

CLOSE_IF_NEW = 0.2
"""The same for a sentence that covers words of the question which the others leave open, or that belongs to a list."""

EQUALLY = 0.8
"""Share of the best row's matched terms, by weight, that a further row of the same table must match."""

_ENUMERATION = re.compile(
    r"^\W*(?:list|name|enumerate)\b|\b(?:what|which) (?:are|were|\w+s\b)|\bwhat all\b|\bsteps\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class LocalFinder:
    """Implements `AnswerFinder`."""

    embedder: Embedder

    async def find(
        self,
        question: str,
        sources: Sequence[Source],
        *,
        most: int,
        typed: str | None = None,
        last: Turn | None = None,
    ) -> FoundAnswer:
        quotes = await extract(question, sources, self.embedder, max_sentences=most, typed=typed, last=last)
        if not quotes:
            return FoundAnswer([])
        best = max(quotes, key=lambda quote: quote.score)
        if best.text[0].isdigit():
            return FoundAnswer(quotes)
        [source] = [source for source in sources if source["number"] == best.number]
        return FoundAnswer(quotes, conclude(question, best.text, read_title(source)))


async def extract(
    question: str,
    sources: Sequence[Source],
    embedder: Embedder,
    *,
    max_sentences: int,
    typed: str | None = None,
    last: Turn | None = None,
) -> list[Quote]:
    """Return the passages that answer best, at most `max_sentences`: the best one's source first, in reading order
    within a source. None where there are no sources. Where the embedder is down, words alone decide.

    A sentence that leans on the one before it, a list item and a table row come with their lead-in; a list that answers
    comes whole. Of rows, items or sentences that state ranges side by side, only the one that encloses a number of the
    question is quoted.

    `typed` is the question as the user wrote it, where `question` carries words of the conversation. What the `last`
    answer quoted is then quoted again only where it says more of what was typed than everything else, and "And the
    other one?" asks for the same kind of thing as the last question.
    """
    typed = typed or question
    passages = [passage for source in sources for passage in split_statements(source)]
    passages = [p for p in passages if not p.text.endswith(":") or meet_expectation(question, p.text) >= 0]
    passages = _drop_excluding(passages, read_amounts(question))
    kind, continued = question, list[str]()
    title = read_title(sources[0]) if sources else ""
    focus, asked = read_focus(question, title, typed, last), question
    if typed != question and last is not None:
        continued = last["documents"]
        passages = _drop_said(passages, typed, last["answer"])
        if asks_again(typed):
            kind = last["question"]
            asked = f"{typed} {focus.text}" if focus else question
    wanted = _weigh_terms(asked, typed, focus.subject if focus else (), passages)
    about = find_documents(focus, sources) if focus else set()
    merit = [
        COVERAGE * _cover(wanted, passage)
        + EXPECTED * meet_expectation(kind, passage.text)
        + CONTINUED * (passage.source["title"] in continued)
        + (FOCUS_HELD * share_terms(focus, passage) if focus and passage.source["document_id"] in about else 0)
        for passage in passages
    ]
    relevance = [passage.source["score"] for passage in passages]
    promising = sorted(range(len(passages)), key=lambda i: -(merit[i] + PROMISE * relevance[i]))
    chosen = promising[: max(_EMBEDDED, max_sentences)]
    if not chosen:
        return []
    texts = [passages[i].shown for i in chosen]
    similarities = await _compare(question, texts, embedder)
    if focus is not None:
        nearness = await _compare(focus.text, texts, embedder)
        similarities = [
            similarity + FOCUS * near * (passages[i].source["document_id"] in about)
            for i, similarity, near in zip(chosen, similarities, nearness, strict=True)
        ]
    scored = sorted(
        (
            (similarity + merit[i] + RELEVANCE * relevance[i], passages[i])
            for i, similarity in zip(chosen, similarities, strict=True)
        ),
        key=lambda item: -item[0],
    )
    return _select(scored, wanted, bool(_ENUMERATION.search(question)), max_sentences)


def _drop_excluding(passages: Sequence[Statement], amounts: Sequence[Amount]) -> list[Statement]:
    """Drop statements with another range than the one of their paragraph, list or table that encloses an amount."""
    for amount in amounts:
        fits = [compare(amount, passage.text) for passage in passages]
        settled = {p.block for p, fit in zip(passages, fits, strict=True) if fit == "encloses"}
        passages = [
            replace(passage, enclosed=passage.enclosed | {amount.term}) if fit == "encloses" else passage
            for passage, fit in zip(passages, fits, strict=True)
            if fit in (None, "encloses") or passage.block not in settled
        ]
    return list(passages)


def _drop_said(passages: Sequence[Statement], typed: str, said: str) -> list[Statement]:
    """Drop statements that the last answer quoted. One stays where it holds more of the typed words than everything
    else or, where no typed word carries meaning ("Since when?"), where it holds the kind of thing asked for. A table
    row, whose other cells may be asked for now, gives way only to another row with more of those words."""
    words = set(analyse(drop_kind(typed)))
    known = " ".join(said.split())
    again = [" ".join(strip_markers(passage.text).split()) in known for passage in passages]
    others = [passage for passage, old in zip(passages, again, strict=True) if not old]
    most = max((len(words & other.terms) for other in others), default=-1)
    most_in_rows = max((len(words & other.terms) for other in others if other.table is not None), default=-1)

    def stays(passage: Statement) -> bool:
        held = len(words & passage.terms)
        if passage.table is not None and held >= most_in_rows:
            return True
        return held > most or (not words and meet_expectation(typed, passage.text) > 0)

    return [passage for passage, old in zip(passages, again, strict=True) if not old or stays(passage)]


async def _compare(question: str, texts: Sequence[str], embedder: Embedder) -> list[float]:
    try:
        vector = await embedder.embed_query(question)
        return [float(similarity) for similarity in await embedder.embed_passages(texts) @ vector]
    except EmbedderUnavailable:
        return [0.0] * len(texts)


def _weigh_terms(
    question: str, typed: str, subject: Collection[str], passages: Sequence[Statement]
) -> dict[str, float]:
    """Return the weights of the question's terms, which add up to 1: the idf of BM25 over the passages, reduced for
    terms of the conversation and of the subject."""
    # In the order of the question, because sums over a set differ between processes in the last bit.
    terms = dict.fromkeys(analyse(question))
    own = set(analyse(drop_kind(typed) if typed != question else typed))
    held = Counter(term for passage in passages for term in terms.keys() & passage.terms)
    weights = {
        t: math.log(1 + (len(passages) - held[t] + 0.5) / (held[t] + 0.5))
        * (1 if t in own else CARRIED)
        * (SUBJECT if t in subject else 1)
        for t in terms
    }
    total = sum(weights.values())
    return {term: weight / total for term, weight in weights.items()}


def _cover(wanted: dict[str, float], passage: Statement) -> float:
    own = passage.terms
    around = set(analyse(passage.context))
    return sum(w if t in own else CONTEXT * w if t in around else 0.0 for t, w in wanted.items())


def _select(
    scored: Sequence[tuple[float, Statement]], wanted: dict[str, float], enumerating: bool, max_sentences: int
) -> list[Quote]:
    best = scored[0][0]
    quotes: list[Quote] = []
    places: list[tuple[str, int, int]] = []
    texts: set[str] = set()
    missing = set(wanted)
    tables: dict[tuple[int, int], float] = {}
    for score, passage in scored:
        terms = passage.terms
        new = bool(missing & terms) or (enumerating and passage.lead is not None)
        if len(quotes) == max_sentences:
            break
        margin = CLOSE_IF_NEW if new else CLOSE
        if new and _completes(scored[0][1], passage):
            margin += 2 * EXPECTED  # only the best sentence has to hold the expected kind of thing
        if score < best - margin:
            continue
        if passage.table is not None:
            matched = math.fsum(wanted[term] for term in wanted.keys() & terms)
            if matched < EQUALLY * tables.setdefault((passage.source["number"], passage.table), matched):
                continue
        spans = [passage.lead, (passage.start, passage.end)] if passage.lead else [(passage.start, passage.end)]
        for span in spans[-(max_sentences - len(quotes)) :]:
            quote = _quote(passage, span, score)
            place = (passage.source["document_id"], quote.start, quote.end)
            words = " ".join(quote.text.lower().split())
            if words in texts or any(_overlap(place, other) for other in places):
                continue
            quotes.append(quote)
            places.append(place)
            texts.add(words)
        missing -= terms
    # The source of the best quote comes first; within a source, quotes keep their order.
    merit = {number: max(q.score for q in quotes if q.number == number) for number in {q.number for q in quotes}}
    return sorted(quotes, key=lambda quote: (-merit[quote.number], quote.number, quote.start))


def _quote(passage: Statement, span: tuple[int, int], score: float) -> Quote:
    offset = passage.source["start"]
    text = passage.source["text"][slice(*span)]
    return Quote(passage.source["number"], offset + span[0], offset + span[1], text, score)


def _completes(best: Statement, passage: Statement) -> bool:
    """Return True where the passage follows the best one in its paragraph."""
    between = passage.source["text"][best.end : passage.start]
    return passage.source is best.source and between.isspace() and "\n" not in between


def _overlap(one: tuple[str, int, int], other: tuple[str, int, int]) -> bool:
    """Return True where two places share text, as in overlapping chunks. A place is (document id, start, end)."""
    return one[0] == other[0] and one[1] < other[2] and other[1] < one[2]
