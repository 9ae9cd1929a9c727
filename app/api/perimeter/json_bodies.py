"""Reads JSON bodies, makes their texts storable, and refuses numbers that neither the database nor a JSON answer of
ours can hold: no handler need think of them."""

import json
from json import JSONDecodeError
from math import isfinite
from typing import Any

from starlette.requests import Request

from domain.text.storable import make_json_storable


class JsonRequest(Request):
    """A request whose JSON has no whole number of more than 64 bits, and no number that is not finite."""

    async def json(self) -> Any:
        """Return the body as Python's types. Raises `JSONDecodeError`, also for a number that is too large."""
        if not hasattr(self, "_json"):
            body = await self.body()
            written = make_json_storable(body.decode(json.detect_encoding(body)))
            self._json = json.loads(
                written, parse_int=_read_integer, parse_float=_read_float, parse_constant=_read_float
            )
        return self._json


def _read_integer(written: str) -> int:
    # The length first: reading thousands of digits takes time with the square of their number.
    if len(written) > 20 or not -(2**63) <= (number := int(written)) < 2**63:
        raise _refuse(written)
    return number


def _read_float(written: str) -> float:
    if not isfinite(number := float(written)):
        raise _refuse(written)
    return number


def _refuse(written: str) -> JSONDecodeError:
    return JSONDecodeError(f"{written[:20]} is no number that can be stored", written[:20], 0)
