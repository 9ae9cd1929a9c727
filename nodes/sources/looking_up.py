"""Looks up the rows of tables that a question names, where no model writes the answer."""

import re
from collections.abc import Iterable, Sequence

from domain.documents import FoundSpan, Passage, Source
from domain.ports.calculation import LookUp
from domain.scope import Scope
from domain.text.tables import is_row
from nodes.context import Context
from nodes.sources.optional import query_or_default
from nodes.sources.sourcing import make_source

SURE = 0.6
"""Certainty from which rows are taken for the answer. Chosen on questions about tables that were written before."""

_RECORD = re.compile(r"^- [^:\n]{1,200}: ", re.MULTILINE)


async def look_up(
    question: str, sources: Sequence[Source], scope: Scope, context: Context, *, parts: Iterable[str] = ()
) -> list[Source]:
    """Return the rows that the question names in tables of the documents that some of the sources are rows of, not
    numbered yet, each with its answer as `computed`. Where it names none as a whole, each of its parts is looked up."""
    held = dict.fromkeys(source["document_id"] for source in sources if _has_rows(source))
    calculator = context.calculator
    if calculator is None or not held:
        return []

    async def find(wording: str) -> LookUp | None:
        looking = calculator.look_up(scope, wording, list(held))
        found = await query_or_default(looking, None, context.ledger, "Tables were not looked up")
        return None if found is None or found.certainty < SURE else found

    found = {question: await find(question)}
    if found[question] is None:
        found = {part: await find(part) for part in parts}
    return [
        _make_source(asked, passage, answer, rows.certainty)
        for asked, rows in found.items()
        if rows is not None
        for passage, answer in rows.found
    ]


def _make_source(asked: str, passage: Passage, answer: str, certainty: float) -> Source:
    source = make_source(0, passage, score=certainty)
    if passage.lead:
        source["lead"] = passage.lead
    found = [FoundSpan(start=passage.start, end=passage.end, score=certainty, query=asked)]
    return Source(**source, computed=answer, found=found)


def _has_rows(source: Source) -> bool:
    """Return True where a chunk that was found, not only what stands around it, holds rows of a table."""
    whole = [FoundSpan(start=source["start"], end=source["end"], score=0.0)]
    spans = [(each["start"] - source["start"], each["end"] - source["start"]) for each in source.get("found", whole)]
    texts = [source["text"][max(0, start) : max(0, end)] for start, end in spans]
    return any(any(map(is_row, text.split("\n"))) or len(_RECORD.findall(text)) > 1 for text in texts)
