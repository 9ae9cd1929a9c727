"""Estimates for each unit of the sources how probably it answers a question.

A unit is described by a few features; a linear model, fitted on public questions by `benchmarks/fit_reading.py`,
turns them into odds against the other units of the same sources.
"""

import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from domain.documents import Source
from domain.errors import EmbedderUnavailable
from domain.ports.embedding import Embedder, Vector
from domain.text.languages import Language, detect_language
from domain.text.sentences import JUDGED
from domain.text.terms import analyse_in
from nodes.local.reading.questions import read_question
from nodes.local.reading.units import Unit, split_units

EMBEDDED = 16
"""Number of units that are embedded, about 5 ms each: those that promise most by their words and source."""

CARRIED = 0.3
"""Factor on the weight of a word that comes from the conversation and not from the user's question."""

_SHORTEST, _PART = 4, 0.4
"""A word counts in part where it is in another, such as "Urlaub" in "Urlaubstage", from so many letters and that share
of the longer one."""

_BRIEF = 6
"""A unit of fewer words says little by itself."""

_FIGURE = re.compile(r"\d")

WEIGHTS = np.array([3.96, 4.45, 1.86, 2.26, 0.82, 1.08, -1.08, -0.91, 0.18, 3.0])
"""One weight for each feature of `describe`. All but the last are fitted on public questions by
`benchmarks/fit_reading.py`; the last was chosen on the practical set, because the fit has no widened sources
(docs/decisions/11-quotes-and-verification.md)."""


@dataclass(frozen=True, slots=True)
class ScoredUnits:
    """The units of some sources, each with its share of the probability that one of them answers."""

    units: list[Unit]
    shares: Vector
    """Shape (units,); their sum is 1."""
    merits: Vector
    """Shape (units,). Log-odds that are comparable between questions, as the fit had them: without the last feature."""
    wanted: Mapping[str, float]
    """The question's terms with their weights, which add up to 1."""
    similarity: float
    """The highest cosine of the question with a unit."""


async def score_units(
    question: str, sources: Sequence[Source], embedder: Embedder, *, typed: str | None = None
) -> ScoredUnits:
    """Score the units of the sources, which come most relevant first. Where the embedder is down, words and sources
    decide. `typed` is the question as the user wrote it, where `question` carries words of the conversation."""
    units = [unit for source in sources for unit in split_units(source)]
    language = detect_language(question) or "en"
    held = [frozenset(analyse_in(language, unit.text)) for unit in units]
    wanted = weigh_terms(question, typed or question, held, language)
    features = describe(question, units, held, wanted, language)
    promise = features @ WEIGHTS
    chosen = sorted(range(len(units)), key=lambda i: -promise[i])[:EMBEDDED]
    similarities = await _compare(question, [units[i].shown[:JUDGED] for i in chosen], embedder)
    if similarities is not None and chosen:
        features[:, 0] = similarities.min()
        features[chosen, 0] = similarities
    merits = (features[:, :-1] @ WEIGHTS[:-1]).astype(np.float32)
    choice = merits + features[:, -1] * np.float32(WEIGHTS[-1])
    odds = np.exp(choice - choice.max(initial=-np.inf)) if units else choice
    highest = float(features[:, 0].max(initial=0.0))
    return ScoredUnits(units, odds / odds.sum() if units else odds, merits, wanted, highest)


def describe(
    question: str,
    units: Sequence[Unit],
    held: Sequence[frozenset[str]],
    wanted: Mapping[str, float],
    language: Language = "en",
) -> Vector:
    """Return the features of each unit, shape (units, features): cosine with the question (until it is known, the
    relevance of the source), share of the question's terms that it holds, share that only its context holds, relevance
    of its source, being in the first source, having a figure where one is asked for, lacking it, brevity, share that a
    neighbour holds, relevance of the chunk that it stands in, 0 for what the source was widened by."""
    asks_amount = read_question(question).amount
    own = [cover(wanted, terms) for terms in held]
    rows = []
    for i, unit in enumerate(units):
        around = cover(wanted, held[i].union(analyse_in(language, unit.context)))
        near = [own[j] for j in (i - 1, i + 1) if 0 <= j < len(units) and units[j].source is unit.source]
        figure = _FIGURE.search(unit.text) is not None
        rows.append(
            (
                unit.source["score"],
                own[i],
                around - own[i],
                unit.source["score"],
                unit.source["number"] == 1,
                asks_amount and figure,
                asks_amount and not figure,
                len(unit.text.split()) < _BRIEF,
                max(near, default=0.0),
                _find_relevance(unit),
            )
        )
    return np.array(rows, dtype=np.float32).reshape(len(rows), len(WEIGHTS))


def weigh_terms(
    question: str, typed: str, held: Sequence[Collection[str]], language: Language = "en"
) -> dict[str, float]:
    """Return the weights of the question's terms, which add up to 1: the idf of BM25 over the units, reduced for terms
    of the conversation. `held` are the terms of each unit."""
    # In the order of the question, because sums over a set differ between processes in the last bit.
    terms = dict.fromkeys(analyse_in(language, question))
    own = set(analyse_in(language, typed))
    counts = Counter(term for each in held for term in terms.keys() & set(each))
    weights = {
        term: math.log(1 + (len(held) - counts[term] + 0.5) / (counts[term] + 0.5)) * (1 if term in own else CARRIED)
        for term in terms
    }
    total = sum(weights.values())
    return {term: weight / total for term, weight in weights.items()}


def _find_relevance(unit: Unit) -> float:
    source = unit.source
    if "found" not in source:
        return source["score"]
    start, end = source["start"] + unit.start, source["start"] + unit.end
    return max((each["score"] for each in source["found"] if each["start"] < end and start < each["end"]), default=0.0)


def cover(wanted: Mapping[str, float], terms: Collection[str]) -> float:
    """Return the share of the wanted terms, by weight, that are among `terms`, some of them in part."""
    return math.fsum(weight * _hold(term, terms) for term, weight in wanted.items())


def _hold(term: str, terms: Collection[str]) -> float:
    if term in terms:
        return 1.0
    if len(term) < _SHORTEST:
        return 0.0
    shares = (
        min(len(term), len(other)) / max(len(term), len(other))
        for other in terms
        if len(other) >= _SHORTEST and (term in other or other in term)
    )
    best = max(shares, default=0.0)
    return best if best >= _PART else 0.0


async def _compare(question: str, texts: Sequence[str], embedder: Embedder) -> Vector | None:
    """Return the cosine of the question with each text; None where the embedder is down."""
    try:
        vector = await embedder.embed_query(question)
        return (await embedder.embed_passages(texts)) @ vector
    except EmbedderUnavailable:
        return None
