"""Blocks read from canonical Markdown, and from text that is nearly so."""

import random

import pytest

from domain.text.blocks import Block, plain_text, read_blocks
from domain.text.sentences import split_sentences

GUIDE = """\
# Refunds

A refund takes a week. To ask for one, do the following:

1. Open the form.

   ```sh
   - no item

   # no heading
   ```

2. Choose a reason:
  - broken
  - late
3. Send it.

Fees
in euros
Country | Fee
--- | ---
Norway | 12
Chad | 7

Rush
: A refund within a day.
: It costs more.

> Nobody waits
> for ever.

- one
- two

```python
a | b
```
"""


def show(text: str) -> list[tuple[str, str]]:
    return [(block.kind, text[block.start : block.end]) for block in read_blocks(text)]


def find(kind: str, text: str = GUIDE) -> Block:
    return next(block for block in read_blocks(text) if block.kind == kind)


def test_kinds_follow_the_text() -> None:
    kinds = ["heading", "steps", "table", "definition", "quote", "list", "code"]
    assert [block.kind for block in read_blocks(GUIDE)] == kinds


def test_steps_have_their_lead_in_and_all_that_belongs_to_each() -> None:
    steps = find("steps")
    assert steps.lead
    assert GUIDE[slice(*steps.lead)] == "A refund takes a week. To ask for one, do the following:"
    first, second, third = (GUIDE[slice(*part)] for part in steps.parts)
    assert first.startswith("1. Open the form.\n\n   ```sh")
    assert first.endswith("```")
    assert second == "2. Choose a reason:\n  - broken\n  - late"
    assert third == "3. Send it."


def test_a_sentence_that_goes_on_in_the_items_is_their_lead_in() -> None:
    told = "Parcels are packed by hand, weighed twice and collected every evening at the back door."
    text = f"{told} This is done for\n\n- books\n- maps"
    paragraph, items = read_blocks(text)
    assert text[paragraph.start : paragraph.end] == told
    assert items.lead
    assert text[slice(*items.lead)] == "This is done for"
    listed = "They sell all that you need\nThings to bring\n\n- tent\n- map"
    _, items = read_blocks(listed)
    assert items.lead
    assert listed[slice(*items.lead)] == "Things to bring"


def test_a_table_has_caption_and_header_as_its_lead() -> None:
    table = find("table")
    assert table.lead
    assert GUIDE[slice(*table.lead)] == "Fees\nin euros\nCountry | Fee\n--- | ---"
    assert [GUIDE[slice(*part)] for part in table.parts] == ["Norway | 12", "Chad | 7"]


def test_a_term_leads_its_definitions() -> None:
    definition = find("definition")
    assert definition.lead
    assert GUIDE[slice(*definition.lead)] == "Rush"
    assert [GUIDE[slice(*part)] for part in definition.parts] == [": A refund within a day.", ": It costs more."]


def test_code_names_its_language() -> None:
    assert [block.language for block in read_blocks(GUIDE) if block.kind == "code"] == ["python"]
    assert find("code", "~~~\n```\n~~~").end == 11


def test_only_the_last_sentence_of_a_long_paragraph_introduces_a_list() -> None:
    text = f"{'This is said first. ' * 30}Take these:\n\n- a\n- b"
    assert [kind for kind, _ in show(text)] == ["paragraph", "list"]
    assert find("list", text).lead == (600, 611)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("- a\nNext.", ["list", "paragraph"]),
        ("- a long item that the margin broke right here\ninto two lines\n- b", ["list"]),
        ("- a\n1. b", ["list", "steps"]),
        ("- a\n\n- b\n\n  more of b\n\nNext.", ["list", "paragraph"]),
        ("Text\n| a | b |\n|---|---|\n| 1 | 2 |\nEnd.", ["table", "paragraph"]),
        ("a | b\n--- | ---\n1 | 2\n\nc | d\n--- | ---\n3 | 4", ["table", "table"]),
        ("One | 1\n\nThe end.", ["paragraph", "paragraph"]),
        ("```\nnever closed\n\n# so all is code", ["code"]),
        ("(1) Costs are these\n\n1. one\n2. two\n\n(2) All else is free.", ["steps", "paragraph"]),
        ("Costs:\n(a) one\n(b) two", ["steps"]),
        ("Text\n# Title\nText", ["paragraph", "heading", "paragraph"]),
    ],
)
def test_where_blocks_end(text: str, expected: list[str]) -> None:
    assert [kind for kind, _ in show(text)] == expected


LINES = [
    "word word.", "Word: ", "- a", "  - b", "1. c", "# d", "a | b", "--- | ---", "```", "> e", ": f", "", "  g", "|", "~~~x",
]  # fmt: skip


@pytest.mark.parametrize("seed", range(30))
def test_blocks_cover_the_text_in_order(seed: int) -> None:
    choice = random.Random(seed)
    for _ in range(60):
        text = "\n".join(choice.choices(LINES, k=choice.randint(0, 25)))
        position = 0
        for block in read_blocks(text):
            assert position <= block.start < block.end <= len(text)
            assert not text[position : block.start].strip()
            assert text[block.start : block.end] == text[block.start : block.end].strip()
            reached = block.start
            for start, end in [*([block.lead] if block.lead else []), *block.parts]:
                assert reached <= start < end <= block.end
                assert not text[reached:start].strip()
                reached = end
            assert not block.parts or reached == block.end
            position = block.end
        assert not text[position:].strip()
        reached = 0
        for start, end in split_sentences(text):
            assert reached <= start < end
            assert not text[reached:start].strip()
            reached = end
        assert not text[reached:].strip()


def test_plain_text_has_no_marks() -> None:
    text = "## Fees\n\na | b\n--- | ---\n1 | 2\n\n```sh\nrun `x`\n```\n\n> said\n\nTerm\n: meaning\n\na - b > c # d"
    assert plain_text(text) == "Fees\n\na | b\n1 | 2\n\nrun x\n\nsaid\n\nTerm\nmeaning\n\na - b > c # d"


def test_code_that_begins_in_an_item_or_a_definition_ends_with_its_fence() -> None:
    definitions = "Undo one\n: ```\n  - reset --soft\n  ```\n\n  1. Kept.\n\nUndo all\n: ```\n  reset --hard\n  ```"
    one, other = read_blocks(definitions)
    assert [definitions[slice(*block.lead)] for block in (one, other) if block.lead] == ["Undo one", "Undo all"]
    items = "- ```\n  - pull\n  ```\n- ```\n  push\n  ```\n  Then wait."
    [block] = read_blocks(items)
    assert [items[slice(*part)] for part in block.parts] == [items[:20], items[21:]]
