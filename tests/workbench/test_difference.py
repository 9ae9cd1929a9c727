"""Where two runs part."""

import pytest

from app.answering.requests import collect
from app.settings import Settings
from app.wiring.services import Services
from app.workbench.compare.difference import RunDifference, diff
from app.workbench.replay.replay import Replay
from domain.events import Done
from domain.scope import DEFAULT_SCOPE
from tests.asking import QUESTION, ask, serve_models
from tests.conftest import DOCUMENTS


async def compare(services: Services, one: Done, other: Done) -> RunDifference:
    debugger = services.make_debugger()
    return diff(*[await debugger.read(DEFAULT_SCOPE, done["run_id"]) for done in (one, other)])


@pytest.mark.usefixtures("library")
async def test_the_first_step_and_the_call_that_differ_are_named(services: Services) -> None:
    done = await ask(services)
    async with services.make_run_manager() as turns:
        wanted = Replay("default", run_id=done["run_id"], node="rerank", changes={"profile.rerank.keep": 1})
        branch, _ = await collect(await services.make_replayer(turns).run(wanted))
    assert branch["type"] == "done"
    found = await compare(services, done, branch)
    assert found["given"] == [{"field": "profile.rerank.keep", "text": "5 → 1"}]
    first = found["first"]
    assert first is not None
    assert (first["one"], first["other"], found["same_steps"]) == ("rerank", "rerank", 0)
    assert [change["field"] for change in first["changed"]] == ["sources"]
    # It kept fewer of the same: no call differs.
    assert first["call"] is None
    assert found["compared"]["flipped"] == []

    async with services.make_run_manager() as turns:
        wanted = Replay("default", run_id=done["run_id"], after="grade", changes={"confidence": 0.2})
        doubted, _ = await collect(await services.make_replayer(turns).run(wanted))
    assert doubted["type"] == "done"
    assert [change["field"] for change in (await compare(services, done, doubted))["given"]] == ["confidence"]

    twice = await compare(services, done, done)
    assert (twice["first"], twice["same_steps"], twice["given"]) == (None, 5, [])
    # In the same thread, whose state still holds what the first question left.
    second = await ask(services, "How long does its battery last?", thread_id=done["thread_id"])
    asked_otherwise = await compare(services, done, second)
    assert asked_otherwise["first"] is not None
    assert asked_otherwise["first"]["one"] == "route"
    assert asked_otherwise["first"]["call"] is not None
    assert asked_otherwise["first"]["call"]["method"] == "embed_query"
    assert any("battery" in line for line in asked_otherwise["first"]["call"]["lines"])


async def test_a_model_that_answers_otherwise_is_named(settings: Settings) -> None:
    async with serve_models(settings, DOCUMENTS) as (services, server):
        done = await ask(services)
        async with services.make_run_manager() as turns:
            server.behaviour.replies = ["It is 36 months, and no more [1]."]
            wanted = Replay("default", run_id=done["run_id"], node="generate")
            branch, _ = await collect(await services.make_replayer(turns).run(wanted))
        assert branch["type"] == "done"
        found = await compare(services, done, branch)
    assert found["one"]["question"] == QUESTION
    assert found["first"] is not None
    assert found["first"]["text"] == "generate came to another result"
    assert found["first"]["call"] is not None
    assert (found["first"]["call"]["kind"], found["first"]["call"]["method"]) == ("reply", "stream")
    assert any("and no more" in line for line in found["first"]["call"]["lines"])
    assert "answer" in found["compared"]["flipped"]
