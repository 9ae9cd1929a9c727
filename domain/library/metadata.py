"""Metadata of a document: flat, bounded, and of plain JSON values, so that a filter can test every one of them."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from domain.errors import MetadataError
from domain.library.where import LARGEST_INTEGER, MAX_CHOICES, MAX_KEY, MAX_VALUE, Scalar, is_key, is_text, read_value
from domain.people.names import spell_name

Metadata = dict[str, Scalar | list[Scalar]]
"""By key, the value or values that a document has. What was nested has a dotted key, such as `author.name`."""

MAX_KEYS = 64
MAX_DEPTH = 4
"""Levels of nesting that are flattened."""


def check_metadata(given: object) -> Metadata:
    """The metadata that somebody gives for a document. Raises `MetadataError` for what cannot be stored."""
    if not isinstance(given, Mapping):
        raise MetadataError('Metadata has to be a JSON object such as {"team": "legal", "year": 2024}.')
    metadata: Metadata = {}
    for key, value in _flatten(given, ""):
        if not is_key(key):
            raise MetadataError(
                f"{str(key)[:MAX_KEY]!r} is no metadata key. A key has 1 to {MAX_KEY} printable characters."
            )
        kept = _keep(value)
        if kept is None or (isinstance(value, list) and len(value) != len(kept if isinstance(kept, list) else [kept])):
            raise MetadataError(
                f"The metadata key {key!r} needs text of at most {MAX_VALUE} characters, a number, true or false, or a "
                f"list of 1 to {MAX_CHOICES} of them."
            )
        metadata[key] = kept
    if len(metadata) > MAX_KEYS:
        raise MetadataError(f"A document can have {MAX_KEYS} metadata keys; these are {len(metadata)}.")
    return metadata


def select_metadata(found: Mapping[str, Any]) -> Metadata:
    """Select the metadata that can be stored from what a file contains, and drop the rest."""
    metadata: Metadata = {}
    for key, value in _flatten(found, ""):
        kept = _keep(value)
        if is_key(key) and kept is not None and len(metadata) < MAX_KEYS:
            metadata[key] = kept
    return metadata


def read_pairs(pairs: Iterable[str]) -> Metadata:
    """Read the command line's form: `team=legal`. A key that comes twice has both values. Raises `MetadataError`."""
    given: dict[str, list[Scalar]] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise MetadataError(f"{pair[:MAX_KEY]!r} is no metadata. Write KEY=VALUE, such as team=legal.")
        given.setdefault(key.strip(), []).append(read_value(value.strip()))
    return check_metadata({key: values[0] if len(values) == 1 else values for key, values in given.items()})


def _flatten(value: Mapping[Any, Any], prefix: str, depth: int = 1) -> Iterator[tuple[str, Any]]:
    for key, part in value.items():
        name = f"{prefix}{key}"
        if isinstance(part, Mapping) and depth < MAX_DEPTH:
            yield from _flatten(part, f"{name}.", depth + 1)
        else:
            yield name, part


def _keep(value: object) -> Scalar | list[Scalar] | None:
    """The value, or those values of a list, that can be stored; None where nothing can."""
    if isinstance(value, list):
        kept = [_spell(each) for each in value[:MAX_CHOICES] if _is_scalar(each)]
        return kept or None
    return _spell(value) if _is_scalar(value) else None


def _spell(value: Any) -> Scalar:
    return spell_name(value) if isinstance(value, str) else value


def _is_scalar(value: object) -> bool:
    match value:
        case bool():
            return True
        case str():
            return is_text(value)
        case int() | float():
            return abs(value) <= LARGEST_INTEGER
    return False
