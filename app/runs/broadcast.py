"""Delivers a run's events to everyone who follows it."""

import asyncio
from collections.abc import AsyncGenerator

from domain.events import Event
from domain.ports.streams import RunStreams
from domain.streams import StreamedEvent, order_of

PAUSE_EVENTS = 50


class Broadcast:
    """The events of one attempt at a run: kept for followers in this process, who do without the server between, and
    added to the run's stream for all others."""

    def __init__(self, run_id: str, attempt: int, streams: RunStreams) -> None:
        self.run_id = run_id
        self.attempt = attempt
        self._streams = streams
        self._sent: list[StreamedEvent] = []
        self._news = asyncio.Event()
        self._closed = False

    @property
    def next_id(self) -> str:
        """The id that the next event will have."""
        return f"{self.attempt}-{len(self._sent) + 1}"

    def send(self, event: Event) -> None:
        """Hand an event to everybody."""
        streamed = StreamedEvent.of(event, self.next_id)
        self._sent.append(streamed)
        self._streams.append(self.run_id, streamed)
        self._wake()

    def close(self) -> None:
        """Nothing more comes from here: the run goes on elsewhere, or has ended."""
        self._closed = True
        self._wake()

    def reaches(self, after: str | None) -> bool:
        """Return True if the events held here are all that follow the event with the id `after`."""
        return self.attempt == 1 if after is None else order_of(after)[0] == self.attempt or self.attempt == 1

    async def follow(self, after: str | None = None) -> AsyncGenerator[StreamedEvent]:
        """The events past `after`, those that are there and those that come, to the end or to where it was closed."""
        attempt, number = (0, 0) if after is None else order_of(after)
        position = number if attempt == self.attempt else 0 if attempt < self.attempt else len(self._sent)
        while True:
            while position < len(self._sent):
                event = self._sent[position]
                position += 1
                yield event
                if event.is_end:
                    return
                if position % PAUSE_EVENTS == 0:
                    # A reader of many at once must not keep the others, and the heartbeats, waiting.
                    await asyncio.sleep(0)
            if self._closed:
                return
            await self._news.wait()

    def _wake(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()
