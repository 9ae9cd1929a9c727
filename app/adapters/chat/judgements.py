"""Reads a judgement, or other JSON, out of what a model has written."""

import json
from collections.abc import Collection
from contextlib import suppress
from typing import Any, cast

from pydantic import BaseModel, ValidationError

from domain.ports.models import Schema

_MOST_TRIED = 200
SEARCHED = 100_000
"""Characters at the end of a text that are searched for JSON, and how often it is tried."""


def read_judgement(text: str, schema: type[Schema]) -> Schema:
    """Return the last JSON object of the text that fits: local models wrap JSON in words, code fences, drafts and
    objects of their own.

    Raises `ValueError` for what stands between the outermost braces.
    """
    whole = text[text.find("{") : text.rfind("}") + 1] or text.strip()
    try:
        return _require_fields(schema.model_validate_json(whole))
    except ValueError:
        for found in reversed(find_objects(text)):
            wrapped = [] if found.keys() & schema.model_fields.keys() else found.values()
            for each in (found, *(value for value in wrapped if isinstance(value, dict))):
                with suppress(ValueError):
                    return _require_fields(schema.model_validate(_mend(each, schema)))
        raise


def _require_fields(judgement: Schema) -> Schema:
    """Raise `ValueError` for what has nothing of a judgement, though each of its fields may have a default."""
    if not judgement.model_fields_set:
        raise ValueError(f"It has none of the fields {', '.join(type(judgement).model_fields)}.")
    return judgement


def _mend(found: dict[str, Any], schema: type[BaseModel]) -> dict[str, Any]:
    """Return the object with lists in place of strings that hold them, and shares in place of percentages."""
    mended = {name: _decode(value) for name, value in found.items()}
    try:
        schema.model_validate(mended)
    except ValidationError as error:
        over = [each for each in error.errors() if each["type"] == "less_than_equal" and each["ctx"]["le"] == 1]
        # Up to ten it may be another scale.
        if over and 10 < max(float(each["input"]) for each in over) <= 100:
            return cast(dict[str, Any], _divide(mended, {each["loc"][-1] for each in over}))
    return mended


def _decode(value: Any) -> Any:
    with suppress(ValueError):
        return json.loads(value) if isinstance(value, str) and value.lstrip()[:1] in ("[", "{") else value
    return value


def _divide(value: Any, names: Collection[object]) -> Any:
    """Return the value with the numbers of these names divided by a hundred."""
    if isinstance(value, list):
        return [_divide(each, names) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        name: each / 100 if name in names and isinstance(each, int | float) else _divide(each, names)
        for name, each in value.items()
    }


def find_objects(text: str) -> list[dict[str, Any]]:
    """Return the JSON objects that stand in a text, outermost only."""
    decoder, text = json.JSONDecoder(strict=False), text[-SEARCHED:]
    found: list[dict[str, Any]] = []
    position = -1
    for _ in range(_MOST_TRIED):
        if (position := text.find("{", position + 1)) < 0:
            break
        try:
            value, end = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            continue
        found.append(value)
        position = end - 1
    return found
