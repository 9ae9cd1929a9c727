"""Finds the sentence of another document that says otherwise."""

from collections.abc import Sequence

from domain.ports.embedding import Vector
from domain.text.terms import find_terms
from nodes.local.extraction.passages import Passage
from nodes.local.reading.units import Unit

_SAME = 0.75
"""Share of words that two sentences about the same thing have in common: one word in six may be another."""


def find_rival(units: Sequence[Unit], shares: Vector, best: Passage) -> Passage | None:
    """Return the sentence or item of another document that has the words of the one that answers best and other
    numbers. Such a sentence is nearly as good an answer, and whoever reads one has to know of both."""
    answer = max(range(best.first, best.last + 1), key=lambda position: float(shares[position]))
    words, numbers = _read(units[answer])
    if not numbers or not words:
        return None
    document = units[answer].source["document_id"]
    for position, unit in enumerate(units):
        if unit.source["document_id"] == document or unit.kind in ("table", "code"):
            continue
        other_words, other_numbers = _read(unit)
        same = len(words & other_words) / len(words | other_words) if other_words else 0.0
        if same >= _SAME and other_numbers and not numbers & other_numbers:
            return Passage(position, position, len(unit.whole.split()) + 1, float(shares[position]))
    return None


def add_rival(passages: Sequence[Passage], rival: Passage, most: int, budget: int) -> list[Passage]:
    """Return the passages with the rival behind the best, as many as there may be in `budget` words. Nothing changes
    where it is quoted already or there is no room for it."""
    kept = [passages[0]]
    if any(p.first <= rival.first <= p.last for p in passages) or kept[0].words + rival.words > budget:
        return list(passages)
    for passage in (rival, *passages[1:]):
        if len(kept) < most and sum(p.words for p in kept) + passage.words <= budget:
            kept.append(passage)
    return kept


def _read(unit: Unit) -> tuple[frozenset[str], frozenset[str]]:
    """Return the unit's terms without digits, and those with."""
    terms = find_terms(unit.text)
    numbers = frozenset(term for term in terms if any(character.isdigit() for character in term))
    return terms - numbers, numbers
