"""Looks through a library: its folders, the values of its metadata, and a page of its documents."""

from itertools import takewhile
from typing import LiteralString

from app.adapters.postgres.documents.catalog import DOCUMENT_COLUMNS, read_document
from app.adapters.postgres.library.filters import PASSES_FILTER, write_paths
from app.adapters.postgres.patterns import escape
from app.adapters.postgres.pool import Session
from app.adapters.postgres.row_security import READABLE
from domain.library.browsing import Browsed, Choice, Folder, Order, View
from domain.scope import Scope

MOST_FOLDERS = 500
MOST_VALUES = 12
"""A key with more values is no list to choose from."""

_READABLE: LiteralString = f"workspace_id = %(workspace_id)s AND {READABLE}"

_FOUND: LiteralString = f"""
    FROM documents_of_workspace AS documents
    WHERE {_READABLE} AND starts_with(source, %(folder)s) AND {PASSES_FILTER}
      AND (title || E'\\n' || source) ILIKE ALL (%(patterns)s::text[])
"""

_BELOW: LiteralString = "substr(source, length(%(folder)s) + 1)"

_COUNT: LiteralString = f"""
    SELECT min(source COLLATE "C") AS first, max(source COLLATE "C") AS last, count(*) AS total,
        (SELECT count(*) FROM documents_of_workspace WHERE {_READABLE}) AS "all"
    {_FOUND}
"""

# The root of a file system has no name of its own.
_LIST_FOLDERS: LiteralString = f"""
    SELECT min(source COLLATE "C") AS first, max(source COLLATE "C") AS last, count(*) AS documents
    {_FOUND} AND strpos({_BELOW}, '/') > 0
    GROUP BY coalesce(substring({_BELOW} FROM '^/?[^/]+/'), '/') ORDER BY 1 LIMIT {MOST_FOLDERS}
"""

# A key whose values are all of one document each narrows down to what the list shows anyway, and one that all documents
# share to nothing at all.
_LIST_CHOICES: LiteralString = f"""
    SELECT key, value, documents FROM (
        SELECT key, value, count(*) AS documents, count(*) OVER (PARTITION BY key) AS values,
            max(count(*)) OVER (PARTITION BY key) AS most
        FROM (SELECT metadata {_FOUND}) AS found, jsonb_each(metadata) AS pair (key, held),
            jsonb_array_elements(CASE jsonb_typeof(held) WHEN 'array' THEN held ELSE jsonb_build_array(held) END)
                AS each (value)
        GROUP BY key, value
    ) AS counted
    WHERE values <= {MOST_VALUES} AND most > 1 AND documents < %(total)s
    ORDER BY key, value
"""

_ORDERS: dict[Order, LiteralString] = {
    "name": "lower(coalesce(nullif(title, ''), source)), document_id",
    "newest": "updated_at DESC, document_id",
    "largest": "characters DESC, document_id",
}

_LIST: dict[Order, LiteralString] = {
    order: f"""
        SELECT {DOCUMENT_COLUMNS} {_FOUND} AND (%(deep)s OR strpos({_BELOW}, '/') = 0)
        ORDER BY {columns} LIMIT %(limit)s OFFSET %(offset)s
    """
    for order, columns in _ORDERS.items()
}


def _find_shared(first: str, last: str, **_: int) -> str:
    """Return the innermost folder of both sources, and so of all that come between them."""
    pairs = zip(first.split("/")[:-1], last.split("/")[:-1], strict=False)
    return "".join(f"{name}/" for name, other in takewhile(lambda pair: pair[0] == pair[1], pairs))


async def browse(session: Session, asker: Scope, view: View) -> Browsed:
    """Return what the view shows of the documents that the asker may read and that pass the filter of their scope."""
    metadata, path = write_paths(asker.where)
    looked_for = {
        "groups": None if asker.groups is None else sorted(asker.groups),
        "metadata": metadata,
        "path": path,
        "patterns": [f"%{word}%" for word in escape(view.words).split()],
    }
    is_deep = bool(view.words.strip() or asker.where)
    counted = await session.fetch_one(_COUNT, prepare=False, folder=view.folder, **looked_for)
    assert counted is not None
    folder = view.folder
    if counted["total"] and not is_deep:
        folder = max(folder, _find_shared(**counted), key=len)
    folders = [] if is_deep else await session.fetch(_LIST_FOLDERS, prepare=False, folder=folder, **looked_for)
    choices = await session.fetch(_LIST_CHOICES, prepare=False, folder=folder, total=counted["total"], **looked_for)
    rows = await session.fetch(
        _LIST[view.order],
        prepare=False,
        folder=folder,
        deep=is_deep,
        limit=view.limit,
        offset=view.offset,
        **looked_for,
    )
    return Browsed(
        all=counted["all"],
        total=counted["total"],
        folder=folder,
        folders=[Folder(_find_shared(**row), row["documents"]) for row in folders],
        choices=[Choice(**row) for row in choices],
        documents=[document for row in rows if (document := read_document(row))],
    )
