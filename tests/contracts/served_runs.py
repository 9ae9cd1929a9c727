"""The contract of `ServedRuns`. An adapter's tests inherit from the class and provide the fixtures `served`, `runs`,
`threads` and `queue`, over an empty store."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import cast

import pytest

from domain.errors import InputError
from domain.events import Done
from domain.ports.runs import RunLog, RunQueue, ServedRuns, ThreadStore
from domain.runs import RunRecord, ServedRun
from domain.scope import Scope
from domain.state import AnswerState, blank_question
from tests.contracts.run_queue import ENDED_ID, SHOWN, START, begin, end, request


def serve(number: int = 1, question: str = "How long?", groups: list[str] | None = None) -> ServedRun:
    asked = request(f"thread-{number}", question=question, groups=groups, caller="ann", begins_thread=True)
    turn = asked.turn
    record = RunRecord(
        asked.run_id,
        asked.thread_id,
        asked.workspace_id,
        "fast",
        question,
        START,
        scope=turn["scope"],
        answer="36 months [1].",
        cached=True,
    )
    ended = cast(Done, {"type": "done", "run_id": asked.run_id, "answer": record.answer})
    state = cast(AnswerState, {**turn, **blank_question(), "turns": [], "answer": record.answer})
    ended_at = START + timedelta(milliseconds=2)
    return ServedRun(asked, record, ended, ENDED_ID, ended_at, SHOWN, [], state, {"mode": "fast"})


class ServedRunsContract:
    async def test_a_kept_run_has_ended_and_is_on_record(
        self, served: ServedRuns, runs: RunLog, queue: RunQueue
    ) -> None:
        run = serve()
        await served.keep(run)
        assert await runs.get("a", run.request.run_id) == run.record
        status = await queue.get("a", run.request.run_id)
        assert status is not None
        assert (status.request, status.state, status.attempt) == (run.request, "done", 1)
        assert (status.ended, status.ended_id, status.shown) == (run.ended, ENDED_ID, SHOWN)
        assert (status.accepted_at, status.ended_at) == (START, run.ended_at)
        assert not await end(queue, replace(await begin(queue, request("other")), request=run.request))

    async def test_its_thread_belongs_to_who_asked_and_can_be_gone_on_with(
        self, served: ServedRuns, threads: ThreadStore, queue: RunQueue
    ) -> None:
        await served.keep(serve(groups=["staff", "board"]))
        [listed] = await threads.list(Scope("a"), 9, words="How long")
        assert (listed.title, listed.turns, listed.updated_at, listed.running) == ("How long?", 1, START, None)
        assert await threads.find_beginner("a", "thread-1") == "ann"
        assert await threads.list(Scope("b"), 9) == []
        assert await end(queue, await begin(queue, request("thread-1", question="And then?")))
        [listed] = await threads.list(Scope("a"), 9)
        assert (listed.title, listed.turns) == ("How long?", 2)

    async def test_many_are_kept_at_once(self, served: ServedRuns, runs: RunLog) -> None:
        many = [serve(number) for number in range(50)]
        await asyncio.gather(*map(served.keep, many))
        for run in many:
            assert await runs.get("a", run.record.run_id) == run.record

    async def test_one_that_cannot_be_stored_fails_alone(self, served: ServedRuns, runs: RunLog) -> None:
        bad, good = serve(1, question="How long \0?"), serve(2)
        kept = await asyncio.gather(served.keep(bad), served.keep(good), return_exceptions=True)
        assert isinstance(kept[0], InputError)
        assert kept[1] is None
        assert await runs.get("a", bad.request.run_id) is None
        assert await runs.get("a", good.request.run_id) == good.record

    async def test_who_leaves_does_not_keep_it_from_being_stored(self, served: ServedRuns, runs: RunLog) -> None:
        left, stayed = serve(1), serve(2)
        keeping = asyncio.create_task(served.keep(left))
        await asyncio.sleep(0)
        keeping.cancel()
        await served.keep(stayed)
        with pytest.raises(asyncio.CancelledError):
            await keeping
        assert await runs.get("a", left.request.run_id) == left.record
