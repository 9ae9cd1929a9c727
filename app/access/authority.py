"""Authority: with which rights a run reads the library. It is computed when it is used.

A saved state holds the rights of whoever asked then. Whatever runs on from one passes here, and reads with the rights
of whoever asks for it now, at most those that the state has. A run that nobody waits for any more reads with those that
its asker has now.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from domain.errors import Forbidden
from domain.people.access import KEY_PREFIX
from domain.ports.keys import KeyStore
from domain.scope import Scope


def limit_rights(values: Mapping[str, Any], groups: frozenset[str] | None) -> dict[str, Any]:
    """Return a state, or a question, with the rights of an asker of these groups (None: all), at most those that it
    has."""
    if groups is None:
        return dict(values)
    return {**values, "scope": Scope.from_json(values["scope"]).limit(groups).to_json()}


class Authority:
    """Looks up what a caller may read now."""

    def __init__(self, keys: KeyStore) -> None:
        self._keys = keys

    async def read_groups(self, caller: str, workspace_id: str) -> frozenset[str] | None:
        """Return the groups of the caller of this name; None: all, also where nothing is stored of the caller, as of
        the owner and of people who signed in at an identity provider.

        Raises `Forbidden` where their key is not valid any more, `UnknownWorkspace` where it does not open the
        workspace any more, and `DatabaseUnavailable`.
        """
        if not caller.startswith(KEY_PREFIX):
            return None
        key = await self._keys.get(caller.removeprefix(KEY_PREFIX))
        if key is None or not key.is_valid(datetime.now(UTC)):
            raise Forbidden("The key that asked this is not valid any more. Ask again with another one.")
        now = key.as_caller()
        now.enter(workspace_id)
        return now.groups
