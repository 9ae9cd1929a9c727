"""Runs and their leases on a real Postgres. Each queue on the database stands for a process."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from datetime import timedelta

import pytest
import pytest_asyncio

from app.adapters.postgres.conversations.run_log import PostgresRunLog
from app.adapters.postgres.pool import ALL_WORKSPACES, Pool, borrow, open_pool, open_session
from app.adapters.postgres.queue import housekeeping, leases, worker
from app.adapters.postgres.queue.runs import Execute, PostgresRunQueue
from app.adapters.postgres.queue.worker import Perform, Task
from app.adapters.postgres.vectors.backlog import ASK_FOR_WORKER
from domain.errors import DatabaseUnavailable
from domain.runs import Lease, RunStatus
from domain.scope import Scope
from tests.contracts.run_queue import FAILED, RunQueueContract, begin, end, record_of, request


class Process:
    """A process: its queue, and the runs that it was told to stop or has lost."""

    def __init__(self, queue: PostgresRunQueue) -> None:
        self.queue = queue
        self.stopped: list[str] = []
        self.lost: list[str] = []
        queue.watch_leases(on_stop=self.stopped.append, on_lost=self.lost.append)

    def work(self, execute: Execute, *, drain_seconds: float = 5) -> AbstractAsyncContextManager[None]:
        return self.queue.work(execute, drain_seconds=drain_seconds)


@pytest_asyncio.fixture
async def start(pool: Pool, database_url: str) -> AsyncIterator[Callable[[], Process]]:
    async with AsyncExitStack() as stack:

        def start() -> Process:
            queue = PostgresRunQueue(pool, database_url)
            stack.push_async_callback(queue.close)
            return Process(queue)

        yield start


@pytest.fixture
def queue(start: Callable[[], Process]) -> PostgresRunQueue:
    return start().queue


@pytest.fixture
def other(start: Callable[[], Process]) -> PostgresRunQueue:
    return start().queue


@pytest.fixture
def runs(pool: Pool) -> PostgresRunLog:
    return PostgresRunLog(pool)


class TestPostgresRunQueue(RunQueueContract):
    pass


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Notice the death of a process within a second. No test depends on how long that takes."""
    monkeypatch.setattr(leases, "BEAT_SECONDS", 0.1)
    monkeypatch.setattr(leases, "LEASE", timedelta(seconds=0.6))
    monkeypatch.setattr(worker, "POLL_SECONDS", 0.1)


class Executor:
    """Executes each run for as long as the test wants, and records its lease."""

    def __init__(self) -> None:
        self.leases: asyncio.Queue[Lease] = asyncio.Queue()
        self.may_end = asyncio.Event()

    async def hold(self, lease: Lease) -> None:
        """Execute until the test allows the end."""
        self.leases.put_nowait(lease)
        await self.may_end.wait()


async def wait_for(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - what is waited for happens in the database
            await asyncio.sleep(0.02)


async def ended(queue: PostgresRunQueue, run_id: str) -> RunStatus:
    async with asyncio.timeout(10):
        while (status := await queue.get("a", run_id)) is None or status.ended is None:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    return status


def die(process: Process) -> None:
    """Extend no claim any more, as after `kill -9`."""
    assert process.queue._pulse._beating is not None
    process.queue._pulse._beating.cancel()


async def test_waiting_runs_are_executed_in_order(start: Callable[[], Process]) -> None:
    process, taker = start(), start()
    lease = await begin(process.queue)
    waiting = [request() for _ in range(3)]
    for asked in waiting:
        await process.queue.accept(asked, wait=True)
    taken: list[Lease] = []

    async def execute(lease: Lease) -> None:
        taken.append(lease)
        assert await end(taker.queue, lease)

    async with taker.work(execute):
        await begin(process.queue, request("thread-2"))
        assert taken == []
        await end(process.queue, lease)
        await ended(taker.queue, waiting[-1].run_id)
    assert taken == [Lease(asked, 1) for asked in waiting]
    # The thread is free.
    assert await process.queue.accept(request(), wait=True) is not None


async def test_another_process_executes_the_runs_of_a_dead_one(
    start: Callable[[], Process], runs: PostgresRunLog, quick: None
) -> None:
    dead, living = start(), start()
    lease = await begin(dead.queue)
    waiting = request()
    await dead.queue.accept(waiting, wait=True)
    taken: list[Lease] = []

    async def execute(lease: Lease) -> None:
        taken.append(lease)
        await living.queue.end(lease, "done", FAILED, "2-1", record_of(lease, "The second attempt's."))

    async with living.work(execute):
        die(dead)
        await ended(living.queue, waiting.run_id)
    assert taken == [Lease(lease.request, 2), Lease(waiting, 1)]
    # If the first process was only slow, its result comes too late.
    assert not await end(dead.queue, lease, "failed")
    record = await runs.get("a", lease.request.run_id)
    assert record is not None
    assert record.answer == "The second attempt's."


async def test_a_worker_that_was_away_leaves_its_run_to_the_other(
    start: Callable[[], Process], pool: Pool, quick: None
) -> None:
    away, other, process = start(), start(), start()
    first, second = Executor(), Executor()
    lease = await begin(process.queue)
    await process.queue.hand_back(lease)
    async with away.work(first.hold):
        await first.leases.get()
        die(away)
        away.queue.stop_taking()
        async with other.work(second.hold):
            taken = await second.leases.get()
            assert taken.attempt == 3
            first.may_end.set()
            await asyncio.sleep(0.5)
            assert other.lost == []
            [status] = await other.queue.list_unfinished("a", "thread-1")
            assert status.state == "running"
            assert await end(other.queue, taken)
            second.may_end.set()


async def test_a_holder_learns_of_stops_and_losses(start: Callable[[], Process], pool: Pool, quick: None) -> None:
    process = start()
    lease = await begin(process.queue)
    run_id = lease.request.run_id
    await process.queue.request_stop("a", run_id)
    await wait_for(lambda: process.stopped != [])
    assert set(process.stopped) == {run_id}
    async with borrow(pool, ALL_WORKSPACES) as connection:
        await connection.execute("UPDATE accepted_runs SET attempt = 2")
    await wait_for(lambda: process.lost != [])
    await asyncio.sleep(0.3)
    assert process.lost == [run_id]


async def test_a_process_whose_own_job_comes_back_learns_that_its_first_attempt_is_lost(
    start: Callable[[], Process], pool: Pool
) -> None:
    process, executor = start(), Executor()
    lease = await begin(process.queue)
    # The process was away, and its claim has run out. It finds out when it takes the run.
    die(process)
    async with borrow(pool, ALL_WORKSPACES) as connection:
        await connection.execute("UPDATE accepted_runs SET claimed_until = '-infinity'")
    async with process.work(executor.hold, drain_seconds=0):
        assert await executor.leases.get() == Lease(lease.request, 2)
        assert process.lost == [lease.request.run_id]
        assert not await end(process.queue, lease)


async def test_a_worker_that_shuts_down_puts_its_runs_back(start: Callable[[], Process]) -> None:
    first, second, process = start(), start(), start()
    held, cancelled, failing = Executor(), Executor(), Executor()
    lease = await begin(process.queue)
    await process.queue.hand_back(lease)

    async def hand_back(lease: Lease) -> None:
        held.leases.put_nowait(lease)
        first.queue.stop_taking()
        await first.queue.hand_back(lease)

    async with first.work(hand_back):
        assert (await held.leases.get()).attempt == 2
    async with second.work(cancelled.hold, drain_seconds=0):
        # The first worker may have taken the run once more before it stopped, and then handed it back again.
        taken = (await cancelled.leases.get()).attempt
    assert taken >= 3

    async def fail(lease: Lease) -> None:
        failing.leases.put_nowait(lease)
        if lease.attempt == taken + 1:
            raise RuntimeError("this attempt fails")
        await end(process.queue, lease)

    async with process.work(fail):
        await ended(process.queue, lease.request.run_id)
    assert [failing.leases.get_nowait().attempt for _ in range(failing.leases.qsize())] == [taken + 1, taken + 2]


async def test_other_processes_take_over_at_once_when_a_process_closes(start: Callable[[], Process]) -> None:
    first, second = start(), start()
    executor = Executor()
    lease = await begin(first.queue)
    async with second.work(executor.hold, drain_seconds=0):
        await first.queue.close()
        assert await executor.leases.get() == Lease(lease.request, 2)


async def test_connections_that_are_lost_are_replaced(
    start: Callable[[], Process], pool: Pool, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    process, other = start(), start()
    executor = Executor()
    lease = await begin(process.queue)
    async with other.work(executor.hold, drain_seconds=0):
        for _ in range(3):
            async with borrow(pool, ALL_WORKSPACES) as connection:
                await connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
                    "AND application_name = 'askgraph queue'"
                )
            await asyncio.sleep(0.3)
        waiting = request()
        await process.queue.accept(waiting, wait=True)
        await end(process.queue, lease)
        async with asyncio.timeout(10):
            assert await executor.leases.get() == Lease(waiting, 1)
    assert process.lost == []


async def test_a_run_that_could_not_be_handed_back_is_taken_once_its_claim_has_run_out(
    start: Callable[[], Process], database_url: str, quick: None
) -> None:
    other, executor = start(), Executor()
    async with open_pool(database_url) as pool:
        queue = PostgresRunQueue(pool, database_url)
        lease = await begin(queue)
    with pytest.raises(DatabaseUnavailable):
        await queue.hand_back(lease)
    async with other.work(executor.hold, drain_seconds=0):
        assert await executor.leases.get() == Lease(lease.request, 2)
    await queue.close()


async def test_runs_that_are_locked_lose_no_lease(start: Callable[[], Process], pool: Pool, quick: None) -> None:
    """A long transaction, such as an erasure's, changes the rows of runs."""
    process, other, executor = start(), start(), Executor()
    _, free = [await begin(process.queue, request(f"thread-{number}")) for number in range(2)]
    async with (
        other.work(executor.hold, drain_seconds=0),
        borrow(pool, ALL_WORKSPACES) as connection,
        connection.transaction(),
    ):
        await connection.execute("SELECT FROM accepted_runs WHERE thread_id = 'thread-0' FOR UPDATE")
        await asyncio.sleep(1.5)
        assert process.lost == []
        # The other one's claim is extended all the same.
        assert executor.leases.empty()
    assert await end(process.queue, free)


async def test_after_an_outage_the_claims_of_living_processes_are_not_taken_over(
    start: Callable[[], Process], pool: Pool, quick: None
) -> None:
    holder, other, executor = start(), start(), Executor()
    lease = await begin(holder.queue)
    async with other.work(executor.hold, drain_seconds=0):
        other.queue._pulse._answering_since = float("inf")
        async with borrow(pool, ALL_WORKSPACES) as connection:
            await connection.execute("UPDATE accepted_runs SET claimed_until = '-infinity'")
        await asyncio.sleep(0.5)
        assert executor.leases.empty()
    assert await end(holder.queue, lease)


async def test_of_many_questions_at_once_each_is_executed_in_the_order_that_the_thread_shows(
    start: Callable[[], Process],
) -> None:
    processes = [start() for _ in range(4)]
    executed: list[str] = []

    def execute(process: Process) -> Execute:
        async def execute(lease: Lease) -> None:
            executed.append(lease.request.run_id)
            assert await end(process.queue, lease)

        return execute

    async def ask(process: Process) -> None:
        if lease := await process.queue.accept(request(), wait=True):
            await execute(process)(lease)

    async with AsyncExitStack() as stack:
        for process in processes:
            await stack.enter_async_context(process.work(execute(process)))
        await asyncio.gather(*(ask(process) for process in processes for _ in range(6)))
        async with asyncio.timeout(20):
            while len(executed) < 24:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
    shown = [status.request.run_id for status in await processes[0].queue.list_turns(Scope("a"), "thread-1", 99)]
    assert executed == shown


async def refuse(lease: Lease) -> None:
    raise AssertionError("no run was accepted")


async def test_work_is_announced_and_done_by_as_many_at_once_as_it_may(pool: Pool, database_url: str) -> None:
    waiting, doing, most = 5, 0, 0
    done = asyncio.Event()

    async def take(_: bool) -> Perform | None:
        nonlocal waiting
        if not waiting or not announced:
            return None
        waiting -= 1
        return perform

    async def perform() -> None:
        nonlocal doing, most
        doing += 1
        most = max(most, doing)
        await asyncio.sleep(0.05)
        doing -= 1
        if not waiting:
            done.set()
        raise RuntimeError("what fails keeps no place")

    announced = False
    queue = PostgresRunQueue(pool, database_url, [Task("embedding", 2, take, poll_seconds=60)])
    async with queue.work(refuse):
        # Until it listens.
        await asyncio.sleep(1)
        announced = True
        async with open_session(pool, ALL_WORKSPACES) as session:
            await session.execute(ASK_FOR_WORKER)
        await asyncio.wait_for(done.wait(), 30)
    await queue.close()
    assert most == 2


async def test_one_process_keeps_house_each_hour(pool: Pool) -> None:
    assert not await housekeeping.take_turn(pool)
    async with borrow(pool, ALL_WORKSPACES) as connection:
        await connection.execute("UPDATE housekeeping SET due = now()")
    assert sorted(await asyncio.gather(*(housekeeping.take_turn(pool) for _ in range(4)))) == [False] * 3 + [True]
    assert not await housekeeping.take_turn(pool)
