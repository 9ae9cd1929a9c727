"""Connections have limits of time and size."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest
import pytest_asyncio

from app.serving import protocol
from app.serving.protocol import MAX_ADDRESS, MAX_HEAD, LimitedProtocol
from tests.wire.serving import serve_app

HUGE = 50_000_000
GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n"


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """Answer once the body is there; `/refuse` at once, `/slow` after a second, `/huge` with much."""
    if scope["path"] == "/slow":
        await asyncio.sleep(1)
    size, more = 0, scope["path"] != "/refuse"
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        size, more = size + len(message["body"]), message["more_body"]
    body = b"x" * HUGE if scope["path"] == "/huge" else b"%d bytes" % size
    headers = [(b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    for start in range(0, len(body), 1_000_000):
        await send({"type": "http.response.body", "body": body[start : start + 1_000_000], "more_body": True})
    await send({"type": "http.response.body", "body": b""})


@pytest_asyncio.fixture
async def port(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[int]:
    """A server whose patience is a fraction of a second."""
    for name in ("HEAD_SECONDS", "BODY_SECONDS", "LINGER_SECONDS", "WRITE_SECONDS"):
        monkeypatch.setattr(protocol, name, 0.3)
    async with serve_app(echo, http=LimitedProtocol) as address:
        yield int(address.rpartition(":")[2])


@pytest.mark.parametrize(
    ("trusted", "headers", "scheme"),
    [
        ("127.0.0.1", "X-Forwarded-Proto: https,http", "https"),
        ("127.0.0.1", "X-Forwarded-Proto:  HTTPS , http", "https"),
        ("127.0.0.1", "X-Forwarded-Proto: https\r\nx-forwarded-proto: http", "https"),
        ("127.0.0.1", "X-Forwarded-Proto: http, https", "http"),
        ("127.0.0.1", "X-Forwarded-Proto: javascript, https", "http"),
        ("127.0.0.1", "X-Forwarded-Proto: ,", "http"),
        ("10.0.0.1", "X-Forwarded-Proto: https", "http"),
    ],
)
async def test_the_first_of_several_proxies_says_how_the_client_asked(trusted: str, headers: str, scheme: str) -> None:
    seen = []

    async def note(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            seen.append(scope["scheme"])
            await echo(scope, receive, send)

    async with serve_app(note, http=LimitedProtocol, forwarded_allow_ips=trusted) as address:
        request = f"GET / HTTP/1.1\r\nHost: localhost\r\n{headers}\r\nConnection: close\r\n\r\n"
        await read_to_end(int(address.rpartition(":")[2]), request.encode())
    assert seen == [scheme]


async def read_to_end(port: int, *parts: bytes, pause: float = 0) -> bytes:
    """Send the parts and return all that comes until the server closes the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        async with asyncio.timeout(10):
            for part in parts:
                writer.write(part)
                await writer.drain()
                await asyncio.sleep(pause)
            return await reader.read()
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


@pytest.mark.parametrize(
    "sent", [b"", b"\r\n", b"GET / HTTP/1.1\r\nHost: loc"], ids=["nothing", "a line", "half a head"]
)
async def test_a_connection_without_a_request_is_closed(port: int, sent: bytes) -> None:
    assert await read_to_end(port, sent) == b""


async def test_a_further_request_has_to_come_in_time_too(port: int) -> None:
    answer = await read_to_end(port, GET, b"GET / HTTP/1.1\r\nHo", pause=0.1)
    assert answer.count(b"200 OK") == 1


async def test_a_head_that_comes_byte_by_byte_is_not_waited_for(port: int) -> None:
    with suppress(ConnectionError):
        assert await read_to_end(port, *[bytes([byte]) for byte in GET], pause=0.05) == b""


@pytest.mark.parametrize("body", [b"", b"x"])
async def test_a_body_that_does_not_come_is_not_waited_for(port: int, body: bytes) -> None:
    assert await read_to_end(port, POST + body) == b""


async def test_a_steady_body_may_take_its_time(port: int) -> None:
    answer = await read_to_end(
        port, POST.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"), *[b"x" * 20_000] * 5, pause=0.1
    )
    assert answer.endswith(b"100000 bytes")


async def test_the_slowness_of_the_service_is_not_the_clients(port: int) -> None:
    head = b"GET /slow HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    assert (await read_to_end(port, head)).endswith(b"0 bytes")
    head = POST.replace(b"POST /", b"POST /slow").replace(b"100000\r\n", b"500000\r\nConnection: close\r\n")
    assert (await read_to_end(port, head, b"x" * 500_000)).endswith(b"500000 bytes")


async def test_the_rest_of_a_refused_body_is_not_waited_for_long(port: int) -> None:
    head = POST.replace(b"POST /", b"POST /refuse").replace(b"100000", b"100000000")
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(head)
    assert (await reader.readline()).startswith(b"HTTP/1.1 200")

    async def send_endlessly() -> None:
        # uvloop refuses to write to what the server has closed by a RuntimeError.
        while not writer.is_closing():
            writer.write(b"x" * 1000)
            await writer.drain()
            await asyncio.sleep(0.05)
        raise ConnectionResetError

    with pytest.raises(ConnectionError):
        await asyncio.wait_for(send_endlessly(), 10)
    writer.close()


async def test_a_client_that_does_not_read_is_left(port: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1000)
    writer.write(b"GET /huge HTTP/1.1\r\nHost: localhost\r\n\r\n")
    await asyncio.sleep(1)
    received = 0
    with suppress(ConnectionError):
        async with asyncio.timeout(10):
            while part := await reader.read(65_536):
                received += len(part)
    assert received < HUGE
    writer.close()


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GET /" + b"a" * MAX_ADDRESS + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", b"414 "),
        (b"GET /" + b"a" * 1_000_000, b"414 "),
        (GET[:-2] + b"X: " + b"a" * MAX_HEAD + b"\r\n\r\n", b"431 "),
        (GET[:-2] + b"X: " + b"a" * 5_000_000, b"431 "),
        (GET[:-2] + b"X: a\r\n" * 20_000, b"431 "),
        (b"nonsense\r\n\r\n", b"400 "),
    ],
    ids=["address", "address without end", "header", "header without end", "many headers", "nonsense"],
)
async def test_a_head_that_is_too_large_is_refused_with_a_reason(port: int, head: bytes, status: bytes) -> None:
    answer = await read_to_end(port, head)
    assert answer.startswith(b"HTTP/1.1 " + status)
    assert b'"error"' in answer
    assert b"nosniff" in answer


async def test_many_requests_share_a_connection(port: int) -> None:
    answer = await read_to_end(port, GET, GET + GET, GET, pause=0.05)
    assert answer.count(b"200 OK") == 4


@pytest.mark.parametrize("cut", [10, 60, 140])
async def test_a_client_that_asks_for_another_protocol_is_answered_in_ours(port: int, cut: int) -> None:
    # As those of Java do. The last cut parts head and body.
    asking = "Connection: close, Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAM"
    head = f"POST / HTTP/1.1\r\nHost: localhost\r\n{asking}\r\nContent-Length: 27\r\n\r\n".encode()
    sent = head + b"a body with\r\nupgrade: things"[:27]
    answered = await read_to_end(port, sent[:cut], sent[cut:], pause=0.05)
    assert (answered.split(b"\r\n")[0], answered[-8:]) == (b"HTTP/1.1 200 OK", b"27 bytes")
