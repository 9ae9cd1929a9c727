"""What waits: HTTP, pauses, work on files. An event loop goes on meanwhile, or the thread blocks."""

import os
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import httpx

from askgraph.calls import Request
from askgraph.errors import InputError, Unavailable, read_error

Result = TypeVar("Result")

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


class Connection:
    """A connection to a server, on asyncio. That is imported where it is used: the command `askgraph` needs none of it.

    What sends and reads raises `httpx.RequestError` where it fails.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._http = httpx.AsyncClient(**options)

    async def close(self) -> None:
        """Close it."""
        await self._http.aclose()

    async def request(self, request: Request) -> httpx.Response:
        """Send a request, and read the response."""
        return await self._http.request(**request.as_arguments())

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[tuple[httpx.Response, AsyncIterator[bytes]]]:
        """Send a request, and yield the response, and the pieces of its content as they come."""
        async with self._http.stream(**request.as_arguments()) as response:
            yield response, response.aiter_bytes()

    @staticmethod
    async def sleep(seconds: float) -> None:
        """Wait."""
        import asyncio

        await asyncio.sleep(seconds)

    @staticmethod
    async def work(function: Callable[..., Result], *arguments: Any) -> Result:
        """Call a function that blocks."""
        import asyncio

        return await asyncio.to_thread(function, *arguments)


class BlockingConnection(Connection):
    """A connection that blocks. Whoever awaits it is never suspended, and needs no event loop."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._client = httpx.Client(**options)

    async def close(self) -> None:
        self._client.close()

    async def request(self, request: Request) -> httpx.Response:
        return self._client.request(**request.as_arguments())

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[tuple[httpx.Response, AsyncIterator[bytes]]]:
        with self._client.stream(**request.as_arguments()) as response:
            yield response, _yield_each(response.iter_bytes())

    @staticmethod
    async def sleep(seconds: float) -> None:
        time.sleep(seconds)  # noqa: ASYNC251

    @staticmethod
    async def work(function: Callable[..., Result], *arguments: Any) -> Result:
        return function(*arguments)


async def _yield_each(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece
