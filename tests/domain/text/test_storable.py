import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.text.storable import make_json_storable, make_storable, replace_surrogates


def test_halves_of_surrogate_pairs_become_question_marks() -> None:
    assert replace_surrogates("a\ud800b\udfffc") == "a?b?c"
    assert replace_surrogates("Zoë 東京 😀") == "Zoë 東京 😀"


def test_pairs_are_joined_and_what_cannot_be_stored_is_marked() -> None:
    assert make_storable("a\ud83d\ude00b\ud800c") == "a😀b�c"
    assert make_storable("a\0b") == "a�b"


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (r'"a\u0000b"', "a�b"),
        (r'"C:\\u0000"', r"C:\u0000"),
        (r'"\\\u0000"', "\\�"),
        (r'"\ud83d\ude00 \uD83D \ude00"', "😀 � �"),
        (r'"\ud83d\ud83d\ude00\n"', "�😀\n"),
        (r'"\ud83d\\ude00"', "�\\ude00"),
        (r'"\u00e9 \ud7ff \\ud83d"', "é \ud7ff \\ud83d"),
    ],
)
def test_escapes_in_json_are_read_as_json_reads_them(written: str, text: str) -> None:
    assert json.loads(make_json_storable(written)) == text


@given(st.text(st.characters() | st.sampled_from("\0\ud83d\ude00\\u")), st.booleans())
def test_json_holds_what_its_text_would(text: str, escaped: bool) -> None:
    storable = make_storable(text)
    assert storable.encode().count(0) == 0
    assert json.loads(make_json_storable(json.dumps(text))) == storable
    assert json.loads(make_json_storable(json.dumps(storable, ensure_ascii=escaped))) == storable
