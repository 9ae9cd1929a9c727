"""Addresses that a language model writes so that they do not look like any."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.text.disguises import DisguiseStream


def undo(*pieces: str) -> str:
    stream = DisguiseStream()
    return "".join(map(stream.feed, pieces)) + stream.finish()


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        ("https&#58;//evil.example", "https://evil.example"),
        ("&#104;ttps&colon;&sol;&#x2f;evil&period;example", "https://evil.example"),
        ("https:/\u200b/evil\u00ad.exam\u2060ple", "https://evil.example"),
        ("ｈｔｔｐｓ：／／ｅｖｉｌ．example", "https://evil.example"),
        ("AT&amp;T, R&D, &lt;b&gt; &#60; &#x26; &unknown; & 5", "AT&amp;T, R&D, &lt;b&gt; &#60; &#x26; &unknown; & 5"),
        ("می\u200cخواهم 👩\u200d💻 用 API。它", "می\u200cخواهم 👩\u200d💻 用 API。它"),
    ],
)
def test_an_address_is_plain_and_other_text_stays(written: str, plain: str) -> None:
    assert undo(written) == plain


def test_a_mark_without_width_at_the_beginning_joins_nothing() -> None:
    assert undo("\u200bhttps") == "\u200bhttps"


PIECES = st.sampled_from(["&", "#58;", "#", "5", "8", ";", "&colon;", "a", "。", "\u200b", "：", " ", "&#x2", "f;"])


@given(st.lists(PIECES, max_size=20))
def test_the_output_does_not_depend_on_how_the_input_is_cut(pieces: list[str]) -> None:
    assert undo(*pieces) == undo("".join(pieces)) == undo(*"".join(pieces))
