"""Says errors in the form of a protocol."""

from collections.abc import Callable, Coroutine
from typing import Any, cast

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse, Response

from app.api.dependencies import needs
from app.api.perimeter.errors import list_problems, respond_to_error
from app.api.perimeter.limits import add_limits
from domain.errors import AskgraphError, InputError
from domain.people.access import Right

_KEPT = ("retry-after", "ratelimit", "ratelimit-policy", "www-authenticate")
"""Headers of a refusal: when to ask again, what is left of the caller's limits, and how to sign in."""


def refuse_plainly(error: AskgraphError, status: int) -> Response:
    """Say it in plain text, for SDKs that show that of a response that failed."""
    return PlainTextResponse(error.message, status)


class InvalidRequest(InputError):
    """A request does not have the form that its endpoint takes."""

    def __init__(self, error: RequestValidationError | None = None) -> None:
        wrong = list_problems(error) if error is not None else []
        self.fields = [field for field, _ in wrong]
        self.problems = [f"{field}: {problem}" for field, problem in wrong]
        super().__init__("; ".join(self.problems))


def refuse_in(refuse: Callable[[AskgraphError, int], Response], *others: Right, right: Right = "ask") -> type[APIRoute]:
    """Make the route class of a protocol in which callers ask, or do what needs another right; one of the other rights
    does as well. `refuse` gets an error and the status that our own API has for it."""

    class DialectRoute(needs(right, *others)):  # type: ignore[misc]
        knows_all_fields = False

        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            handle = super().get_route_handler()

            async def handle_in_protocol(request: Request) -> Response:
                try:
                    return cast(Response, await handle(request))
                except RequestValidationError as error:
                    return add_limits(request, refuse(InvalidRequest(error), 422))
                except HTTPException as error:
                    # The body is no JSON in UTF-8, or too large.
                    return refuse(InputError(str(error.detail)), error.status_code)
                except AskgraphError as error:
                    plain = respond_to_error(request, error)
                    refused = refuse(error, plain.status_code)
                    refused.headers.update({name: value for name, value in plain.headers.items() if name in _KEPT})
                    return refused

            return handle_in_protocol

    return DialectRoute
