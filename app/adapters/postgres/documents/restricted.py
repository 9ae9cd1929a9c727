"""Who may read what repeats the text of documents of groups, where nobody says so (docs/decisions/22)."""

from collections.abc import Collection, Iterable, Sequence
from typing import LiteralString

from app.adapters.postgres.documents.frequencies import CHUNKS
from app.adapters.postgres.pool import Session
from domain.errors import DocumentError, RestrictedText
from domain.people.names import find_twin

_MOST_KEYS = 1_000
"""Runs of a text that an index looks up one by one."""

# What all who are to read the text can read already (`is_known`) is not restricted, nor is what the document itself
# held.
_FIND: LiteralString = """
    SELECT is_known, groups, size, array_agg(DISTINCT run) AS shared FROM (
        SELECT document_id, groups, size, run, is_current AND (
            groups = '{}' OR %(groups)s::text[] <> '{}' AND groups @> %(groups)s::text[]
        ) AS is_known
        FROM sketches_of_workspace, LATERAL (SELECT cardinality(sketch) AS size OFFSET 0) AS once, unnest(sketch) AS run
        WHERE workspace_id = %(workspace_id)s AND run = ANY(%(sketch)s::bigint[])
    ) AS held
    WHERE is_known OR groups <> '{}' GROUP BY document_id, groups, size, is_known
"""

# Most texts repeat nothing that is restricted, and only what is has an index.
_ARE_SOME: LiteralString = """
    SELECT FROM sketches_of_workspace WHERE workspace_id = %(workspace_id)s AND groups <> '{}'
"""
_SHARE_SOME: LiteralString = f"{_ARE_SOME} AND sketch && %(sketch)s::bigint[]"

_LIST_GROUPS: LiteralString = f"""
    SELECT DISTINCT unnest(groups) AS name FROM term_frequencies
    WHERE workspace_id = %(workspace_id)s AND term = {CHUNKS}
"""


def write_numbers(numbers: Iterable[int]) -> str:
    """Return an array as Postgres reads it. psycopg takes ten times as long for the hundred thousands of a sketch."""
    return f"{{{','.join(map(str, numbers))}}}"


async def check_spelling(session: Session, groups: Collection[str]) -> None:
    """Raise `DocumentError` for a new group that looks like one that documents have."""
    known = {row["name"] for row in await session.fetch(_LIST_GROUPS)} if groups else set[str]()
    for name in set(groups) - known:
        if find_twin(name, known):
            raise DocumentError(
                f"Other documents have a group that looks like {name!r}, in other letters. Use that one."
            )


async def restrict(session: Session, sketch: Sequence[int], groups: Collection[str]) -> Sequence[str]:
    """Return the groups of a text that would have these: those that may read all documents whose text it repeats. It
    repeats one if it has half of its text, or if half of what is new in it is of that one, or of several together.

    Raises `RestrictedText` where no group may read all of them.
    """
    if len(sketch) > _MOST_KEYS:
        repeated_from = await session.fetch_one(f"{_ARE_SOME} LIMIT 1")
    else:
        repeated_from = await session.fetch_one(f"{_SHARE_SOME} LIMIT 1", sketch=write_numbers(sketch))
    if repeated_from is None:
        return sorted(set(groups))
    rows = await session.fetch(_FIND, sketch=write_numbers(sketch), groups=list(groups))
    known = {run for row in rows if row["is_known"] for run in row["shared"]}
    new = len(set(sketch) - known)
    held = [(set(row["shared"]) - known, row) for row in rows if not row["is_known"]]
    held = sorted((each for each in held if each[0]), key=lambda each: -len(each[0]))
    repeated = [row for shared, row in held if 2 * len(shared) >= min(row["size"], new)]
    if not repeated:
        found = set[int]()
        for number, (shared, _) in enumerate(held, start=1):
            found |= shared
            if 2 * len(found) >= new:
                repeated = [row for _, row in held[:number]]
                break
    limits = [set(row["groups"]) for row in repeated] + [set(groups)] * bool(groups)
    allowed = set[str].intersection(*limits) if limits else set[str]()
    if limits and not allowed:
        raise RestrictedText
    return sorted(allowed)
