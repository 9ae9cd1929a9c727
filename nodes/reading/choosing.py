"""Chooses the passages that answer: runs of neighbouring units that most probably hold the answer."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise

from domain.ports.embedding import Vector
from domain.text.languages import detect_language
from domain.text.terms import find_terms
from nodes.reading.phrases import read_phrases
from nodes.reading.units import Unit
from nodes.writing.quoting import count_words

_ADDED = 0.07
"""Least probability of a further passage. Chosen low: a quote too many costs a reader less than one that
is missing."""

_SAME = 0.75
"""Two sentences with this share of words in common (Jaccard) are about the same. Chosen: in a sentence of seven words,
one may be replaced."""

_BRIEF_COST, _LONG_COST = 0.0025, 0.0005
"""A quote grows as long as each further word adds this much probability: for a question about one thing, and about
several. Chosen: twenty words more have to add .05, and .01."""

_SHORT_CODE = 4
"""Line breaks of three lines of code, with their fences."""


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
    wanted: Collection[str] = (),
) -> list[Passage]:
    """Return at most `most` passages of together at most `budget` words, the best first, that most probably hold the
    answer. A single unit may be longer.

    Where several things are asked for, a list is quoted whole, and the best passage goes on with what follows it. The
    entries of a manual are quoted in one passage only where a list is asked for (`listed`): the next option is about
    something else. `wanted` are the terms of the question.
    """
    added = _count_added_words(units)
    cost = _LONG_COST if several else _BRIEF_COST
    if several:
        shares = _even_out(units, shares)
    chosen: list[Passage] = []
    while len(chosen) < most:
        best = _find_best(units, shares, added, budget, cost, chosen, listed=listed, wanted=wanted)
        if best is None or (chosen and best.share < _ADDED):
            break
        chosen.append(best)
        shares = drop_same(units, shares, best)
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
    while announces(units, last) and last > passage.last:
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
    wanted: Collection[str],
) -> Passage | None:
    best: Passage | None = None
    most = -math.inf
    announce = [announces(units, place) for place in range(len(units))]
    goes_on = [False, *(_goes_on(unit, following, listed=listed) for unit, following in pairwise(units))]
    probable = shares.tolist()
    for first, unit in enumerate(units):
        if goes_on[first] and _belongs(units[first - 1], unit, announces=announce[first - 1], wanted=wanted):
            continue  # It begins with that.
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


def drop_same(units: Sequence[Unit], shares: Vector, passage: Passage) -> Vector:
    """Set the shares of units to 0 that repeat the passage: in another file in other words, elsewhere word for word."""
    quoted = units[passage.first : passage.last + 1]
    said = [find_terms(unit.text) for unit in quoted]
    wholes = {unit.whole for unit in quoted}
    document = units[passage.first].source["document_id"]
    dropped = shares.copy()
    for place, unit in enumerate(units):
        is_same = unit.whole in wholes and not passage.first <= place <= passage.last
        if not is_same and unit.source["document_id"] != document:
            terms = find_terms(unit.text)
            is_same = any(len(terms & each) >= _SAME * max(len(terms | each), 1) for each in said)
        if is_same:
            dropped[place] = 0
    return dropped


def announces(units: Sequence[Unit], place: int) -> bool:
    """Return True for a unit that announces the next: it is quoted with that or not at all. So does an item that stands
    alone, without a full stop: "- `Sender` - string (default: root)"."""
    unit = units[place]
    if unit.text.endswith(":") or unit.kind != "list":
        return unit.text.endswith(":")
    near = [units[at] for at in (place - 1, place + 1) if 0 <= at < len(units) and units[at].source is unit.source]
    is_alone = all(other.block != unit.block for other in near)
    follows = near[-1:] and near[-1] is not units[place - 1] and near[-1].kind == "paragraph"
    return is_alone and bool(follows) and near[-1].heading == unit.heading and unit.text[-1] not in ".!?"


def _belongs(before: Unit, unit: Unit, *, announces: bool, wanted: Collection[str]) -> bool:
    """Return True for a unit that is not quoted without the one before: what that announces, what points back to a few
    lines of code, a further sentence of an entry of which nothing but the name is asked for."""
    if unit.kind == "paragraph":
        if before.kind != "code" or before.text.count("\n") > _SHORT_CODE:
            return False
        pointers = read_phrases(detect_language(unit.text) or "en", "followup")["pointers"]
        return pointers.match(unit.text) is not None
    is_entry = unit.kind == "definition" and before.block == unit.block
    return announces or (is_entry and find_terms(unit.introduction).issuperset(wanted))


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
