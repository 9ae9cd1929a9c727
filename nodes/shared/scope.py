"""Read the scope and the profile from the state."""

from collections.abc import Mapping
from typing import Any

from domain.profile import Profile
from domain.scope import Scope


def scope_of(state: Mapping[str, Any]) -> Scope:
    """Return the scope of the question."""
    return Scope.from_json(state["scope"])


def profile_of(state: Mapping[str, Any]) -> Profile:
    """Return the profile of this run."""
    return Profile.model_validate(state["profile"])
