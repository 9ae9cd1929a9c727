"""Predicts, without a language model, whether sources hold the answer to a question.

Similarity tells whether the sources are about the matter asked for, and separates unrelated questions well. Questions
about the very matter of a source are unanswerable where they differ from it in a word (contrast.py) or ask for a
property of a subject that no statement about it comes near to (focus.py).

Constants: benchmarks/fit_grading.py. Figures and rejected ideas: docs/decisions/10-grading.md,
docs/measurements/grading.md.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import astuple, dataclass

from domain.documents import Source
from domain.errors import EmbedderUnavailable
from domain.ports.embedding import Embedder
from domain.ports.judgement import Grade
from domain.state import Turn
from domain.text.sentences import JUDGED, split_sentences
from domain.text.terms import analyse, content_words
from nodes.fusion import weigh_by_rank
from nodes.local.grading.contrast import find_departure, share_wording
from nodes.local.reading.focus import Focus, choose_texts, measure_absence, read_focus
from nodes.local.reading.statements import read_title, read_whole

_READ = 3
"""Number of sources in which the nearest sentences are looked for."""

_SENTENCES = 2
"""Number of nearest sentences that are embedded, about 5 ms each. Four tell no more than two."""

_SWAPPED = 0.5
"""Sign of a word in the place of another, where an opposite has 1: it may be a synonym."""

_NAME = re.compile(r"(?<=[\w,] )[A-ZÀ-Þ][^\W\d_A-Z]+\b(?!-)")
"""A capitalised word within the question. Codes and acronyms are left out: texts write them in many ways."""

_WEIGHTS = (-4.16, 5.66, 4.72, -2.87, -1.76, -2.0)
"""Log-odds: intercept, then one weight per sign. Fitted on answerable, unanswerable and unrelated questions of five
public sets and of small libraries made from one of them. The last weight, and 0.07 of the intercept, were chosen
afterwards (docs/decisions/10-grading.md)."""


@dataclass(frozen=True, slots=True)
class Signs:
    """The inputs of the logistic, each 0-1."""

    relevance: float
    """Mean of the sources' scores by `weigh_by_rank`."""
    similarity: float
    """Highest cosine of the question with the best source and with its nearest sentences: a short question is drowned
    in a passage of 500 characters, a long one in a sentence."""
    departure: float
    """1 where the question says the opposite of its nearest sentence, `_SWAPPED` where it has one word in the place of
    another."""
    unknown_names: float
    """1 where the question has names and the sources none of them."""
    absence: float
    """Distance of everything that the sources say about the subject from what is asked of it."""


@dataclass(frozen=True, slots=True)
class LocalGrader:
    """Implements `SourceGrader`."""

    embedder: Embedder

    async def grade(
        self, question: str, sources: Sequence[Source], *, typed: str | None = None, last: Turn | None = None
    ) -> Grade:
        if not sources:
            return Grade(0.0, content_words(question))
        signs = await read_signs(question, sources, self.embedder, typed=typed, last=last)
        return Grade(estimate_confidence(signs), find_missing(question, sources))


def estimate_confidence(signs: Signs) -> float:
    """Return the probability (0-1) that the sources answer the question."""
    log_odds = sum(weight * value for weight, value in zip(_WEIGHTS, (1.0, *astuple(signs)), strict=True))
    return 1 / (1 + math.exp(-log_odds))


async def read_signs(
    question: str, sources: Sequence[Source], embedder: Embedder, *, typed: str | None = None, last: Turn | None = None
) -> Signs:
    """Compute the signs of a question and at least one source. Embeds only what the search did not; where the embedder
    is down, the relevance stands in."""
    names = set(analyse(" ".join(_NAME.findall(question))))
    held = {term for source in sources for term in analyse(read_whole(source))} if names else set()
    sentences = _find_nearest_sentences(question, sources[:_READ])
    departure = find_departure(question, sentences[0]) if sentences else None
    focus = read_focus(question, read_title(sources[0]), typed or question, last)
    texts = choose_texts(focus, sources) if focus else {}
    similarity, nearness = await _compare(question, sources[0], sentences, focus, list(texts), embedder)
    return Signs(
        relevance=weigh_by_rank([source["score"] for source in sources]),
        similarity=similarity,
        departure=0.0 if departure is None else 1.0 if departure.opposed else _SWAPPED * departure.swapped,
        unknown_names=float(bool(names) and not names & held),
        absence=measure_absence(texts.values(), nearness) if nearness else 0.0,
    )


def find_missing(question: str, sources: Sequence[Source]) -> list[str]:
    """Return the question's meaningful words, names and numbers whose stem is in no source, in order."""
    covered = {term for source in sources for term in analyse(read_whole(source))}
    return [word for word in dict.fromkeys(content_words(question)) if not covered.intersection(analyse(word))]


async def _compare(
    question: str,
    source: Source,
    sentences: Sequence[str],
    focus: Focus | None,
    about: Sequence[str],
    embedder: Embedder,
) -> tuple[float, list[float]]:
    """Return the highest cosine of the question with the source and the sentences, and the cosines of its focus with
    `about`. The cosine with the source is computed only where the lexical search alone found it."""
    known = source["dense"]
    texts = [*(sentence[:JUDGED] for sentence in sentences), *([read_whole(source)] if known is None else [])]
    if not texts:
        return known or 0.0, []
    try:
        embedded = await embedder.embed_passages([*texts, *about, *([focus.text] if focus and about else [])])
        similarities = embedded[: len(texts)] @ await embedder.embed_query(question)
    except EmbedderUnavailable:
        return source["score"] if known is None else known, []
    nearness = embedded[len(texts) : -1] @ embedded[-1] if about else []
    return max(float(similarities.max()), known or 0.0), [float(each) for each in nearness]


def _find_nearest_sentences(question: str, sources: Sequence[Source]) -> list[str]:
    """Return the sentences that share most words with the question; of equals, the better source's first."""
    sentences = [s["text"][start:end] for s in sources for start, end in split_sentences(s["text"])]
    shared = share_wording(question, sentences)
    return [sentences[i] for i in sorted(range(len(sentences)), key=lambda i: -shared[i])[:_SENTENCES]]
