"""Finds the passages that answer a question, without a language model: runs of neighbouring units that most probably
hold the answer."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise

import numpy as np

from domain.documents import Source
from domain.ports.embedding import Vector
from domain.ports.judgement import Quote
from domain.ports.unit_scoring import UnitScorer
from domain.profile import LONG_ANSWER, SHORT_ANSWER
from domain.scope import Scope
from domain.text.question import split_carried
from domain.text.terms import find_terms
from nodes.reading.questions import SEVERAL, asks_for, read_pair, read_parts
from nodes.reading.scoring import choose_sources, list_looked_up, score_units
from nodes.reading.units import Unit
from nodes.writing.quoting import count_words

_ADDED = 0.07
"""Least probability of a further passage. Chosen low: a quote too many costs a reader less than one that
is missing."""

_NAMED = 0.5
"""Share of a question that names an entry from which that is quoted from its beginning. Chosen by hand."""

_ALONE = 0.9
"""Share from which a question is about the entry and nothing in it. Chosen by hand."""

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
        missing: Collection[str] = (),
    ) -> list[Quote]:
        if computed := _quote_computed(question, sources):
            return computed
        words = typed or question
        names, rest = read_pair(words)
        asked = [(name, f"{name} {rest}".strip()) for name in names] or [("", part) for part in read_parts(question)]
        sure = [(name, part) for name, part in asked if split_carried(part)[0] not in missing]
        if len(sure) < len(asked):
            asked = sure if any(_quote_computed(part, sources) for _, part in sure) else []
        each = await self._quote_each(asked, sources, scope, LONG_ANSWER - said)
        if each and len(each) >= len(names):
            return each
        scored = await score_units(question, sources, self.unit_scorer, scope, typed=typed)
        # A follow-up asks for one thing more, unless it only wants the last question answered otherwise.
        asks_more = typed not in (None, question) and question.startswith(typed)
        several = detailed or (asks_for(words, *SEVERAL) and not asks_more)
        listed = asks_for(words, "list")
        budget = (LONG_ANSWER if several else SHORT_ANSWER) - said
        passages = choose_passages(
            scored.units, scored.shares, most, budget, several=several, listed=listed, named=scored.named
        )
        if passages and (conflict := find_conflict(scored.units, scored.shares, passages[0])) is not None:
            passages = add_second(passages, conflict, most, budget)
        return [_quote(scored.units, passage) for passage in passages]

    async def find_nearest(
        self, question: str, sources: Sequence[Source], *, scope: Scope, most: int, typed: str | None = None
    ) -> list[Quote]:
        scored = await score_units(question, sources, self.unit_scorer, scope, typed=typed)
        shares, nearest = scored.shares, list[Quote]()
        while len(nearest) < most and shares.max(initial=0.0) > 0:
            best = int(shares.argmax())
            passage = Passage(best, best, 0, 0.0)
            nearest += [_quote(scored.units, passage)] if not _announces(scored.units[best]) else []
            shares = _drop_same(scored.units, shares, passage)
            shares[[unit.source is scored.units[best].source for unit in scored.units]] = 0
        return nearest

    async def _quote_each(
        self, asked: Sequence[tuple[str, str]], sources: Sequence[Source], scope: Scope, budget: int
    ) -> list[Quote]:
        """Return a passage on each of several questions, under its heading; none that another holds."""
        found: list[Quote] = []
        for heading, question in asked:
            quotes = _quote_computed(question, sources)
            if not quotes:
                typed, _ = split_carried(question)
                own = choose_sources(question, sources)
                scored = await score_units(question, own, self.unit_scorer, scope, typed=typed)
                room = budget // len(asked)
                best = choose_passages(scored.units, scored.shares, 1, room, several=False, named=scored.named)
                quotes = [_quote(scored.units, passage) for passage in best]
            for quote in quotes:
                if not any(_holds(other, quote) for other in found):
                    found = [other for other in found if not _holds(quote, other)]
                    found.append(replace(quote, heading=heading or quote.heading))
        return found


@dataclass(frozen=True, slots=True)
class Passage:
    """The units from `first` to `last` of one source, which follow each other."""

    first: int
    last: int
    words: int
    """As they are shown: with the lead-in, and a marker a block."""
    share: float
    """Probability that it holds the answer, if anything here does."""


def choose_passages(
    units: Sequence[Unit],
    shares: Vector,
    most: int,
    budget: int,
    *,
    several: bool,
    listed: bool = False,
    named: Vector | None = None,
) -> list[Passage]:
    """Return at most `most` passages of together at most `budget` words, the best first, that most probably hold the
    answer. A single unit may be longer.

    Where several things are asked for, a list is quoted whole, and the best passage goes on with what follows it. The
    entries of a manual are quoted in one passage only where a list is asked for (`listed`): the next option is about
    something else.
    """
    added = _count_added_words(units)
    named = np.zeros_like(shares) if named is None else named
    cost = _LONG_COST if several else _BRIEF_COST
    if several:
        shares = _even_out(units, shares)
    chosen: list[Passage] = []
    while len(chosen) < most:
        best = _find_best(units, shares, added, budget, cost, chosen, listed=listed)
        if best is None or (chosen and best.share < _ADDED):
            break
        best = _quote_entry(units, shares, named, added, best, budget, chosen)
        chosen.append(best)
        shares = _drop_same(units, shares, best)
        budget -= best.words
    if not several or not chosen:
        return chosen
    longer = _extend(units, chosen[0], added, chosen[0].words + budget, listed=listed)
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


def add_second(passages: Sequence[Passage], second: Passage, most: int, budget: int) -> list[Passage]:
    """Return the passages with another one behind the best, as many as there may be in `budget` words. Nothing changes
    where it is quoted already or there is no room for it."""
    kept = [passages[0]]
    if any(p.first <= second.first <= p.last for p in passages) or kept[0].words + second.words > budget:
        return list(passages)
    for passage in (second, *passages[1:]):
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


def _extend(units: Sequence[Unit], passage: Passage, added: Sequence[int], budget: int, *, listed: bool) -> Passage:
    """Return the passage with what follows it under the same heading, in at most `budget` words."""
    last, words = passage.last, passage.words
    while (
        last + 1 < len(units)
        and _goes_on(units[last], units[last + 1], listed=listed)
        and words + added[last + 1] <= budget
    ):
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
    *,
    listed: bool,
) -> Passage | None:
    best: Passage | None = None
    most = -math.inf
    announce = [_announces(unit) for unit in units]
    goes_on = [False, *(_goes_on(unit, following, listed=listed) for unit, following in pairwise(units))]
    probable = shares.tolist()
    for first, unit in enumerate(units):
        share = 0.0
        count = count_words(unit.introduction) + count_words(unit.text) + 1
        for last in range(first, len(units)):
            if (last > first and not goes_on[last]) or any(p.first <= last <= p.last for p in taken):
                break
            count += added[last] if last > first else 0
            if count > budget and (last > first or taken):
                break
            share += probable[last]
            if not announce[last] and share - cost * count > most:
                most = share - cost * count
                best = Passage(first, last, count, share)
    return best


def _quote_entry(
    units: Sequence[Unit],
    shares: Vector,
    named: Vector,
    added: Sequence[int],
    passage: Passage,
    budget: int,
    taken: Sequence[Passage],
) -> Passage:
    """Return the entry that answers, where the question names it, from its first words on as far as there is room; the
    passage itself where the best of it would not be in that."""
    best = max(range(passage.first, passage.last + 1), key=lambda position: float(shares[position]))
    if named[best] < (_NAMED if units[best].kind == "definition" else _ALONE):
        return passage
    first = best
    while (
        first and _is_same_entry(units[first - 1], units[best]) and _goes_on(*units[first - 1 : first + 1], listed=True)
    ):
        first -= 1
    last = first
    words = count_words(units[first].introduction) + count_words(units[first].text) + 1
    while (
        last + 1 < len(units)
        and _is_same_entry(units[last + 1], units[best])
        and not _is_parted(*units[last : last + 2])
        and words + added[last + 1] <= budget
    ):
        last += 1
        words += added[last]
    is_held = (named[best] >= _ALONE or best <= last) and words <= budget
    is_held = is_held and not any(p.first <= last and first <= p.last for p in taken)
    return Passage(first, last, words, float(shares[first : last + 1].sum())) if is_held else passage


def _is_same_entry(one: Unit, other: Unit) -> bool:
    if one.source is not other.source or one.heading != other.heading:
        return False
    return other.kind != "definition" or one.block == other.block


def _drop_same(units: Sequence[Unit], shares: Vector, passage: Passage) -> Vector:
    """Set the shares of units to 0 that repeat the passage: in another file in other words, elsewhere word for word."""
    quoted = units[passage.first : passage.last + 1]
    said = [find_terms(unit.text) for unit in quoted]
    wholes = {unit.whole for unit in quoted}
    document = units[passage.first].source["document_id"]
    dropped = shares.copy()
    for place, unit in enumerate(units):
        terms = find_terms(unit.text)
        is_other = not passage.first <= place <= passage.last
        if (is_other and unit.whole in wholes) or (
            unit.source["document_id"] != document
            and any(len(terms & each) >= _SAME * max(len(terms | each), 1) for each in said)
        ):
            dropped[place] = 0
    return dropped


def _announces(unit: Unit) -> bool:
    """Return True for a unit that announces the next: it is quoted with that or not at all."""
    return unit.text.endswith(":")


def _is_parted(unit: Unit, following: Unit) -> bool:
    """Return True where something between them is struck out."""
    return "~~" in unit.source["text"][unit.end : following.start]


def _goes_on(unit: Unit, following: Unit, *, listed: bool) -> bool:
    """Return True where a passage may go on from one unit to the next: under one heading of one source, and with
    another entry only where a list is asked for."""
    if following.source is not unit.source or following.heading != unit.heading or _is_parted(unit, following):
        return False
    return listed or following.kind != "definition" or following.block == unit.block


def _count_added_words(units: Sequence[Unit]) -> list[int]:
    """Return by how many words each unit makes a passage longer that ends with the unit before it. Bullets and bars
    between units count, and so does the marker that each block has."""
    between = (
        count_words(unit.source["text"][before.end : unit.end]) + (unit.block != before.block)
        for before, unit in pairwise(units)
    )
    return [0, *between]


def _quote_computed(question: str, sources: Sequence[Source]) -> list[Quote]:
    computed = (each for each in list_looked_up(question, sources) if "\n" in each.get("computed", ""))
    return [Quote(each["number"], each["start"], each["end"], each["computed"]) for each in computed]


def _holds(one: Quote, other: Quote) -> bool:
    return other.text in one.text or (one.number == other.number and one.start <= other.start and other.end <= one.end)


def _quote(units: Sequence[Unit], passage: Passage) -> Quote:
    first, last = units[passage.first], units[passage.last]
    source = first.source
    start, lead = first.start, first.introduction
    said = f"{lead} {source['text'][start : last.end]}"
    is_named = first.kind == "definition" or find_terms(first.section) <= find_terms(said)
    if first.lead is not None and first.follows_lead:
        start, lead = first.lead[0], ""
    return Quote(
        number=source["number"],
        start=source["start"] + start,
        end=source["start"] + last.end,
        text=source["text"][start : last.end],
        lead=lead,
        heading="" if is_named else first.section,
    )
