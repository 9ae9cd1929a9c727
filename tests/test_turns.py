"""Places are shared by owners in turn."""

import asyncio

from app.support.turns import Turns


async def test_who_wants_many_places_takes_turns_with_who_wants_few() -> None:
    turns = Turns(1)
    order: list[str] = []

    async def work(owner: str, number: int) -> None:
        async with turns.take(owner):
            order.append(f"{owner}{number}")
            await asyncio.sleep(0)

    await asyncio.gather(*(work("a", number) for number in range(6)), *(work("b", number) for number in range(2)))
    assert order == ["a0", "a1", "b0", "a2", "b1", "a3", "a4", "a5"]


async def test_a_place_is_lost_by_nobody_who_leaves() -> None:
    turns = Turns(2)
    most = now = 0

    async def work(owner: str) -> None:
        nonlocal most, now
        async with turns.take(owner):
            now += 1
            most = max(most, now)
            try:
                await asyncio.sleep(0.001)
            finally:
                now -= 1

    for round_ in range(20):
        tasks = [asyncio.create_task(work(f"owner {number % 3}")) for number in range(12)]
        # At every stage: before they wait, while they do, with the place just given to them, and holding it.
        for _ in range(round_):
            await asyncio.sleep(0)
        for task in tasks[::2]:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.gather(*(work("last") for _ in range(5)))
    assert (most, now, turns._free) == (2, 0, 2)


async def test_no_owner_gets_more_places_than_they_may_have() -> None:
    turns, working = Turns(2, 1), list[str]()
    done = asyncio.Event()

    async def work(owner: str) -> None:
        async with turns.take(owner):
            working.append(owner)
            await done.wait()

    async with asyncio.TaskGroup() as group:
        for _ in range(3):
            group.create_task(work("a"))
        await asyncio.sleep(0)
        assert working == ["a"]
        group.create_task(work("b"))
        await asyncio.sleep(0)
        assert working == ["a", "b"]
        done.set()
    assert (sorted(working), turns._free) == (["a", "a", "a", "b"], 2)
