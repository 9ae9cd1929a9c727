"""Streams of runs as server-sent events."""

import re
from collections.abc import AsyncGenerator, Iterator, Mapping

import orjson
from starlette.responses import Response

from app.api.asking.streams import Leave, encode_events, respond_with_frames
from app.api.protocols.agent_server.translation import Part, Translation
from domain.errors import InputError
from domain.execution.streams import StreamedEvent

FROM_START = "-1"
"""The `Last-Event-ID` of who wants everything."""

HEARTBEAT = b": heartbeat\n\n"

_ID = re.compile(r"[0-9]{1,18}-[0-9]{1,18}-[0-9]{1,18}")

Order = tuple[int, ...]


def read_last_event_id(text: str | None) -> Order:
    """Return the place in a stream after which to go on. Raises `InputError`."""
    if not text or text == FROM_START:
        return ()
    if not _ID.fullmatch(text):
        raise InputError(f"Last-Event-ID is the id of an event, such as 1-17-0, or -1; {text!r} is neither.")
    return tuple(map(int, text.split("-")))


def respond_streaming(
    translation: Translation,
    events: AsyncGenerator[StreamedEvent],
    headers: Mapping[str, str],
    *,
    after: Order = (),
    on_leave: Leave | None = None,
) -> Response:
    """Make the response that streams a run past the place `after`. What stands before is translated too, because the
    state grows out of it. Calls `on_leave` where the client leaves before the end."""

    def encode(event: StreamedEvent) -> Iterator[bytes]:
        return _number(translation.translate(event.event), event.id, after)

    frames = encode_events(events, on_leave, encode, _number(translation.begin(), "0-0", after))
    return respond_with_frames(frames, headers, HEARTBEAT)


def _number(parts: Iterator[Part], event_id: str, after: Order) -> Iterator[bytes]:
    """Encode what an event has become; each part has an id of its own."""
    for number, part in enumerate(parts):
        frame = b"event: %b\ndata: %b\n" % (part.name.encode(), orjson.dumps(part.data))
        if not event_id:
            yield frame + b"\n"
        elif (*map(int, event_id.split("-")), number) > after:
            yield b"%bid: %b-%d\n\n" % (frame, event_id.encode(), number)
