"""Attacks the perimeter of `askgraph serve` from outside and prints what becomes of each attempt.

    python -m benchmarks.perimeter          # about a minute

Bodies without a length, requests of foreign hosts and origins, sockets that send nothing or too slowly, heads without
an end. Memory is the resident set of the server's process while the attack lasts, measured twenty times a second.
"""

import asyncio
import json
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

from benchmarks.streaming import start

HUGE = 600_000_000
BLOCK = b"x" * 1_000_000
IDLE = 500
PATIENCE = 60.0
"""Seconds after which a socket counts as kept for good."""


class Target:
    """The server under attack."""

    def __init__(self, port: int, pid: int) -> None:
        self.port = port
        self._status = Path(f"/proc/{pid}/status")

    def megabytes(self) -> int:
        line = next(line for line in self._status.read_text().splitlines() if line.startswith("VmRSS"))
        return int(line.split()[1]) // 1024

    async def send(self, head: str, *body: bytes, wait: float = 30) -> str:
        """Send a request and return the status line and the start of the response; what went wrong otherwise."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(head.replace("\n", "\r\n").encode() + b"\r\n\r\n")
            for part in body:
                writer.write(part)
                await writer.drain()
        except OSError:
            pass  # the server has answered and closed
        try:
            async with asyncio.timeout(wait):
                answer = await reader.read(4000)
        except (OSError, TimeoutError) as error:
            return f"nothing: {type(error).__name__}"
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()
        return describe(answer)

    async def watch(self, attack: Awaitable[str]) -> str:
        """Return the attack's outcome with the greatest memory meanwhile."""
        before = most = self.megabytes()
        running = asyncio.ensure_future(attack)
        while not running.done():
            await asyncio.sleep(0.05)
            most = max(most, self.megabytes())
        return f"{running.result()}  [memory {before} MB, at most {most} MB]"


def describe(answer: bytes) -> str:
    head, _, body = answer.partition(b"\r\n\r\n")
    status, *_ = head.split(b"\r\n")
    with suppress(ValueError, LookupError, TypeError):
        return f"{status.decode()[9:]}: {json.loads(body)['error']['message']}"
    return status.decode()[9:] or "closed without an answer"


def chunked(head: str, size: int) -> tuple[str, list[bytes]]:
    block = b"%x\r\n%b\r\n" % (len(BLOCK), BLOCK)
    return f"{head}\nTransfer-Encoding: chunked", [block] * (size // len(BLOCK)) + [b"0\r\n\r\n"]


async def hold_idle_sockets(target: Target, first: bytes) -> str:
    """Open sockets that send only this much, and say how many are still open after a while."""
    started = time.monotonic()
    sockets = [await asyncio.open_connection("127.0.0.1", target.port) for _ in range(IDLE)]
    for _, writer in sockets:
        writer.write(first)

    async def wait_closed(reader: asyncio.StreamReader) -> None:
        with suppress(OSError):
            await reader.read()

    waiting = [asyncio.create_task(wait_closed(reader)) for reader, _ in sockets]
    _, still = await asyncio.wait(waiting, timeout=PATIENCE)
    for task in still:
        task.cancel()
    for _, writer in sockets:
        writer.close()
    return f"{len(still)} of {IDLE} open after {time.monotonic() - started:.0f} s"


async def attack(target: Target) -> None:
    host = f"Host: 127.0.0.1:{target.port}"
    chat = f"POST /api/chat HTTP/1.1\n{host}\nContent-Type: application/json"
    lines = chat.replace("\n", "\r\n").encode()
    question = b'{"question": "How many days of holiday does an employee have?"}'
    length = f"Content-Length: {len(question)}"
    form = f"POST /api/documents HTTP/1.1\n{host}\nContent-Type: multipart/form-data; boundary=b"
    part = b'--b\r\nContent-Disposition: form-data; name="files"; filename="a.txt"\r\n\r\n'
    head, blocks = chunked(chat, HUGE)
    upload, more = chunked(form, 2 * HUGE)
    attempts: list[tuple[str, Callable[[], Awaitable[str]]]] = [
        ("600 MB, chunked, into /api/chat", lambda: target.send(head, *blocks)),
        (
            "1.2 GB, chunked, into /api/documents",
            lambda: target.send(upload, b"%x\r\n%b\r\n" % (len(part), part), *more),
        ),
        ("600 MB, declared, into /api/chat", lambda: target.send(f"{chat}\nContent-Length: {HUGE}")),
        ("Host: evil.example", lambda: target.send("GET /api/documents HTTP/1.1\nHost: evil.example")),
        (
            "a write of https://evil.example",
            lambda: target.send(f"{chat}\nOrigin: https://evil.example\nAccept: application/json\n{length}", question),
        ),
        (
            "a write of another site (Sec-Fetch-Site)",
            lambda: target.send(f"{chat}\nSec-Fetch-Site: cross-site\nAccept: application/json\n{length}", question),
        ),
        ("HEAD /healthz", lambda: target.send(f"HEAD /healthz HTTP/1.1\n{host}")),
        ("an address of 1 MB", lambda: target.send(f"GET /{'a' * 1_000_000} HTTP/1.1\n{host}")),
        ("a header of 64 MB", lambda: target.send(f"GET / HTTP/1.1\n{host}\nX: ", *[BLOCK] * 64)),
        (f"{IDLE} sockets that send nothing", lambda: hold_idle_sockets(target, b"")),
        (f"{IDLE} that begin a head", lambda: hold_idle_sockets(target, b"GET / HTTP/1.1\r\nHost: ")),
        (
            f"{IDLE} that begin a body",
            lambda: hold_idle_sockets(target, lines + b"\r\nContent-Length: 900\r\n\r\n{"),
        ),
    ]
    for name, attempt in attempts:
        print(f"{name:<42} {await target.watch(attempt())}", flush=True)
    print("afterwards:", await target.send(f"{chat}\nAccept: application/json\n{length}", question))
    reader, writer = await asyncio.open_connection("127.0.0.1", target.port)
    writer.write(f"GET /docs HTTP/1.1\n{host}\nConnection: close\n\n".replace("\n", "\r\n").encode())
    page = (await reader.read()).decode()
    writer.close()
    print("/docs loads:", [word for word in page.split('"') if word.startswith(("http://", "https://"))] or "nothing")
    print(page.partition("\r\n\r\n")[0])


def main() -> None:
    """Start a server and attack it."""
    with (
        tempfile.TemporaryDirectory(prefix="askgraph-bench-") as home,
        start("/healthz", "-m", "app.cli", "serve", "--port", "PORT", ASKGRAPH_HOME=home) as (address, pid),
    ):
        asyncio.run(attack(Target(int(address.rsplit(":", 1)[1]), pid)))


if __name__ == "__main__":
    main()
