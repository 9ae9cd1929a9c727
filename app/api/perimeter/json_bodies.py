"""Reads JSON bodies, makes their texts storable, and refuses numbers that neither the database nor a JSON answer of
ours can hold, and more values than are checked in no time: no handler need think of them."""

import json
from collections.abc import Callable, Coroutine
from json import JSONDecodeError
from math import isfinite
from typing import Any

from fastapi.routing import APIRoute
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope

from domain.text.storable import make_json_storable

MOST_VALUES = 10_000
"""Values of a body, those within others counted. Each may be wrong in several ways, and all of them are listed before
one is told: of 300,000 that took seconds."""


_UNTOLD = ("", "text/plain", "application/x-www-form-urlencoded")
"""Types that clients send where nobody has set one. No endpoint takes such a form."""


class JsonRequest(Request):
    """A request whose body is JSON where no other type is told, as of curl without a header. Its JSON has no whole
    number of more than 64 bits, and no number that is not finite."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        if Headers(scope=scope).get("content-type", "").partition(";")[0].strip().lower() in _UNTOLD:
            others = [each for each in scope["headers"] if each[0] != b"content-type"]
            scope = {**scope, "headers": [*others, (b"content-type", b"application/json")]}
        super().__init__(scope, receive)

    async def json(self) -> Any:
        """Return the body as Python's types. Raises `JSONDecodeError`, also for a number that is too large."""
        if not hasattr(self, "_json"):
            body = await self.body()
            written = make_json_storable(body.decode(json.detect_encoding(body)))
            self._json = json.loads(
                written, parse_int=_read_integer, parse_float=_read_float, parse_constant=_read_float
            )
            _check_number(self._json)
        return self._json


class JsonRoute(APIRoute):
    """The route of an endpoint that anybody may call."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler, which reads JSON as all others do."""
        handle = super().get_route_handler()

        async def handle_json(request: Request) -> Response:
            return await handle(JsonRequest(request.scope, request.receive))

        return handle_json


def _check_number(body: Any) -> None:
    """Raise `JSONDecodeError` where there are too many values."""
    left, number = [body], 0
    while left:
        value = left.pop()
        within = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        number += len(within)
        if number > MOST_VALUES:
            raise JSONDecodeError(f"A request may hold {MOST_VALUES:,} values", "", 0)
        left += [each for each in within if isinstance(each, dict | list)]


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
