"""Finds the passages that answer a question, without a language model: runs of neighbouring units that most probably
hold the answer."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from domain.documents import Source
from domain.ports.embedding import Vector
from domain.ports.judgement import Quote
from domain.ports.unit_scoring import UnitScorer
from domain.profile import LONG_ANSWER, SHORT_ANSWER
from domain.scope import Scope
from domain.text.question import split_carried
from domain.text.terms import find_terms
from nodes.reading.choosing import Passage, add_second, announces, choose_passages, drop_same, find_conflict
from nodes.reading.questions import SEVERAL, asks_for, read_pair, read_parts
from nodes.reading.scoring import choose_sources, list_looked_up, score_units
from nodes.reading.units import Unit

_ROWS = 2
"""Rows above the one that answers which are shown with it, where the first stands for a header. Chosen."""


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
            scored.units, scored.shares, most, budget, several=several, listed=listed, wanted=scored.wanted
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
            nearest += _quote_near(scored.units, shares, best)
            shares = drop_same(scored.units, shares, passage)
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
                best = choose_passages(scored.units, scored.shares, 1, room, several=False, wanted=scored.wanted)
                quotes = [_quote(scored.units, passage) for passage in best]
            for quote in quotes:
                if not any(_holds(other, quote) for other in found):
                    found = [other for other in found if not _holds(quote, other)]
                    found.append(replace(quote, heading=heading or quote.heading))
        return found


def _quote_computed(question: str, sources: Sequence[Source]) -> list[Quote]:
    computed = (each for each in list_looked_up(question, sources) if "\n" in each.get("computed", ""))
    return [Quote(each["number"], each["start"], each["end"], each["computed"]) for each in computed]


def _holds(one: Quote, other: Quote) -> bool:
    return other.text in one.text or (one.number == other.number and one.start <= other.start and other.end <= one.end)


def _quote_near(units: Sequence[Unit], shares: Vector, best: int) -> list[Quote]:
    """Return the unit, and of a table that a sentence introduces the best row below that; nothing where it only
    announces what follows."""
    unit = units[best]
    rows = [i for i in range(best + 1, len(units)) if units[i].source is unit.source and units[i].kind == "table"]
    rows = [i for i in rows if unit.kind == "paragraph" and units[i].block == unit.block + 1]
    if not rows or best + 1 != rows[0]:
        return [] if announces(units, best) else [_quote(units, Passage(best, best, 0, 0.0))]
    row = max(rows, key=lambda i: float(shares[i]))
    # Without a header the first row stands for one.
    first = row if units[row].introduction or row - rows[0] > _ROWS else rows[0]
    quote = _quote(units, Passage(first, row, 0, 0.0))
    return [replace(quote, lead=f"{unit.text}\n{quote.lead}".rstrip())]


def _quote(units: Sequence[Unit], passage: Passage) -> Quote:
    first, last = units[passage.first], units[passage.last]
    source = first.source
    near = [u.block for u in units[max(passage.last - 1, 0) : passage.last + 2] if u.source is source]
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
        goes_on=last.kind in ("list", "steps") and passage.first < passage.last and near == [last.block] * 3,
    )
