"""Server-sent events: what is encoded is read back."""

from app.api.sse import encode_frame, number_events, read_frames
from domain.events import Content, Thinking
from domain.streams import StreamedEvent


def test_frames_are_read_back() -> None:
    events = number_events([Thinking(type="thinking", step="route"), Content(type="content", token="é: 1\n\ndata: 2")])
    unnumbered = StreamedEvent.of(Content(type="content", token=""), "")
    stream = b"".join(map(encode_frame, [*events, unnumbered])).decode()
    assert list(read_frames(stream.split("\n"))) == [*events, unnumbered]


def test_comments_and_carriage_returns_are_skipped() -> None:
    stream = ': ping\r\n\r\nid: 1-1\r\nevent: thinking\r\ndata: {"step":"route"}\r\n\r\n: ping\r\n\r\n'
    assert list(read_frames(stream.split("\n"))) == [StreamedEvent("1-1", "thinking", b'{"step":"route"}')]


def test_an_event_that_was_cut_off_is_not_read() -> None:
    assert list(read_frames(["id: 1-1", "event: content", 'data: {"token"'])) == []
