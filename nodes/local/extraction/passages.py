"""Chooses the passages to quote: runs of neighbouring units that most probably hold the answer."""

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from domain.ports.embedding import Vector
from domain.text.blocks import Span
from nodes.local.reading.units import Unit
from nodes.quoting import LONG_ANSWER, SHORT_ANSWER

_ADDED = 0.07
"""Probability that a further passage must have."""

_LEAST = 12
"""Words below which nothing more is looked for."""

_BRIEF_COST, _LONG_COST = 0.0025, 0.0005
"""Probability that a further word must bring, where one thing is asked for, and several."""

_WORD = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class Passage:
    """The units from `first` to `last` of one source, which follow each other."""

    first: int
    last: int
    words: int
    """As they are shown: with the lead-in, and a marker a block."""
    share: float
    """Probability that it holds the answer, if anything here does."""


def choose_passages(units: Sequence[Unit], shares: Vector, most: int, *, several: bool, said: int = 0) -> list[Passage]:
    """Return at most `most` passages, the best first, that together most probably hold the answer, in an answer that
    has `said` words already. A single unit may be longer than an answer should be.

    Where several things are asked for, a list is quoted whole, and the best passage goes on with what follows it.
    """
    words = _count_words(units)
    budget, cost = limit_words(said, several=several), _LONG_COST if several else _BRIEF_COST
    if several:
        shares = _even_out(units, shares)
    chosen: list[Passage] = []
    while len(chosen) < most and budget >= _LEAST:
        best = _find_best(units, shares, words, budget, cost, chosen)
        if best is None or (chosen and best.share < _ADDED):
            break
        chosen.append(best)
        budget -= best.words
    if not several or not chosen:
        return chosen
    longer = _extend(units, chosen[0], words, chosen[0].words + budget)
    return [longer, *(p for p in chosen[1:] if p.last < longer.first or p.first > longer.last)]


def limit_words(said: int, *, several: bool) -> int:
    """Return how many words may be quoted in an answer that has `said` words already."""
    return (LONG_ANSWER if several else SHORT_ANSWER) - said


def _even_out(units: Sequence[Unit], shares: Vector) -> Vector:
    """Return the shares, the same within each list."""
    blocks: dict[tuple[int, int], list[int]] = {}
    for position, unit in enumerate(units):
        if unit.kind in ("list", "steps", "definition"):
            blocks.setdefault((unit.source["number"], unit.block), []).append(position)
    evened = shares.copy()
    for positions in blocks.values():
        evened[positions] = shares[positions].mean()
    return evened


def _extend(units: Sequence[Unit], passage: Passage, words: Sequence[Span], budget: int) -> Passage:
    """Return the passage with what follows it under the same heading, in at most `budget` words."""
    last = passage.last
    for following in range(passage.last + 1, len(units)):
        unit = units[following]
        count = passage.words + words[following][1] - words[passage.last][1]
        if unit.source is not units[last].source or unit.heading != units[last].heading or count > budget:
            break
        if not _announces(unit):
            last = following
    return Passage(passage.first, last, passage.words + words[last][1] - words[passage.last][1], passage.share)


def _find_best(
    units: Sequence[Unit],
    shares: Vector,
    words: Sequence[Span],
    budget: int,
    cost: float,
    taken: Sequence[Passage],
) -> Passage | None:
    best: Passage | None = None
    most = 0.0
    for first, unit in enumerate(units):
        share = 0.0
        lead = len(unit.introduction.split())
        for last in range(first, len(units)):
            other = units[last].source is not unit.source or units[last].heading != unit.heading
            if other or any(p.first <= last <= p.last for p in taken):
                break
            count = lead + words[last][1] - words[first][0]
            if count > budget and (last > first or taken):
                break
            share += float(shares[last])
            if not _announces(units[last]) and (best is None or share - cost * count > most):
                most = share - cost * count
                best = Passage(first, last, count, share)
    return best


def _announces(unit: Unit) -> bool:
    """Return True for a unit that announces the next: it is quoted with that or not at all."""
    return unit.text.endswith(":")


def _count_words(units: Sequence[Unit]) -> list[Span]:
    """Return for each unit how many words its source has up to its start, and up to its end. Behind each block stands
    a marker, which counts as a word."""
    starts: dict[int, list[int]] = {}
    blocks: dict[int, list[int]] = {}
    counts: list[Span] = []
    for unit in units:
        number = unit.source["number"]
        if number not in starts:
            starts[number] = [word.start() for word in _WORD.finditer(unit.source["text"])]
            blocks[number] = []
        if unit.block not in blocks[number][-1:]:
            blocks[number].append(unit.block)
        markers = len(blocks[number])
        first, after = bisect_left(starts[number], unit.start), bisect_left(starts[number], unit.end)
        counts.append((first + markers - 1, after + markers))
    return counts
