"""How many chunks hold each term, of the documents of each set of groups: an asker's searches weigh words by the
documents that they may read, so that no score tells how often a word stands in the others."""

from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import LiteralString

from app.adapters.postgres.pool import Session, write_array

CHUNKS = -1
"""Stands for a term that every chunk holds. No id of a term is negative."""

# Ordered, so that two concurrent changes cannot deadlock.
_ADD: LiteralString = """
    INSERT INTO term_frequencies AS f (workspace_id, term, audience, groups, chunks)
    SELECT %(workspace_id)s, term, audience, groups::text[], change
    FROM unnest(%(terms)s::int[], %(places)s::int[], %(changes)s::int[]) AS changed (term, place, change)
        JOIN unnest(%(audiences)s::bigint[], %(groups)s::text[]) WITH ORDINALITY AS readers (audience, groups, place)
            USING (place)
    ORDER BY term, audience
    ON CONFLICT (workspace_id, term, audience) DO UPDATE SET chunks = f.chunks + excluded.chunks
"""


class TermChanges:
    """What a change of documents changes of these numbers."""

    def __init__(self) -> None:
        self._changes: dict[tuple[str, ...], Counter[int]] = {}

    def add(self, groups: Sequence[str], terms: Mapping[int, int], chunks: int, sign: int = 1) -> None:
        """Note that so many chunks with these terms have come to the documents of these groups; they have gone if
        `sign` is -1."""
        changed = self._changes.setdefault(tuple(sorted(groups)), Counter())
        for term, number in (*terms.items(), (CHUNKS, chunks)):
            changed[term] += sign * number

    def move(self, had: Sequence[str], has: Sequence[str], terms: Mapping[int, int], chunks: int) -> None:
        """Note that so many chunks with these terms are of other groups than before."""
        self.add(had, terms, chunks, -1)
        self.add(has, terms, chunks)

    @property
    def chunks(self) -> int:
        """The number of chunks that have come, less those that have gone."""
        return sum(changed[CHUNKS] for changed in self._changes.values())

    def list_fewer(self) -> list[int]:
        """Return the terms that some groups have fewer chunks with than before."""
        return [term for changed in self._changes.values() for term, change in changed.items() if change < 0]

    async def store(self, session: Session) -> None:
        """Change the numbers. The row without groups is held for every term: what else is kept of a term is so changed
        by one transaction at a time."""
        terms = {term for changed in self._changes.values() for term, change in changed.items() if change}
        held = {(): Counter(dict.fromkeys(terms, 0))} | self._changes
        rows = [
            (term, place, changed[term])
            for place, (groups, changed) in enumerate(held.items(), 1)
            for term in sorted(terms)
            if changed[term] or not groups
        ]
        if not rows:
            return
        terms_of, places, changes = (list(column) for column in zip(*rows, strict=True))
        await session.execute(
            _ADD,
            terms=terms_of,
            places=places,
            changes=changes,
            audiences=[number_audience(groups) for groups in held],
            groups=[write_array(groups) for groups in held],
        )


def number_audience(groups: Sequence[str]) -> int:
    """Return a number for a set of groups, which fits into an index where the groups do not."""
    if not groups:
        return 0
    return int.from_bytes(blake2b(write_array(groups).encode(), digest_size=8).digest(), signed=True)
