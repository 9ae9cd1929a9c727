"""Sources get what they were cut from: the rest of a sentence, the head of a table, the source next to them."""

from dataclasses import replace
from typing import Any, cast

import pytest

from app.ingest.chunking import split
from domain.documents import Box, Line, ParsedDocument, Passage, Section, Source
from domain.library.citations import cite
from domain.scope import Scope
from nodes.sources.neighbours import BUDGET, LONGEST, _append, merge_touching, widen, widen_sources


class Shelf:
    """One document's chunks."""

    def __init__(self, text: str, *pages: int) -> None:
        """`pages` say where each page but the first begins."""
        self.text = text
        starts, position = [], 0
        for row in text.splitlines(keepends=True):
            if row.strip():
                page = 1 + sum(begin <= position for begin in pages)
                starts.append(Line(position, position + len(row.rstrip()), page, Box(x=0, y=0, width=9, height=9)))
            position += len(row)
        parsed = ParsedDocument("Title", text, "application/pdf", (Section(0, len(text), ("A",)),), tuple(starts))
        self.passages = [
            Passage(
                f"chunk {c.index}", c.index, "d", "Title", c.text, c.start, c.end, c.heading_path, c.lines, lead=c.lead
            )
            for c in split(parsed)
        ]

    def widen(self, word: str) -> Source:
        return widen(self.find(word)[0], self.passages[::-1])

    def find(self, *words: str) -> list[Source]:
        """For each word, the last chunk that has it, in this order."""
        found = [[p for p in self.passages if word in p.text][-1] for word in words]
        return [
            Source(
                number=n, chunk_id=p.chunk_id, chunk_index=p.chunk_index, document_id="d", title="Title",
                heading_path=list(p.heading_path), text=p.text, start=p.start, end=p.end, page=p.page,
                lines=[{"start": x.start, "end": x.end, "page": x.page, "box": x.box} for x in p.lines],
                score=1 / n, dense=None, lexical=None, **({"lead": p.lead} if p.lead else {}),  # type: ignore[typeddict-item]
            )
            for n, p in enumerate(found, 1)
        ]  # fmt: skip

    def check(self, source: Source) -> None:
        """Offsets are the document's, and the lines are those of the text."""
        assert self.text[source["start"] : source["end"]] == source["text"]
        touched = [line for p in self.passages for line in p.lines if source["start"] < line.end]
        expected = sorted({line.start for line in touched if line.start < source["end"]})
        assert [line["start"] for line in source["lines"]] == expected


def make_table(rows: int) -> str:
    return "\n".join(
        [
            "Stock was as follows (in pieces):",
            "Item | 2023 | 2022",
            *(f"Part {n} | {n * 3} | {n * 4}" for n in range(rows)),
        ]
    )


def test_a_cut_table_gets_its_caption_and_header() -> None:
    shelf = Shelf("The year was quiet. " * 200 + "\n\n" + make_table(60))
    before = shelf.find("Part 45")[0]
    assert "2023" not in before["text"]
    after = shelf.widen("Part 45")
    assert after["text"].startswith("Stock was as follows (in pieces):\nItem | 2023 | 2022\nPart 0 | 0 | 0")
    assert after["text"].endswith("Part 59 | 177 | 236")
    assert (after["chunk_id"], after["page"]) == (before["chunk_id"], 1)
    shelf.check(after)


def test_a_table_too_long_to_be_shown_whole_is_shown_around_the_row() -> None:
    shelf = Shelf(make_table(400))
    assert len(shelf.text) > 2 * LONGEST
    source = shelf.widen("Part 200 ")
    assert "Part 180 |" in source["text"]
    assert "Part 220 |" in source["text"]
    assert len(source["text"]) <= BUDGET
    assert source.get("lead") == "Stock was as follows (in pieces):\nItem | 2023 | 2022"
    assert "lead" not in shelf.widen("Part 0 ")
    shelf.check(source)


def test_a_long_list_is_shown_whole_with_its_lead_in() -> None:
    items = "\n".join(f"{n}. Turn the screw with the number {n} to the left." for n in range(1, 31))
    shelf = Shelf("It is easy. " * 200 + f"\n\nTo open it, do this:\n\n{items}\n\n" + "It is done. " * 200)
    source = shelf.widen("number 30")
    assert source["text"] == f"To open it, do this:\n\n{items}"
    assert len(source["text"]) > BUDGET
    shelf.check(source)


def test_a_source_grows_within_its_section_before_it_goes_beyond() -> None:
    passages, position = [], 0
    for index, (name, length) in enumerate([("Snow", 400), ("Rain", 400), ("Rain", 400), ("Rain", 400), ("Wind", 200)]):
        text = (f"{name} {index} falls. " * 40)[:length].strip()
        path = ("Weather", name)
        passages.append(Passage(f"chunk {index}", index, "d", "Title", text, position, position + len(text), path))
        position += len(text) + 2
    shelf = Shelf("")
    shelf.passages = passages
    shown = shelf.widen("Rain 1")["text"]
    assert "Rain 3" in shown
    assert "Snow" not in shown
    assert "Wind" in shown
    source = shelf.widen("Rain 1")
    place = passages[4].start
    assert cite(source, [(place, place + 6)])["heading_path"] == ["Weather", "Wind"]
    assert cite(source, [(passages[3].start, place)])["heading_path"] == ["Weather", "Rain"]
    passages[4] = replace(passages[4], heading_path=("Elsewhere", "Wind"))
    assert "Wind" not in shelf.widen("Rain 1")["text"]


def test_a_sentence_is_shown_whole() -> None:
    long = "It rained " + "and rained " * 60 + "until noon."
    shelf = Shelf(f"The year was wet. {long} Then the sun came out.")
    for word in ("It rained", "noon"):
        source = shelf.widen(word)
        assert long in source["text"]
        shelf.check(source)


def test_no_text_comes_from_another_page() -> None:
    text = "One | 1\nTwo | 2\n\nThree | 3\nFour | 4"
    shelf = Shelf(text, text.index("Three"))
    assert [p.page for p in shelf.passages] == [1, 2]
    assert shelf.widen("Three") == shelf.find("Three")[0]


async def test_other_places_follow_when_sources_become_one() -> None:
    shelf = Shelf("\n\n".join(f"Paragraph {n}" + " is long." * 40 for n in range(20)))

    class Around:
        async def read_around(self, *_: Any, **__: Any) -> list[Passage]:
            return shelf.passages

    ranked = shelf.find("Paragraph 9", "Paragraph 10 ", "Paragraph 8", "Paragraph 19", "Paragraph 0", "Paragraph 3")
    widened = await widen_sources(ranked, 3, Scope("w"), cast(Any, Around()))
    assert [(s["number"], s["chunk_id"]) for s in widened] == [(1, "chunk 9"), (2, "chunk 19"), (3, "chunk 0")]
    for source in widened:
        shelf.check(source)


async def test_each_found_part_of_a_table_keeps_its_relevance() -> None:
    shelf = Shelf(make_table(60))

    class Around:
        async def read_around(self, *_: Any, **__: Any) -> list[Passage]:
            return shelf.passages

    first, last = shelf.passages[1:3]
    ranked = shelf.find(first.text.split("\n")[0], last.text.split("\n")[-1])
    for source in ranked:
        source["found"] = [{"start": source["start"], "end": source["end"], "score": source["score"]}]
    (table,) = await widen_sources(ranked, 2, Scope("w"), cast(Any, Around()))
    assert [span["score"] for span in table["found"]] == [1, 0.5]


def test_sources_that_touch_become_one_at_the_better_place() -> None:
    shelf = Shelf("\n\n".join(f"Paragraph {n}" + " is long." * 40 for n in range(6)))
    sources = shelf.find("Paragraph 3", "Paragraph 0", "Paragraph 2", "Paragraph 4")
    merged = merge_touching(sources)
    assert [(s["number"], s["chunk_id"], s["score"]) for s in merged] == [(1, "chunk 3", 1.0), (2, "chunk 0", 0.5)]
    assert merged[0]["text"].startswith("Paragraph 2")
    assert merged[0]["text"].rstrip().endswith("is long.")
    assert "Paragraph 4" in merged[0]["text"]
    for source in merged:
        shelf.check(source)


def test_a_source_between_two_others_joins_all_three() -> None:
    shelf = Shelf("\n\n".join(f"Paragraph {n}" + " is long." * 40 for n in range(4)))
    merged = merge_touching(shelf.find("Paragraph 1", "Paragraph 3", "Paragraph 2"))
    assert [(s["number"], s["start"]) for s in merged] == [(1, shelf.find("Paragraph 1")[0]["start"])]
    shelf.check(merged[0])


def test_sources_of_other_pages_sections_or_documents_stay_apart() -> None:
    text = "One page ends here.\n\nAnother page begins."
    shelf = Shelf(text, text.index("Another"))
    sources = shelf.find("One", "Another")
    assert merge_touching(sources) == sources
    for change in ({"document_id": "e"}, {"heading_path": ["B"], "start": sources[0]["end"] + 1, "end": 99}):
        assert len(merge_touching([sources[0], {**sources[0], **change, "number": 2}])) == 2  # type: ignore[typeddict-item]


@pytest.mark.parametrize(
    ("left", "gap", "right", "joined"),
    [
        ("One", -2, "neTwo", "OneTwo"),
        ("One", 0, "Two", "OneTwo"),
        ("One", 1, "Two", "One Two"),
        ("One", 2, "Two", "One\n\nTwo"),
        ("a | b", 1, "c", "a | b\nc"),
        ("a", 1, "b | c", "a\nb | c"),
        ("- a", 1, "- b", "- a\n- b"),
        ("1. a", 1, "   more", "1. a\n   more"),
        ("```sh\na", 1, "b\n```", "```sh\na\nb\n```"),
        ("a | b\nc d", 1, "e f\ng | h", "a | b\nc d e f\ng | h"),
        ("a | b\nc\nd", 1, "e f", "a | b\nc\nd e f"),
        ("x\na b | c", 1, "d", "x\na b | c\nd"),
        ("x", 1, "a b | c\nd", "x\na b | c\nd"),
    ],
)
def test_only_the_length_of_white_space_between_chunks_is_known(left: str, gap: int, right: str, joined: str) -> None:
    assert _append((10, left), (10 + len(left) + gap, right)) == (10, joined)
