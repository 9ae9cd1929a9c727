"""Follows runs: those of this process from memory, those of any process while they are executed and after they have
ended."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from contextvars import ContextVar
from math import inf
from time import monotonic
from typing import cast

from domain.errors import UnknownRun
from domain.events import RESTART, Content, Correction, Done, Event, Failed, Thinking, Waiting
from domain.execution.streams import StreamedEvent, order_of
from domain.ports.runs import RunQueue
from domain.ports.streams import RunStreams

QUIET_SECONDS = 5.0
"""Seconds without an event after which a reader is told that the run still waits. Chosen: a model that works has said
its first word by then."""

_followed: ContextVar[set[tuple[str, str]] | None] = ContextVar("followed", default=None)


def follow_for_request() -> set[tuple[str, str]]:
    """Return the set of runs, each with its workspace, that are followed from here on in this context: by a request, in
    whatever protocol it is answered."""
    followed: set[tuple[str, str]] = set()
    _followed.set(followed)
    return followed


def note_followed(workspace_id: str, run_id: str) -> None:
    """Note that a request, if it is one, follows this run."""
    if (followed := _followed.get()) is not None:
        followed.add((workspace_id, run_id))


async def follow_elsewhere(
    queue: RunQueue,
    streams: RunStreams,
    workspace_id: str,
    run_id: str,
    after: str | None,
    is_over: Callable[[], bool],
) -> AsyncGenerator[StreamedEvent]:
    """Yield the run's events past the id `after` from its stream; where the stream is gone, wait for the run's end and
    yield that.

    Stops early once `is_over` returns True.
    """
    over: tuple[Done | Failed, str] | None = None
    missed = False
    step, heard = "", monotonic()
    async with aclosing(streams.follow(run_id, after)) as events:
        async for event in events:
            if is_over() and (event is None or not event.is_end):
                return
            if event is not None:
                missed = missed or not _follows(event.id, after)
                if missed and event.is_end:
                    # Redis has lost events: its memory was full, or it was emptied.
                    for retold in _retell(cast("Done | Failed", event.event), event.id):
                        yield retold
                after = event.id
                if event.type == "thinking":
                    step = _name_step(event)
                heard = monotonic()
                yield event
                if event.is_end:
                    return
                continue
            if step and monotonic() - heard >= QUIET_SECONDS:
                yield _tell_waiting(step)
                heard = inf
            if over is not None:
                # All events are in the stream before the end is stored: nothing more will come.
                ended, ended_id = over
                for retold in _retell(ended, after):
                    yield retold
                yield StreamedEvent.of(ended, ended_id)
                return
            status = await queue.get(workspace_id, run_id)
            if status is None:
                # Its thread was deleted meanwhile.
                message = f"There is no run {run_id!r} in this workspace any more."
                yield _without_id(Failed(type="error", code=UnknownRun().code, message=message, retryable=False))
                return
            if status.ended is not None and status.ended_id is not None:
                # The stream may have become complete since we read it: read once more.
                over = status.ended, status.ended_id


def _follows(event_id: str, after: str | None) -> bool:
    """Return True where no event is missing between the two ids."""
    attempt, number = order_of(event_id)
    before = (1, 0) if after is None else order_of(after)
    return (attempt, number) == (before[0], before[1] + 1) or (attempt > before[0] and number == 1)


def _retell(ended: Done | Failed, after: str | None) -> list[StreamedEvent]:
    """Make the events that a reader needs before the end of a run whose stream has expired."""
    if ended["type"] == "error":
        return []
    if after is None:
        return [_without_id(Content(type="content", token=ended["answer"]))]
    answer, citations = ended["answer"], ended["citations"]
    return [_without_id(Correction(type="correction", reason=RESTART, answer=answer, citations=citations))]


def _name_step(thinking: StreamedEvent) -> str:
    return str(cast(Thinking, thinking.event)["step"])


def _tell_waiting(step: str) -> StreamedEvent:
    return _without_id(Waiting(type="waiting", step=step, seconds=QUIET_SECONDS))


def _without_id(event: Content | Correction | Waiting | Failed) -> StreamedEvent:
    """Make an event for this reader alone. A reader that reconnects names the last id before it."""
    return StreamedEvent.of(event, "")


PAUSE_EVENTS = 50


class Broadcast:
    """The events of one attempt at a run. Followers in this process read them from memory; for all others they are
    added to the run's stream."""

    def __init__(self, run_id: str, attempt: int, streams: RunStreams) -> None:
        self.run_id = run_id
        self.attempt = attempt
        self._streams = streams
        self._sent: list[StreamedEvent] = []
        self._news = asyncio.Event()
        self._closed = False

    @property
    def next_id(self) -> str:
        """Return the id of the next event."""
        return f"{self.attempt}-{len(self._sent) + 1}"

    def send(self, event: Event) -> None:
        """Send an event to all followers."""
        streamed = StreamedEvent.of(event, self.next_id)
        self._sent.append(streamed)
        self._streams.append(self.run_id, streamed)
        self._wake()

    def close(self) -> None:
        """End the broadcast: the run has ended, or continues elsewhere."""
        self._closed = True
        self._wake()

    def reaches(self, after: str | None) -> bool:
        """Return True if the events held here are all that follow the event with the id `after`."""
        return self.attempt == 1 if after is None else order_of(after)[0] == self.attempt or self.attempt == 1

    async def follow(self, after: str | None = None) -> AsyncGenerator[StreamedEvent]:
        """Yield the events past the id `after`, past and future ones, until the end or until it is closed."""
        attempt, number = (0, 0) if after is None else order_of(after)
        position = number if attempt == self.attempt else 0 if attempt < self.attempt else len(self._sent)
        quiet: float | None = QUIET_SECONDS
        while True:
            while position < len(self._sent):
                event = self._sent[position]
                position += 1
                quiet = QUIET_SECONDS
                yield event
                if event.is_end:
                    return
                if position % PAUSE_EVENTS == 0:
                    # A follower that reads many at once must not delay the others, or the heartbeats.
                    await asyncio.sleep(0)
            if self._closed:
                return
            try:
                async with asyncio.timeout(quiet):
                    await self._news.wait()
            except TimeoutError:
                quiet = None
                begun = [event for event in self._sent[:position] if event.type == "thinking"]
                if begun:
                    yield _tell_waiting(_name_step(begun[-1]))

    def _wake(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()
