"""The stream of a run's events, which any process can follow."""

import re
from dataclasses import dataclass
from typing import cast

import orjson

from domain.events import Event, data_of

_ID = re.compile(r"[0-9]{1,18}-[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class StreamedEvent:
    """An event in a run's stream."""

    id: str
    """`<attempt>-<number>`, both from 1. Ids grow within a run; a later attempt's are greater than any of an earlier's,
    so that a process that has lost its lease cannot write any more."""
    type: str
    data: bytes
    """The rest of the event, as JSON."""

    @classmethod
    def of(cls, event: Event, event_id: str) -> "StreamedEvent":
        """Encode the event, once for all its readers."""
        return cls(event_id, event["type"], orjson.dumps(data_of(event)))

    @property
    def event(self) -> Event:
        """Decode the event."""
        return cast(Event, {"type": self.type, **orjson.loads(self.data)})

    @property
    def is_end(self) -> bool:
        """Return True for the event that ends the stream."""
        return self.type in ("done", "error")


def order_of(event_id: str) -> tuple[int, int]:
    """Return the sort key of an event's id.

    Raises `ValueError` where `event_id` is not an event's id.
    """
    if not _ID.fullmatch(event_id):
        raise ValueError(event_id)
    attempt, number = event_id.split("-")
    return int(attempt), int(number)
