"""What is left of an answer's Markdown when statements go."""

import pytest

from nodes.reconcile.editing import fit, withdraw
from nodes.writing.attribution import mark


def take_out(answer: str, *statements: str) -> str:
    spans = [(answer.index(text), answer.index(text) + len(text)) for text in statements]
    kept = [(answer.index(text), answer.index(text) + len(text)) for text in ("It holds.",) if text in answer]
    return withdraw(answer, spans, kept)


@pytest.mark.parametrize(
    ("answer", "gone", "left"),
    [
        ("A holds. B fails. C holds.", ["B fails."], "A holds. C holds."),
        ("B fails. C holds.", ["B fails."], "C holds."),
        ("A holds.\n\nB fails.\n\nC holds.", ["B fails."], "A holds.\n\nC holds."),
        ("A holds.\nB fails.\nC holds.", ["B fails."], "A holds.\nC holds."),
        # No item without words is left.
        ("Both:\n\n- A holds.\n- B fails.\n- C holds.", ["- B fails."], "Both:\n\n- A holds.\n- C holds."),
        ("- B fails. It holds.\n- C holds.", ["- B fails."], "- It holds.\n- C holds."),
        ("- It holds. B fails.\n- C holds.", ["B fails."], "- It holds.\n- C holds."),
        ("- B fails. So does C.\n- D holds.", ["- B fails.", "So does C."], "- D holds."),
        ("1. A holds.\n2. B fails.\n3. C holds.", ["2. B fails."], "1. A holds.\n3. C holds."),
        # What is nested in an item that goes does not slip below the one before it.
        (
            "- A holds.\n- B fails.\n  - C holds.\n    - D holds.\n- E holds.",
            ["- B fails."],
            "- A holds.\n- C holds.\n  - D holds.\n- E holds.",
        ),
        ("- A holds.\n  - B fails.\n- C holds.", ["- B fails."], "- A holds.\n- C holds."),
        # A table loses the row, a whole list its lead-in, a whole table its header.
        ("Prices:\n\na | b\n--- | ---\nc | 1\nd | 2\n", ["c | 1"], "Prices:\n\na | b\n--- | ---\nd | 2"),
        ("A holds.\n\nPrices:\n\na | b\n--- | ---\nc | 1\n", ["c | 1"], "A holds."),
        ("A holds.\n\nBoth:\n\n- B fails.\n- C fails.\n\nD holds.", ["- B fails.", "- C fails."], "A holds.\n\nD holds."),
        ("It holds.\n- B fails.", ["- B fails."], "It holds."),
        ("1. A holds.\n2.\n   $$\n   x\n   $$\n3. C holds.", ["2.\n   $$\n   x\n   $$"], "1. A holds.\n3. C holds."),
        # So does a section its heading.
        ("## One\n\nA holds.\n\n## Two\n\nB fails.", ["B fails."], "## One\n\nA holds."),
        ("**One**\nA holds.\n\n**Two**\nB fails.\n\n**Three**\nC holds.", ["B fails."], "**One**\nA holds.\n\n**Three**\nC holds."),
        ("# All\n\n## One\n\nB fails.\n\n## Two\n\nC holds.", ["B fails."], "# All\n\n## Two\n\nC holds."),
        ("## One\n\nB fails.", ["B fails."], ""),
    ],
)  # fmt: skip
def test_what_is_left_can_be_read(answer: str, gone: list[str], left: str) -> None:
    assert take_out(answer, *gone) == left


@pytest.mark.parametrize(
    ("text", "rewrite", "fitted"),
    [
        ("- It is 5 [1].", "It is 6 [1].", "- It is 6 [1]."),
        ("2. It is 5 [1].", "2. It is 6 [1].", "2. It is 6 [1]."),
        ("It is 5 [1].", "- It is\n6 [1].", "It is 6 [1]."),
        ("Basic | 5 | yes", "Basic | 6 | yes [1]", "Basic | 6 | yes [1]"),
        ("| Basic | 5 |", "Basic | 6", "Basic | 6"),
        ("Basic | 5 | yes", "It is 6 [1].", ""),
        ("Basic | 5 | yes", "Basic | 6", ""),
        ("It is 5 [1].", "Basic | 6", ""),
        ("- It is 5 [1].", "", ""),
    ],
)
def test_a_rewrite_has_the_form_of_what_it_replaces(text: str, rewrite: str, fitted: str) -> None:
    assert fit(text, rewrite) == fitted


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("It is 5.", "It is 5. [2]"),
        ("It is 5 [1].", "It is 5 [2]."),
        ("It is 5 [1], or 6 [3].", "It is 5, or 6 [2]."),
        ("Basic | 5", "Basic | 5 [2]"),
        ("| Basic | 5 |", "| Basic | 5 [2] |"),
        ("| Basic | 5 [1] |", "| Basic | 5 [2] |"),
    ],
)
def test_a_marker_stands_where_it_can_be_read(text: str, marked: str) -> None:
    assert mark(text, [2], ["a", "b", "c"], "number") == marked
