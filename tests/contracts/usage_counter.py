"""The contract of `UsageCounter`. An adapter's tests inherit from the class and provide the fixture `usage`, over an
empty store."""

import asyncio
from dataclasses import replace

from domain.people.limits import NO_LIMITS, Cost, Limits, Used
from domain.ports.keys import UsageCounter

LIMITS = Limits(requests_per_minute=3, runs=2, tokens_per_day=1000, dollars_per_day=0.5)


def read(counted: tuple[bool, Used] | None) -> tuple[bool, Used]:
    """Return what was counted, at no particular time."""
    assert counted is not None
    assert 0 < counted[1].minute_ends <= 60
    assert 0 < counted[1].day_ends <= 86_400
    return counted[0], replace(counted[1], minute_ends=60, day_ends=86_400)


class UsageCounterContract:
    async def test_requests_are_counted_up_to_the_limit(self, usage: UsageCounter) -> None:
        counted = await asyncio.gather(*(usage.count_request("ann", LIMITS) for _ in range(5)))
        assert sorted(read(each)[0] for each in counted) == [False, False, True, True, True]
        assert read(await usage.count_request("ann", LIMITS)) == (False, Used(requests=3))
        assert read(await usage.count_request("ben", LIMITS)) == (True, Used(requests=1))
        assert read(await usage.count_request("ann", NO_LIMITS)) == (True, Used(requests=4))

    async def test_runs_are_counted_until_they_end(self, usage: UsageCounter) -> None:
        begun = [await usage.begin_run("ann", f"run-{number}", LIMITS) for number in range(4)]
        assert [read(each)[0] for each in begun] == [True, True, False, False]
        assert read(await usage.begin_run("ann", None, LIMITS)) == (False, Used(runs=2))
        assert read(await usage.begin_run("ben", None, LIMITS)) == (True, Used())
        for _ in range(2):
            await usage.end_run("ann", "run-0", 0, 0.0)
        assert read(await usage.begin_run("ann", None, LIMITS)) == (True, Used(runs=1))
        assert read(await usage.begin_run("ann", "run-4", LIMITS))[0]
        assert not read(await usage.begin_run("ann", None, LIMITS))[0]

    async def test_what_runs_cost_is_summed_up_and_keeps_others_from_beginning(self, usage: UsageCounter) -> None:
        await usage.end_run("ann", "run-1", 400, 0.000000001)
        assert read(await usage.begin_run("ann", None, LIMITS)) == (True, Used(tokens=400, dollars=0.000000001))
        await usage.end_run("ann", "run-2", 600, 0.25)
        spent = Used(tokens=1000, dollars=0.250000001)
        assert read(await usage.begin_run("ann", "run-3", LIMITS)) == (False, spent)
        assert read(await usage.begin_run("ann", None, replace(LIMITS, tokens_per_day=None))) == (True, spent)
        assert read(await usage.begin_run("ann", None, Limits(dollars_per_day=0.25))) == (False, spent)
        # Requests are another limit.
        assert read(await usage.count_request("ann", LIMITS)) == (True, replace(spent, requests=1))

    async def test_what_runs_are_expected_to_cost_is_set_aside_until_they_end(self, usage: UsageCounter) -> None:
        limits, expected = Limits(tokens_per_day=1000, dollars_per_day=1.0), Cost(400, 0.25)
        begun = await asyncio.gather(*(usage.begin_run("ann", f"run-{n}|0", limits, expected) for n in range(30)))
        assert sum(read(each)[0] for each in begun) == 3
        assert read(await usage.begin_run("ann", None, limits)) == (False, Used(runs=3, expected=Cost(1200, 0.75)))
        ended = next(f"run-{n}|0" for n, each in enumerate(begun) if read(each)[0])
        await usage.end_run("ann", ended, 100, 0.01)
        used = Used(runs=2, tokens=100, dollars=0.01, expected=Cost(800, 0.5))
        assert read(await usage.begin_run("ann", None, limits)) == (True, used)
        # The same run again, as after a lost reply.
        for _ in range(2):
            assert read(await usage.begin_run("ann", "again", limits, Cost(50)))[0]
        assert read(await usage.begin_run("ann", None, limits))[1].expected == Cost(850, 0.5)
