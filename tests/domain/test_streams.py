import pytest

from domain.events import Content, Failed, Thinking
from domain.execution.streams import StreamedEvent, order_of

CONTENT = Content(type="content", token="30 days “whole”")


def test_an_event_survives_the_stream() -> None:
    streamed = StreamedEvent.of(CONTENT, "2-7")
    assert (streamed.id, streamed.type) == ("2-7", "content")
    assert streamed.data == '{"token":"30 days “whole”"}'.encode()
    assert streamed.event == CONTENT


def test_a_stream_ends_with_done_or_error() -> None:
    failed = Failed(type="error", code="run_lost", message="Lost.", retryable=False)
    assert StreamedEvent.of(failed, "1-2").is_end
    assert StreamedEvent("1-3", "done", b"{}").is_end
    assert not StreamedEvent.of(Thinking(type="thinking", step="route"), "1-1").is_end
    assert not StreamedEvent.of(CONTENT, "1-2").is_end


def test_ids_are_ordered_as_numbers_by_attempt_first() -> None:
    ids = ["10-1", "2-9", "2-10", "1-100"]
    assert sorted(ids, key=order_of) == ["1-100", "2-9", "2-10", "10-1"]
    assert order_of("3-14") == (3, 14)
    assert order_of("9" * 18 + "-1") == (10**18 - 1, 1)


@pytest.mark.parametrize(
    "event_id", ["", "1", "1-", "-1", "1-2-3", "a-1", "1-b", "1 -2", "9" * 19 + "-1", "1-" + "9" * 19]
)
def test_what_is_no_id_is_refused(event_id: str) -> None:
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - the message is the id
        order_of(event_id)
    assert str(raised.value) == event_id
