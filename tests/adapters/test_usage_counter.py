import pytest
from redis.asyncio import Redis

from app.adapters.redis import limits
from app.adapters.redis.connection import RedisServer, locate
from app.adapters.redis.limits import RedisUsageCounter
from tests.contracts.usage_counter import LIMITS, UsageCounterContract, read


class TestRedisUsageCounter(UsageCounterContract):
    pass


async def test_a_minute_a_day_and_a_lost_run_end(
    usage: RedisUsageCounter, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "RUN_SECONDS", 0)
    await usage.begin_run("ann", "lost", LIMITS)
    await usage.count_request("ann", LIMITS)
    await usage.end_run("ann", "run", 7, 0.1)
    async with Redis.from_url(redis_url) as client:
        assert 86_400 < await client.ttl(locate("ann", "", "used")) <= 90_000
        await client.hset(locate("ann", "", "used"), mapping={"minute_ends": 1, "day_ends": 1})
    counted, used = read(await usage.count_request("ann", LIMITS))
    assert (counted, used.requests, used.runs, used.tokens, used.dollars) == (True, 1, 0, 0, 0.0)


async def test_a_server_that_is_away_counts_nothing() -> None:
    server = RedisServer("redis://127.0.0.1:1")
    usage = RedisUsageCounter(server)
    assert await usage.count_request("ann", LIMITS) is None
    assert await usage.begin_run("ann", "run", LIMITS) is None
    await usage.end_run("ann", "run", 1, 1.0)
    await server.close()
