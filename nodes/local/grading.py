"""Predicts, without a language model, whether sources hold the answer to a question.

Similarity says whether the sources are about what is asked; questions about other things are told apart well.
Whether they answer it is a finer matter that similarity hardly shows, so a confidence around the middle stays a guess.
Constants: benchmarks/fit_grading.py; figures and what was tried in vain: docs/decisions/0012-local-grading.md.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import astuple, dataclass

from domain.documents import Source
from domain.errors import EmbedderUnavailable
from domain.ports import Embedder
from domain.sentences import split_sentences
from domain.terms import analyse, content_words

_READ = 3
"""Sources in which the sentence closest to the question is looked for."""

_NEGATION = re.compile(r"\b(not|no|never|nor|neither|without|cannot|except|fail\w*|lack\w*)\b|n['’]t\b", re.IGNORECASE)
_WEIGHTS = (-3.46, 3.04, 4.75, -0.82)
"""Log-odds: intercept and one weight per sign. Fitted on answerable, unanswerable and unrelated questions of five
public sets; the intercept is set so that 93 % of answerable questions whose passage was found stay above 0.4."""


@dataclass(frozen=True, slots=True)
class Grade:
    """`confidence` (0-1) that the sources answer the question; `missing`, the question's words that none of them
    holds, as they stand in the question."""

    confidence: float
    missing: list[str]


@dataclass(frozen=True, slots=True)
class Signs:
    """What the logistic weighs; each 0-1."""

    relevance: float
    """Σ scoreᵢ / i ÷ Σ 1 / i over the sources, best first."""
    similarity: float
    """Cosine of the question and the best source."""
    unshared_negation: float
    """The question denies something, the sentence closest to it does not."""


async def grade(question: str, sources: Sequence[Source], embedder: Embedder) -> Grade:
    """How likely it is that `sources`, best first, answer the question. 0 where there are none."""
    if not sources:
        return Grade(0.0, content_words(question))
    best = sources[0]
    similarity = best["dense"]
    if similarity is None:
        similarity = await _compare(question, best, embedder)
    signs = read_signs(question, sources, similarity)
    log_odds = sum(weight * value for weight, value in zip(_WEIGHTS, (1.0, *astuple(signs)), strict=True))
    return Grade(1 / (1 + math.exp(-log_odds)), find_missing(question, sources))


def read_signs(question: str, sources: Sequence[Source], similarity: float) -> Signs:
    """The signs of one question and at least one source."""
    ranks = range(1, len(sources) + 1)
    relevance = sum(s["score"] / rank for s, rank in zip(sources, ranks, strict=True)) / sum(1 / r for r in ranks)
    closest = _find_closest_sentence(question, sources[:_READ])
    return Signs(
        relevance=relevance,
        similarity=similarity,
        unshared_negation=float(_NEGATION.search(question) is not None and _NEGATION.search(closest) is None),
    )


def find_missing(question: str, sources: Sequence[Source]) -> list[str]:
    """The question's meaningful words, names and numbers whose stem is in no source, in order."""
    covered = {term for source in sources for term in analyse(_read(source))}
    return [word for word in dict.fromkeys(content_words(question)) if not covered.intersection(analyse(word))]


async def _compare(question: str, source: Source, embedder: Embedder) -> float:
    """For a source that only the lexical leg found. Where the embedder is down, the relevance has to do."""
    try:
        [passage] = await embedder.embed_passages([_read(source)])
        return float(passage @ await embedder.embed_query(question))
    except EmbedderUnavailable:
        return source["score"]


def _read(source: Source) -> str:
    return " ".join((source["title"], *source["heading_path"], source["text"]))


def _find_closest_sentence(question: str, sources: Sequence[Source]) -> str:
    """By shared words; the better source's where two share as many."""
    wanted = set(analyse(question))
    sentences = [s["text"][start:end] for s in sources for start, end in split_sentences(s["text"])]
    return max(sentences, key=lambda sentence: len(wanted.intersection(analyse(sentence))), default="")
