"""The stream of a run's events, which any process can follow."""

import re
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import Protocol, cast

import orjson

from domain.events import Event, data_of

_ID = re.compile(r"[0-9]{1,18}-[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class StreamedEvent:
    """An event as it stands in a run's stream."""

    id: str
    """`<attempt>-<number>`, both from 1. Ids grow within a run; a later attempt's are greater than any of an earlier's,
    so that a process that has lost its lease cannot write any more."""
    type: str
    data: bytes
    """The rest of the event, as JSON."""

    @classmethod
    def of(cls, event: Event, event_id: str) -> "StreamedEvent":
        """The event, encoded once for all who read it."""
        return cls(event_id, event["type"], orjson.dumps(data_of(event)))

    @property
    def event(self) -> Event:
        """Decoded."""
        return cast(Event, {"type": self.type, **orjson.loads(self.data)})

    @property
    def is_end(self) -> bool:
        """Whether the stream ends with it."""
        return self.type in ("done", "error")


def order_of(event_id: str) -> tuple[int, int]:
    """What ids are compared by.

    Raises `ValueError` where it is no id of an event.
    """
    if not _ID.fullmatch(event_id):
        raise ValueError(event_id)
    attempt, number = event_id.split("-")
    return int(attempt), int(number)


class RunStreams(Protocol):
    """Never raises for a server that is gone: a run and those who follow it in its own process do without; others find
    how the run ended in `domain.runs.RunQueue`."""

    def append(self, run_id: str, event: StreamedEvent) -> None:
        """Add an event at the end. Returns at once; what was appended is stored in order, many in one go. An id that is
        not greater than the stream's last is dropped."""
        ...

    async def flush(self, run_id: str) -> None:
        """Return once everything appended so far is stored, or the server is gone."""
        ...

    def follow(self, run_id: str, after: str | None = None) -> AsyncGenerator[StreamedEvent | None]:
        """The events past the id `after`, those that are there and then those that come, to the end of the stream. None
        whenever nothing has come for a while, or the server is gone: whoever follows can see then what became of the
        run. It goes on for as long as it is followed."""
        ...

    async def request_stop(self, run_id: str) -> None:
        """Tell whichever process executes the run."""
        ...

    def on_stop(self, tell: Callable[[str], None]) -> None:
        """Call `tell` with the id of each run that any process asks to stop, also of runs elsewhere."""
        ...
