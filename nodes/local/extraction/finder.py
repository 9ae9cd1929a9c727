"""Finds the passages that answer a question, without a language model."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from domain.documents import Source
from domain.ports.embedding import Vector
from domain.ports.judgement import Quote
from domain.ports.unit_scoring import UnitScorer
from domain.scope import Scope
from domain.state import Turn
from domain.text.markers import strip_markers
from domain.text.ranges import compare, read_amounts
from domain.text.terms import find_terms
from nodes.local.extraction.passages import Passage, choose_passages, limit_words
from nodes.local.extraction.rivals import add_rival, find_rival
from nodes.local.reading.questions import read_question
from nodes.local.reading.scoring import ScoredUnits, score_units
from nodes.local.reading.units import Unit

_SAID = 0.2
"""Factor on the share of a unit that the last answer quoted: a follow-up asks for something else."""


@dataclass(frozen=True, slots=True)
class LocalFinder:
    """Implements `AnswerFinder`.

    Of rows, items or sentences that state ranges side by side, only the one that encloses a number of the question is
    quoted.
    """

    unit_scorer: UnitScorer

    async def find(
        self,
        question: str,
        sources: Sequence[Source],
        *,
        scope: Scope,
        most: int,
        typed: str | None = None,
        last: Turn | None = None,
        said: int = 0,
    ) -> list[Quote]:
        scored = await score_units(question, sources, self.unit_scorer, scope, typed=typed)
        shares = _drop_other_entries(question, scored.units, _drop_excluding(question, scored))
        several = read_question(typed or question).several
        if last is not None and typed not in (None, question):
            shares = _lower_said(scored.units, shares, last["answer"])
            # It asks for one thing more, unless it only wants the last question answered otherwise.
            several = several and not question.startswith(typed)
        passages = choose_passages(scored.units, shares, most, several=several, said=said)
        if passages and (rival := find_rival(scored.units, shares, passages[0])) is not None:
            passages = add_rival(passages, rival, most, limit_words(said, several=several))
        return [_quote(scored.units, passage) for passage in passages]


def _drop_excluding(question: str, scored: ScoredUnits) -> Vector:
    """Return the shares, 0 for units with another range than the one of their block that encloses an amount of the
    question."""
    shares = scored.shares
    for amount in read_amounts(question):
        fits = [compare(amount, unit.text) for unit in scored.units]
        blocks = [(unit.source["number"], unit.block) for unit in scored.units]
        settled = {block for block, fit in zip(blocks, fits, strict=True) if fit == "encloses"}
        stays = [fit in (None, "encloses") or b not in settled for b, fit in zip(blocks, fits, strict=True)]
        shares = shares * np.array(stays, dtype=np.float32)
    return shares


def _drop_other_entries(question: str, units: Sequence[Unit], shares: Vector) -> Vector:
    """Return the shares, 0 for definitions of other names where the question has the name of one: entries for settings
    and commands mention each other."""
    asked = find_terms(question)
    named = [_read_name(unit) for unit in units]
    if not any(name and name <= asked for name in named):
        return shares
    return shares * np.array([name is None or name <= asked for name in named], dtype=np.float32)


def _read_name(unit: Unit) -> frozenset[str] | None:
    """Return the terms of what a definition defines; None where it is none."""
    if unit.kind != "definition":
        return None
    return find_terms(unit.introduction or unit.text.split("\n", 1)[0])


def _lower_said(units: Sequence[Unit], shares: Vector, said: str) -> Vector:
    known = " ".join(strip_markers(said).split())
    factors = [_SAID if " ".join(strip_markers(unit.text).split()) in known else 1.0 for unit in units]
    return shares * np.array(factors, dtype=np.float32)


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
        score=passage.share,
        lead=lead,
        asked=first.asked,
    )
