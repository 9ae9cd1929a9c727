"""What callers use, counted in Redis."""

from typing import Any

from app.adapters.redis.connection import RedisServer, locate
from domain.people.limits import FREE, NO_LIMITS, Cost, Limits, Used

RUN_SECONDS = 900
"""Seconds after which a run is no longer counted although nobody ended it, because its process died."""

NANO = 1_000_000_000
"""Dollars are counted in billionths, the smallest cost of a run that is recorded."""

# One script, so that no two requests take the same last place. A minute begins with a request, and a day at midnight.
# KEYS: what the caller has used, their runs.
# ARGV: act, requests allowed, runs allowed, tokens allowed, dollars allowed, run, seconds, tokens, dollars. A run that
# begins is expected to cost these. They stand beside its id, and so go with it, also where its process died.
_COUNT = """
local now = tonumber(redis.call('TIME')[1])
local function allows(limit, used) return not tonumber(limit) or used < tonumber(limit) end

local used = redis.call('HMGET', KEYS[1], 'minute_ends', 'requests', 'day_ends', 'tokens', 'dollars')
for i = 1, 5 do used[i] = tonumber(used[i] or 0) end
if used[1] <= now then used[1], used[2] = now + 60, 0 end
if used[3] <= now then used[3], used[4], used[5] = (math.floor(now / 86400) + 1) * 86400, 0, 0 end
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
local runs, tokens, dollars = 0, 0, 0
for _, member in ipairs(redis.call('ZRANGE', KEYS[2], 0, -1)) do
    local run, t, d = string.match(member, '^(.*)|(%d+)|(%d+)$')
    if run == ARGV[6] then
        redis.call('ZREM', KEYS[2], member)
    else
        runs, tokens, dollars = runs + 1, tokens + (t or 0), dollars + (d or 0)
    end
end

local counted = false
if ARGV[1] == 'request' then
    counted = allows(ARGV[2], used[2])
    if counted then used[2] = used[2] + 1 end
elseif ARGV[1] == 'begin' then
    counted = allows(ARGV[3], runs) and allows(ARGV[4], used[4] + tokens) and allows(ARGV[5], used[5] + dollars)
    if counted and ARGV[6] ~= '' then
        redis.call('ZADD', KEYS[2], now + ARGV[7], ARGV[6] .. '|' .. ARGV[8] .. '|' .. ARGV[9])
        redis.call('EXPIRE', KEYS[2], ARGV[7])
    end
else
    used[4], used[5] = used[4] + ARGV[8], used[5] + ARGV[9]
    counted = ARGV[8] + ARGV[9] > 0
end
if counted and ARGV[1] ~= 'begin' then
    redis.call('HSET', KEYS[1], 'minute_ends', used[1], 'requests', used[2],
        'day_ends', used[3], 'tokens', used[4], 'dollars', string.format('%.0f', used[5]))
    redis.call('EXPIRE', KEYS[1], 90000)
end
return {counted and 1 or 0, used[2], used[1] - now, runs, used[4], used[5], used[3] - now, tokens, dollars}
"""


class RedisUsageCounter:
    """Implements `domain.ports.keys.UsageCounter`. `namespace` identifies the database that holds the keys."""

    def __init__(self, server: RedisServer, namespace: str = "") -> None:
        self._server = server
        self._namespace = namespace
        self._script = server.register_script(_COUNT)

    async def count_request(self, caller: str, limits: Limits) -> tuple[bool, Used] | None:
        return await self._count("request", caller, limits)

    async def begin_run(
        self, caller: str, run_id: str | None, limits: Limits, expected: Cost = FREE
    ) -> tuple[bool, Used] | None:
        return await self._count("begin", caller, limits, run_id or "", expected)

    async def end_run(self, caller: str, run_id: str, tokens: int, dollars: float) -> None:
        await self._count("end", caller, NO_LIMITS, run_id, Cost(tokens, dollars))

    async def _count(
        self, act: str, caller: str, limits: Limits, run_id: str = "", cost: Cost = FREE
    ) -> tuple[bool, Used] | None:
        dollars = limits.dollars_per_day
        allowed = [
            limits.requests_per_minute,
            limits.runs,
            limits.tokens_per_day,
            None if dollars is None else round(dollars * NANO),
        ]
        arguments: list[str | bytes | int] = [act, *("" if each is None else each for each in allowed)]
        arguments += [run_id, RUN_SECONDS, cost.tokens, round(cost.dollars * NANO)]
        keys = [locate(caller, self._namespace, name) for name in ("used", "running")]
        found: Any = await self._server.run(self._script, keys, arguments)
        if found is None:
            return None
        counted, requests, minute_ends, runs, tokens, spent, day_ends, *expected = found
        waiting = Cost(expected[0], expected[1] / NANO)
        return bool(counted), Used(requests, minute_ends, runs, tokens, spent / NANO, day_ends, waiting)
