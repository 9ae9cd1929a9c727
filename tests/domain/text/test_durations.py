from datetime import timedelta

import pytest

from domain.text.durations import parse_span


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("30m", timedelta(minutes=30)),
        ("24h", timedelta(hours=24)),
        ("7d", timedelta(days=7)),
        ("2w", timedelta(weeks=2)),
        (" 1d\n", timedelta(days=1)),
        ("999999d", timedelta(days=999_999)),
    ],
)
def test_a_span_is_a_number_and_a_unit(text: str, span: timedelta) -> None:
    assert parse_span(text) == span


@pytest.mark.parametrize("text", ["", "d", "7", "7 d", "1.5d", "7D", "7y", "1000000d", "7dd", "x7d", "-1d"])
def test_anything_else_is_no_span(text: str) -> None:
    assert parse_span(text) is None
