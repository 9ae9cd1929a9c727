"""Delivers a run's events to everyone who follows it."""

import asyncio
from collections.abc import AsyncGenerator, Sequence

from domain.events import Event
from domain.execution.streams import StreamedEvent, order_of
from domain.ports.streams import RunStreams

PAUSE_EVENTS = 50


class Broadcast:
    """The events of one attempt at a run. Followers in this process read them from memory; for all others they are
    added to the run's stream."""

    def __init__(self, run_id: str, attempt: int, streams: RunStreams, sent: Sequence[StreamedEvent] = ()) -> None:
        """`sent` are the events of a run that has ended already; they are not added to the stream."""
        self.run_id = run_id
        self.attempt = attempt
        self._streams = streams
        self._sent = list(sent)
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
        while True:
            while position < len(self._sent):
                event = self._sent[position]
                position += 1
                yield event
                if event.is_end:
                    return
                if position % PAUSE_EVENTS == 0:
                    # A follower that reads many at once must not delay the others, or the heartbeats.
                    await asyncio.sleep(0)
            if self._closed:
                return
            await self._news.wait()

    def _wake(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()
