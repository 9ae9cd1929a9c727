"""A pooler on loopback as PgBouncer is in transaction mode: each transaction gets whichever connection is free."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

_SSL = 80877103


@asynccontextmanager
async def serve_pooler(database_url: str) -> AsyncIterator[str]:
    """Give the address of a pooler in front of an embedded database. All of its clients share one connection."""
    pooler = _Pooler(Path(parse_qs(urlsplit(database_url).query)["host"][0], ".s.PGSQL.5432"))
    server = await asyncio.start_server(pooler.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    user, name = urlsplit(database_url).netloc.rstrip("@"), urlsplit(database_url).path.strip("/")
    try:
        yield f"postgresql://{user}@127.0.0.1:{port}/{name}?sslmode=disable"
    finally:
        server.close()
        pooler.close()


class _Pooler:
    def __init__(self, socket: Path) -> None:
        self._socket = socket
        self._turn = asyncio.Lock()
        self._shared: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._writers: list[asyncio.StreamWriter] = []

    def close(self) -> None:
        for writer in self._writers:
            writer.close()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        try:
            startup = await self._read_startup(reader)
            server = await asyncio.open_unix_connection(self._socket)
            self._writers.append(server[1])
            server[1].write(startup)
            # The embedded server trusts whoever reaches its socket.
            await _pass_on(server[0], writer)
            self._shared = self._shared or server
            while True:
                message = await _read_message(reader)
                if message[:1] == b"X":
                    return
                async with self._turn:
                    await self._run_transaction(message, reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _run_transaction(
        self, message: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Pass on messages until the shared connection is in no transaction any more."""
        assert self._shared is not None
        from_server, to_server = self._shared
        while True:
            to_server.write(message)
            if message[:1] in b"QS" and await _pass_on(from_server, writer) == b"I":
                return
            message = await _read_message(reader)

    async def _read_startup(self, reader: asyncio.StreamReader) -> bytes:
        head = await reader.readexactly(4)
        return head + await reader.readexactly(int.from_bytes(head) - 4)


async def _read_message(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readexactly(5)
    return head + await reader.readexactly(int.from_bytes(head[1:]) - 4)


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    """Pass on what the server says until it is ready for a query; return the state of its transaction."""
    while True:
        message = await _read_message(reader)
        writer.write(message)
        if message[:1] == b"Z":
            return message[5:]
