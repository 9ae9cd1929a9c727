"""What followers of a run in this process get."""

import asyncio
from typing import Any, cast

import pytest

from app.answering import following
from app.answering.following import Broadcast
from domain.events import Event, Thinking
from domain.execution.streams import StreamedEvent


class Streams:
    """Keeps what is added to the streams of runs."""

    def __init__(self) -> None:
        self.added: list[tuple[str, StreamedEvent]] = []

    def append(self, run_id: str, event: StreamedEvent) -> None:
        self.added.append((run_id, event))


def thinking(step: str) -> Thinking:
    return Thinking(type="thinking", step=step)


def broadcast(attempt: int = 1, *steps: str) -> Broadcast:
    opened = Broadcast("r", attempt, cast(Any, Streams()))
    for step in steps:
        opened.send(thinking(step))
    return opened


async def follow(source: Broadcast, after: str | None = None) -> list[str]:
    source.close()
    return [event.id async for event in source.follow(after)]


def test_an_event_is_numbered_within_its_attempt_and_added_to_the_stream() -> None:
    streams = Streams()
    source = Broadcast("r", 2, cast(Any, streams))
    assert source.next_id == "2-1"
    source.send(thinking("route"))
    source.send(thinking("retrieve"))
    assert source.next_id == "2-3"
    assert [(run_id, event.id) for run_id, event in streams.added] == [("r", "2-1"), ("r", "2-2")]


@pytest.mark.parametrize(
    ("attempt", "after", "reaches"),
    [
        (1, None, True),
        (2, None, False),
        (1, "1-3", True),
        (1, "2-1", True),
        (2, "2-1", True),
        (2, "1-3", False),
        (3, "2-1", False),
    ],
)
def test_a_later_attempt_reaches_only_followers_who_have_seen_some_of_it(
    attempt: int, after: str | None, reaches: bool
) -> None:
    assert broadcast(attempt).reaches(after) is reaches


@pytest.mark.parametrize(
    ("after", "seen"),
    [
        (None, ["2-1", "2-2", "2-3"]),
        ("2-0", ["2-1", "2-2", "2-3"]),
        ("2-1", ["2-2", "2-3"]),
        ("2-3", []),
        # An earlier attempt's events are void; a later attempt's make these so.
        ("1-2", ["2-1", "2-2", "2-3"]),
        ("3-1", []),
    ],
)
async def test_a_follower_gets_what_it_has_not_seen(after: str | None, seen: list[str]) -> None:
    assert await follow(broadcast(2, "route", "retrieve", "grade"), after) == seen


async def test_following_ends_with_the_run() -> None:
    source = broadcast(1, "route")
    source.send(cast(Event, {"type": "error", "code": "internal", "message": "m", "run_id": "r"}))
    source.send(thinking("never"))
    assert [event.id async for event in source.follow()] == ["1-1", "1-2"]


async def test_a_follower_waits_for_what_comes() -> None:
    source = broadcast(1, "route")
    following = source.follow()
    assert (await anext(following)).id == "1-1"
    source.send(thinking("retrieve"))
    assert (await anext(following)).id == "1-2"
    source.close()
    with pytest.raises(StopAsyncIteration):
        await anext(following)


async def test_who_hears_nothing_is_told_once_that_the_run_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "QUIET_SECONDS", 0.05)
    source = broadcast(1, "route")
    heard: list[StreamedEvent] = []

    async def listen() -> None:
        async for event in source.follow():
            heard.append(event)
            if event.type == "waiting" and len(heard) == 2:
                asyncio.get_running_loop().call_later(0.2, source.send, thinking("grade"))
                asyncio.get_running_loop().call_later(0.25, source.close)

    await asyncio.wait_for(listen(), 10)
    assert [(event.id, event.type) for event in heard[:3]] == [
        ("1-1", "thinking"),
        ("", "waiting"),
        ("1-2", "thinking"),
    ]
    assert heard[1].event == {"type": "waiting", "step": "route", "seconds": 0.05}
