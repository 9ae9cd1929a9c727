"""The client knows every error of the server."""

import json
from collections.abc import Iterator

import pytest

import askgraph
from app.api.perimeter.errors import error_body, status_of
from askgraph.errors import read_error, read_failure
from domain import errors


def list_kinds(kind: type[errors.AskgraphError]) -> Iterator[type[errors.AskgraphError]]:
    # Those of commands, such as of an evaluation's set, no server sends.
    if kind.__module__ != errors.__name__:
        return
    yield kind
    for narrower in kind.__subclasses__():
        yield from list_kinds(narrower)


@pytest.mark.parametrize("kind", sorted(list_kinds(errors.AskgraphError), key=str), ids=lambda kind: kind.__name__)
def test_an_error_is_of_the_kind_that_the_server_raised(kind: type[errors.AskgraphError]) -> None:
    error = kind()
    names = [parent.__name__ for parent in kind.__mro__]
    expected = next(name for name in names if hasattr(askgraph, name))
    body = error_body(error.code, error.message, retryable=error.retryable)
    answered = read_error(status_of(error), {"retry-after": "7"}, json.dumps(body).encode())
    assert (type(answered).__name__, answered.code, answered.message) == (expected, error.code, error.message)
    assert (answered.retryable, answered.again_in) == (error.retryable, 7)
    failed = read_failure(body["error"])
    assert (type(failed).__name__, failed.code, failed.message) == (expected, error.code, error.message)


def test_a_proxy_that_takes_no_file_of_this_size_is_told() -> None:
    error = read_error(413, {}, b"<html><title>413 Request Entity Too Large</title>")
    assert (type(error), error.code) == (askgraph.InputError, "http_error")
    assert "client_max_body_size" in error.message
