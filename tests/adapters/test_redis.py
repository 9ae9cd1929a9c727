import asyncio
import logging
import socket
from datetime import timedelta
from urllib.parse import urlsplit

import pytest
import pytest_asyncio
from redis.asyncio import Redis

from app.adapters.redis.answers import RedisAnswerCache
from app.adapters.redis.connection import RedisServer
from tests.contracts.answer_cache import EVENTS, AnswerCacheContract


@pytest_asyncio.fixture
async def answers(redis_server: RedisServer) -> RedisAnswerCache:
    return RedisAnswerCache(redis_server)


class TestRedisAnswerCache(AnswerCacheContract):
    pass


async def test_everything_expires(redis_url: str, redis_server: RedisServer) -> None:
    cache = RedisAnswerCache(redis_server, ttl=timedelta(hours=1))
    await cache.put("a", "key", EVENTS)
    async with Redis.from_url(redis_url) as client:
        lives = [await client.ttl(key) for key in await client.keys("*")]
    assert len(lives) == 2
    assert all(3500 < life <= 3600 for life in lives)


async def test_forget_leaves_no_key_behind(redis_url: str, answers: RedisAnswerCache) -> None:
    await answers.put("a", "key", EVENTS)
    await answers.forget("a")
    async with Redis.from_url(redis_url) as client:
        assert await client.dbsize() == 0


async def test_survives_a_dropped_connection(redis_url: str, answers: RedisAnswerCache) -> None:
    await answers.put("a", "key", EVENTS)
    async with Redis.from_url(redis_url) as client:
        await client.execute_command(  # type: ignore[no-untyped-call]
            "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"
        )
    assert await answers.get("key") == EVENTS


async def test_a_cache_that_is_gone_is_a_miss_warned_about_once_until_it_is_back(
    redis_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A relay stands for the network: while it is shut, connections are refused."""
    path = urlsplit(redis_url).path

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up_reader, up_writer = await asyncio.open_unix_connection(path)

        async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
            while data := await source.read(65536):
                sink.write(data)
            sink.close()

        await asyncio.gather(pump(reader, up_writer), pump(up_reader, writer))

    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        free = reserved.getsockname()[1]
    redis_server = RedisServer(f"redis://127.0.0.1:{free}/0", timeout_seconds=10, pause_seconds=0)
    cache = RedisAnswerCache(redis_server)
    with caplog.at_level(logging.INFO, logger="app.adapters.redis"):
        assert await cache.get("key") is None
        await cache.put("a", "key", EVENTS)
        await cache.forget("a")
        assert [r.levelname for r in caplog.records] == ["WARNING"]
        server = await asyncio.start_server(relay, "127.0.0.1", free)
        await cache.put("a", "key", EVENTS)
        assert await cache.get("key") == EVENTS
        assert [r.levelname for r in caplog.records] == ["WARNING", "INFO"]
    await redis_server.close()
    server.close()
    await server.wait_closed()


async def test_a_cache_that_is_gone_is_left_alone_for_a_while() -> None:
    """A server that accepts and never replies: only the first call may wait for it."""
    accepted = 0

    async def ignore(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal accepted
        accepted += 1
        await reader.read()
        writer.close()

    server = await asyncio.start_server(ignore, "127.0.0.1", 0)
    redis_server = RedisServer(f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}/0")
    cache = RedisAnswerCache(redis_server)
    assert await cache.get("key") is None
    tried = accepted
    for _ in range(20):
        assert await cache.get("key") is None
    assert accepted == tried > 0
    await redis_server.close()
    server.close()
    await server.wait_closed()
