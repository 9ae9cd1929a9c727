"""Some documents of the library, for replies that mention them."""

from collections.abc import Mapping, Sequence
from typing import Any

from domain.documents import ListedDocument
from domain.errors import Unavailable
from nodes.context import Context, scope_of


async def list_recent(state: Mapping[str, Any], context: Context, limit: int) -> list[ListedDocument] | None:
    """Return some documents in the question's scope. None where the library does not answer, because no step needs
    them."""
    try:
        return await context.library.list_recent(scope_of(state), limit)
    except Unavailable:
        return None


def read_titles(listed: Sequence[ListedDocument] | None) -> list[str] | None:
    """Return their titles."""
    return None if listed is None else [document.title for document in listed]


def list_ids(listed: Sequence[ListedDocument] | None) -> list[str]:
    """Return their ids, for the state's `listed`."""
    return [document.id for document in listed or ()]
