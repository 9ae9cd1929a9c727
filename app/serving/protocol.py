"""HTTP connections with limits of time and size, which uvicorn lacks.

A connection is closed that sends no request, or sends one too slowly, or does not read its response. Addresses and
heads that are too large are refused with 414 and 431.
"""

import json
import re
from asyncio import TimerHandle, Transport
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from app.api.perimeter.errors import error_body
from app.api.perimeter.perimeter import HEADERS

HEAD_SECONDS = 10.0
"""Time from the connection, or from the first byte of a further request, to the end of the request's head."""
BODY_SECONDS = 20.0
"""A body has to bring `BODY_BYTES` in each such span, or end. Slowness of this service does not count."""
BODY_BYTES = 10_000
LINGER_SECONDS = 5.0
"""Time for the rest of a body that was refused: closed at once, the client might never read why."""
WRITE_SECONDS = 60.0
"""Time for which a client may read nothing of a response that waits for it."""
MAX_ADDRESS = 32_768
"""Longest path and query in bytes. A question of 2,000 characters takes up to 24,000 in an address."""
MAX_HEAD = 65_536
"""Largest head in bytes: address and headers."""


_UPGRADE = re.compile(rb"\r\nupgrade:", re.IGNORECASE)
"""A header with which Java's clients ask for HTTP/2. The parser would take the body for one of another protocol."""
_INVALID = (400, "invalid_request", "This is not a valid HTTP request.")
_ADDRESS_TOO_LONG = (414, "address_too_long", f"The address may have {MAX_ADDRESS:,} bytes.")
_HEAD_TOO_LARGE = (431, "head_too_large", f"Address and headers may have {MAX_HEAD:,} bytes.")


class _TooLarge(Exception):
    """The head is too large. Ends the parsing of the request."""


class LimitedProtocol(HttpToolsProtocol):
    """One connection of a client."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._timer: TimerHandle | None = None
        self._write_timer: TimerHandle | None = None
        self._waits_for = ""
        """What `_timer` waits for: a head, a body, the rest of what was refused, or nothing."""
        self._in_head = self._in_body = self._refused = False
        self._head_size = 0
        self._body_size = 0
        self._refusal = _INVALID

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._await("head")

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop all timers."""
        self._await("")
        self.resume_writing()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse what has come, and wait for what is missing."""
        if self._refused:
            return
        if not self._in_body:
            head, end, rest = data.partition(b"\r\n\r\n")
            data = _UPGRADE.sub(b"\r\nx-upgrade:", head) + end + rest
        super().data_received(data)
        if self._in_body:
            self._body_size += len(data)
        elif self._in_head and not self._refused:
            # A header without an end reaches no callback of the parser, which keeps it.
            self._head_size += len(data)
            if self._head_size > MAX_HEAD:
                self._refusal = _HEAD_TOO_LARGE
                self.send_400_response("")
        if self._in_body or not self._is_answering():
            self._await_client()
        else:
            self._await("")

    def on_message_begin(self) -> None:
        """Begin a head."""
        super().on_message_begin()
        self._in_head, self._head_size = True, 0

    def on_url(self, url: bytes) -> None:
        """Take a part of the address."""
        if len(self.url) + len(url) > MAX_ADDRESS:
            self._refusal = _ADDRESS_TOO_LONG
            raise _TooLarge
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header. Of several proxies the first says by what scheme the client came: uvicorn
        takes one word, where the connection comes from a proxy that is trusted."""
        if name.lower() == b"x-forwarded-proto":
            if any(known == b"x-forwarded-proto" for known, _ in self.headers):
                return
            value = value.split(b",")[0].strip().lower()
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """End the head, and begin the body."""
        if len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers) > MAX_HEAD:
            self._refusal = _HEAD_TOO_LARGE
            raise _TooLarge
        self._in_head, self._in_body, self._body_size = False, True, 0
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """End the body."""
        self._in_body = False
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Wait for the rest of the body, or for the next request, which uvicorn's timer does."""
        super().on_response_complete()
        if self._in_body:
            self._await_client()

    def pause_writing(self) -> None:
        """Note that the client reads too slowly."""
        super().pause_writing()
        self._write_timer = self.loop.call_later(WRITE_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """Note that the client reads again."""
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """Refuse what cannot be parsed or is too large. uvicorn calls this for every error of the parser."""
        status, code, message = self._refusal
        body = json.dumps(error_body(code, message)).encode()
        lines = [
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
            *(f"{name}: {value}" for name, value in HEADERS.items()),
            "Content-Type: application/json",
            f"Content-Length: {len(body)}",
            "Connection: close",
        ]
        self.transport.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        self.transport.write_eof()
        self._refused = True
        self._await("rest")

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _await_client(self) -> None:
        """Wait for what the client has to send next."""
        if self._refused or (self._in_body and not self._is_answering()):
            self._await("rest")
        else:
            self._await("body" if self._in_body else "head")

    def _await(self, event: str) -> None:
        """Close the connection unless this comes in time. The timer goes on where it waits for the same already."""
        if event == self._waits_for:
            return
        self._waits_for = event
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if event == "head":
            self._timer = self.loop.call_later(HEAD_SECONDS, self.transport.close)
        elif event == "rest":
            self._timer = self.loop.call_later(LINGER_SECONDS, self.transport.close)
        elif event == "body":
            self._timer = self.loop.call_later(BODY_SECONDS, self._check_pace)

    def _check_pace(self) -> None:
        # Where the application has not taken what came, the client cannot send more.
        if self._body_size < BODY_BYTES and not self.flow.read_paused:
            self.transport.close()
        else:
            self._body_size = 0
            self._timer = self.loop.call_later(BODY_SECONDS, self._check_pace)
