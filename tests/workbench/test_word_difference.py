"""Two answers, word by word."""

from app.workbench.compare.difference import MOST_WORDS, Part, compare_words


def join(parts: list[Part], kind: str) -> str:
    return "".join(part["text"] for part in parts if part["kind"] in ("same", kind))


def test_words_that_differ_are_marked_and_both_answers_are_whole() -> None:
    one, other = "The warranty is 36 months. [1]", "In part.\n\nThe warranty is 24 months. [1]"
    parts = list(compare_words(one, other))
    assert [part["text"] for part in parts if part["kind"] == "removed"] == ["36"]
    assert [part["text"] for part in parts if part["kind"] == "added"] == ["In part.\n\n", "24"]
    assert (join(parts, "removed"), join(parts, "added")) == (one, other)
    assert list(compare_words("", "")) == []
    assert list(compare_words("", "new")) == [{"kind": "added", "text": "new"}]


def test_answers_too_long_to_compare_are_shown_whole() -> None:
    one, other = "a " * MOST_WORDS, "b " * MOST_WORDS
    assert list(compare_words(one, other)) == [{"kind": "removed", "text": one}, {"kind": "added", "text": other}]
