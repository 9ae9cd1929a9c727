"""Changes that a replay makes to a saved state, each checked against what its field can hold."""

import json
from collections.abc import Mapping, Sequence
from math import isfinite
from reprlib import repr as shorten
from typing import Annotated, Any, get_type_hints

from pydantic import Field, TypeAdapter, ValidationError

from app.modes import find_mode, vary
from domain.errors import StateError
from domain.library.where import Where
from domain.profile import Profile
from domain.scope import Scope, ScopeJson
from domain.state import AnswerState
from domain.text.question import clean_question

FIXED = {
    "run_id": "a replay has a run id of its own",
    "workspace_id": "a workspace is a boundary",
    "scope": "set its parts, `document_ids` and `where`",
    "steps": "they are what the replay writes",
    "mode": "it names a profile. Run on in another mode with --mode (over HTTP: `mode`)",
}
"""Fields that a replay cannot set, and why."""

SCOPE_PARTS = {"document_ids", "where"}
"""Fields of the scope that a replay sets as if they were fields of the state."""

MAX_CHANGES = 200_000
"""Limit of all new values together, in bytes of JSON. No state of ours is larger."""

_LIMITS = {"retries": Field(ge=0, le=1000), "confidence": Field(ge=0, le=1)}
"""Limits that the types of these fields do not express."""


_TYPES = get_type_hints(AnswerState)


def apply_changes(values: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return `values` with `changes` made, each checked against what its field can hold.

    A string is tried as JSON first, because a command line carries lists and numbers that way.

    Raises `StateError`, and `QuestionError` for a new question that is invalid.
    """
    if _size_of(changes) > MAX_CHANGES:
        raise StateError(f"The new values are too large: {MAX_CHANGES:,} bytes of JSON are the limit.")
    changed = dict(values)
    for key, value in changes.items():
        field, *path = key.split(".")
        if field in FIXED:
            raise StateError(f"{field!r} cannot be set: {FIXED[field]}.")
        if field not in _TYPES and field not in SCOPE_PARTS:
            settable = ", ".join(sorted((set(_TYPES) | SCOPE_PARTS) - set(FIXED)))
            raise StateError(f"{shorten(key)} cannot be set. These can: {settable}.")
        if field == "profile":
            changed["profile"] = _set_knob(changed.get("profile") or {}, path, value)
        elif path:
            raise StateError(f"{shorten(key)} cannot be set: only profile has parts. Set {field!r} as a whole.")
        elif field in SCOPE_PARTS:
            field, changed["scope"] = "scope", _set_scope(changed["scope"], field, value)
        else:
            expected = Annotated[_TYPES[field], _LIMITS[field]] if field in _LIMITS else _TYPES[field]
            changed[field] = _check_type(key, expected, value)
        if problem := _find_unstorable(changed[field]):
            raise StateError(f"{key!r} does not take {shorten(value)}: {problem} cannot be stored.")
        if field == "question":
            changed["question"] = clean_question(changed["question"])
    return changed


def change_values(
    saved: Mapping[str, Any], changes: Mapping[str, Any], mode: str | None, modes: Mapping[str, Profile]
) -> dict[str, Any]:
    """Return a saved state in another mode, and with changes made. Raises `UnknownMode`, `StateError` and
    `QuestionError`."""
    values = dict(saved)
    if mode is not None:
        profile = find_mode(modes, mode)
        values |= {"mode": profile.name, "profile": profile.model_dump()}
    return apply_changes(values, changes)


def _size_of(changes: Mapping[str, Any]) -> int:
    try:
        return len(json.dumps(changes))
    except RecursionError:
        return MAX_CHANGES + 1


def _find_unstorable(value: Any) -> str | None:
    """Describe what of the value neither Postgres nor a JSON answer can hold; None where it can be stored."""
    match value:
        case str():
            if "\0" in value or any("\ud800" <= character <= "\udfff" for character in value):
                return "text with NUL characters or halves of surrogate pairs"
        case float() if not isfinite(value):
            return "a number that is not finite"
        case int() if not -(2**63) <= value < 2**63:
            return "a number of more than 64 bits"
        case dict():
            return next(filter(None, map(_find_unstorable, [*value, *value.values()])), None)
        case list():
            return next(filter(None, map(_find_unstorable, value)), None)
    return None


def _check_type(key: str, expected: Any, value: Any) -> Any:
    problem = ""
    for attempt in _readings(value):
        try:
            return TypeAdapter(expected).validate_python(attempt, strict=True)
        except ValidationError as error:
            problem = problem or error.errors()[0]["msg"]
    raise StateError(f"{key!r} does not take {shorten(value)}: {problem}.")


def _set_scope(scope: Mapping[str, Any], part: str, value: Any) -> ScopeJson:
    """Return the scope with other documents, or with another filter, which is JSON or text such as `team=legal`."""
    if part == "document_ids":
        value = _check_type(part, list[str] | None, value)
    elif value is not None:
        where = next((read for read in _readings(value) if isinstance(read, dict)), None)
        value = (Where.parse(str(value)) if where is None else Where.from_json(where)).to_json()
    return Scope.from_json({**scope, part: value}).to_json()


def _set_knob(profile: Mapping[str, Any], path: Sequence[str], value: Any) -> dict[str, Any]:
    problem = ""
    for attempt in _readings(value):
        nested: Any = attempt
        for part in reversed(path):
            nested = {part: nested}
        try:
            if not isinstance(nested, dict):
                raise StateError("'profile' takes an object of knobs, or set one: profile.rerank.keep=3.")
            return vary(profile, nested).model_dump()
        except ValidationError as error:
            problem = problem or error.errors()[0]["msg"]
    raise StateError(f"{'.'.join(['profile', *path])!r} does not take {shorten(value)}: {problem}.")


def _readings(value: Any) -> list[Any]:
    """List the readings of a value: parsed as JSON where it is a JSON string, then as it is."""
    if not isinstance(value, str):
        return [value]
    try:
        return [json.loads(value), value]
    except (ValueError, RecursionError):
        return [value]
