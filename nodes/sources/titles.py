"""Titles of documents, for replies that mention some."""

from collections.abc import Mapping
from typing import Any

from domain.errors import Unavailable
from nodes.context import Context, scope_of


async def read_titles(state: Mapping[str, Any], context: Context, limit: int) -> list[str] | None:
    """Return titles of some documents in the question's scope. None where the library does not answer, because no step
    needs them."""
    try:
        return await context.library.read_titles(scope_of(state), limit)
    except Unavailable:
        return None
