"""Properties of every chunking, over odd texts; and where the cuts fall."""

import random
from itertools import pairwise

import pytest

from app.ingest.chunking import split
from app.ingest.reading import read_document
from app.samples import FOLDER
from domain.documents import Box, Line, ParsedDocument, Section, embedding_text

ALPHABETS = [
    "abc ",
    "Wörter über Straßen. ",
    "雨は空から降る水です。",
    "👩‍👩‍👧🎉🏳️‍🌈 x",
    "e\u0301a\u0308\u200d ",
    "مرحبا بالعالم ",
    "a | b\n",
    "\n \t.",
    "x",
]


def make_document(text: str, *sections: tuple[int, tuple[str, ...]], lines: tuple[Line, ...] = ()) -> ParsedDocument:
    starts = [start for start, _ in sections] or [0]
    paths = [path for _, path in sections] or [()]
    ends = [*starts[1:], len(text)]
    return ParsedDocument(
        title="Title",
        text=text,
        media_type="text/plain",
        sections=tuple(Section(*place) for place in zip(starts, ends, paths, strict=True)),
        lines=lines,
    )


def make_text(generator: random.Random) -> str:
    words = []
    for _ in range(generator.randint(1, 400)):
        alphabet = generator.choice(ALPHABETS)
        words.append("".join(generator.choice(alphabet) for _ in range(generator.randint(1, 30))))
        words.append(generator.choice(["", " ", " ", "\n", "\n\n", ". "]))
    return "".join(words)


@pytest.mark.parametrize("seed", range(40))
def test_no_text_is_lost_and_offsets_are_exact(seed: int) -> None:
    generator = random.Random(seed)
    text = make_text(generator)
    cuts = sorted(generator.sample(range(1, len(text)), min(len(text) - 1, generator.randint(0, 8))))
    headings = [("A",), ("A", "B"), ("C",), ()]
    document = make_document(text, (0, ()), *[(cut, generator.choice(headings)) for cut in cuts])
    size = generator.choice([20, 100, 500])
    chunks = split(document, size=size)
    assert [chunk.index for chunk in chunks] == list(range(len(chunks)))
    covered = bytearray(len(text))
    reached = 0
    for chunk in chunks:
        assert text[chunk.start : chunk.end] == chunk.text
        assert chunk.text.strip()
        assert len(chunk.text) <= 2 * size
        assert chunk.end > reached
        assert chunk.start >= reached
        reached = chunk.end
        covered[chunk.start : chunk.end] = b"\1" * len(chunk.text)
    assert not [text[i] for i in range(len(text)) if not covered[i] and not text[i].isspace()]


def test_long_text_is_split_whole() -> None:
    """Longer than the span that the splitter is given at once, with and without places to cut at."""
    for text in ("word " * 30_000, "x" * 70_000, "A line of text.\n" * 6_000, "A paragraph of text.\n\n" * 5_000):
        chunks = split(make_document(text))
        assert chunks[-1].end == len(text.rstrip())
        assert all(two.start <= one.end + 2 for one, two in pairwise(chunks))


def test_sections_are_not_mixed() -> None:
    one, two = "Rain. " * 40, "Snow. " * 40
    chunks = split(make_document(one + two, (0, ("Rain",)), (len(one), ("Snow",))))
    assert {(c.heading_path, word) for c in chunks for word in c.text.split()} == {
        (("Rain",), "Rain."),
        (("Snow",), "Snow."),
    }


def test_a_heading_without_text_goes_with_its_first_subsection() -> None:
    document = read_document("a.md", b"# Rain\n\n## Buckets\n\n" + b"Buckets hold water. " * 20)
    [chunk] = split(document)
    assert chunk.text.startswith("# Rain\n\n## Buckets\n\nBuckets hold")
    assert chunk.heading_path == ("Rain", "Buckets")


def test_tiny_sisters_share_a_chunk_under_their_parent() -> None:
    document = read_document(
        "a.md", b"# Terms\n\n" + b"Intro. " * 30 + b"\n\n## AWS\n\nStation.\n\n## DAU\n\nUnit.\n\n# Other\n\nEnd."
    )
    assert [(c.heading_path, c.text.splitlines()[0]) for c in split(document)] == [
        (("Terms",), "# Terms"),
        (("Terms",), "## AWS"),
        (("Other",), "# Other"),
    ]


def test_pages_are_not_mixed_and_lines_are_those_of_the_chunk() -> None:
    rows = [f"Line {n} says what the weather was on day {n}." for n in range(40)]
    lines, text = [], ""
    for number, row in enumerate(rows):
        text += ("" if not text else "\n\n" if number % 10 == 0 else "\n") + row
        lines.append(Line(len(text) - len(row), len(text), 1 + number // 10, Box(x=1, y=number, width=50, height=1)))
    chunks = split(make_document(text, lines=tuple(lines)), size=150)
    assert [line for chunk in chunks for line in chunk.lines] == lines
    for chunk in chunks:
        assert {line.page for line in chunk.lines} == {chunk.page}
        assert [text[line.start : line.end] for line in chunk.lines] == chunk.text.split("\n")


def test_a_page_begins_with_the_mark_of_its_first_heading() -> None:
    manual = read_document("ws-400-manual.pdf", (FOLDER / "ws-400-manual.pdf").read_bytes())
    texts = [chunk.text for chunk in split(manual)]
    assert texts[0].startswith("# WS-400 Weather Station")
    assert any(text.startswith("### 2.2 Communication") for text in texts)


def test_tiny_pages_are_not_mixed() -> None:
    box = Box(x=0, y=0, width=1, height=1)
    lines = tuple(Line(n * 5, n * 5 + 3, n + 1, box) for n in range(3))
    chunks = split(make_document("one\n\ntwo\n\n333", lines=lines))
    assert [(chunk.text, chunk.page) for chunk in chunks] == [("one", 1), ("two", 2), ("333", 3)]


def test_every_chunk_of_a_long_line_has_the_line() -> None:
    text = "word " * 60
    line = Line(0, len(text) - 1, 7, Box(x=0, y=0, width=1, height=1))
    chunks = split(make_document(text, lines=(line,)), size=100)
    assert len(chunks) > 2
    assert all(chunk.lines == (line,) for chunk in chunks)


def test_table_rows_are_not_cut() -> None:
    rows = [f"part {n} | {n * 3} euros | stored in the shelf number {n}" for n in range(60)]
    chunks = split(make_document("\n".join(rows)))
    assert len(chunks) > 5
    assert all(row in rows for chunk in chunks for row in chunk.text.split("\n"))


def test_a_cut_table_keeps_its_caption_header_and_label() -> None:
    rows = [f"Part {n} | {n * 3} | {n * 4}" for n in range(30)]
    text = "\n".join(["Stock was as follows (in pieces):", "2023 | 2022", "Shelves", *rows, "Boxes", *rows])
    chunks = split(make_document(text))
    assert len(chunks) > 2
    assert chunks[0].lead == ""
    assert chunks[0].text.startswith("Stock was as follows")
    assert chunks[1].lead == "Stock was as follows (in pieces):\n2023 | 2022\nShelves"
    assert chunks[-1].lead == "Stock was as follows (in pieces):\n2023 | 2022\nBoxes"
    assert len({chunk.content_hash for chunk in chunks}) == len(chunks)


def test_a_caption_is_of_the_tables_own_section() -> None:
    rows = [f"Part {n} | {n * 3} | {n * 4}" for n in range(30)]
    text = "\n".join(["Old note", "Balance", *rows])
    chunks = split(make_document(text, (0, ("Notes",)), (text.index("Balance"), ("Balance",))))
    assert [chunk.lead for chunk in chunks[2:]] == ["Balance"]


def test_prose_has_no_lead() -> None:
    text = "\n\n".join(f"Paragraph {n} ends here: " + "word " * 60 for n in range(9)) + "\n\nOne | 1\n\nThe end."
    assert all(chunk.lead == "" for chunk in split(make_document(text)))


def test_long_paragraphs_are_split_at_sentences() -> None:
    text = " ".join(f"Sentence {n} is here." for n in range(100))
    chunks = split(make_document(text), size=200)
    assert len(chunks) > 5
    assert all(chunk.text.startswith("Sentence") and chunk.text.endswith(".") for chunk in chunks)


def test_long_steps_are_split_at_steps_and_each_part_knows_its_lead_in() -> None:
    steps = [f"{n}. Turn screw {n}.\n\n   ```sh\n   turn {n}\n   ```" for n in range(1, 31)]
    chunks = split(make_document("## Screws\n\nTo open it, do this:\n\n" + "\n\n".join(steps)))
    assert len(chunks) > 2
    assert chunks[0].text.startswith("## Screws\n\nTo open it, do this:\n\n1. Turn screw 1.")
    assert chunks[0].lead == ""
    for chunk in chunks[1:]:
        assert chunk.lead == "To open it, do this:"
        assert chunk.text.lstrip()[0].isdigit()
        assert chunk.text.endswith("```")


def test_what_follows_long_code_is_no_part_of_it() -> None:
    code = "\n".join(f"    print('line {n} of the program')" for n in range(28))
    chunks = split(make_document(f"```python\n{code}\n```\n\nNote: It prints."))
    assert chunks[-2].text.endswith("line 27 of the program')\n```")
    assert (chunks[-1].text, chunks[-1].lead) == ("Note: It prints.", "")


def test_long_code_is_split_at_lines_and_each_part_knows_its_language() -> None:
    code = "\n".join(f"    print('line {n} of the program')" for n in range(60))
    chunks = split(make_document(f"Run this:\n\n```python\n{code}\n```"))
    assert len(chunks) > 2
    assert chunks[0].text.startswith("Run this:\n\n```python\n    print")
    for chunk in chunks[1:]:
        assert chunk.lead == "```python"
        assert chunk.text.startswith("    print")


def test_a_heading_and_a_lead_in_go_with_what_follows() -> None:
    paragraphs = "\n\n".join(["It rains. " * 40] * 2)
    text = f"{paragraphs}\n\n## Snow\n\nIt snows as follows:\n\n" + "- a flake of snow\n" * 24
    chunks = split(make_document(text))
    assert [chunk.text[:8] for chunk in chunks] == ["It rains", "It rains", "## Snow\n"]
    assert "- a flake" in chunks[-1].text


def test_a_short_line_is_not_left_alone() -> None:
    chunks = split(make_document("Maintenance\n" + "The bucket is rinsed. " * 15))
    assert chunks[0].text.startswith("Maintenance\nThe bucket")


def test_equal_hashes_mean_equal_embeddings() -> None:
    one, two = split(make_document("Same text.\n\n" + "x" * 490 + "\n\nSame text.")), split(make_document("Same text."))
    assert one[0].content_hash == two[0].content_hash
    other = split(make_document("Same text.", (0, ("Rain",))))[0]
    assert other.content_hash != one[0].content_hash
    assert len({chunk.content_hash for chunk in one}) == len({chunk.text for chunk in one})
    joined = split(make_document("c", (0, ("a", "b"))))[0], split(make_document("c", (0, ("ab",))))[0]
    assert joined[0].content_hash != joined[1].content_hash


def test_what_is_embedded_says_where_it_stands() -> None:
    assert embedding_text("Manual", ("Rain", "Buckets"), "Rinse.") == "Manual › Rain › Buckets\nRinse."
    assert embedding_text("Manual", ("Manual", "Rain"), "Rinse.") == "Manual › Rain\nRinse."
    assert embedding_text("Manual", (), "Rinse.") == "Manual\nRinse."
    assert embedding_text("Manual", ("Rain",), "3 | 4", "May | June") == "Manual › Rain\nMay | June\n3 | 4"


def test_a_header_of_thousands_of_columns_is_not_repeated_whole() -> None:
    columns = " | ".join(f"column {number}" for number in range(2000))
    table = f"{columns}\n{' | '.join(['---'] * 2000)}\n" + "\n".join(f"row {number} | 1" for number in range(500))
    chunks = split(read_document("wide.md", table.encode()), size=500)
    assert len(columns) > 10 * max(len(chunk.lead) for chunk in chunks)
    assert any(chunk.lead.startswith("column 0 | column 1") for chunk in chunks)
