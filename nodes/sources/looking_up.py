"""Looks up the rows of tables that a question names, where no model writes the answer."""

import re
from collections.abc import Sequence

from domain.documents import FoundSpan, Source
from domain.scope import Scope
from domain.text.tables import is_row
from nodes.context import Context
from nodes.sources.optional import query_or_default
from nodes.sources.sourcing import make_source

SURE = 0.6
"""Certainty from which rows are taken for the answer: half a name is not one."""

_SECONDS = 5.0
"""Timeout of one question: a busy machine takes seconds to start the process that reads tables."""

_RECORD = re.compile(r"^- [^:\n]{1,200}: ", re.MULTILINE)


async def look_up(question: str, sources: Sequence[Source], scope: Scope, context: Context) -> list[Source]:
    """Return the rows that the question, or part of one, names in tables of the documents that some of the sources are
    rows of, not numbered yet, each with its answer as `computed`."""
    held = dict.fromkeys(source["document_id"] for source in sources if _has_rows(source))
    if context.calculator is None or not held:
        return []
    looking = context.calculator.look_up(scope, question, list(held))
    rows = await query_or_default(looking, None, context.ledger, "Tables were not looked up", _SECONDS)
    if rows is None or rows.certainty < SURE:
        return []
    looked_up = []
    for passage, answer in rows.found:
        source = make_source(0, passage, score=rows.certainty)
        found = [FoundSpan(start=passage.start, end=passage.end, score=rows.certainty, query=question)]
        looked_up.append(Source(**source, computed=answer, sql=rows.sql, found=found))
    return looked_up


def _has_rows(source: Source) -> bool:
    """Return True where a chunk that was found, not only what stands around it, holds rows of a table."""
    whole = [FoundSpan(start=source["start"], end=source["end"], score=0.0)]
    spans = [(each["start"] - source["start"], each["end"] - source["start"]) for each in source.get("found", whole)]
    texts = [source["text"][max(0, start) : max(0, end)] for start, end in spans]
    return any(any(map(is_row, text.split("\n"))) or len(_RECORD.findall(text)) > 1 for text in texts)
