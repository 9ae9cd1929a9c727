"""Rewrites a query, without a language model.

One rewrite remains of those that were tried: abbreviations in the form that the sources have. The others lost as many
good sources as they found (docs/decisions/08-second-hop-and-retries.md).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from domain.documents import Source
from domain.text.abbreviations import add_other_forms, find_abbreviations
from domain.text.question import is_tried


@dataclass(frozen=True, slots=True)
class LocalReformulator:
    """Implements `QueryReformulator`."""

    async def reformulate(
        self, question: str, missing: Sequence[str], sources: Sequence[Source], tried: Sequence[str], background: str
    ) -> str | None:
        known = find_abbreviations("\n".join(source["text"] for source in sources))
        query = add_other_forms(question, known) + background
        return None if is_tried(query, [question, *tried]) else query
