"""The stream of a run's events, which any process can follow."""

import re
from dataclasses import dataclass
from typing import cast

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
