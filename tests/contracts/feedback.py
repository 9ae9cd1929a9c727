"""The contract of `FeedbackStore`. An adapter's tests inherit from the class and provide the fixtures `feedback`, over
an empty store, and `queue`, which keeps the runs."""

from datetime import UTC, datetime, timedelta

import pytest

from domain.errors import Forbidden, UnknownRun
from domain.people.access import RIGHTS, Caller, Right
from domain.ports.feedback import FeedbackStore
from domain.ports.runs import RunQueue
from tests.contracts.run_queue import begin, end, request

LONG_AGO = datetime.now(UTC) - timedelta(days=1)


class FeedbackStoreContract:
    async def test_the_last_feedback_on_a_run_is_kept(self, feedback: FeedbackStore, queue: RunQueue) -> None:
        run_id = (await begin(queue)).request.run_id
        first = await feedback.put("a", run_id, "up", None, "", Caller("ann"))
        last = await feedback.put("a", run_id, "down", "wrong", "It is 24 months. 🏛", Caller("ben"))  # with all rights
        for rights in (frozenset[Right](), RIGHTS - {"admin"}):
            with pytest.raises(Forbidden):
                await feedback.put("a", run_id, "up", None, "", Caller("ann", rights=rights))
            with pytest.raises(Forbidden):
                await feedback.delete("a", run_id, Caller("ann", rights=rights))
        assert (last.rating, last.reason, last.comment, last.given_by) == ("down", "wrong", "It is 24 months. 🏛", "ben")
        assert first.given_at <= last.given_at
        assert await feedback.read("a", [run_id, "another"]) == {run_id: last}
        assert await feedback.read("b", [run_id]) == {}
        await feedback.delete("b", run_id, Caller("ann"))
        assert await feedback.read("a", [run_id]) == {run_id: last}
        await feedback.delete("a", run_id, Caller("ann"))
        await feedback.delete("a", run_id, Caller("ann"))
        assert await feedback.read("a", [run_id]) == {}

    async def test_a_run_that_is_not_there_gets_none(self, feedback: FeedbackStore, queue: RunQueue) -> None:
        run_id = (await begin(queue)).request.run_id
        for workspace_id, unknown in (("a", "another"), ("b", run_id)):
            with pytest.raises(UnknownRun):
                await feedback.put(workspace_id, unknown, "up", None, "", Caller("ann"))

    async def test_rated_runs_are_listed_the_latest_first(self, feedback: FeedbackStore, queue: RunQueue) -> None:
        asked = [
            request("one", question="First?"),
            request("one", question="Second?"),
            request("two", "b", question="Theirs?"),
        ]
        for each in asked:
            assert await end(queue, await begin(queue, each))
        for each in reversed(asked):
            await feedback.put(
                each.workspace_id, each.run_id, "up" if each is asked[1] else "down", None, "", Caller("ann")
            )
        everything = await feedback.list(None, LONG_AGO, 9)
        assert [run.run_id for run in everything] == [each.run_id for each in asked]
        assert [(run.thread_id, run.before, run.answer) for run in everything[:2]] == [
            ("one", [], "36 months [1]."),
            ("one", ["First?"], "36 months [1]."),
        ]
        assert [run.workspace_id for run in await feedback.list("b", LONG_AGO, 9)] == ["b"]
        assert await feedback.list(None, LONG_AGO, 2) == everything[:2]
        assert await feedback.list(None, datetime.now(UTC) + timedelta(hours=1), 9) == []
