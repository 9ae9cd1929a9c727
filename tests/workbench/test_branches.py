"""The tree of branches: listed, deleted."""

import asyncio
from typing import Any

import pytest

from app.answering.requests import collect, read_events
from app.wiring.services import Services
from app.workbench.replay.replay import Replay
from domain.errors import ThreadBusy
from domain.events import Done
from domain.scope import DEFAULT_SCOPE
from tests.asking import ask


async def branch(services: Services, run_id: str, **options: Any) -> Done:
    async with services.make_run_manager() as turns:
        ended, _ = await collect(await services.make_replayer(turns).run(Replay("default", run_id=run_id, **options)))
    assert ended["type"] == "done"
    return ended


@pytest.mark.usefixtures("library")
async def test_branches_are_a_tree_whose_threads_can_be_deleted(services: Services) -> None:
    first = await ask(services)
    one = await branch(services, first["run_id"], node="rerank", changes={"profile.rerank.keep": 1})
    two = await branch(services, one["run_id"], node="rerank", mode="thorough")
    other = await branch(services, first["run_id"], after="grade", changes={"confidence": 0.1})

    tree = await services.make_debugger().list_branches(DEFAULT_SCOPE, two["run_id"])
    assert {run["run_id"]: run["parent"] for run in tree["runs"]} == {
        first["run_id"]: None,
        one["run_id"]: first["run_id"],
        two["run_id"]: one["run_id"],
        other["run_id"]: first["run_id"],
    }

    await services.make_forgetting().forget_thread("default", one["thread_id"])
    left = await services.make_debugger().list_branches(DEFAULT_SCOPE, first["run_id"])
    assert [run["run_id"] for run in left["runs"]] == [first["run_id"], other["run_id"]]


@pytest.mark.usefixtures("library")
async def test_of_two_who_run_a_branch_at_once_one_does(services: Services) -> None:
    first = await ask(services)
    async with services.make_run_manager() as one, services.make_run_manager() as other:
        replayer = services.make_replayer(one)
        changes = {"profile.rerank.keep": 1}
        plan = await replayer.plan(Replay("default", run_id=first["run_id"], node="rerank", changes=changes))
        made = await replayer.branch(plan)
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
    assert len(await services.runs.log.list_thread("default", made.thread_id)) == 1
