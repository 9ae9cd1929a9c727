"""The contract of `RunQueue`. An adapter's tests inherit from the class and provide the fixtures `queue`, over an
empty store, `other`, a second process over the same, and `runs`, the log that it keeps the records in."""

import asyncio
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest

from domain.errors import ThreadBusy
from domain.events import Failed
from domain.history.lineage import NO_LINEAGE, Lineage
from domain.ports.runs import RunLog, RunQueue
from domain.runs import Lease, RunRecord, RunRequest, RunState, Shown
from domain.scope import Scope
from domain.state import TurnInput

START = datetime(2026, 11, 21, 9, 30, 0, 123456, tzinfo=UTC)


def request(
    thread_id: str = "thread-1",
    workspace_id: str = "a",
    run_id: str | None = None,
    *,
    question: str = 'How long is the "warranty"? 🏛',
    groups: list[str] | None = None,
    **more: Any,
) -> RunRequest:
    run_id = run_id or str(uuid4())
    turn = TurnInput(
        run_id=run_id,
        question=question,
        scope=Scope.within(workspace_id, ("4b7c",), groups=groups).to_json(),
        mode="fast",
        profile={"rerank": {"keep": 3}},
    )
    return RunRequest(run_id, thread_id, workspace_id, turn, **more)


def record_of(lease: Lease, answer: str = "36 months [1].") -> RunRecord:
    asked = lease.request
    return RunRecord(asked.run_id, asked.thread_id, asked.workspace_id, "fast", "?", START, answer=answer)


FAILED = Failed(type="error", code="model_timeout", message="Too late.", retryable=True)
ENDED_ID = "1-9"
SHOWN = Shown(
    sources=[], steps=[{"node": "route", "ms": 2.5}], corrections=[{"reason": "restart", "withdrawn": "36 mon"}]
)


async def end(
    queue: RunQueue, lease: Lease, state: RunState = "failed", tape: bytes | None = None, lineage: Lineage = NO_LINEAGE
) -> bool:
    return await queue.end(lease, state, FAILED, ENDED_ID, record_of(lease), tape, SHOWN, lineage)


async def begin(queue: RunQueue, asked: RunRequest | None = None) -> Lease:
    lease = await queue.accept(asked or request(), wait=True)
    assert lease is not None
    return lease


class RunQueueContract:
    @pytest.mark.parametrize("forked_from", [None, {"thread_id": "t", "checkpoint_id": "c", "changed": ["mode"]}])
    async def test_an_accepted_run_can_begin_at_once(self, queue: RunQueue, forked_from: dict[str, Any] | None) -> None:
        asked = request(forked_from=forked_from)
        assert await queue.accept(asked, wait=True) == Lease(asked, 1)
        status = await queue.get("a", asked.run_id)
        assert status is not None
        assert (status.request, status.state, status.attempt) == (asked, "running", 1)
        assert status.started_at is not None
        assert (status.ended, status.ended_at, status.ended_id, status.stop_requested) == (None, None, None, False)
        assert await queue.list_unfinished("a", "thread-1") == [status]

    async def test_the_end_is_stored_with_record_and_tape(self, queue: RunQueue, runs: RunLog) -> None:
        lease = await begin(queue)
        assert await end(queue, lease, "stopped", b"tape")
        run_id = lease.request.run_id
        status = await queue.get("a", run_id)
        assert status is not None
        assert (status.state, status.attempt, status.ended, status.ended_id) == ("stopped", 1, FAILED, ENDED_ID)
        assert status.shown == SHOWN
        assert status.started_at is not None
        assert status.ended_at is not None
        assert status.accepted_at <= status.started_at <= status.ended_at
        assert await runs.get("a", run_id) == record_of(lease)
        assert await runs.get_tape("a", run_id) == b"tape"
        assert await queue.list_unfinished("a", "thread-1") == []

    async def test_a_run_ends_once(self, queue: RunQueue, runs: RunLog) -> None:
        lease = await begin(queue)
        assert await end(queue, lease, "done")
        later = record_of(lease, "Something else.")
        assert not await queue.end(lease, "failed", FAILED, "1-10", later)
        status = await queue.get("a", lease.request.run_id)
        assert status is not None
        assert (status.state, status.ended_id) == ("done", ENDED_ID)
        assert await runs.get("a", lease.request.run_id) == record_of(lease)
        assert await runs.get_tape("a", lease.request.run_id) is None

    async def test_an_end_of_another_attempt_stores_nothing(self, queue: RunQueue, runs: RunLog) -> None:
        lease = await begin(queue)
        assert not await end(queue, Lease(lease.request, 2), tape=b"tape")
        assert await runs.get("a", lease.request.run_id) is None
        assert await end(queue, lease)

    async def test_turns_are_read_from_the_last_one_on(self, queue: RunQueue) -> None:
        asked = [request(), request(), request()]
        await end(queue, await begin(queue, asked[0]))
        await begin(queue, asked[1])
        await queue.accept(asked[2], wait=True)
        assert [turn.request for turn in await queue.list_turns(Scope("a"), "thread-1", 2)] == asked[1:]
        assert [turn.request for turn in await queue.list_turns(Scope("a"), "thread-1", 2, asked[1].run_id)] == asked[
            :1
        ]
        assert await queue.list_turns(Scope("a"), "thread-1", 2, "nothing") == []
        assert await queue.list_turns(Scope("b"), "thread-1", 2) == []

    async def test_a_second_run_of_the_thread_waits(self, queue: RunQueue, other: RunQueue) -> None:
        lease = await begin(queue)
        second, third = request(), request()
        assert await other.accept(second, wait=True) is None
        assert await queue.accept(third, wait=True) is None
        unfinished = await queue.list_unfinished("a", "thread-1")
        assert [status.request for status in unfinished] == [lease.request, second, third]
        assert [(status.state, status.attempt) for status in unfinished] == [
            ("running", 1),
            ("queued", 0),
            ("queued", 0),
        ]
        # Those of another thread are not waited for.
        await begin(queue, request("thread-2"))
        # Still not once the first has ended, because waiting runs come first.
        await end(queue, lease)
        assert await queue.accept(request(), wait=True) is None

    async def test_a_run_that_is_not_to_wait_is_refused(self, queue: RunQueue) -> None:
        lease = await begin(queue)
        refused = request()
        with pytest.raises(ThreadBusy):
            await queue.accept(refused, wait=False)
        assert await queue.get("a", refused.run_id) is None
        await end(queue, lease)
        assert await queue.accept(refused, wait=False) == Lease(refused, 1)

    async def test_workspaces_may_have_threads_and_runs_of_one_id(self, queue: RunQueue, runs: RunLog) -> None:
        lease = await begin(queue)
        run_id = lease.request.run_id
        assert await queue.get("b", run_id) is None
        assert await queue.get("a", "no such run") is None
        assert await queue.list_unfinished("b", "thread-1") == []
        assert await queue.request_stop("b", run_id) is None
        # The other one's run of this thread is not waited for.
        theirs = await begin(queue, request(workspace_id="b"))
        assert await end(queue, theirs)
        assert await queue.list_turns(Scope("b"), "thread-1", 9) != []
        assert [status.request for status in await queue.list_unfinished("a", "thread-1")] == [lease.request]
        assert await end(queue, lease, tape=b"ours")
        assert await runs.get_tape("b", run_id) is None

    async def test_of_many_runs_accepted_at_once_one_begins(self, queue: RunQueue, other: RunQueue) -> None:
        asked = [request() for _ in range(20)]
        leases = await asyncio.gather(*((queue, other)[i % 2].accept(a, wait=True) for i, a in enumerate(asked)))
        assert len([lease for lease in leases if lease is not None]) == 1
        states = [status.state for status in await queue.list_unfinished("a", "thread-1")]
        assert states == ["running"] + ["queued"] * 19

    async def test_a_stop_is_noted_until_the_run_has_ended(self, queue: RunQueue, other: RunQueue) -> None:
        lease = await begin(queue)
        waiting = request()
        await queue.accept(waiting, wait=True)
        for asked in (lease.request, waiting):
            noted = await other.request_stop("a", asked.run_id)
            assert noted is not None
            assert noted.stop_requested
            assert noted == await queue.get("a", asked.run_id)
        await end(queue, lease)

        after = await begin(queue, request("thread-2"))
        await end(queue, after)
        ended = await queue.request_stop("a", after.request.run_id)
        assert ended is not None
        assert (ended.state, ended.stop_requested) == ("failed", False)
        assert await queue.request_stop("a", str(uuid4())) is None

    async def test_a_run_that_is_handed_back_waits_for_another_process(self, queue: RunQueue) -> None:
        lease = await begin(queue)
        await queue.hand_back(lease)
        [status] = await queue.list_unfinished("a", "thread-1")
        assert (status.request, status.state, status.attempt) == (lease.request, "queued", 1)
        assert await queue.accept(request(), wait=True) is None
