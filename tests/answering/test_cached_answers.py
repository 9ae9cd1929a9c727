"""Cached answers: they equal the stored ones, and their turns are part of their threads and of the log."""

import asyncio
from typing import cast

import pytest
import redis.asyncio

from app.answering.cache.cached_answers import CachedAnswers, Hit
from app.answering.cache.key import CacheKey
from app.answering.hit_log import HitRecorder
from app.answering.requests import Ask, collect
from app.settings import Settings
from app.wiring.services import Services, open_services
from domain.errors import QuestionError, UnknownDocument, UnknownMode
from domain.events import Done, Event
from domain.ports.answers import AnswerCounts
from domain.scope import Scope
from tests.asking import QUESTION, ask


@pytest.fixture
async def first(services: Services, library: dict[str, str]) -> list[Event]:
    """The events of the question when it was answered by the graph."""
    async with services.make_run_manager() as turns:
        _, events = await collect(await turns.ask(Ask(QUESTION)))
    return events


@pytest.fixture
def cached(services: Services) -> CachedAnswers:
    """Its recorder is not running, so that a test decides when hits are recorded."""
    return services.make_cached_answers(HitRecorder(services.runs.hit_log))


async def find(cached: CachedAnswers, question: str = QUESTION) -> Hit:
    hit = await cached.find(Ask(question))
    assert hit is not None
    return hit


def make_key(services: Services) -> CacheKey:
    return CacheKey.of(
        Ask(QUESTION).as_turn("", services.modes["standard"].model_dump()), [], services.runs.fingerprint
    )


async def test_the_events_are_those_of_the_first_run(cached: CachedAnswers, first: list[Event]) -> None:
    hit = await find(cached)
    *before, done = [event for event in first if event["type"] != "thinking"]
    *events, last = hit.events
    assert done["type"] == "done"
    timings = cast(Done, last)["timings"]
    assert events == before
    own = {
        "run_id": hit.run_id,
        "thread_id": hit.thread_id,
        "cached": True,
        "usage": [],
        "cost": 0.0,
        "timings": timings,
        "trace_url": None,
    }
    assert last == done | own
    assert timings.keys() == {"total"}


async def test_a_hit_is_a_run_of_a_thread_that_can_be_gone_on_with(
    services: Services, cached: CachedAnswers, first: list[Event]
) -> None:
    hit = await find(cached)
    status = await services.make_run_manager().read_status("default", hit.run_id)
    assert (status.state, status.ended_id) == ("done", f"1-{len(hit.events)}")
    assert status.ended is not None
    assert status.ended["type"] == "done"
    assert (status.ended["thread_id"], status.ended["cached"]) == (hit.thread_id, True)
    record = await services.runs.log.get("default", hit.run_id)
    assert record is not None
    assert (record.cached, record.cost, record.question) == (True, 0.0, QUESTION)
    assert record.answer == status.ended["answer"]
    follow_up = await ask(services, "And how long does its battery last?", thread_id=hit.thread_id)
    assert "14 months" in follow_up["answer"]
    steps = await services.make_history_reader().read("default", hit.thread_id)
    assert [step["node"] for step in steps].count("cache") == 1
    assert [run.cached for run in await services.runs.log.list_thread("default", hit.thread_id)] == [True, False]


async def test_a_hit_is_recorded_once_whoever_does_it(
    services: Services, cached: CachedAnswers, first: list[Event]
) -> None:
    served = [await find(cached) for _ in range(3)]
    noted = await services.runs.answers.read_hits(10)
    await asyncio.gather(*(services.runs.hit_log.record_all() for _ in range(4)))
    assert await services.runs.answers.read_hits(10) == []
    # As after a crash between the two, or in a process that has read them before.
    assert len(noted) == 3
    async with HitRecorder(services.runs.hit_log) as recorder:
        served.append(await find(services.make_cached_answers(recorder)))
    for hit in served:
        [run] = await services.runs.log.list_thread("default", hit.thread_id)
        assert run.run_id == hit.run_id
    assert await services.runs.answers.count("default") == AnswerCounts(hits=4, misses=1, shared=0)


async def test_what_cannot_be_recorded_does_not_keep_the_rest_waiting(
    services: Services, cached: CachedAnswers, first: list[Event], caplog: pytest.LogCaptureFixture
) -> None:
    await find(cached)
    [note] = await services.runs.answers.read_hits(10)
    bad = note.hit.replace(b"warranty", b"warran\\u0000")
    digest = make_key(services).digest()
    await services.runs.answers.recall(Scope("default"), digest, bad, services.library.documents.corpus_fingerprint)
    last = await find(cached)
    await services.runs.hit_log.record_all()
    assert await services.runs.answers.read_hits(10) == []
    assert await services.runs.log.get("default", last.run_id) is not None
    assert [record.levelname for record in caplog.records if "cannot be recorded" in record.message] == ["ERROR"]


async def test_nothing_else_is_given(services: Services, cached: CachedAnswers, first: list[Event]) -> None:
    assert await cached.find(Ask(QUESTION, thread_id="a-thread")) is None
    assert await cached.find(Ask(QUESTION, mode="thorough")) is None
    assert await cached.find(Ask(QUESTION, scope=Scope("other"))) is None
    assert await cached.find(Ask("How long is the warranty of the Amsel?")) is None
    for wrong, error in (
        (Ask(""), QuestionError),
        (Ask(QUESTION, mode="none"), UnknownMode),
        (Ask(QUESTION, scope=Scope("default", ("none",))), UnknownDocument),
    ):
        with pytest.raises(error):
            await cached.find(wrong)
    assert await services.runs.answers.read_hits(10) == []


@pytest.mark.parametrize("part", ["events", "done", "last_id"])
async def test_a_stored_answer_that_cannot_be_read_is_none(
    services: Services, cached: CachedAnswers, first: list[Event], redis_url: str, part: str
) -> None:
    async with redis.asyncio.Redis.from_url(redis_url) as client:
        [key] = await client.keys("*:answer:*")
        await client.hset(key, part, b'{"answer":\xff')
    assert await cached.find(Ask(QUESTION)) is None
    assert await services.runs.answers.read_hits(10) == []
    assert not (await ask(services))["cached"]
    await find(cached)


async def test_a_note_that_cannot_be_read_does_not_keep_the_rest_waiting(
    services: Services, cached: CachedAnswers, first: list[Event], redis_url: str
) -> None:
    async with redis.asyncio.Redis.from_url(redis_url) as client:
        [key] = await client.keys("*:answer:*")
        assert isinstance(key, bytes)
        hits = key.split(b":answer:")[0] + b":hits"
        await client.xadd(hits, {b"hit": b"[]", b"done": b"\xff", b"last_id": b"1-1", b"at": b"0"})
    hit = await find(cached)
    await services.runs.hit_log.record_all()
    assert await services.runs.log.get("default", hit.run_id) is not None
    assert await services.runs.answers.read_hits(10) == []


async def test_a_thread_is_settled_once_whoever_does_it(
    settings: Settings, services: Services, cached: CachedAnswers, first: list[Event]
) -> None:
    async with open_services(settings) as other:
        for _ in range(3):
            hit = await find(cached)
            await services.runs.hit_log.record_all()
            asked = [each.runs.threads.settle("default", hit.thread_id) for each in (services, other) for _ in range(3)]
            assert all(await asyncio.gather(*asked))
            config = {"configurable": {"thread_id": hit.thread_id, "workspace_id": "default"}}
            states = [state async for state in services.runs.graph.aget_state_history(config)]  # type: ignore[arg-type]
            assert len(states) == 1
