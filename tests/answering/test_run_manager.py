"""A run's life: it goes on without its reader, is followed from anywhere, waits its turn, is stopped, taken up again. Two services on one database and one Redis stand for two processes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from typing import Any

import psycopg
import pytest
import pytest_asyncio
from langgraph.checkpoint.base import BaseCheckpointSaver
from redis.asyncio import Redis

from app.adapters.postgres.queue import leases
from app.adapters.redis import streams
from app.answering import run_answer
from app.answering.manager import RunManager
from app.answering.requests import AcceptedRun, Ask, collect, read_events
from app.history.thread_states import ThreadStates
from app.settings import Settings
from app.wiring.services import Services, open_services
from app.workbench.replay.replay import Replay
from domain.errors import Draining, ThreadBusy, UnknownRun
from domain.events import Done, Event, Failed
from domain.execution.streams import StreamedEvent, order_of
from domain.people.access import Caller
from domain.runs import RunStatus
from domain.scope import Scope
from tests.asking import QUESTION, place_of, read_state, with_models
from tests.conftest import HANDBOOK
from tests.wire.openai import OpenAIServer, serve_openai

OTHER = "How long does the battery of the Falke last?"
WRITTEN = "The Falke has a warranty of 36 months [1]. " * 4


class Process:
    """What stands for a process."""

    def __init__(self, services: Services, turns: RunManager) -> None:
        self.services = services
        self.turns = turns


@asynccontextmanager
async def open_process(settings: Settings) -> AsyncIterator[Process]:
    async with open_services(settings) as services:
        await services.models.judges.prepare()
        async with services.make_run_manager() as turns:
            yield Process(services, turns)


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process sees sooner what another one has asked of its runs."""
    monkeypatch.setattr(leases, "BEAT_SECONDS", 0.2)


@pytest_asyncio.fixture
async def model() -> AsyncIterator[OpenAIServer]:
    """Writes some forty tokens, ten a second where a test slows it down."""
    async with serve_openai() as server:
        server.behaviour.model_replies = {"gpt-4.1-mini": WRITTEN}
        yield server


@pytest_asyncio.fixture
async def process(settings: Settings, model: OpenAIServer) -> AsyncIterator[Process]:
    async with open_process(with_models(settings, model)) as opened:
        await opened.services.library.ingestion.add("default", "handbook.md", HANDBOOK)
        yield opened


@pytest_asyncio.fixture
async def other(settings: Settings, model: OpenAIServer, process: Process) -> AsyncIterator[Process]:
    async with open_process(with_models(settings, model)) as opened:
        yield opened


def slow(model: OpenAIServer) -> None:
    model.behaviour.rate = 20


async def read_until_content(process: Process, started: AcceptedRun) -> list[StreamedEvent]:
    seen = []
    async with aclosing(process.turns.follow(started)) as events:
        async for event in events:
            seen.append(event)
            if event.type == "content":
                break
    return seen


async def read_all(process: Process, run_id: str, after: str | None = None) -> list[StreamedEvent]:
    async with aclosing(await process.turns.follow_run("default", run_id, after)) as events:
        return [event async for event in events]


def text_of(events: list[StreamedEvent]) -> str:
    return "".join(e["token"] for event in events if (e := event.event)["type"] == "content")


def end_of(events: list[StreamedEvent]) -> Done:
    ended = events[-1].event
    assert ended["type"] == "done", ended
    return ended


async def finish(process: Process, started: AcceptedRun) -> tuple[Done | Failed, list[Event]]:
    return await collect(read_events(process.turns.follow(started)))


async def read_turns(process: Process, thread_id: str) -> list[dict[str, Any]]:
    return list((await read_state(process.services, thread_id))["turns"])


async def test_a_run_goes_on_without_its_reader_and_is_followed_from_where_the_reader_was(
    process: Process, other: Process, model: OpenAIServer
) -> None:
    slow(model)
    started = await process.turns.start(Ask(QUESTION))
    seen = await read_until_content(process, started)
    # The reader has left; somebody follows in the same process, somebody in another.
    here, there = await asyncio.gather(
        read_all(process, started.run_id, seen[-1].id), read_all(other, started.run_id, seen[-1].id)
    )
    assert here == there
    ids = [event.id for event in (*seen, *here)]
    assert ids == [f"1-{number}" for number in range(1, len(ids) + 1)]
    assert text_of([*seen, *here]) == end_of(here)["answer"]
    # After the end, too, and from the beginning.
    assert await read_all(other, started.run_id) == [*seen, *here]
    assert await read_all(process, started.run_id, here[-2].id) == here[-1:]
    status = await process.services.runs.queue.get("default", started.run_id)
    assert status is not None
    assert (status.state, status.ended_id) == ("done", here[-1].id)


async def test_a_run_whose_stream_has_expired_is_told_from_its_row(
    process: Process, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "WAIT_SECONDS", 0.2)
    started = await process.turns.start(Ask(QUESTION))
    ended, _ = await finish(process, started)
    await process.services.runs.streams.flush(started.run_id)
    async with Redis.from_url(redis_url) as client:
        await client.flushall()
    whole = await read_all(process, started.run_id)
    assert [event.type for event in whole] == ["content", "done"]
    assert text_of(whole) == end_of(whole)["answer"]
    rest = await read_all(process, started.run_id, "1-3")
    assert [event.type for event in rest] == ["correction", "done"]
    assert end_of(rest) == ended


async def test_a_run_that_ends_while_its_follower_looks_how_it_stands_is_followed_event_by_event(
    process: Process, other: Process, model: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    model.behaviour.ttft = 2 * streams.WAIT_SECONDS
    started = await process.turns.start(Ask(QUESTION, mode="fast"))
    followed = await other.turns.follow_run("default", started.run_id)
    executing = asyncio.create_task(finish(process, started))
    look = other.services.runs.queue.get

    async def look_late(workspace_id: str, run_id: str) -> RunStatus | None:
        await asyncio.wait({executing})
        return await look(workspace_id, run_id)

    monkeypatch.setattr(other.services.runs.queue, "get", look_late)
    async with aclosing(followed):
        seen = [event async for event in followed]
    assert [event.event for event in seen] == (await executing)[1]


async def test_an_unknown_run_and_one_of_another_workspace_are_refused(process: Process) -> None:
    started = await process.turns.start(Ask(QUESTION))
    await finish(process, started)
    for workspace_id, run_id in (("default", "none"), ("legal", started.run_id)):
        with pytest.raises(UnknownRun):
            await process.turns.follow_run(workspace_id, run_id)
        with pytest.raises(UnknownRun):
            await process.turns.stop(workspace_id, run_id)


@pytest.mark.parametrize("elsewhere", [False, True], ids=["here", "elsewhere"])
async def test_a_stop_ends_the_model_call_and_keeps_the_text_so_far(
    process: Process, other: Process, model: OpenAIServer, elsewhere: bool
) -> None:
    slow(model)
    started = await process.turns.start(Ask(QUESTION))
    seen = await read_until_content(process, started)
    await (other if elsewhere else process).turns.stop("default", started.run_id)
    rest = await read_all(process, started.run_id, seen[-1].id)
    await asyncio.wait_for(model.abandoned.wait(), 5)
    done = end_of(rest)
    assert done["stopped"]
    assert done["answer"] == text_of([*seen, *rest])
    assert WRITTEN.startswith(done["answer"].rstrip().removesuffix("[1]").rstrip())
    assert 0 < len(done["answer"]) < len(WRITTEN) - 10
    status = await other.services.runs.queue.get("default", started.run_id)
    assert status is not None
    assert status.state == "stopped"
    [turn] = await read_turns(process, started.thread_id)
    assert turn["stopped"]
    assert turn["answer"] == done["answer"]
    assert turn["rests_on"], "its last words may not be cited yet"
    steps = await process.services.make_history_reader().read("default", started.thread_id)
    assert steps[-1]["node"] == "stop"
    record = await process.services.runs.log.get("default", started.run_id)
    assert record is not None
    assert record.error == "stopped"
    # The thread goes on.
    model.behaviour.rate = 0
    ended, _ = await finish(process, await process.turns.start(Ask(OTHER, thread_id=started.thread_id)))
    assert ended["type"] == "done"
    assert [turn["question"] for turn in await read_turns(process, started.thread_id)] == [QUESTION, OTHER]


async def test_of_questions_that_come_at_once_the_thread_keeps_each_turn_in_the_order_of_its_answers(
    process: Process, other: Process
) -> None:
    first = await process.turns.start(Ask(QUESTION))
    await finish(process, first)
    asking = (process, other, process, other)
    asked = [each.turns.start(Ask(f"{OTHER} {n}", thread_id=first.thread_id)) for n, each in enumerate(asking)]
    runs = await asyncio.gather(*asked)
    await asyncio.gather(*(finish(each, run) for each, run in zip(asking, runs, strict=True)))
    shown = await process.services.runs.queue.list_turns(Scope("default"), first.thread_id, 9)
    kept = [turn["run_id"] for turn in await read_turns(process, first.thread_id)]
    assert kept == [status.request.run_id for status in shown]
    assert set(kept) == {first.run_id, *(run.run_id for run in runs)}


async def test_a_question_that_does_not_wait_is_refused_in_a_busy_thread(
    process: Process, other: Process, model: OpenAIServer
) -> None:
    slow(model)
    first = await process.turns.start(Ask(QUESTION))
    for asked in (process, other):
        with pytest.raises(ThreadBusy):
            await asked.turns.start(Ask(OTHER, thread_id=first.thread_id, when_busy="reject"))
    model.behaviour.rate = 0
    await finish(process, first)
    ended, _ = await finish(other, await other.turns.start(Ask(OTHER, thread_id=first.thread_id, when_busy="reject")))
    assert ended["type"] == "done"


async def test_a_question_that_interrupts_stops_the_one_before_it(
    process: Process, other: Process, model: OpenAIServer
) -> None:
    slow(model)
    first = await process.turns.start(Ask(QUESTION))
    await read_until_content(process, first)
    second = await other.turns.start(Ask(OTHER, thread_id=first.thread_id, when_busy="interrupt"))
    (one, _), (two, _) = await asyncio.gather(finish(process, first), finish(other, second))
    assert one["type"] == two["type"] == "done"
    assert (one["stopped"], two["stopped"]) == (True, False)
    turns = await read_turns(process, first.thread_id)
    assert [(turn["question"], turn.get("stopped", False)) for turn in turns] == [(QUESTION, True), (OTHER, False)]


async def test_a_run_that_waits_can_be_stopped(process: Process, model: OpenAIServer) -> None:
    slow(model)
    first = await process.turns.start(Ask(QUESTION))
    second = await process.turns.start(Ask(OTHER, thread_id=first.thread_id))
    await process.turns.stop("default", second.run_id)
    model.behaviour.rate = 0
    (one, _), (two, events) = await asyncio.gather(finish(process, first), finish(process, second))
    assert one["type"] == two["type"] == "done"
    assert (one["stopped"], two["stopped"], two["answer"]) == (False, True, "")
    assert len(events) == 1
    turns = await read_turns(process, first.thread_id)
    assert [(turn["run_id"], turn.get("stopped", False)) for turn in turns] == [
        (first.run_id, False),
        (second.run_id, True),
    ]


async def test_a_drained_run_goes_on_in_another_process(process: Process, other: Process, model: OpenAIServer) -> None:
    slow(model)
    model.behaviour.length = 100
    await other.turns.work()
    started = await process.turns.start(Ask(QUESTION))
    seen = await read_until_content(process, started)
    await process.turns.drain(0, 0.2)
    with pytest.raises(Draining):
        await process.turns.start(Ask(OTHER))
    model.behaviour.rate = 0
    rest = await read_all(other, started.run_id, seen[-1].id)
    done = end_of(rest)
    ids = [order_of(event.id) for event in (*seen, *rest)]
    assert ids == sorted(set(ids))
    restart = next(at for at, event in enumerate(rest) if event.type == "correction")
    assert text_of(rest[restart:]) == done["answer"]
    [turn] = await read_turns(other, started.thread_id)
    assert turn["answer"] == done["answer"]
    status = await other.services.runs.queue.get("default", started.run_id)
    assert status is not None
    assert (status.state, status.attempt) == ("done", 2)
    # The tape is that of the last attempt, and is replayed from where that began.
    replayed = await other.services.make_replayer(other.turns).run(
        Replay("default", run_id=started.run_id, tape="strict")
    )
    _, events = await collect(replayed)
    [comparison] = [event for event in events if event["type"] == "comparison"]
    assert comparison["identical"], comparison["differences"]


async def test_a_run_that_goes_on_elsewhere_keeps_what_it_has_read(
    process: Process, other: Process, model: OpenAIServer, database_url: str
) -> None:
    for number in range(9):
        text = f"# Note {number}\n\nOn day {number} it rained in Malmo."
        await process.services.library.ingestion.add("default", f"note{number}.md", text.encode())
    slow(model)
    started = await process.turns.start(Ask(QUESTION))
    await read_until_content(process, started)
    known = {document.id for document in await process.services.library.documents.list("default")}
    await process.turns.drain(0, 0.2)
    for document_id in known:
        await other.services.library.ingestion.delete("default", document_id)
    model.behaviour.rate = 0
    await other.turns.work()
    await read_all(other, started.run_id)
    async with await psycopg.AsyncConnection.connect(database_url) as connection:
        rows = await connection.execute("SELECT document_id FROM run_documents WHERE run_id = %s", [started.run_id])
        assert {row[0] async for row in rows} == known
        status = await connection.execute("SELECT attempt, showing FROM accepted_runs")
        assert await status.fetchall() == [(2, [])]


@pytest.mark.parametrize("is_lost", [False, True])
async def test_a_run_that_ends_without_going_on_says_what_it_was_made_from(
    process: Process, other: Process, model: OpenAIServer, is_lost: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its states hold what it was shown: those who may not read that may not read them, and erasing has to find them."""
    slow(model)
    started = await process.turns.start(Ask(QUESTION, caller=Caller("ann", groups=frozenset({"staff"}))))
    await read_until_content(process, started)
    await process.turns.drain(0, 0.2)
    if is_lost:
        monkeypatch.setattr(run_answer, "MAX_ATTEMPTS", 1)
    else:
        await other.turns.stop("default", started.run_id)
    await other.turns.work()
    events = await read_all(other, started.run_id)
    assert events[-1].event["type"] == ("error" if is_lost else "done")
    [document] = await other.services.library.documents.list("default")
    await other.services.library.documents.set_groups("default", document.id, ["board"])
    readable = await other.services.runs.queue.list_readable(
        Scope("default", groups=frozenset({"staff"})), [started.run_id], steps=True
    )
    assert not readable
    erasure = await other.services.make_forgetting().forget_document("default", document.id)
    assert not erasure.found


async def test_what_is_forgotten_goes_from_answers_that_are_being_written(
    process: Process, model: OpenAIServer
) -> None:
    slow(model)
    started = await process.turns.start(Ask(QUESTION))
    await read_until_content(process, started)
    [document] = await process.services.library.documents.list("default")
    forgetting = asyncio.create_task(process.services.make_forgetting().forget_document("default", document.id))
    left = [document]
    while left:
        left = list(await process.services.library.documents.list("default"))
    model.behaviour.rate = 0
    done, _ = await finish(process, started)
    assert done["type"] == "done"
    assert "36 months" in done["answer"]
    erasure = await forgetting
    assert erasure.run_ids == {started.run_id}
    assert not erasure.found


async def test_a_turn_follows_the_one_before_it_whatever_the_clocks_of_servers_say(process: Process) -> None:
    """Another server's clock was ahead when it saved the thread's last state."""
    started = await process.turns.start(Ask(QUESTION))
    await finish(process, started)
    graph = process.services.runs.graph
    state = await graph.aget_state(place_of(started.thread_id))
    saver = graph.checkpointer
    assert isinstance(saver, BaseCheckpointSaver)
    found = await saver.aget_tuple(state.config)
    assert found is not None
    ahead = found.checkpoint | {"id": f"ffffffff{found.checkpoint['id'][8:]}"}
    await saver.aput(found.config, ahead, found.metadata, {})
    ended, _ = await finish(process, await process.turns.start(Ask(OTHER, thread_id=started.thread_id)))
    assert ended["type"] == "done"
    assert [turn["question"] for turn in await read_turns(process, started.thread_id)] == [QUESTION, OTHER]


async def test_a_run_ends_once_its_states_are_stored(process: Process) -> None:
    asked, stored = asyncio.Event(), asyncio.Event()

    async def flush(workspace_id: str, thread_id: str) -> None:
        asked.set()
        await stored.wait()

    services = process.services
    states = ThreadStates(services.runs.graph, flush, services.runs.states.translating_errors)
    async with replace(services, runs=replace(services.runs, states=states)).make_run_manager() as turns:
        started = await turns.start(Ask(QUESTION))
        await asyncio.wait_for(asked.wait(), 20)
        status = await process.services.runs.queue.get("default", started.run_id)
        assert status is not None
        assert status.state == "running"
        stored.set()
        ended, _ = await collect(read_events(turns.follow(started)))
    assert ended["type"] == "done"


async def test_of_those_that_interrupt_the_last_is_answered(process: Process, model: OpenAIServer) -> None:
    slow(model)
    first = await process.turns.start(Ask(QUESTION))
    runs = [await process.turns.start(Ask(OTHER, thread_id=first.thread_id, when_busy="interrupt")) for _ in range(3)]
    ends = [await finish(process, run) for run in (first, *runs)]
    assert [ended["stopped"] for ended, _ in ends if ended["type"] == "done"] == [True, True, True, False]


async def test_what_is_missing_from_a_stream_is_said_before_its_end(
    process: Process, other: Process, model: OpenAIServer, redis_url: str
) -> None:
    """A Redis that has lost its memory in the middle of a run."""
    slow(model)
    started = await process.turns.start(Ask(QUESTION))
    await read_until_content(process, started)
    await process.services.runs.streams.flush(started.run_id)
    async with Redis.from_url(redis_url) as client:
        await client.flushall()
    events = await read_all(other, started.run_id)
    assert [event.type for event in events[-2:]] == ["correction", "done"]
    correction = events[-2].event
    assert correction["type"] == "correction"
    assert correction["answer"] == end_of(events)["answer"]
