"""Predicts, without a language model, whether sources hold the answer to a question.

Similarity says whether the sources are about what is asked; questions about other things are told apart well. Of
questions about the very matter of a source, those are told apart that depart from it in a word (contrast.py), or ask of
a subject what nothing said of it comes near to (focus.py).
Constants: benchmarks/fit_grading.py; figures and what was tried in vain: docs/decisions/10-grading.md.
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
"""Sources in which the sentences nearest to the question are looked for."""

_SENTENCES = 2
"""As many of them are embedded; about 5 ms each. Four tell no more."""

_SWAPPED = 0.5
"""What a word in another's place counts, beside 1 for an opposite: it may be a synonym."""

_NAME = re.compile(r"(?<=[\w,] )[A-ZÀ-Þ][^\W\d_A-Z]+\b(?!-)")
"""A word in capitals within the question. Codes and acronyms are left out: texts write them in many ways."""

_WEIGHTS = (-4.16, 5.66, 4.72, -2.87, -1.76, -2.0)
"""Log-odds: intercept and one weight per sign. Fitted on answerable, unanswerable and unrelated questions of five
public sets and of small libraries made from one of them; the last, with .07 of the intercept to make up for it, was
chosen beside them (docs/decisions/10-grading.md)."""


@dataclass(frozen=True, slots=True)
class Signs:
    """What the logistic weighs; each 0-1."""

    relevance: float
    """Σ scoreᵢ / i ÷ Σ 1 / i over the sources, best first."""
    similarity: float
    """The highest cosine of the question with the best source and with the sentences nearest to it: a short question
    is drowned in a passage of 500 characters, a long one in a sentence."""
    departure: float
    """1 where the question says the opposite of the sentence nearest to it, `_SWAPPED` where it has another word in
    the place of one."""
    unknown_names: float
    """The question names something or somebody, and the sources none of it."""
    absence: float
    """What is asked of the subject named is far from everything that the sources say about that subject."""


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
        log_odds = sum(weight * value for weight, value in zip(_WEIGHTS, (1.0, *astuple(signs)), strict=True))
        return Grade(1 / (1 + math.exp(-log_odds)), find_missing(question, sources))


async def read_signs(
    question: str, sources: Sequence[Source], embedder: Embedder, *, typed: str | None = None, last: Turn | None = None
) -> Signs:
    """The signs of one question and at least one source. Embeds what of them is not known from the search; where the
    embedder is down, the relevance has to do."""
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
    """The question's meaningful words, names and numbers whose stem is in no source, in order."""
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
    """The highest cosine of the question with the source and the sentences, and those of its focus with `about`.
    The one with the source is new only where the lexical leg alone found it."""
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
    """Those that share most words with the question, the better source's first where two share as many."""
    sentences = [s["text"][start:end] for s in sources for start, end in split_sentences(s["text"])]
    shared = share_wording(question, sentences)
    return [sentences[i] for i in sorted(range(len(sentences)), key=lambda i: -shared[i])[:_SENTENCES]]
