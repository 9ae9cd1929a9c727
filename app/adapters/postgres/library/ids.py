"""Ids of chunks and documents: as parameters of statements, and in the rows that come back.

Ids of matches come from the database as text, because they leave as text: making objects of hundreds of them takes
longer than finding them.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from uuid import UUID

from psycopg.rows import DictRow

from domain.documents import Match
from domain.scope import Scope

REMEMBERED_SCOPES = 8
"""Number of recent scopes whose document ids, possibly thousands, are kept in the form in which they are sent."""

_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def parse_ids(ids: Sequence[str]) -> list[UUID]:
    """Return the ids as UUIDs. Strings that are no UUID are left out: nothing is stored under them."""
    parsed = []
    for text in ids:
        try:
            parsed.append(UUID(text))
        except ValueError:
            continue
    return parsed


def join_ids(ids: Iterable[str]) -> str:
    """Return the ids as one array literal for `::uuid[]`. Strings that are no UUID are left out.

    Ids in canonical form are not parsed, because a search may be given thousands.
    """
    kept: list[str] = []
    others: list[str] = []
    for text in ids:
        (kept if _ID.fullmatch(text) else others).append(text)
    return f"{{{','.join([*kept, *map(str, parse_ids(others))])}}}"


@lru_cache(maxsize=REMEMBERED_SCOPES)
def join_documents(scope: Scope) -> str | None:
    """Return the ids of the documents that the scope names as one array literal, or None if it names none.

    `filters.FilteredDocuments` also applies the scope's filter.
    """
    return None if scope.document_ids is None else join_ids(scope.document_ids)


@lru_cache(maxsize=REMEMBERED_SCOPES)
def split_ids(document_ids: str) -> frozenset[str]:
    """Return the ids of an array literal that `join_ids` or the database wrote."""
    return frozenset(document_ids[1:-1].split(","))


def keep_documents(rows: Iterable[DictRow], document_ids: str | None) -> list[Match]:
    """Return the rows as matches, without those of other documents than these; None keeps all."""
    chosen = None if document_ids is None else split_ids(document_ids)
    return [
        Match(row["chunk_id"], row["document_id"], row["score"])
        for row in rows
        if chosen is None or row["document_id"] in chosen
    ]
