"""Metadata filters in SQL: a filter becomes JSON paths, and its scope the ids of the documents that pass it.

Searches take a list of document ids, for which they are exact. So a filter is evaluated before the search, by one
indexed query over the documents, and never on what a search has found.
"""

import json
from collections import OrderedDict
from typing import LiteralString
from uuid import UUID

from app.adapters.postgres.library.ids import join_documents
from app.adapters.postgres.pool import Session
from app.adapters.postgres.row_security import READABLE
from domain.library.where import PATH_KEY, Condition, Scalar, Where
from domain.scope import Scope

REMEMBERED_FILTERS = 32
"""Number of recent scopes with a filter whose documents are kept until the workspace changes."""

_GET_STATE: LiteralString = "SELECT corpus FROM workspaces WHERE workspace_id = %(workspace_id)s"

# A condition on `documents`, of the JSON paths that `write_paths` returns. Statements with it are not prepared, so that
# the planner drops what is NULL and sees what the index can find.
PASSES_FILTER: LiteralString = """
    (%(metadata)s::jsonpath IS NULL OR metadata @@ %(metadata)s::jsonpath)
    AND (%(path)s::jsonpath IS NULL OR jsonb_build_object('path', source) @@ %(path)s::jsonpath)
"""

_FIND_DOCUMENTS: LiteralString = f"""
    SELECT '{{' || coalesce(string_agg(document_id::text, ','), '') || '}}' AS document_ids,
        (SELECT corpus FROM workspaces WHERE workspace_id = %(workspace_id)s) AS corpus
    FROM documents_of_workspace
    WHERE workspace_id = %(workspace_id)s
      AND (%(document_ids)s::uuid[] IS NULL OR document_id = ANY(%(document_ids)s::uuid[]))
      AND {READABLE}
      AND {PASSES_FILTER}
"""

# Most workspaces have no document that some asker may not read, and are searched as a whole.
_HIDES_ANY: LiteralString = """
    SELECT EXISTS (
        SELECT FROM documents_of_workspace
        WHERE workspace_id = %(workspace_id)s AND groups <> '{}' AND NOT groups && %(groups)s::text[]
    ) AS hides, (SELECT corpus FROM workspaces WHERE workspace_id = %(workspace_id)s) AS corpus
"""

_COMPARISONS = {"eq": "==", "gt": ">", "gte": ">=", "lt": "<", "lte": "<=", "prefix": "starts with"}


class FilteredDocuments:
    """Finds the documents in a scope: those that pass its filter and that its groups may read. One is kept per library,
    because the searches of a question share its scope."""

    def __init__(self) -> None:
        self._known: OrderedDict[Scope, tuple[UUID | None, str | None]] = OrderedDict()

    async def find(self, session: Session, scope: Scope) -> str | None:
        """Return the ids of the documents in scope as one array literal, or None if that is the whole workspace."""
        if not scope.where and scope.groups is None:
            return join_documents(scope)
        if known := self._known.get(scope):
            # Any change of the workspace's documents, metadata included, gives it another state.
            state = await session.fetch_one(_GET_STATE)
            if state is not None and state["corpus"] == known[0]:
                self._remember(scope, known)  # others may have pushed it out meanwhile
                return known[1]
        groups = None if scope.groups is None else sorted(scope.groups)
        row = None if scope.where else await session.fetch_one(_HIDES_ANY, groups=groups)
        found: str | None = join_documents(scope)
        if row is None or row["hides"]:
            metadata, path = write_paths(scope.where)
            row = await session.fetch_one(
                _FIND_DOCUMENTS, prepare=False, document_ids=found, groups=groups, metadata=metadata, path=path
            )
            assert row is not None
            found = row["document_ids"]
        self._remember(scope, (row["corpus"], found))
        return found

    def _remember(self, scope: Scope, known: tuple[UUID | None, str | None]) -> None:
        self._known[scope] = known
        self._known.move_to_end(scope)
        if len(self._known) > REMEMBERED_FILTERS:
            self._known.popitem(last=False)


def write_paths(where: Where) -> tuple[str | None, str | None]:
    """Write a filter as JSON paths: one over the metadata, and one over an object with the document's path."""
    tests = [(condition.key == PATH_KEY, write_test(condition)) for condition in where.conditions]
    of_metadata = [test for is_path, test in tests if not is_path]
    of_path = [test for is_path, test in tests if is_path]
    return " && ".join(of_metadata) or None, " && ".join(of_path) or None


def write_test(condition: Condition) -> str:
    """Write a condition as a JSON path over an object with its key."""
    key = f"$.{json.dumps(condition.key, ensure_ascii=False)}"
    if isinstance(condition.value, tuple):
        return f"({' || '.join(f'{key} == {_write_value(value)}' for value in condition.value)})"
    return f"({key} {_COMPARISONS[condition.operator]} {_write_value(condition.value)})"


def _write_value(value: Scalar) -> str:
    # JSON's literals are those of JSON paths.
    return json.dumps(value, ensure_ascii=False)
