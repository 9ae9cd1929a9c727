"""Who may read what repeats the text of documents of groups, where nobody says so (docs/decisions/22)."""

from collections.abc import Collection, Sequence
from typing import LiteralString

from app.adapters.postgres.documents.frequencies import CHUNKS
from app.adapters.postgres.pool import Session
from domain.errors import DocumentError, RestrictedText
from domain.people.names import find_twin

# What all who are to read the text can read already is not restricted, nor is what the document itself held.
_FIND: LiteralString = """
    WITH found AS MATERIALIZED (
        SELECT groups, sketch, is_current FROM sketches_of_workspace
        WHERE workspace_id = %(workspace_id)s AND sketch && %(sketch)s::bigint[]
    ),
    known AS (
        SELECT unnest(sketch) FROM found
        WHERE is_current AND (groups = '{}' OR %(groups)s::text[] <> '{}' AND groups @> %(groups)s::text[])
    ),
    new AS MATERIALIZED (SELECT unnest(%(sketch)s::bigint[]) AS run EXCEPT SELECT * FROM known)
    SELECT groups, cardinality(sketch) AS size, (SELECT count(*) FROM new) AS new,
        ARRAY(SELECT unnest(sketch) INTERSECT SELECT run FROM new) AS shared
    FROM found WHERE groups <> '{}'
"""


_LIST_GROUPS: LiteralString = f"""
    SELECT DISTINCT unnest(groups) AS name FROM term_frequencies
    WHERE workspace_id = %(workspace_id)s AND term = {CHUNKS}
"""


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
    rows = await session.fetch(_FIND, prepare=False, sketch=list(sketch), groups=list(groups))
    rows = sorted((row for row in rows if row["shared"]), key=lambda row: -len(row["shared"]))
    repeated = [row for row in rows if 2 * len(row["shared"]) >= min(row["size"], row["new"])]
    if not repeated:
        found = set[int]()
        for number, row in enumerate(rows, start=1):
            found.update(row["shared"])
            if 2 * len(found) >= row["new"]:
                repeated = rows[:number]
                break
    limits = [set(row["groups"]) for row in repeated] + [set(groups)] * bool(groups)
    allowed = set[str].intersection(*limits) if limits else set[str]()
    if limits and not allowed:
        raise RestrictedText
    return sorted(allowed)
