"""What the client and its async twin share of HTTP."""

import os
from collections.abc import Mapping
from typing import Any

import httpx

from askgraph.calls import Request
from askgraph.errors import InputError, Unavailable, read_error

SILENCE_SECONDS = 60.0
"""Longest silence of the server. While a run works, it sends a comment every 15 seconds."""
CONNECT_SECONDS = 10.0


def read_target(url: str | None, key: str | None, home: str | os.PathLike[str] | None) -> tuple[str | None, str | None]:
    """Return address and key: those given, else those of the environment. Who names a home means that, and no server of
    the environment."""
    if url is None and home is None:
        url = os.environ.get("ASKGRAPH_SERVER") or None
    return url, key or os.environ.get("ASKGRAPH_API_KEY") or None


def http_options(url: str, key: str | None, more: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the options of httpx's client; `more` wins. Raises `InputError` for what is no address."""
    try:
        httpx.URL(url)
    except httpx.InvalidURL as error:
        raise InputError(f"{url!r} is no address: {error}. It begins with http:// or https://.") from error
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    timeout = httpx.Timeout(SILENCE_SECONDS, connect=CONNECT_SECONDS)
    return {"base_url": url, "timeout": timeout, "headers": headers, **(more or {})}


def check(response: httpx.Response, request: Request) -> bytes:
    """Return the content of a response that was read. Raises its error where it is none of those that are accepted."""
    if not response.is_success and response.status_code not in request.accepts:
        raise read_error(response.status_code, response.headers, response.content)
    return response.content


def explain(error: httpx.RequestError, url: str) -> Unavailable:
    """Make the error of a connection that failed."""
    said = str(error) or type(error).__name__
    return Unavailable(f"The connection to {url} failed: {said}.", code="unreachable", retryable=True)
