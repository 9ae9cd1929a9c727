"""Server-sent events. Frames are built and read here and nowhere else."""

from collections.abc import Iterable, Iterator

from domain.events import Event
from domain.streams import StreamedEvent

STREAM_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
"""Headers of a stream: no proxy may store or buffer it."""

MEDIA_TYPE = "text/event-stream"


def encode_frame(event: StreamedEvent) -> bytes:
    """Encode one event as a frame. An event without an id leaves the reader's `Last-Event-ID` as it is."""
    name = b"event: %b\ndata: %b\n\n" % (event.type.encode(), event.data)
    return b"id: %b\n%b" % (event.id.encode(), name) if event.id else name


def read_frames(lines: Iterable[str]) -> Iterator[StreamedEvent]:
    """Read the events of a stream from its lines; comments are skipped. The id of an event without one is empty."""
    fields: dict[str, str] = {}
    for line in lines:
        if line.startswith(":"):
            continue
        name, _, value = line.rstrip("\r\n").partition(": ")
        if name:
            fields[name] = value
        elif fields:
            if "event" in fields:
                yield StreamedEvent(fields.get("id", ""), fields["event"], fields["data"].encode())
            fields = {}


def number_events(events: Iterable[Event]) -> list[StreamedEvent]:
    """Give the events of a finished run the ids of a first attempt."""
    return [StreamedEvent.of(event, f"1-{number}") for number, event in enumerate(events, start=1)]
