"""Finds the passages that answer a question, without a language model: runs of neighbouring units that most probably
hold the answer."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise

from domain.documents import Source
from domain.ports.embedding import Vector
from domain.ports.judgement import Quote
from domain.ports.unit_scoring import UnitScorer
from domain.scope import Scope
from domain.text.terms import find_terms
from nodes.reading.questions import SEVERAL, asks_for
from nodes.reading.scoring import score_units
from nodes.reading.units import Unit
from nodes.writing.quoting import LONG_ANSWER, SHORT_ANSWER, count_words

_ADDED = 0.07
"""Least probability of a further passage. Chosen low: a quote too many costs a reader less than one that
is missing."""

_SAME = 0.75
"""Two sentences with this share of words in common (Jaccard) are about the same. Chosen: in a sentence of seven words,
one may be replaced."""

_BRIEF_COST, _LONG_COST = 0.0025, 0.0005
"""A quote grows as long as each further word adds this much probability: for a question about one thing, and about
several. Chosen: twenty words more have to add .05, and .01."""


@dataclass(frozen=True, slots=True)
class LocalFinder:
    """Implements `AnswerFinder`."""

    unit_scorer: UnitScorer

    async def find(
        self,
        question: str,
        sources: Sequence[Source],
        *,
        scope: Scope,
        most: int,
        typed: str | None = None,
        said: int = 0,
        detailed: bool = False,
    ) -> list[Quote]:
        scored = await score_units(question, sources, self.unit_scorer, scope, typed=typed)
        # A follow-up asks for one thing more, unless it only wants the last question answered otherwise.
        asks_more = typed not in (None, question) and question.startswith(typed)
        several = detailed or (asks_for(typed or question, *SEVERAL) and not asks_more)
        budget = (LONG_ANSWER if several else SHORT_ANSWER) - said
        passages = choose_passages(scored.units, scored.shares, most, budget, several=several)
        if passages and (conflict := find_conflict(scored.units, scored.shares, passages[0])) is not None:
            passages = add_conflict(passages, conflict, most, budget)
        return [_quote(scored.units, passage) for passage in passages]


@dataclass(frozen=True, slots=True)
class Passage:
    """The units from `first` to `last` of one source, which follow each other."""

    first: int
    last: int
    words: int
    """As they are shown: with the lead-in, and a marker a block."""
    share: float
    """Probability that it holds the answer, if anything here does."""


def choose_passages(units: Sequence[Unit], shares: Vector, most: int, budget: int, *, several: bool) -> list[Passage]:
    """Return at most `most` passages of together at most `budget` words, the best first, that most probably hold the
    answer. A single unit may be longer.

    Where several things are asked for, a list is quoted whole, and the best passage goes on with what follows it.
    """
    added = _count_added_words(units)
    cost = _LONG_COST if several else _BRIEF_COST
    if several:
        shares = _even_out(units, shares)
    chosen: list[Passage] = []
    while len(chosen) < most:
        best = _find_best(units, shares, added, budget, cost, chosen)
        if best is None or (chosen and best.share < _ADDED):
            break
        chosen.append(best)
        budget -= best.words
    if not several or not chosen:
        return chosen
    longer = _extend(units, chosen[0], added, chosen[0].words + budget)
    return [longer, *(p for p in chosen[1:] if p.last < longer.first or p.first > longer.last)]


def find_conflict(units: Sequence[Unit], shares: Vector, best: Passage) -> Passage | None:
    """Return the sentence or item of another document that has the words of the one that answers best and other
    numbers. Such a sentence is nearly as good an answer, and whoever reads one has to know of both."""
    answer = max(range(best.first, best.last + 1), key=lambda position: float(shares[position]))
    words, numbers = _read_numbers(units[answer])
    if not numbers or not words:
        return None
    document = units[answer].source["document_id"]
    for position, unit in enumerate(units):
        if unit.source["document_id"] == document or unit.kind in ("table", "code"):
            continue
        other_words, other_numbers = _read_numbers(unit)
        same = len(words & other_words) / len(words | other_words) if other_words else 0.0
        if same >= _SAME and other_numbers and not numbers & other_numbers:
            return Passage(position, position, count_words(unit.whole) + 1, float(shares[position]))
    return None


def add_conflict(passages: Sequence[Passage], conflict: Passage, most: int, budget: int) -> list[Passage]:
    """Return the passages with the conflict behind the best, as many as there may be in `budget` words. Nothing changes
    where it is quoted already or there is no room for it."""
    kept = [passages[0]]
    if any(p.first <= conflict.first <= p.last for p in passages) or kept[0].words + conflict.words > budget:
        return list(passages)
    for passage in (conflict, *passages[1:]):
        if len(kept) < most and sum(p.words for p in kept) + passage.words <= budget:
            kept.append(passage)
    return kept


def _read_numbers(unit: Unit) -> tuple[frozenset[str], frozenset[str]]:
    """Return the unit's terms without digits, and those with."""
    terms = find_terms(unit.text)
    numbers = frozenset(term for term in terms if any(character.isdigit() for character in term))
    return terms - numbers, numbers


def _even_out(units: Sequence[Unit], shares: Vector) -> Vector:
    """Return the shares, the same within each list."""
    evened = shares.copy()
    blocks = groupby(range(len(units)), key=lambda place: (units[place].source["number"], units[place].block))
    for places in map(list, (places for _, places in blocks)):
        if units[places[0]].kind in ("list", "steps", "definition"):
            evened[places] = shares[places].mean()
    return evened


def _extend(units: Sequence[Unit], passage: Passage, added: Sequence[int], budget: int) -> Passage:
    """Return the passage with what follows it under the same heading, in at most `budget` words."""
    last, words = passage.last, passage.words
    while last + 1 < len(units) and _goes_on(units[last], units[last + 1]) and words + added[last + 1] <= budget:
        last += 1
        words += added[last]
    while _announces(units[last]) and last > passage.last:
        words -= added[last]
        last -= 1
    return replace(passage, last=last, words=words)


def _find_best(
    units: Sequence[Unit],
    shares: Vector,
    added: Sequence[int],
    budget: int,
    cost: float,
    taken: Sequence[Passage],
) -> Passage | None:
    best: Passage | None = None
    most = -math.inf
    for first, unit in enumerate(units):
        share = 0.0
        count = count_words(unit.introduction) + count_words(unit.text) + 1
        for last in range(first, len(units)):
            other = last > first and not _goes_on(units[last - 1], units[last])
            if other or any(p.first <= last <= p.last for p in taken):
                break
            count += added[last] if last > first else 0
            if count > budget and (last > first or taken):
                break
            share += float(shares[last])
            if not _announces(units[last]) and share - cost * count > most:
                most = share - cost * count
                best = Passage(first, last, count, share)
    return best


def _announces(unit: Unit) -> bool:
    """Return True for a unit that announces the next: it is quoted with that or not at all."""
    return unit.text.endswith(":")


def _goes_on(unit: Unit, following: Unit) -> bool:
    """Return True where a passage may go on from one unit to the next: under one heading of one source."""
    return following.source is unit.source and following.heading == unit.heading


def _count_added_words(units: Sequence[Unit]) -> list[int]:
    """Return by how many words each unit makes a passage longer that ends with the unit before it. Bullets and bars
    between units count, and so does the marker that each block has."""
    between = (
        count_words(unit.source["text"][before.end : unit.end]) + (unit.block != before.block)
        for before, unit in pairwise(units)
    )
    return [0, *between]


def _quote(units: Sequence[Unit], passage: Passage) -> Quote:
    first, last = units[passage.first], units[passage.last]
    source = first.source
    start, lead = first.start, first.introduction
    if first.lead is not None and first.follows_lead:
        start, lead = first.lead[0], ""
    return Quote(
        number=source["number"],
        start=source["start"] + start,
        end=source["start"] + last.end,
        text=source["text"][start : last.end],
        lead=lead,
        asked=first.asked,
    )
