import asyncio
import logging
from datetime import timedelta

import pytest
from redis.asyncio import Redis

from app.adapters.redis.answers import RedisAnswerCache
from app.adapters.redis.connection import RedisServer
from app.adapters.redis.erasure import RedisEraser
from tests.adapters.conftest import Relay
from tests.contracts.answer_cache import ANSWER, KEY, AnswerCacheContract


class TestRedisAnswerCache(AnswerCacheContract):
    pass


async def test_everything_expires(redis_url: str, redis_server: RedisServer) -> None:
    cache = RedisAnswerCache(redis_server, ttl=timedelta(hours=1))
    await cache.put(KEY, ANSWER)
    async with Redis.from_url(redis_url) as client:
        lives = [await client.ttl(key) for key in await client.keys("*")]
    assert len(lives) == 2
    assert all(3500 < life <= 3600 for life in lives)


async def test_forget_leaves_no_key_behind(redis_url: str, answers: RedisAnswerCache) -> None:
    await answers.put(KEY, ANSWER)
    await answers.forget("a")
    async with Redis.from_url(redis_url) as client:
        assert await client.dbsize() == 0


async def test_survives_a_dropped_connection(redis_url: str, answers: RedisAnswerCache) -> None:
    await answers.put(KEY, ANSWER)
    async with Redis.from_url(redis_url) as client:
        await client.execute_command(  # type: ignore[no-untyped-call]
            "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"
        )
    assert await answers.find(KEY) == ANSWER


async def test_a_password_that_is_refused_is_told_as_such(redis_url: str) -> None:
    server = RedisServer(redis_url.replace("://", "://nobody:wrong@"))
    assert not await server.is_up()
    assert "does not accept the password" in server.problem
    await server.close()


async def test_a_cache_that_is_gone_is_a_miss_warned_about_once_until_it_is_back(
    relay: Relay, caplog: pytest.LogCaptureFixture
) -> None:
    redis_server = RedisServer(relay.url, timeout_seconds=10, pause_seconds=0)
    cache = RedisAnswerCache(redis_server)
    with caplog.at_level(logging.INFO, logger="askgraph.redis"):
        assert await cache.find(KEY) is None
        await cache.put(KEY, ANSWER)
        await cache.forget("a")
        assert [r.levelname for r in caplog.records] == ["WARNING"]
        await relay.open()
        await cache.put(KEY, ANSWER)
        assert await cache.find(KEY) == ANSWER
        assert [r.levelname for r in caplog.records] == ["WARNING", "INFO"]
    await redis_server.close()


async def test_a_primary_that_has_become_a_standby_is_one_that_is_gone(
    redis_url: str, relay: Relay, caplog: pytest.LogCaptureFixture
) -> None:
    await relay.open()
    redis_server = RedisServer(relay.url, timeout_seconds=10, pause_seconds=0)
    cache = RedisAnswerCache(redis_server)
    async with Redis.from_url(redis_url) as client:
        with caplog.at_level(logging.INFO, logger="askgraph.redis"):
            await cache.put(KEY, ANSWER)
            await client.replicaof("127.0.0.1", "1")
            try:
                for _ in range(2):
                    await cache.put(KEY, ANSWER)
            finally:
                await client.replicaof("NO", "ONE")
            assert await cache.find(KEY) == ANSWER
    assert [r.levelname for r in caplog.records] == ["WARNING", "INFO"]
    await redis_server.close()


async def test_a_cache_that_is_gone_is_left_alone_for_a_while() -> None:
    """A server that accepts and never replies: only the first call may wait for it."""
    accepted = 0

    async def ignore(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal accepted
        accepted += 1
        await reader.read()
        writer.close()

    server = await asyncio.start_server(ignore, "127.0.0.1", 0)
    redis_server = RedisServer(f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}/0", timeout_seconds=0.5)
    cache = RedisAnswerCache(redis_server)
    assert await cache.find(KEY) is None
    tried = accepted
    for _ in range(20):
        assert await cache.find(KEY) is None
    assert accepted == tried > 0
    await redis_server.close()
    server.close()
    await server.wait_closed()


async def test_calls_get_their_own_replies_whatever_happens(redis_server: RedisServer, redis_url: str) -> None:
    script = redis_server.register_script("return redis.call('INCRBY', KEYS[1], ARGV[1])")
    replies = await asyncio.gather(*(redis_server.run(script, [f"key {n}"], [n]) for n in range(200)))
    assert replies == list(range(200))
    async with Redis.from_url(redis_url) as client:
        await client.set("text", "text")
        await client.script_flush()
        assert await redis_server.run(script, ["one"], [1]) == 1
        await client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")  # type: ignore[no-untyped-call]
    refused, done = await asyncio.gather(
        redis_server.run(script, ["text"], [1]), redis_server.run(script, ["one"], [1])
    )
    assert (refused, done) == (None, 2)


async def test_a_server_that_refuses_to_rewrite_its_log_is_asked_once(
    redis_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with Redis.from_url(redis_url) as client:
        appends = str((await client.config_get("appendonly"))["appendonly"])
        await client.config_set("appendonly", "yes")
        await client.acl_setuser(
            "reader", enabled=True, passwords=["+pw"], keys=["*"], commands=["+@all", "-bgrewriteaof"]
        )
        server = RedisServer(redis_url.replace("unix://", "unix://reader:pw@"), timeout_seconds=10)
        try:
            async with asyncio.timeout(20):
                assert await RedisEraser(server, RedisAnswerCache(server)).erase("a", []) == 0
            assert "bgrewriteaof" in caplog.text
        finally:
            await server.close()
            await client.acl_deluser("reader")
            await client.config_set("appendonly", appends)
