"""The contract of `FeedbackStore`. An adapter's tests inherit from the class and provide the fixtures `feedback`, over
an empty store, and `queue`, which keeps the runs."""

import pytest

from domain.errors import Forbidden, UnknownRun
from domain.people.access import RIGHTS, Caller, Right
from domain.ports.feedback import FeedbackStore
from domain.ports.runs import RunQueue
from tests.contracts.run_queue import begin


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
