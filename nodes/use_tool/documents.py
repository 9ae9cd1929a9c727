"""Finds the documents that the call of a tool names."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from domain.documents import ListedDocument
from domain.errors import FilterError
from domain.library.where import Where
from domain.people.names import find_nearest
from domain.scope import Scope
from nodes.context import Context
from nodes.use_tool.tool import ToolProblem

MOST_LISTED = 1000
"""Documents among which a name is looked up. Chosen: more would not fit into a prompt either."""


FILTER = "Only documents with these metadata, such as: year >= 2023 and team = legal. Empty: all."
"""Describes the argument `filter` to the model."""


def filter_scope(scope: Scope, written: str) -> Scope:
    """Return the part of the scope that passes the filter. Raises `ToolProblem` where it cannot be read."""
    try:
        added = Where.parse_option(written or None)
        return replace(scope, where=Where.of([*scope.where.conditions, *added.conditions]))
    except FilterError as error:
        raise ToolProblem(error.message) from None


async def find_documents(names: Iterable[str], scope: Scope, context: Context) -> list[ListedDocument]:
    """Return the documents of these ids, titles, paths or folders (or the last parts of these), in any case.

    Raises `ToolProblem` for a name that none has.
    """
    wanted = list(names)
    if not wanted:
        return []
    listed = (await context.library.list_documents(scope, MOST_LISTED)).documents
    found: dict[str, ListedDocument] = {}
    for name in wanted:
        matching = [document for document in listed if _is_called(document, name)]
        if not matching:
            raise _refuse(name, listed)
        found |= {document.id: document for document in matching}
    return list(found.values())


def _is_called(document: ListedDocument, name: str) -> bool:
    level = name.strip().casefold()
    path = f"/{document.source.casefold().lstrip('/')}"
    part = f"/{level.strip('/')}"
    return level in (document.id, document.title.casefold()) or path.endswith(part) or f"{part}/" in path


def _refuse(name: str, listed: Sequence[ListedDocument]) -> ToolProblem:
    by_title = {document.title: document.id for document in listed}
    nearest = find_nearest(name, by_title)
    meant = f" Did you mean {nearest!r}?" if nearest else ""
    return ToolProblem(
        f"No document is called {name!r}.{meant} list_documents names those that there are.",
        [by_title[nearest]] if nearest else [],
    )
