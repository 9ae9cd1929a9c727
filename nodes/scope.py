"""Read the inputs of a turn from the state."""

from collections.abc import Mapping
from typing import Any

from domain.profile import Profile
from domain.scope import Scope


def scope_of(state: Mapping[str, Any]) -> Scope:
    """Read the documents that the question may be answered from."""
    return Scope.from_json(state["scope"])


def profile_of(state: Mapping[str, Any]) -> Profile:
    """Read the knobs of this run."""
    return Profile.model_validate(state["profile"])
