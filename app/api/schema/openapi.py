"""The responses in the OpenAPI document.

Handlers are not made to validate what they send: runs of older versions are shown as they were stored.
`tests/api/test_openapi.py` compares real responses with these types.
"""

from functools import cache
from http import HTTPStatus
from typing import Any

from pydantic import create_model

from app.api.asking.streams import MEDIA_TYPE
from app.api.schema.responses import ErrorBody

Responses = dict[int | str, dict[str, Any]]

_ERRORS: dict[int, tuple[str, str, bool]] = {
    400: ("unknown_host", "This service is not known as 'evil.example'. …", False),
    401: ("unauthenticated", "This service needs a key: send it as `Authorization: Bearer KEY`, …", False),
    403: ("forbidden", "This needs the right 'ask', which your key does not have.", False),
    404: ("unknown_document", "There is no document 'x' in this workspace.", False),
    409: ("thread_busy", "Another question of this thread is still being answered.", True),
    413: ("oversized_request", "The body of this request may have 1,000,000 bytes.", False),
    422: ("invalid_request", "question: Field required", False),
    429: ("rate_limited", "You may send 60 requests a minute. Go on in 17 seconds.", True),
    502: ("model_rejected_key", "The model's provider did not accept the API key.", False),
    503: ("database_unavailable", "The database does not answer.", True),
}


EVERYWHERE = (400, 401, 403, 404, 413, 422, 429, 500, 503)
"""Statuses with which every route may fail."""


_EVENT = {
    "type": "object",
    "description": "A server-sent event.",
    "properties": {
        "id": {"type": "string"},
        "event": {"type": "string"},
        "data": {"type": "string", "description": "A JSON object."},
    },
    "required": ["event", "data"],
}
"""OpenAPI 3.1 says nothing of streams; tools take the schema of one for that of each of its events."""


_BINARY = {"format": "binary"}


def respond_with(model: Any, description: str, status: int = 200) -> Responses:
    """Document a JSON response of this type."""
    return {status: {"model": model, "description": description}}


@cache
def list_of(name: str, kind: Any) -> Any:
    """Make the type of a response that holds a list, under this name."""
    fields: dict[str, Any] = {name: (list[kind], ...)}
    return create_model(name.title(), __doc__=f"A list of {name}.", **fields)


def answer_with(model: Any, description: str, *failures: int, status: int = 200) -> dict[str, Any]:
    """Return the options of a route that answers with JSON of this type, or fails with one of these statuses."""
    documented = respond_with(model, description, status) | fail_with(*failures)
    return {"status_code": status, "response_model": None, "responses": documented}


def respond_with_run(model: Any) -> Responses:
    """Document the response of a run: a stream of events, or one answer of this type."""
    headers = {
        name: {"description": description, "schema": {"type": "string"}}
        for name, description in {
            "X-Run-Id": "The run's id.",
            "X-Thread-Id": "The thread's id.",
            "Location": "The address of the run.",
        }.items()
    }
    description = (
        "Server-sent events, the last of them `done` or `error`; or, with `?stream=false` or "
        "`Accept: application/json`, one answer."
    )
    content = {MEDIA_TYPE: {"schema": _EVENT}}
    return {200: {"model": model, "description": description, "content": content, "headers": headers}}


def respond_with_text(description: str, *media_types: str) -> Responses:
    """Document a response that is no JSON."""
    schemas: dict[str, Any] = {
        each: {"type": "string"} | ({} if each.startswith("text/") else _BINARY) for each in media_types
    }
    schemas |= {each: _EVENT for each in media_types if each == MEDIA_TYPE}
    return {200: {"description": description, "content": {each: {"schema": schemas[each]} for each in media_types}}}


def fail_with(*statuses: int) -> Responses:
    """Document the error responses of a route. See `EVERYWHERE` for those of every route."""
    return {status: _describe_error(status) for status in sorted({*statuses, *EVERYWHERE})}


def _describe_error(status: int) -> dict[str, Any]:
    internal = ("internal_error", "Something went wrong inside askgraph; its log says what.", False)
    code, message, retryable = _ERRORS.get(status, internal)
    example = {"error": {"code": code, "message": message, "retryable": retryable}}
    return {
        "model": ErrorBody,
        "description": HTTPStatus(status).phrase,
        "content": {"application/json": {"example": example}},
    }
