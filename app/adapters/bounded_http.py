"""Bounds what the server at the other end of an HTTP client sends, and who is asked without a proxy."""

import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx2

DIRECT = {"all://127.0.0.1": None, "all://localhost": None, "all://[::1]": None}
"""Mounts of clients that ask servers of this machine themselves, whatever `HTTP_PROXY` says."""

UNCOMPRESSED = {"Accept-Encoding": "identity"}
"""Header of clients whose responses are bounded."""


class OversizedResponse(httpx2.ReadError):
    """The response is longer than it may be, or is in a form whose length nobody can bound."""


class SentElsewhere(httpx2.RequestError):
    """The server sends the request to another one."""


async def keep_home(response: httpx2.Response) -> None:
    """Follow no redirect to another server, which would get what was asked, and the headers of a gateway."""
    if response.has_redirect_location:
        asked = response.request.url
        there = asked.join(response.headers["location"])
        if (there.scheme, there.host, there.port) != (asked.scheme, asked.host, asked.port):
            host = there.copy_with(userinfo=b"", path="/", query=None, fragment=None)
            raise SentElsewhere(f"It sends what is asked to another server, {host}, which gets nothing.")


def bound_responses(most: int, streamed: int) -> dict[str, list[Callable[[httpx2.Response], Awaitable[None]]]]:
    """Return the event hooks of a client that ends a response after `most` bytes, a stream of events after `streamed`,
    and that keeps its question where it is sent elsewhere on the same server."""

    async def bound(response: httpx2.Response) -> None:
        coding = response.headers.pop("content-encoding", "identity")  # some gateways compress unasked
        if coding not in ("identity", "gzip", "deflate"):
            raise OversizedResponse(f"The response is compressed ({coding}), which was not asked for.")
        if response.status_code in (301, 302):
            # The client would go on with GET, as browsers do, and without what was asked.
            response.status_code = 307
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        is_stream = response.headers.get("content-type", "").startswith("text/event-stream")
        inflater = None if coding == "identity" else zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)  # of any of the two
        response.stream = _BoundedStream(response.stream, streamed if is_stream else most, inflater)

    return {"response": [keep_home, bound]}


class _BoundedStream(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream, most: int, inflater: Any) -> None:
        self._stream = stream
        self._most = most
        self._inflater = inflater

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = self._most
        async for received in self._stream:
            part = self._inflate(received, left + 1)
            left -= len(part)
            if left < 0:
                raise OversizedResponse("The response is too long.")
            yield part

    def _inflate(self, received: bytes, most: int) -> bytes:
        """Return what was received, in clear, and of what is compressed at most so many bytes."""
        try:
            return received if self._inflater is None else bytes(self._inflater.decompress(received, most))
        except zlib.error as error:
            raise httpx2.DecodingError(str(error)) from error

    async def aclose(self) -> None:
        await self._stream.aclose()
