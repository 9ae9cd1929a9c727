"""Server-sent events. Frames are built here; `askgraph/frames.py` reads them."""

from domain.execution.streams import StreamedEvent

STREAM_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
"""Headers of a stream: no proxy may store or buffer it."""

MEDIA_TYPE = "text/event-stream"


def encode_frame(event: StreamedEvent) -> bytes:
    """Encode one event as a frame. An event without an id leaves the reader's `Last-Event-ID` as it is."""
    name = b"event: %b\ndata: %b\n\n" % (event.type.encode(), event.data)
    return b"id: %b\n%b" % (event.id.encode(), name) if event.id else name
