"""Server-sent events: what the server encodes, the client reads."""

import pytest

from app.api.asking.streams import encode_frame
from askgraph.frames import Frame, read_frames
from domain.events import Content, Event, Thinking
from domain.execution.streams import StreamedEvent


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_frames_are_read_back_however_they_arrive(size: int) -> None:
    token = "é: 1\n\ndata: 2\u2028\r"
    sent: list[Event] = [Thinking(type="thinking", step="route"), Content(type="content", token=token)]
    events = [StreamedEvent.of(event, f"1-{number}") for number, event in enumerate(sent, 1)]
    unnumbered = StreamedEvent.of(Content(type="content", token=""), "")
    stream = b"".join(map(encode_frame, [*events, unnumbered]))
    pieces = [stream[at : at + size] for at in range(0, len(stream), size)]
    assert list(read_frames(pieces)) == [Frame(event.id, event.type, event.data) for event in [*events, unnumbered]]


@pytest.mark.parametrize("size", [1, 1000])
def test_comments_and_carriage_returns_are_skipped(size: int) -> None:
    stream = b': ping\r\n\r\nid: 1-1\r\nevent: thinking\r\ndata: {"step":"route"}\r\n\r\n: ping\r\n\r\n'
    pieces = [stream[at : at + size] for at in range(0, len(stream), size)]
    assert list(read_frames(pieces)) == [Frame("1-1", "thinking", b'{"step":"route"}')]


def test_an_event_that_was_cut_off_is_not_read() -> None:
    assert list(read_frames([b'id: 1-1\nevent: content\ndata: {"token"'])) == []
