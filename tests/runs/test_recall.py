"""An answer that is given before the graph is the stored one, and its turn is part of its thread and of the log."""

import asyncio
import json

import pytest
import redis.asyncio

from app.api.descriptions import describe_answer
from app.runs.cache import CacheKey
from app.runs.recall import Recall, Recalled
from app.runs.requests import Ask, collect
from app.settings import Settings
from app.wiring.services import Services, open_services
from domain.errors import QuestionError, UnknownDocument, UnknownMode
from domain.events import Event
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
async def recall(services: Services) -> Recall:
    """Without the task that records hits, so that a test decides when that is done."""
    return services.make_recall()


async def serve(recall: Recall, question: str = QUESTION) -> Recalled:
    recalled = await recall.serve(Ask(question))
    assert recalled is not None
    return recalled


async def test_the_stored_events_and_the_json_are_those_of_the_first_run(recall: Recall, first: list[Event]) -> None:
    recalled = await serve(recall)
    frames = [frame.split(b"\n") for frame in recalled.as_events().split(b"\n\n")[:-1]]
    names = [name.removeprefix(b"event: ").decode() for _, name, _ in frames]
    datas = [json.loads(data.removeprefix(b"data: ")) for _, _, data in frames]
    before = [event for event in first if event["type"] != "thinking"]
    assert [number for number, _, _ in frames] == [b"id: 1-%d" % n for n in range(1, len(frames) + 1)]
    assert names == [event["type"] for event in before]
    assert [{"type": name, **data} for name, data in zip(names, datas, strict=True)][:-1] == before[:-1]
    done = before[-1]
    assert done["type"] == "done"
    own = {
        "run_id": recalled.run_id,
        "thread_id": recalled.thread_id,
        "cached": True,
        "usage": [],
        "cost": 0.0,
        "timings": {"total": round(recalled.total_ms, 2)},
        "trace_url": None,
    }
    assert {"type": "done", **datas[-1]} == done | own
    described = describe_answer(done, before) | own
    assert json.loads(recalled.as_json()) == {key: value for key, value in described.items() if key != "type"}


async def test_a_hit_is_a_run_of_a_thread_that_can_be_gone_on_with(
    services: Services, recall: Recall, first: list[Event]
) -> None:
    recalled = await serve(recall)
    status = await services.make_run_manager().read_status("default", recalled.run_id)
    assert (status.state, status.ended_id) == ("done", f"1-{recalled.as_events().count(b'event: ')}")
    assert status.ended is not None
    assert status.ended["type"] == "done"
    assert (status.ended["thread_id"], status.ended["cached"]) == (recalled.thread_id, True)
    record = await services.runs.log.get("default", recalled.run_id)
    assert record is not None
    assert (record.cached, record.cost, record.question) == (True, 0.0, QUESTION)
    assert record.answer == status.ended["answer"]
    follow_up = await ask(services, "And how long does its battery last?", thread_id=recalled.thread_id)
    assert "14 months" in follow_up["answer"]
    steps = await services.make_history_reader().read("default", recalled.thread_id)
    assert [step["node"] for step in steps].count("cache") == 1
    assert [run.cached for run in await services.runs.log.list_thread("default", recalled.thread_id)] == [True, False]


async def test_a_hit_is_recorded_once_whoever_does_it(services: Services, recall: Recall, first: list[Event]) -> None:
    served = [await serve(recall) for _ in range(3)]
    noted = await services.runs.answers.read_hits(10)
    await asyncio.gather(*(services.runs.hit_log.record_all() for _ in range(4)))
    assert await services.runs.answers.read_hits(10) == []
    # As after a crash between the two, or in a process that has read them before.
    again = services.make_recall()
    assert len(noted) == 3
    async with again:
        served.append(await serve(again))
    for recalled in served:
        [run] = await services.runs.log.list_thread("default", recalled.thread_id)
        assert run.run_id == recalled.run_id
    assert await services.runs.answers.count("default") == AnswerCounts(hits=4, misses=1, shared=0)


async def test_what_cannot_be_recorded_does_not_keep_the_rest_waiting(
    services: Services, recall: Recall, first: list[Event], caplog: pytest.LogCaptureFixture
) -> None:
    await serve(recall)
    [note] = await services.runs.answers.read_hits(10)
    bad = note.hit.replace(b"warranty", b"warran\\u0000")
    [stored] = await services.runs.answers.list_stored("default", 1)
    digest = CacheKey(**stored.components).address().digest
    await services.runs.answers.recall(Scope("default"), digest, bad, services.library.documents.corpus_fingerprint)
    last = await serve(recall)
    await services.runs.hit_log.record_all()
    assert await services.runs.answers.read_hits(10) == []
    assert await services.runs.log.get("default", last.run_id) is not None
    assert [record.levelname for record in caplog.records if "cannot be recorded" in record.message] == ["ERROR"]


async def test_nothing_else_is_given(services: Services, recall: Recall, first: list[Event]) -> None:
    assert await recall.serve(Ask(QUESTION, thread_id="a-thread")) is None
    assert await recall.serve(Ask(QUESTION, mode="thorough")) is None
    assert await recall.serve(Ask(QUESTION, workspace_id="other")) is None
    assert await recall.serve(Ask("How long is the warranty of the Amsel?")) is None
    for wrong, error in (
        (Ask(""), QuestionError),
        (Ask(QUESTION, mode="none"), UnknownMode),
        (Ask(QUESTION, document_ids=("none",)), UnknownDocument),
    ):
        with pytest.raises(error):
            await recall.serve(wrong)
    assert await services.runs.answers.read_hits(10) == []


@pytest.mark.parametrize("part", ["opening", "done", "sources", "last_id"])
async def test_a_stored_answer_that_cannot_be_read_is_none(
    services: Services, recall: Recall, first: list[Event], redis_url: str, part: str
) -> None:
    async with redis.asyncio.Redis.from_url(redis_url) as client:
        [key] = await client.keys("*:answer:*")
        await client.hset(key, part, b'{"answer":\xff')
    assert await recall.serve(Ask(QUESTION)) is None
    assert await services.runs.answers.read_hits(10) == []
    assert not (await ask(services))["cached"]
    await serve(recall)


async def test_a_note_that_cannot_be_read_does_not_keep_the_rest_waiting(
    services: Services, recall: Recall, first: list[Event], redis_url: str
) -> None:
    async with redis.asyncio.Redis.from_url(redis_url) as client:
        [key] = await client.keys("*:answer:*")
        assert isinstance(key, bytes)
        hits = key.split(b":answer:")[0] + b":hits"
        await client.xadd(hits, {b"hit": b"[]", b"done": b"\xff", b"last_id": b"1-1", b"at": b"0"})
    recalled = await serve(recall)
    await services.runs.hit_log.record_all()
    assert await services.runs.log.get("default", recalled.run_id) is not None
    assert await services.runs.answers.read_hits(10) == []


async def test_a_thread_is_settled_once_whoever_does_it(
    settings: Settings, services: Services, recall: Recall, first: list[Event]
) -> None:
    async with open_services(settings) as other:
        for _ in range(3):
            recalled = await serve(recall)
            await services.runs.hit_log.record_all()
            asked = [
                each.runs.threads.settle("default", recalled.thread_id) for each in (services, other) for _ in range(3)
            ]
            assert all(await asyncio.gather(*asked))
            config = {"configurable": {"thread_id": recalled.thread_id}}
            states = [state async for state in services.runs.graph.aget_state_history(config)]  # type: ignore[arg-type]
            assert len(states) == 1
