"""Read saved states of any version in the shape of today.

Each checkpoint's metadata holds the version of its types (`domain.state.STATE_VERSION`). A field that is newer than the
state gets its blank value.
"""

from collections.abc import Mapping
from typing import Any

from langgraph.types import StateSnapshot
from pydantic import TypeAdapter, ValidationError

from domain.errors import StateError
from domain.profile import Profile
from domain.state import STATE_VERSION, AnswerState, blank_question

_STATE = TypeAdapter(AnswerState)


def read_version(metadata: Mapping[str, Any] | None) -> int:
    """Return the version of a checkpoint; 1 where its metadata holds none."""
    return int((metadata or {}).get("state_version", 1))


def complete_state(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a whole state in the shape of today. Fields that the saved one lacks are blank, and those that are no more
    are left out."""
    known = {name: value for name, value in values.items() if name in AnswerState.__annotations__}
    return {**blank_question(), "turns": [], **known}


def read_values(snapshot: StateSnapshot) -> dict[str, Any]:
    """Return a snapshot's whole state in the shape of today."""
    return complete_state(snapshot.values)


def find_problem(values: Mapping[str, Any], version: int = STATE_VERSION) -> tuple[str, str] | None:
    """Return why this version's nodes cannot read a complete state: the path of the field, and the problem. None where
    they can."""
    if version > STATE_VERSION:
        return "state_version", f"{version} is of a newer askgraph, and this one knows {STATE_VERSION}"
    try:
        _STATE.validate_python(dict(values), strict=True)
        Profile.model_validate(values["profile"])
    except ValidationError as error:
        problem = error.errors()[0]
        where = [*(["profile"] if error.title == Profile.__name__ else []), *map(str, problem["loc"])]
        return ".".join(where), problem["msg"]
    return None


def require_current(values: Mapping[str, Any], version: int = STATE_VERSION) -> None:
    """Raises `StateError` where the state is not one that this version's nodes can read."""
    if problem := find_problem(values, version):
        raise StateError(
            f"This state cannot be run on from: another version of askgraph saved it ({': '.join(problem)}). "
            "Set what is wrong in it, or run on from another."
        )
