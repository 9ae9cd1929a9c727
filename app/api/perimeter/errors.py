"""Turns errors into HTTP responses."""

import logging
from collections.abc import Iterator
from typing import Any

from fastapi import FastAPI, Request
from fastapi.encoders import jsonable_encoder
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.routing import Match

from app.api.perimeter.limits import add_limits
from domain.errors import (
    AskgraphError,
    DamagedState,
    Forbidden,
    InputError,
    ModelError,
    NameTaken,
    NotFound,
    OverLimit,
    OversizedDocument,
    Saturated,
    ThreadBusy,
    Unauthenticated,
    Unavailable,
)
from domain.events import Failed

logger = logging.getLogger("askgraph.api")

MOST_PROBLEMS = 10
"""Problems of a request that are told at once."""

_STATUS: list[tuple[type[AskgraphError], int]] = [
    (OversizedDocument, 413),
    (NameTaken, 409),
    (InputError, 422),
    (Unauthenticated, 401),
    (Forbidden, 403),
    (NotFound, 404),
    (ThreadBusy, 409),
    (OverLimit, 429),
    (DamagedState, 409),
    (Unavailable, 503),
    (ModelError, 502),
    (AskgraphError, 500),
]


def list_problems(error: RequestValidationError) -> list[tuple[str, str]]:
    """Return the first fields that are wrong, and what is wrong with each."""
    problems = []
    for each in error.errors()[:MOST_PROBLEMS]:
        if each["type"] == "json_invalid":
            problems.append((str(each["loc"][0]), f"{each['ctx']['error']}."))
        else:
            problems.append((".".join(map(str, each["loc"][1:])) or str(each["loc"][0]), str(each["msg"])))
    return problems


def status_of(error: AskgraphError) -> int:
    """Return the HTTP status of an error."""
    return next(status for kind, status in _STATUS if isinstance(error, kind))


def status_of_failure(failed: Failed) -> int:
    """Return the HTTP status of a run that ended with an `error` event: that of the error with its code.

    `timeout` and `internal_error` have no class of their own; the first may pass, the second does not.
    """
    error = next((kind() for kind in _kinds_of(AskgraphError) if kind().code == failed["code"]), None)
    if error is not None:
        return status_of(error)
    return 503 if failed["retryable"] else 500


def _kinds_of(kind: type[AskgraphError]) -> Iterator[type[AskgraphError]]:
    yield kind
    for narrower in kind.__subclasses__():
        yield from _kinds_of(narrower)


def respond_to(code: str, message: str, *, retryable: bool, status: int, again_in: int = 2) -> JSONResponse:
    """Make an error response. `again_in` are the seconds after which to try again, if that may help."""
    headers = {"Retry-After": str(again_in)} if retryable else None
    return JSONResponse(error_body(code, message, retryable=retryable), status, headers)


def respond_to_error(request: Request, error: AskgraphError) -> JSONResponse:
    """Make the response to a request that failed with this error."""
    status = status_of(error)
    if isinstance(error, Saturated | OverLimit):
        # Not an error of this process, and a log line for each refusal would make the load worse.
        response = respond_to(error.code, error.message, retryable=True, status=status, again_in=error.again_in)
        return add_limits(request, response, error.used if isinstance(error, OverLimit) else None)
    if status >= 500:
        logger.error("%s %s: %s", request.method, request.url.path, error.message, exc_info=error)
    response = respond_to(error.code, error.message, retryable=error.retryable, status=status)
    if isinstance(error, Unauthenticated):
        response.headers["WWW-Authenticate"] = "Bearer"
    return add_limits(request, response)


def error_body(code: str, message: str, *, retryable: bool = False, **more: Any) -> dict[str, Any]:
    """Make the body of an error response, in the shape of the stream's `error` event."""
    return {"error": {"code": code, "message": message, "retryable": retryable, **more}}


def _list_methods(app: FastAPI, request: Request) -> dict[str, str]:
    """Make the header of a 405, with the methods of all routes of the path: Starlette names those of the first."""
    routes = [route for route in app.router.routes if route.matches(request.scope)[0] != Match.NONE]
    methods = {method for route in routes for method in getattr(route, "methods", None) or ()}
    return {"Allow": ", ".join(sorted(methods | ({"HEAD"} if "GET" in methods else set())))}


def register_error_handlers(app: FastAPI) -> None:
    """Give every failure of `app` the shape of `error_body`."""

    @app.exception_handler(AskgraphError)
    async def handle_ours(request: Request, error: AskgraphError) -> JSONResponse:
        return respond_to_error(request, error)

    @app.exception_handler(RequestValidationError)
    async def handle_validation(request: Request, error: RequestValidationError) -> JSONResponse:
        details = [{"field": field, "problem": problem} for field, problem in list_problems(error)]
        message = "; ".join(f"{d['field']}: {d['problem']}" for d in details)
        body = jsonable_encoder(error_body("invalid_request", message, details=details))
        return add_limits(request, JSONResponse(body, 422))

    @app.exception_handler(HTTPException)
    async def handle_http(request: Request, error: HTTPException) -> JSONResponse:
        code = {404: "not_found", 405: "method_not_allowed", 413: "oversized_request"}.get(
            error.status_code, "http_error"
        )
        headers = _list_methods(app, request) if error.status_code == 405 else error.headers
        return JSONResponse(error_body(code, str(error.detail)), error.status_code, headers)

    @app.exception_handler(Exception)
    async def handle_unexpected(request: Request, error: Exception) -> JSONResponse:
        logger.exception("%s %s failed unexpectedly", request.method, request.url.path, exc_info=error)
        return JSONResponse(
            error_body("internal_error", "Something went wrong inside askgraph; its log says what."), 500
        )
