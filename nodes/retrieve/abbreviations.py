"""Spell out the abbreviations of a question with the words of the documents."""

import asyncio

from domain.scope import Scope
from domain.text.abbreviations import find_abbreviations, list_abbreviations
from nodes.context import Context
from nodes.sources.optional import query_or_default

_PASSAGES = 50
"""Passages with the abbreviation in which its long form is looked for, best first."""


async def spell_out(question: str, scope: Scope, context: Context) -> dict[str, str]:
    """Return the long forms of the question's abbreviations. One that the documents spell out in two ways is left
    alone."""

    async def look(short: str) -> tuple[str, str] | None:
        matches = await context.library.search_lexical(scope, short, _PASSAGES)
        passages = await context.library.read_passages(scope, [match.chunk_id for match in matches])
        pairs = (pair for passage in passages for pair in find_abbreviations(passage.text).items())
        forms = {long.casefold(): long for found, long in pairs if found in (short, f"{short}s")}
        return (short, next(iter(forms.values()))) if len(forms) == 1 else None

    async def look_all() -> dict[str, str]:
        found = await asyncio.gather(*(look(short) for short in list_abbreviations(question)))
        return dict(pair for pair in found if pair is not None)

    return await query_or_default(look_all(), {}, context.ledger, "Abbreviations were not spelt out")
