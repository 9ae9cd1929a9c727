"""What every `RunStreams` must do. An adapter's tests inherit from the class and provide the fixtures `streams` and
`other_streams`: two processes on one empty server."""

import asyncio
from contextlib import aclosing

from domain.execution.streams import StreamedEvent
from domain.ports.streams import RunStreams

PATIENCE_SECONDS = 20
"""For what has to come, on a machine that runs four tests at once."""


def make_events(attempt: int, tokens: int, *, ended: bool = True) -> list[StreamedEvent]:
    """One attempt at a run: tokens, then its end."""
    events = [
        StreamedEvent.of({"type": "content", "token": f"Größe {number} 🏛\n\0"}, f"{attempt}-{number}")
        for number in range(1, tokens + 1)
    ]
    if ended:
        failed = {"type": "error", "code": "c", "message": "m", "retryable": True}
        events.append(StreamedEvent.of(failed, f"{attempt}-{tokens + 1}"))  # type: ignore[arg-type]
    return events


def append(streams: RunStreams, run_id: str, events: list[StreamedEvent]) -> None:
    for event in events:
        streams.append(run_id, event)


async def read(streams: RunStreams, run_id: str, after: str | None = None, count: int = 0) -> list[StreamedEvent]:
    """The events up to the end, or the first `count` of them."""
    seen: list[StreamedEvent] = []
    async with asyncio.timeout(PATIENCE_SECONDS), aclosing(streams.follow(run_id, after)) as events:
        async for event in events:
            if event is not None:
                seen.append(event)
            if len(seen) == count > 0:
                break
    return seen


class RunStreamsContract:
    async def test_resumes_past_any_event(self, streams: RunStreams, other_streams: RunStreams) -> None:
        events = [*make_events(1, 5, ended=False), *make_events(2, 5)]
        append(streams, "r", events)
        await streams.flush("r")
        # The last of all is the stream's end: nothing comes after it.
        for position, event in enumerate(events[:-1]):
            assert await read(other_streams, "r", event.id) == events[position + 1 :]
        assert await read(other_streams, "r", "1-3000") == events[5:]

    async def test_followers_of_before_during_and_after_see_the_same(
        self, streams: RunStreams, other_streams: RunStreams
    ) -> None:
        events = make_events(1, 40)
        before = asyncio.create_task(read(other_streams, "r"))
        append(streams, "r", events[:20])
        assert await read(other_streams, "r", count=20) == events[:20]
        during = [asyncio.create_task(read(one, "r")) for one in (streams, other_streams)]
        for event in events[20:]:
            streams.append("r", event)
            await asyncio.sleep(0.001)
        for reading in (before, *during):
            assert await reading == events
        assert await read(other_streams, "r") == events
        assert events[0].event == {"type": "content", "token": "Größe 1 🏛\n\0"}

    async def test_runs_are_kept_apart(self, streams: RunStreams, other_streams: RunStreams) -> None:
        events = {f"r{number}": make_events(number, number) for number in range(1, 20)}
        reading = {run_id: asyncio.create_task(read(other_streams, run_id)) for run_id in events}
        for position in range(20):
            for run_id, of_run in events.items():
                append(streams, run_id, of_run[position : position + 1])
        assert {run_id: await seen for run_id, seen in reading.items()} == events

    async def test_who_has_lost_the_run_cannot_write(self, streams: RunStreams, other_streams: RunStreams) -> None:
        begun, anew = make_events(1, 10, ended=False), make_events(2, 10)
        append(streams, "r", begun[:5])
        await streams.flush("r")
        append(other_streams, "r", anew[:5])
        await other_streams.flush("r")
        elsewhere = make_events(1, 3)
        for event, other in zip(begun[5:], [*elsewhere, None], strict=False):
            streams.append("r", event)
            if other is not None:
                streams.append("elsewhere", other)
        await streams.flush("r")
        append(other_streams, "r", anew[5:])
        assert await read(streams, "r") == [*begun[:5], *anew]
        assert await read(streams, "elsewhere") == elsewhere

    async def test_what_was_flushed_is_there(self, streams: RunStreams, other_streams: RunStreams) -> None:
        await streams.flush("nothing")
        for number, event in enumerate(make_events(1, 10), start=1):
            streams.append("r", event)
            await streams.flush("r")
            async with aclosing(other_streams.follow("r")) as events:
                for _ in range(number):
                    assert await anext(events) is not None

    async def test_a_follower_hears_that_nothing_comes(self, streams: RunStreams) -> None:
        first, last = make_events(1, 1)
        async with asyncio.timeout(PATIENCE_SECONDS), aclosing(streams.follow("r")) as events:
            assert await anext(events) is None
            assert await anext(events) is None
            for sent in (first, last):
                streams.append("r", sent)
                # The event may need longer than the follower waits.
                while (event := await anext(events)) is None:
                    pass
                assert event == sent
                if sent is first:
                    assert await anext(events) is None
            assert await anext(events, "over") == "over"

    async def test_a_follower_who_leaves_disturbs_nobody(self, streams: RunStreams) -> None:
        following = asyncio.create_task(read(streams, "left"))
        await asyncio.sleep(0.05)
        following.cancel()
        await asyncio.wait([following])
        append(streams, "left", make_events(1, 3))
        other = make_events(1, 3)
        append(streams, "r", other)
        assert await read(streams, "r") == other
