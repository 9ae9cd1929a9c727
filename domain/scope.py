"""Scope: the documents that a question may be answered from.

A scope names a workspace, optionally some of its documents, optionally a filter over the documents' metadata, and the
groups of whoever asks. It travels whole: from the request through the state, the cache key and the tape to SQL. Its
JSON form is canonical (equal scopes have equal JSON) and leaves out the filter and the groups where there are none.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NotRequired

from typing_extensions import TypedDict

from domain.library.where import EVERYTHING, Where


class ScopeJson(TypedDict):
    """A scope as the state, the cache key and the tape hold it."""

    workspace_id: str
    document_ids: list[str] | None
    where: NotRequired[dict[str, Any]]
    """Absent where nothing is filtered."""
    groups: NotRequired[list[str]]
    """Absent where the asker may read every document."""


@dataclass(frozen=True, slots=True)
class Scope:
    """A workspace, and within it the documents that are named (None: all) and that pass the filter."""

    workspace_id: str
    document_ids: tuple[str, ...] | None = None
    """Sorted, without repetitions."""
    where: Where = EVERYTHING
    groups: frozenset[str] | None = None
    """The asker's groups: documents of other groups are out of scope, documents without groups in it. None: the asker
    may read every document."""

    def __post_init__(self) -> None:
        if self.document_ids is not None:
            object.__setattr__(self, "document_ids", tuple(sorted(set(self.document_ids))))

    @classmethod
    def within(
        cls,
        workspace_id: str,
        document_ids: Iterable[str] | None = None,
        where: Where = EVERYTHING,
        groups: Iterable[str] | None = None,
    ) -> "Scope":
        """The scope of a request, which may name its documents in any form and order."""
        return cls(
            workspace_id,
            None if document_ids is None else tuple(document_ids),
            where,
            None if groups is None else frozenset(groups),
        )

    def narrow(self, document_ids: Iterable[str]) -> "Scope":
        """Return the part of the scope that lies in these documents."""
        chosen = set(document_ids) if self.document_ids is None else set(document_ids) & set(self.document_ids)
        return replace(self, document_ids=tuple(chosen))

    def limit(self, groups: frozenset[str] | None) -> "Scope":
        """Return the part of the scope that an asker of these groups may read; None: all groups."""
        if groups is None:
            return self
        return replace(self, groups=groups if self.groups is None else self.groups & groups)

    def admits(self, groups: Collection[str] | None) -> bool:
        """Return True if the asker may read a document of these groups. None: they are not known."""
        return admits(groups, self.groups)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Scope":
        """Read what `to_json` made. Raises `FilterError`."""
        where = Where.from_json(value["where"]) if value.get("where") else EVERYTHING
        return cls.within(value["workspace_id"], value.get("document_ids"), where, value.get("groups"))

    def to_json(self) -> ScopeJson:
        """The canonical JSON form: equal for scopes that are equal, in whatever order they were written."""
        documents = None if self.document_ids is None else list(self.document_ids)
        plain = ScopeJson(workspace_id=self.workspace_id, document_ids=documents)
        if self.where:
            plain["where"] = self.where.to_json()
        if self.groups is not None:
            plain["groups"] = sorted(self.groups)
        return plain


def admits(groups: Collection[str] | None, asking: frozenset[str] | None) -> bool:
    """Return True if whoever asks with these groups (None: all) may read a document of those (None: not known)."""
    if asking is None:
        return True
    return groups is not None and (not groups or not asking.isdisjoint(groups))


DEFAULT_SCOPE = Scope("default")
"""All documents of the workspace that is used where none is named."""
