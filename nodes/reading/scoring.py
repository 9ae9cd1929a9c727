"""Estimates for each unit of the sources how probably it answers a question.

A unit is described by a few features. A linear model, fitted on public questions, turns them into odds against the
other units of the same sources. The fit is `a88e208a:benchmarks/fit_confidence.py` in git.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby

import numpy as np

from domain.documents import Source, name_place
from domain.errors import DatabaseUnavailable, EmbedderUnavailable
from domain.ports.embedding import Vector
from domain.ports.unit_scoring import Closeness, Stretch, UnitScorer
from domain.scope import Scope
from domain.text.languages import Language, detect_language
from domain.text.terms import analyse_in, find_terms, has_address, weigh_query_terms
from nodes.reading.fitting import find_left_out, has_figure, has_names, has_span, is_under, read_whole, share_names
from nodes.reading.labels import find_labelled
from nodes.reading.names import find_named, read_name_line
from nodes.reading.phrases import read_phrases
from nodes.reading.questions import asks_for
from nodes.reading.units import Unit, split_units

REMEMBERED = 64
"""Number of questions whose units are kept, because grade and generate read the same ones. Chosen by hand."""

CARRIED = 0.3
"""Factor on the weight of a word that comes from the conversation and not from the user's question. Chosen by
hand."""

SHORTEST, _PART = 4, 0.4
"""A word that is part of a longer one ("Urlaub" in "Urlaubstage") counts in part, if it has this many letters and is
this share of the longer word. Chosen by hand."""

_OWN = 0.25
"""What a term adds to the share of the question that names it: "-x" has no term to be found by. Chosen by hand."""

_SPAN = 4
"""How much more a span of time counts than a figure, where that is asked for. Chosen by hand."""

_LACKING, _LABELLED, _UNDER = 2.0, 6.0, 4.0
"""Log-odds that a unit loses without the names of the question, and wins with the label, and below the heading that the
best one lacks. Chosen by hand."""

WEIGHTS = np.array([2.34, 2.51, 2.92, 0.28, 2.55, 0.40, 0.71, 0.26, 1.85, 4.0])
"""One weight for each feature of `describe`, fitted on public questions
(docs/decisions/11-quotes-and-verification.md)."""


@dataclass(frozen=True, slots=True)
class ScoredUnits:
    """The units of some sources, each with its share of the probability that one of them answers."""

    units: list[Unit]
    shares: Vector
    """Shape (units,); their sum is 1."""
    log_odds: Vector
    """Shape (units,). Log-odds that are comparable between questions."""
    wanted: Mapping[str, float]
    """The question's terms with their weights, which add up to 1."""
    labelled: Sequence[int]
    """The places of those that have the very label which the question asks for."""
    similarity: float
    """The highest `Closeness.whole` of a unit, or relevance of a source where that is not known."""


def choose_sources(part: str, sources: Sequence[Source]) -> Sequence[Source]:
    """Return the sources that the search for a part of the question has found, with their relevance to it, the best
    first; all where it was not searched for by itself."""
    own: list[Source] = []
    for source in sources:
        if found := [span for span in source.get("found", []) if span.get("query") == part]:
            own.append({**source, "found": found, "score": max(span["score"] for span in found), "dense": None})
    return sorted(own, key=lambda source: -source["score"]) or sources


def list_looked_up(question: str, sources: Sequence[Source]) -> list[Source]:
    """Return what was computed from tables for the question, or for this part of one."""
    return [
        source
        for source in sources
        if "computed" in source and all(span.get("query") in (None, question) for span in source.get("found", []))
    ]


async def score_units(
    question: str, sources: Sequence[Source], unit_scorer: UnitScorer, scope: Scope, *, typed: str | None = None
) -> ScoredUnits:
    """Score the units of the sources, which come from `scope`, most relevant first. Where the scorer is not available,
    units are scored by shared words and by the relevance of their source. `typed` is the question as the user wrote it,
    where `question` carries words of the conversation."""
    described = _describe_sources(
        question,
        typed or question,
        _Sources(tuple((source["number"], source["text"]) for source in sources), tuple(sources)),
    )
    units, features = described.units, described.features.copy()
    closeness = await _compare(question, units, unit_scorer, scope)
    fill_closeness(features, closeness)
    log_odds = (features @ WEIGHTS - _LACKING * described.lacking).astype(np.float32)
    raised = log_odds.copy()
    raised[described.labelled] += _LABELLED
    raised[_list_under(typed or question, units, raised)] += _UNDER
    odds = np.exp(raised - raised.max(initial=-np.inf)) if units else raised
    highest = float(features[:, 1].max(initial=0.0))
    shares = odds / odds.sum() if units else odds
    return ScoredUnits(list(units), shares, log_odds, described.wanted, described.labelled, highest)


def _list_under(question: str, units: Sequence[Unit], log_odds: Vector) -> list[int]:
    """Return the places of the units below the heading that says what is asked of a name, where the best unit has only
    the name: the warranty of the WS-400 stands under "Warranty", whether or not the station is named there."""
    if not units or not has_names(question):
        return []
    best, language = units[int(log_odds.argmax())], detect_language(question) or "en"
    left_out = find_left_out(question, [best], units, language)
    document = best.source["document_id"]
    under = (unit.source["document_id"] == document and is_under(left_out, unit, language) for unit in units)
    return [place for place, each in enumerate(under) if each]


@dataclass(frozen=True, slots=True)
class _Described:
    """The part of scoring that depends on nothing but the question and the sources."""

    units: Sequence[Unit]
    wanted: Mapping[str, float]
    features: Vector
    lacking: Vector
    """Shape (units,). Share of the names of the question that neither the unit nor its place has."""
    labelled: list[int]


@dataclass(frozen=True, slots=True)
class _Sources:
    """Sources as a key."""

    texts: tuple[tuple[int, str], ...]
    sources: tuple[Source, ...] = field(hash=False)


@lru_cache(maxsize=REMEMBERED)
def _describe_sources(question: str, typed: str, key: _Sources) -> _Described:
    units = [unit for source in key.sources for unit in split_units(source)]
    language = detect_language(question) or "en"
    # A row says nothing without its header, nor an item without its lead-in: their words are its own.
    held = [find_terms(unit.whole, language) for unit in units]
    wanted = weigh_terms(question, typed, held, language)
    features = describe(question, units, held, wanted, language)
    lacking = np.array([1 - share_names(question, read_whole(unit)) for unit in units], dtype=np.float32)
    return _Described(units, wanted, features, lacking, find_labelled(question, units, language))


def list_stretches(units: Sequence[Unit]) -> list[Stretch]:
    """Return the sources that the units are from, in order, with the spans of each unit."""
    return [
        Stretch(
            document_id=source["document_id"],
            start=source["start"],
            text=source["text"],
            place=name_place(source["title"], source["heading_path"]),
            units=tuple(unit.spans for unit in of_source),
        )
        for of_source in (list(group) for _, group in groupby(units, key=lambda unit: unit.source["number"]))
        for source in (of_source[0].source,)
    ]


def fill_closeness(features: Vector, closeness: Sequence[Closeness | None]) -> None:
    """Put how close the units are to the question into their features. Where it is not known of some, they are taken
    for the least close; where of none, the relevance of their sources stays."""
    known = np.array([(each.tokens, each.whole) for each in closeness if each is not None], dtype=np.float32)
    if len(known):
        lowest = known.min(axis=0)
        features[:, :2] = [lowest if each is None else (each.tokens, each.whole) for each in closeness]


async def _compare(
    question: str, units: Sequence[Unit], unit_scorer: UnitScorer, scope: Scope
) -> Sequence[Closeness | None]:
    """Return how close the question is to each unit; None where that is not known."""
    if not units:
        return []
    try:
        scored = await unit_scorer.score(scope, question, list_stretches(units))
    except (EmbedderUnavailable, DatabaseUnavailable):
        return [None] * len(units)
    return [each for stretch in scored for each in stretch]


def describe(
    question: str,
    units: Sequence[Unit],
    held: Sequence[frozenset[str]],
    wanted: Mapping[str, float],
    language: Language = "en",
) -> Vector:
    """Return the features of each unit, shape (units, features), in this order:

    - closeness of its tokens to the question, and of the whole unit; the relevance of its source until these are known
    - share of the question's terms that the unit holds, and the share that only its context holds
    - relevance of its source, and whether that is the first one
    - where the question asks for a figure or a mail address: 1 if the unit has one, else -1. A span of time that it
      asks for is `_SPAN`
    - share of the question's terms that a neighbouring unit holds
    - relevance of the found chunk that the unit is in; 0 for text that was added around the chunk
    - share of the question's terms that name the entry which the unit is in; half of it in an entry within that one
    """
    asks_amount, asks_mail = asks_for(question, "amount"), asks_for(question, "mail")
    asks_span, phrases = asks_for(question, "span"), read_phrases(language, "questions")
    contexts = [frozenset[str]().union(*(find_terms(text, language) for text in unit.context)) for unit in units]
    alike = _find_alike(wanted, frozenset[str]().union(*held, *contexts))
    own = [_cover(wanted, terms, alike) for terms in held]
    rows = []
    for i, unit in enumerate(units):
        around = _cover(wanted, held[i] | contexts[i], alike)
        figure = (asks_amount and has_figure(question, unit.text)) or (asks_mail and has_address(unit.text))
        span = asks_span and has_span(unit.text, phrases)
        near = [own[j] for j in (i - 1, i + 1) if 0 <= j < len(units) and units[j].source is unit.source]
        rows.append(
            (
                unit.source["score"],
                unit.source["score"],
                own[i],
                around - own[i],
                unit.source["score"],
                unit.source["number"] == units[0].source["number"],
                _SPAN if span else (asks_amount or asks_mail) * (1 if figure else -1),
                max(near, default=0.0),
                _find_relevance(unit),
                _find_naming(question, unit, wanted, language),
            )
        )
    return np.array(rows, dtype=np.float32).reshape(len(rows), len(WEIGHTS))


def weigh_terms(
    question: str, typed: str, held: Sequence[Collection[str]], language: Language = "en"
) -> dict[str, float]:
    """Return the weights of the question's terms, which add up to 1: the idf of BM25 over the units, reduced for terms
    of the conversation. `held` are the terms of each unit."""
    # In the order of the question, because sums over a set differ between processes in the last bit.
    terms = weigh_query_terms(question, language)
    own = set(analyse_in(language, typed))
    counts = Counter(term for each in held for term in terms.keys() & set(each))
    weights = {
        term: min(1.0, share)
        * math.log(1 + (len(held) - counts[term] + 0.5) / (counts[term] + 0.5))
        * (1 if term in own else CARRIED)
        for term, share in terms.items()
    }
    total = sum(weights.values())
    return {term: weight / total for term, weight in weights.items()}


def _find_naming(question: str, unit: Unit, wanted: Mapping[str, float], language: Language) -> float:
    line = find_terms(read_name_line(unit), language)
    if line and wanted.keys() <= line:
        return 1 + _OWN
    terms, own = find_named(question, unit, language)
    share = len(terms & wanted.keys()) / max(len(wanted), 1)
    is_entry = (own and unit.kind == "definition") or (terms >= line > frozenset() and unit.kind != "paragraph")
    return share * (0.5 if own is None else 1) + (_OWN if is_entry else 0)


def _find_relevance(unit: Unit) -> float:
    source = unit.source
    if "found" not in source:
        return source["score"]
    start, end = source["start"] + unit.start, source["start"] + unit.end
    return max((each["score"] for each in source["found"] if each["start"] < end and start < each["end"]), default=0.0)


def cover(wanted: Mapping[str, float], terms: Collection[str]) -> float:
    """Return the share of the wanted terms, by weight, that are among `terms`, some of them in part."""
    return _cover(wanted, terms, _find_alike(wanted, terms))


def _cover(wanted: Mapping[str, float], terms: Collection[str], alike: Mapping[str, Mapping[str, float]]) -> float:
    held: dict[str, float] = {}
    for other in alike.keys() & terms:
        for term, share in alike[other].items():
            held[term] = max(share, held.get(term, 0.0))
    return math.fsum(wanted[term] * share for term, share in held.items())


def _find_alike(wanted: Collection[str], terms: Iterable[str]) -> dict[str, dict[str, float]]:
    """Return, by the terms that hold wanted ones or are held by them, those wanted terms, and to what degree: 1 for the
    term itself."""
    alike = defaultdict[str, dict[str, float]](dict, {term: {term: 1.0} for term in wanted})
    long = [term for term in wanted if len(term) >= SHORTEST]
    for other in terms:
        if len(other) >= SHORTEST:
            for term in long:
                if term in other or other in term:
                    share = min(len(term), len(other)) / max(len(term), len(other))
                    if share >= _PART:
                        alike[other][term] = share
    return alike
