"""Keeps the assistants of each workspace."""

from collections.abc import Sequence
from typing import Protocol

from domain.assistants import Assistant, Draft
from domain.scope import Scope


class AssistantStore(Protocol):
    """The assistants of each workspace, with all of their versions. Those of groups that the asker is not in are not
    there for the asker, but that their names and ids are taken. Raises `DatabaseUnavailable`."""

    async def list(self, asker: Scope) -> Sequence[Assistant]:
        """Return the current version of each assistant, by name."""

    async def find(self, asker: Scope, name: str, version: int | None = None) -> Assistant | None:
        """Return the assistant of this id, or of this name as `fold_name` compares them: its current version, or the
        one named."""

    async def list_versions(self, asker: Scope, assistant_id: str) -> Sequence[Assistant]:
        """Return all versions, the latest first; none where there is no such assistant."""

    async def add(self, asker: Scope, assistant_id: str, draft: Draft, caller: str) -> Assistant:
        """Store the first version of an assistant.

        Raises `NameTaken` where another one has the id, or a name that this one looks like, and `AssistantError` where
        the workspace has `MOST_ASSISTANTS` already.
        """

    async def change(self, asker: Scope, assistant_id: str, draft: Draft, caller: str) -> Assistant:
        """Store a further version of an assistant, which is the current one from then on.

        Raises `UnknownAssistant`, `NameTaken`, and `AssistantError` where it has `MOST_VERSIONS` already.
        """

    async def choose(self, asker: Scope, assistant_id: str, version: int) -> Assistant | None:
        """Make a version the current one; None where it does not exist. Raises `NameTaken`."""

    async def delete(self, asker: Scope, assistant_id: str) -> bool:
        """Delete an assistant with all of its versions. Returns False where there is none."""
