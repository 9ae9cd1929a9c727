"""Front matter: the block of YAML, TOML or JSON at the beginning of a Markdown file, read as metadata.

Files are hostile, so the block is bounded, its lines are walked once, and YAML is read as a stream of events: nothing
recurses, and aliases, which can stand for far more than they say, count as malformed.
"""

import json
import tomllib
from collections.abc import Iterator
from typing import Any

import yaml

from domain.library.metadata import MAX_DEPTH, Metadata, select_metadata
from domain.library.where import Scalar, read_value

MAX_CHARACTERS = 65_536
"""A longer block is not taken for front matter."""
MAX_EVENTS = 10_000
"""Keys, values and brackets of YAML that are read."""

_NOTHING = ("", "~", "null", "Null", "NULL")


def split_front_matter(text: str) -> tuple[Metadata, str]:
    """Return the metadata in the front matter, and the text below it. Text without front matter is returned whole."""
    block = _find_block(text)
    if block is None:
        return {}, text
    mark, written, rest = block
    try:
        found = _READERS[mark](written)
    except (ValueError, RecursionError, yaml.YAMLError, _Malformed):
        found = dict(_read_lines(written, "=" if mark == "+++" else ":"))
    return (select_metadata(found), rest) if found else ({}, text)


def _find_block(text: str) -> tuple[str, str, str] | None:
    """The mark of the kind, the lines between `---` and `---` or `...`, `+++` and `+++`, or `{` and `}`, and what
    follows; None where the text does not begin so."""
    start = len(text) - len(text.lstrip())
    opening, newline, _ = text[start : start + MAX_CHARACTERS].partition("\n")
    mark = opening.rstrip()
    if not newline or mark not in _READERS:
        return None
    begin = at = start + len(opening) + 1
    for line in text[begin : begin + MAX_CHARACTERS].splitlines(keepends=True):
        if line.rstrip() in _ENDS[mark]:
            return mark, text[begin:at], text[at + len(line) :]
        at += len(line)
    return None


class _Malformed(Exception):
    """The block is not the YAML that front matter is made of."""


def _read_yaml(written: str) -> dict[str, Any]:
    """The block's mapping. Raises `_Malformed` and `yaml.YAMLError`."""
    roots: list[Any] = []
    # The containers that are open, each with the key that waits for its value.
    stack: list[tuple[list[Any] | dict[str, Any], list[str]]] = [(roots, [])]

    def add(value: Any) -> None:
        container, keys = stack[-1]
        if isinstance(container, list):
            container.append(value)
        elif keys:
            container[keys.pop()] = value
        else:
            keys.append(str(value))

    for count, event in enumerate(yaml.parse(written, Loader=yaml.CSafeLoader)):
        match event:
            case yaml.ScalarEvent():
                _, keys = stack[-1]
                is_key = isinstance(stack[-1][0], dict) and not keys
                add(event.value if is_key else _read_scalar(event))
            case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                opened: list[Any] | dict[str, Any] = {} if isinstance(event, yaml.MappingStartEvent) else []
                if isinstance(stack[-1][0], dict) and not stack[-1][1]:
                    raise _Malformed  # a key that is no text
                add(opened)
                stack.append((opened, []))
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                stack.pop()
            case yaml.AliasEvent():
                raise _Malformed
        if count > MAX_EVENTS or len(stack) > MAX_DEPTH + 2:
            raise _Malformed
    return roots[0] if len(roots) == 1 and isinstance(roots[0], dict) else {}


def _read_scalar(event: yaml.ScalarEvent) -> Scalar | None:
    if event.style:  # in quotes, or a block
        return str(event.value).strip()
    value = str(event.value)
    if value in _NOTHING:
        return None
    return read_value(value.lower() if value in ("True", "TRUE", "False", "FALSE") else value)


def _read_toml(written: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(tomllib.loads(written), default=str))  # dates become text
    return found


def _read_json(written: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(f"{{{written}}}")
    return found


def _read_lines(written: str, sign: str) -> Iterator[tuple[str, Scalar]]:
    """The lines `key: value` of a block that is malformed, as YAML is with a colon in a title."""
    for line in written.splitlines():
        key, colon, value = line.partition(sign)
        if colon and key and not key[0].isspace() and value.strip():
            yield key.rstrip(), read_value(value.strip().strip("\"'"))


_READERS = {"---": _read_yaml, "+++": _read_toml, "{": _read_json}
_ENDS = {"---": ("---", "..."), "+++": ("+++",), "{": ("}",)}
