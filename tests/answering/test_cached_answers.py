"""Cached answers: their runs are runs like any other, on record before their reader has `done`."""

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE
from typing import cast

import pytest
import redis.asyncio

from app.answering.manager import RunManager
from app.answering.requests import Ask, collect
from app.settings import Settings
from app.wiring.services import Services, open_services
from domain.errors import QuestionError, Saturated, TooManyRuns, UnknownDocument, UnknownMode
from domain.events import Done, Event
from domain.people.access import Caller
from domain.people.limits import Limits
from domain.ports.answers import AnswerCounts
from domain.scope import Scope
from tests.asking import QUESTION, ask, list_thread

FOLLOW_UP = "And how long does its battery last?"

DYING = """
import asyncio, json, os, sys
from app.answering.requests import Ask, collect
from app.settings import read_settings
from app.wiring.services import open_services

async def main():
    async with open_services(read_settings(load_samples=False)) as services, services.make_run_manager() as manager:
        done, _ = await collect(await manager.ask(Ask(sys.argv[1])))
        print(json.dumps(done), flush=True)
        os.kill(os.getpid(), 9)

asyncio.run(main())
"""


@pytest.fixture
async def first(services: Services, library: dict[str, str]) -> list[Event]:
    """The events of the question when it was answered by the graph."""
    async with services.make_run_manager() as turns:
        _, events = await collect(await turns.ask(Ask(QUESTION)))
    return events


async def give(manager: RunManager, question: str = QUESTION) -> tuple[Done, list[Event]]:
    """A cached answer, and its events."""
    done, events = await collect(await manager.ask(Ask(question)))
    assert done["type"] == "done"
    assert done["cached"]
    return done, events


async def test_the_events_are_those_of_the_first_run(services: Services, first: list[Event]) -> None:
    _, (*events, last) = await give(services.make_run_manager())
    *before, done = [event for event in first if event["type"] != "thinking"]
    hit = cast(Done, last)
    assert events == before
    own = {"cached": True, "usage": [], "cost": 0.0, "trace_url": None}
    own |= {name: hit[name] for name in ("run_id", "thread_id", "timings")}
    assert hit == {**done, **own}
    assert hit["timings"].keys() == {"total"}
    assert hit["run_id"] != cast(Done, done)["run_id"]


async def test_a_hit_is_a_run_of_a_thread_that_can_be_gone_on_with_anywhere(
    settings: Settings, services: Services, first: list[Event]
) -> None:
    hit, events = await give(services.make_run_manager())
    async with open_services(settings) as other:
        status = await other.make_run_manager().read_status("default", hit["run_id"])
        assert (status.state, status.ended_id, status.ended) == ("done", f"1-{len(events)}", hit)
        record = await other.runs.log.get("default", hit["run_id"])
        assert record is not None
        assert (record.cached, record.cost, record.question) == (True, 0.0, QUESTION)
        assert record.answer == hit["answer"]
        follow_up = await ask(other, FOLLOW_UP, thread_id=hit["thread_id"])
        assert "Falke" in follow_up["standalone_question"]
        steps = await other.make_history_reader().read("default", hit["thread_id"])
        assert [step["node"] for step in steps].count("cache") == 1
        runs = await list_thread(other, hit["thread_id"])
        assert [run.cached for run in runs] == [True, False]


async def test_hits_that_come_together_are_all_on_record(services: Services, first: list[Event]) -> None:
    manager = services.make_run_manager()
    for hit, _ in await asyncio.gather(*(give(manager) for _ in range(20))):
        [run] = await list_thread(services, hit["thread_id"])
        assert run.run_id == hit["run_id"]
    assert await services.runs.answers.count("default") == AnswerCounts(hits=20, misses=1)


async def test_a_hit_is_on_record_although_its_process_was_killed_right_after(
    services: Services, first: list[Event]
) -> None:
    assert services.settings.database_url
    assert services.settings.redis_url
    environment = os.environ | {
        "DATABASE_URL": services.settings.database_url.get_secret_value(),
        "REDIS_URL": services.settings.redis_url.get_secret_value(),
    }
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", DYING, QUESTION, env=environment, stdout=PIPE)
    output, _ = await process.communicate()
    assert process.returncode == -signal.SIGKILL
    hit = json.loads(output)
    assert hit["cached"]
    status = await services.make_run_manager().read_status("default", hit["run_id"])
    assert (status.state, status.ended) == ("done", hit)
    [run] = await list_thread(services, hit["thread_id"])
    assert (run.run_id, run.cached) == (hit["run_id"], True)
    [turn] = (await services.runs.states.read("default", hit["thread_id"])).values["turns"]
    assert (turn["run_id"], turn["question"], turn["answer"]) == (hit["run_id"], QUESTION, hit["answer"])
    assert "Falke" in (await ask(services, FOLLOW_UP, thread_id=hit["thread_id"]))["standalone_question"]


async def test_nothing_else_is_given(services: Services, first: list[Event]) -> None:
    for other in (
        Ask(QUESTION, mode="thorough"),
        Ask(QUESTION, scope=Scope("other")),
        Ask("How long is the warranty of the Amsel?"),
        Ask(QUESTION, limit=1),
    ):
        async with services.make_run_manager() as manager:
            done, _ = await collect(await manager.ask(other))
        assert done["type"] == "done"
        assert not done["cached"]
    for wrong, error in (
        (Ask(""), QuestionError),
        (Ask(QUESTION, mode="none"), UnknownMode),
        (Ask(QUESTION, scope=Scope("default", ("none",))), UnknownDocument),
    ):
        with pytest.raises(error):
            await services.make_run_manager().start(wrong)


async def test_who_may_not_begin_a_run_gets_no_hit(services: Services, first: list[Event]) -> None:
    manager, limited = services.make_run_manager(), Caller("Ann", limits=Limits(runs=1))
    await services.limits.begin_run(limited, "another run")
    with pytest.raises(TooManyRuns):
        await manager.start(Ask(QUESTION, caller=limited))
    services.admission.most = 0
    with pytest.raises(Saturated):
        await manager.start(Ask(QUESTION))
    assert services.admission.running == 0


@pytest.mark.parametrize("part", ["events", "done"])
async def test_a_stored_answer_that_cannot_be_read_is_none(
    services: Services, first: list[Event], redis_url: str, part: str
) -> None:
    async with redis.asyncio.Redis.from_url(redis_url) as client:
        [key] = await client.keys("*:answer:*")
        await client.hset(key, part, b'{"answer":\xff')
    assert not (await ask(services))["cached"]
    await give(services.make_run_manager())
