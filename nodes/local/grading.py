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
"""Sources in which the sentences closest to the question are looked for."""

_SENTENCES = 4
"""As many of them are compared with a short question; about 5 ms each."""

_SHORT = 3
"""Different terms of a question up to which a sentence that is nearer to it than its passage counts: few words are
drowned in 500 characters, many are not."""

_DENIAL = re.compile(r"\b(not|no|never|nor|neither|without|cannot|except|fail\w*|lack\w*)\b|n['’]t\b")
"""Lower case only: a title may be called "Never Cry Wolf"."""
_OPEN = re.compile(r"\b(what|which|who|whom|whose|when|where|why|how)\b", re.IGNORECASE)
"""A yes-or-no question and a claim are answered by what contradicts them; an open question is not."""
_NAME = re.compile(r"(?<=[\w,] )[A-ZÀ-Þ][^\W\d_A-Z]+\b(?!-)")
"""A word in capitals within the question. Codes and acronyms are left out: texts write them in many ways."""

_WEIGHTS = (-3.58, 4.5, 4.34, 4.11, -2.75, -1.86)
"""Log-odds: intercept and one weight per sign. Fitted on answerable, unanswerable and unrelated questions of five
public sets and of small libraries made from one of them."""


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
    sentence_gain: float
    """How much more similar than the best source the sentence nearest to a short question is, times the share of the
    question's terms that the sources hold; 0 for a long one."""
    unshared_denial: float
    """An open question denies something, the sentence that shares most words with it does not."""
    unknown_names: float
    """The question names something or somebody, and the sources none of it."""


async def grade(question: str, sources: Sequence[Source], embedder: Embedder) -> Grade:
    """How likely it is that `sources`, best first, answer the question. 0 where there are none."""
    if not sources:
        return Grade(0.0, content_words(question))
    signs = await read_signs(question, sources, embedder)
    log_odds = sum(weight * value for weight, value in zip(_WEIGHTS, (1.0, *astuple(signs)), strict=True))
    return Grade(1 / (1 + math.exp(-log_odds)), find_missing(question, sources))


async def read_signs(question: str, sources: Sequence[Source], embedder: Embedder) -> Signs:
    """The signs of one question and at least one source. Embeds what of them is not known from the search; where the
    embedder is down, the relevance has to do."""
    ranks = range(1, len(sources) + 1)
    relevance = sum(s["score"] / rank for s, rank in zip(sources, ranks, strict=True)) / sum(1 / r for r in ranks)
    terms = set(analyse(question))
    held = {term for source in sources for term in analyse(_read(source))}
    names = set(analyse(" ".join(_NAME.findall(question))))
    sentences = _find_closest_sentences(terms, sources[:_READ])
    similarity, nearest = await _compare(question, sources[0], sentences if len(terms) <= _SHORT else [], embedder)
    coverage = len(terms & held) / max(1, len(terms))
    denies = _OPEN.search(question) is not None and _DENIAL.search(question) is not None
    return Signs(
        relevance=relevance,
        similarity=similarity,
        sentence_gain=max(0.0, nearest - similarity) * coverage,
        unshared_denial=float(denies and _DENIAL.search("".join(sentences[:1]).lower()) is None),
        unknown_names=float(bool(names) and not names & held),
    )


def find_missing(question: str, sources: Sequence[Source]) -> list[str]:
    """The question's meaningful words, names and numbers whose stem is in no source, in order."""
    covered = {term for source in sources for term in analyse(_read(source))}
    return [word for word in dict.fromkeys(content_words(question)) if not covered.intersection(analyse(word))]


async def _compare(question: str, source: Source, sentences: Sequence[str], embedder: Embedder) -> tuple[float, float]:
    """Cosine of the question with the source (new only where the lexical leg alone found it), and the highest with a
    sentence."""
    known = source["dense"]
    texts = [*sentences, *([_read(source)] if known is None else [])]
    if not texts:
        return known or 0.0, 0.0
    try:
        similarities = await embedder.embed_passages(texts) @ await embedder.embed_query(question)
    except EmbedderUnavailable:
        return source["score"] if known is None else known, 0.0
    similarity = float(similarities[-1]) if known is None else known
    return similarity, float(similarities[: len(sentences)].max(initial=0.0))


def _read(source: Source) -> str:
    return " ".join((source["title"], *source["heading_path"], source["text"]))


def _find_closest_sentences(terms: set[str], sources: Sequence[Source]) -> list[str]:
    """Those that share most terms, the better source's first where two share as many."""
    sentences = [s["text"][start:end] for s in sources for start, end in split_sentences(s["text"])]
    return sorted(sentences, key=lambda sentence: -len(terms.intersection(analyse(sentence))))[:_SENTENCES]
