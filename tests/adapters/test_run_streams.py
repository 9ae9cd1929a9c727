import asyncio

import pytest
from redis.asyncio import Redis

from app.adapters.redis.streams import KEPT_SECONDS
from domain.execution.streams import StreamedEvent
from domain.ports.streams import RunStreams
from tests.adapters.conftest import Relay, open_streams
from tests.contracts.run_streams import PATIENCE_SECONDS, RunStreamsContract, append, make_events, read


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tested behaviour does not depend on how long a follower waits."""
    monkeypatch.setattr("app.adapters.redis.streams.WAIT_SECONDS", 0.2)


class TestRedisRunStreams(RunStreamsContract):
    pass


async def test_a_stream_is_gone_an_hour_after_its_last_event(redis_url: str, streams: RunStreams) -> None:
    async with Redis.from_url(redis_url) as client:
        for event in make_events(1, 2):
            streams.append("r", event)
            await streams.flush("r")
            (key,) = await client.keys("*")
            assert KEPT_SECONDS - 60 < await client.ttl(key) <= KEPT_SECONDS
            await client.expire(key, 60)


async def test_a_stream_keeps_its_last_events(redis_url: str) -> None:
    events = make_events(1, 1000)
    async with open_streams(redis_url, kept_events=300) as streams:
        append(streams, "r", events)
        await streams.flush("r")
        kept = await read(streams, "r")
    # The server drops whole blocks of a hundred events.
    assert 300 <= len(kept) <= 400
    assert kept == events[-len(kept) :]


async def test_a_flush_does_not_wait_for_a_batch_to_fill(redis_url: str, streams: RunStreams) -> None:
    events = make_events(1, 3)
    async with asyncio.timeout(PATIENCE_SECONDS), open_streams(redis_url, gather_seconds=3600) as patient:
        for event in events:
            patient.append("r", event)
            await patient.flush("r")
        assert await read(streams, "r") == events


async def test_events_of_an_outage_arrive_after_it(relay: Relay, streams: RunStreams) -> None:
    events = make_events(1, 60)
    await relay.open()
    async with open_streams(relay.url) as behind:
        reading = [asyncio.create_task(read(one, "r")) for one in (streams, behind)]
        append(behind, "r", events[:20])
        await behind.flush("r")
        await relay.shut()
        append(behind, "r", events[20:40])
        await behind.flush("r")
        # Events that arrive during a known outage do not wait either.
        append(behind, "r", events[40:])
        await behind.flush("r")
        assert await read(streams, "r", count=20) == events[:20]
        await relay.open()
        for seen in reading:
            assert await seen == events
        await relay.shut()


async def test_events_whose_reply_came_too_late_are_stored_once(redis_url: str) -> None:
    events = make_events(1, 3)
    async with open_streams(redis_url) as streams:
        store, late = streams._store, [True]

        async def reply_late(batch: list[tuple[str, StreamedEvent]]) -> bool:
            return await store(batch) and not (late and late.pop())

        streams._store = reply_late  # type: ignore[method-assign]
        append(streams, "r", events)
        await streams.flush("r")
        assert await read(streams, "r") == events
        while streams._pending:  # noqa: ASYNC110 - nobody announces it
            await asyncio.sleep(0.01)
        assert await read(streams, "r") == events


async def test_what_waits_for_a_server_that_is_gone_is_bounded(
    relay: Relay, streams: RunStreams, caplog: pytest.LogCaptureFixture
) -> None:
    events = make_events(1, 100, ended=False)
    async with open_streams(relay.url, pending=30) as behind:
        append(behind, "r", events)
        await relay.open()
        assert await read(streams, "r", count=30) == events[:30]
        end = StreamedEvent("1-101", "done", b"{}")
        async with asyncio.timeout(PATIENCE_SECONDS):
            await behind.flush("r")
        behind.append("r", end)
        assert await read(streams, "r", events[29].id) == [end]
    assert len([r for r in caplog.records if "30 wait for Redis" in r.getMessage()]) == 1


async def test_closing_writes_what_is_pending_and_leaves_no_connection(redis_url: str) -> None:
    events = make_events(1, 2500)
    async with Redis.from_url(redis_url) as client:
        before = len(await client.client_list())
        async with open_streams(redis_url) as streams:
            append(streams, "r", events)
        async with open_streams(redis_url) as streams:
            assert await read(streams, "r") == events
        # The server notices the closed connections a moment later.
        async with asyncio.timeout(PATIENCE_SECONDS):
            while len(await client.client_list()) > before:
                pass


async def test_closing_does_not_wait_for_a_server_that_is_gone(relay: Relay) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS), open_streams(relay.url) as streams:
        append(streams, "r", make_events(1, 3))
