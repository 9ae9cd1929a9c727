"""Branches."""

import asyncio

import pytest

from app.answering.requests import collect, read_events
from app.wiring.services import Services
from domain.errors import ThreadBusy
from domain.people.access import OWNER
from domain.scope import DEFAULT_SCOPE
from tests.asking import ask, list_thread


@pytest.mark.usefixtures("library")
async def test_of_two_who_run_a_branch_at_once_one_does(services: Services) -> None:
    first = await ask(services)
    async with services.make_run_manager() as one, services.make_run_manager() as other:
        replayer = services.make_replayer(one)
        changes = {"profile.rerank.keep": 1}
        run = await services.make_debugger().read(DEFAULT_SCOPE, first["run_id"])
        start = next(step.checkpoint_id for step in run.steps if step.node == "retrieve")
        made = await replayer.branch("default", first["thread_id"], start, OWNER, changes=changes)
        resumed = await asyncio.gather(one.resume(made), other.resume(made), return_exceptions=True)
        refused = [each for each in resumed if isinstance(each, BaseException)]
        assert [type(each) for each in refused] == [ThreadBusy]
        manager, accepted = next(
            (manager, each)
            for manager, each in zip((one, other), resumed, strict=True)
            if not isinstance(each, BaseException)
        )
        ended, _ = await collect(read_events(manager.follow(accepted)))
    assert ended["type"] == "done"
    assert ended["run_id"] == made.values["run_id"]
    assert len(await list_thread(services, made.thread_id)) == 1
