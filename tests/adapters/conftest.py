"""A pool of connections, what is kept in Redis, a network between the tests and the server, which can fail, and models that are asked again
sooner."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest
import pytest_asyncio

from app.adapters.postgres.pool import Pool, open_pool
from app.adapters.redis.answers import RedisAnswerCache
from app.adapters.redis.connection import RedisServer
from app.adapters.redis.conversations import RedisConversations
from app.adapters.redis.limits import RedisUsageCounter
from app.adapters.redis.streams import RedisRunStreams
from domain.ports.streams import RunStreams


@pytest_asyncio.fixture
async def pool(database_url: str) -> AsyncIterator[Pool]:
    async with open_pool(database_url) as pool:
        yield pool


@pytest_asyncio.fixture
async def answers(redis_server: RedisServer) -> RedisAnswerCache:
    return RedisAnswerCache(redis_server)


@pytest_asyncio.fixture
async def usage(redis_server: RedisServer) -> RedisUsageCounter:
    return RedisUsageCounter(redis_server)


@pytest_asyncio.fixture
async def index(redis_server: RedisServer) -> RedisConversations:
    return RedisConversations(redis_server, "test")


@asynccontextmanager
async def open_streams(url: str, **limits: Any) -> AsyncIterator[RedisRunStreams]:
    """The stores of one process."""
    server = RedisServer(url, timeout_seconds=10, pause_seconds=0)
    streams = RedisRunStreams(server, url, **limits)
    yield streams
    await streams.close()
    await server.close()


@pytest_asyncio.fixture
async def streams(redis_url: str) -> AsyncIterator[RunStreams]:
    async with open_streams(redis_url) as opened:
        yield opened


@pytest_asyncio.fixture
async def other_streams(redis_url: str) -> AsyncIterator[RunStreams]:
    async with open_streams(redis_url) as opened:
        yield opened


@pytest.fixture
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.adapters.chat.langchain.PAUSES", (0.01, 0.02))


class Relay:
    """Passes on to the server what comes to `url`. Shut, it refuses connections, and those that were open are cut."""

    def __init__(self, redis_url: str) -> None:
        self._path = urlsplit(redis_url).path
        with socket.socket() as reserved:
            reserved.bind(("127.0.0.1", 0))
            self._port = reserved.getsockname()[1]
        self.url = f"redis://127.0.0.1:{self._port}/0"
        self._server: asyncio.Server | None = None
        self._passing: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self._port)

    async def shut(self) -> None:
        if self._server is None:
            return
        self._server.close()
        await self._server.wait_closed()
        self._server = None
        for task in self._passing:
            task.cancel()
        await asyncio.gather(*self._passing, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._pass_on(reader, writer))
        self._passing.add(task)
        task.add_done_callback(self._passing.discard)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up_reader, up_writer = await asyncio.open_unix_connection(self._path)

        async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
            while data := await source.read(65536):
                sink.write(data)
            sink.close()

        try:
            await asyncio.gather(pump(reader, up_writer), pump(up_reader, writer))
        finally:
            writer.close()
            up_writer.close()


@pytest_asyncio.fixture
async def relay(redis_url: str) -> AsyncIterator[Relay]:
    """To an empty Valkey; shut at first."""
    relay = Relay(redis_url)
    yield relay
    await relay.shut()
