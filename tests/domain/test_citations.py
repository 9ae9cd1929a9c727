"""Citation markers as models write them, and citations with their position."""

import itertools
import random
import re
from collections.abc import Sequence
from typing import cast

import pytest

from domain.documents import Source, TextLine
from domain.library.citations import cite, cite_by_marker
from domain.profile import CitationStyle
from domain.text.markers import MarkerStream, find_markers, render_marker, strip_markers
from domain.text.snippets import find_snippet, show_snippet
from tests.sources import make_source

IDS = ["aa-1", "bb-2", "cc-3", "dd-4"]
NAMES = {"bb.md": 2, "The b": 2, "3": 4, "x": 1}


def make_snippet(text: str, statements: Sequence[str] = (), limit: int = 200) -> str:
    return show_snippet(text, find_snippet(text, statements, limit))


def run(text: str, style: CitationStyle = "number", cuts: list[int] | None = None) -> str:
    """What a client gets."""
    stream = MarkerStream(IDS, style, NAMES)
    edges = [0, *(cuts or []), len(text)]
    return "".join(stream.feed(text[first:last]) for first, last in itertools.pairwise(edges)) + stream.finish()


@pytest.mark.parametrize(
    ("style", "marker"),
    [("number", "[2]"), ("source", "[Source 2]"), ("citation", "[Citation 2]"), ("chunk", "[cite:bb-2]")],
)
def test_every_style_is_read_and_written(style: CitationStyle, marker: str) -> None:
    assert render_marker(2, "bb-2", style) == marker
    assert [span.numbers for span in find_markers(f"So it is {marker}.", IDS)] == [(2,)]
    for written in ("[2]", "[Source 2]", "[citation 2]", "[cite:bb-2]", "[ 2 ]", "[source: 2]", "[cite: 2]"):
        assert run(f"So {written}.", style) == f"So {marker}."


@pytest.mark.parametrize(
    ("group", "numbers"),
    [
        ("[1, 3]", (1, 3)),
        ("[1 ,3]", (1, 3)),
        ("[1-3]", (1, 2, 3)),
        ("[1–3; 4]", (1, 2, 3, 4)),
        ("[Source 1, 2]", (1, 2)),
        ("[Sources 1 and 3]", (1, 3)),
        ("[Source 1, Source 4]", (1, 4)),
        ("[cite:aa-1, cc-3]", (1, 3)),
        ("[5, 2]", (2,)),
        ("[3-900000000]", (3, 4)),
    ],
)
def test_groups_become_one_marker_per_source(group: str, numbers: tuple[int, ...]) -> None:
    text = f"It is so {group}."
    assert [(text[s.start : s.end], s.numbers) for s in find_markers(text, IDS)] == [(group, numbers)]
    assert run(text) == f"It is so {''.join(f'[{n}]' for n in numbers)}."


@pytest.mark.parametrize("bad", ["[9]", "[0]", "[5,7]", "[2024]", "[Source 12]", "[cite:unknown]", "[^7]"])
def test_a_marker_of_no_source_never_goes_out(bad: str) -> None:
    assert run(f"It is so {bad}. Next {bad} word.") == "It is so. Next word."
    assert find_markers(f"It is so {bad}.", IDS) == []


@pytest.mark.parametrize(
    "text",
    [
        "see [1](https://example.org) and ![2](a.png)",
        "the list `a[1]` and ``b`[2]``",
        "```python\nx = a[1]\n```\n",
        "~~~\n[9]\n~~~\n",
        "an escaped \\[1\\] bracket",
        "Note (2), (see Source 1) and 【注意】",
        "a task [ ] and [x], a note [sic], [TODO 1], fixed [#1234], [[wiki]]",
        "[1\n]",
    ],
)
def test_code_links_and_other_brackets_stay(text: str) -> None:
    assert run(text) == text
    assert find_markers(text, IDS) == []


OTHERS = [
    "【2†source】",
    "【2】",
    "(Source 2)",
    "(sources: 2)",
    "[^2]",
    "[ID:2]",
    "[source_id: 2]",
    '(source number="2")',
    '<source number="2">',
    "<sup>[2]</sup>",
    "[bb.md]",
    "(Source: The b)",
    "[The b, p. 3]",
    "[src-2]",
    "[doc2]",
    "[[2]]",
    "[#2]",
]


@pytest.mark.parametrize("written", [f"so {marker}" for marker in OTHERS])
def test_other_forms_of_markers(written: str) -> None:
    for step in (len(written), 1):
        assert run(written, cuts=list(range(step, len(written), step))) == "so [2]"


def test_a_marker_defines_no_link() -> None:
    assert run("so [1]:\n[1]: /a.md\n [^2]: b\n[9]: c") == "so [1]:\n[1] /a.md\n [2] b\n: c"


def test_a_lone_backtick_does_not_hide_markers() -> None:
    assert run("the ` key [1]\nand [9] so") == "the ` key [1]\nand so"


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("a <b>c</b> <!-- d --> <?e?> [1]", "a \\<b>c\\</b> \\<!-- d --> \\<?e?> [1]"),
        ("<script>alert()</script", "\\<script>alert()\\</script"),
        ("`<b>` ``<i> ` ``\n```html\n<b>\n```\n`<u>", "`<b>` ``<i> ` ``\n```html\n<b>\n```\n`\\<u>"),
        ("<https://a.example/b> <mailto:c@d.example> 3 < 4 <5 a<-b \\<b> <", None),
    ],
)
def test_html_is_escaped_unless_it_is_code(written: str, shown: str | None) -> None:
    for step in (len(written), 1):
        assert run(written, cuts=list(range(step, len(written), step))) == (shown or written)
    assert strip_markers(written).replace(" [1]", "") == (shown or written).replace(" [1]", "")


def test_the_result_does_not_depend_on_how_the_text_is_cut() -> None:
    choice = random.Random(11)
    alphabet = [
        "[", "]", "1", "2", "9", " ", ", ", "-", "Source ", "citation", "cite:", "aa-1", "`", "``", "```", "~~~", "~", "\n",
        "word", "(url)", "and", "\\", "#", ". ", "so", "^", ";", "<", "<b>", "</", ":", "\n```\n", "[1]", "[2, 3]", " [9]", "[[", "]]", "id", "doc", "_", "【", "】", "(", ")", "†source", "bb.md", "The b", "source:", "<source", "number=", '"', "<sup>", "</sup>", "<sup>[2]</s",
    ]  # fmt: skip
    for _ in range(4000):
        text = "".join(choice.choices(alphabet, k=choice.randint(1, 25)))
        cuts = sorted(choice.choices(range(len(text) + 1), k=choice.randint(0, 12)))
        whole = run(text, "source")
        assert run(text, "source", cuts) == whole, text


def test_what_is_held_back_is_bounded() -> None:
    for start in (" [1", "`code", "[cite:"):
        stream = MarkerStream(IDS, "number")
        stream.feed(start)
        assert "".join(stream.feed(start[-1]) for _ in range(400))


def test_a_quotation_loses_what_reads_as_a_marker() -> None:
    assert strip_markers("Built in 1990[3] and sold [4, 5].") == "Built in 1990 and sold."


def test_a_snippet_ends_at_a_sentence_where_it_can() -> None:
    first = "The warranty of the device lasts for twenty-four months from the date of purchase by the customer."
    assert make_snippet(f"{first} {'More text follows here. ' * 20}").startswith(first)
    assert make_snippet(f"{first} {'Word ' * 60}", limit=120) == f"{first} …"
    cut = make_snippet("word " * 100, limit=50)
    assert cut.endswith("word …")
    assert len(cut) <= 50
    assert make_snippet("short") == "short"
    assert 180 < len(make_snippet("x" * 500)) <= 200


FILLER = "The device is sold in boxes of cardboard. "
WARRANTY = "The warranty lasts for 36 months."
CLAIMS = "Claims are handled by Petra Lindqvist."


def test_a_snippet_holds_what_statements_rest_on() -> None:
    text = f"{FILLER * 9}{WARRANTY} {FILLER * 9}{CLAIMS} {FILLER * 9}"
    assert WARRANTY not in make_snippet(text)
    one = make_snippet(text, ["You have a warranty of 36 months."])
    assert WARRANTY in one
    assert one.startswith(f"… {FILLER}")
    assert one.endswith("cardboard. …")
    assert 150 < len(one) <= 200
    both = make_snippet(text, ["Petra Lindqvist handles claims.", "It lasts 36 months.", "Unheard of."])
    assert both.index(WARRANTY) < both.index(" … ") < both.index(CLAIMS)
    assert len(both) <= 200
    assert make_snippet(text, ["Unheard of."]) == make_snippet(text)
    assert make_snippet(f"{WARRANTY} {FILLER * 9}", ["36 months"]).startswith(WARRANTY)


def test_a_snippet_of_a_sentence_that_is_too_long_holds_the_words_that_were_meant() -> None:
    words = "alpha " * 60 + "the warranty is 36 months " + "omega " * 60
    cut = make_snippet(words, ["A warranty of 36 months."])
    assert re.fullmatch(r"… (alpha )+the warranty is 36 months( omega)+ …", cut)
    assert 190 < len(cut) <= 200
    assert make_snippet(words).startswith("alpha alpha")


def line(start: int, end: int, page: int, y: float) -> TextLine:
    return TextLine(start=start, end=end, page=page, box={"x": 10.0, "y": y, "width": 30.0 + y, "height": 2.0})


SOURCE = Source(
    number=3,
    chunk_id="cc-3",
    chunk_index=7,
    document_id="d",
    title="Manual",
    heading_path=["Care"],
    text="First line here.\nSecond line.\nThird one.",
    start=100,
    end=140,
    page=1,
    lines=[line(100, 116, 1, 10), line(117, 129, 1, 14), line(130, 140, 2, 5)],
    score=0.9,
    dense=0.5,
    lexical=None,
)


@pytest.mark.parametrize(
    ("spans", "text", "page"),
    [([], SOURCE["text"], 1), ([(117, 129)], "Second line.", 1), ([(130, 140)], "Third one.", 2)],
)
def test_a_citation_of_a_span_has_the_place_of_that_span(spans: list[tuple[int, int]], text: str, page: int) -> None:
    citation = cite(SOURCE, spans) if spans else cite(SOURCE)
    start, end = (spans or [(100, 140)])[0]
    assert (citation["marker"], citation["text"], citation["page"]) == (3, text, page)
    assert (citation["start"], citation["end"]) == (start, end)


def test_a_citation_has_a_box_for_each_line_of_what_it_quotes() -> None:
    assert cite(SOURCE, [(106, 135)])["boxes"] == [
        {"page": 1, "x": 25.0, "y": 10.0, "width": 25.0, "height": 2.0},
        {"page": 1, "x": 10.0, "y": 14.0, "width": 44.0, "height": 2.0},
        {"page": 2, "x": 10.0, "y": 5.0, "width": 17.5, "height": 2.0},
    ]
    # Of a whole source, what its snippet shows: the second line is left out.
    long = {**SOURCE, "text": "First line is here.\n" + "Others are of no use. " * 20 + "\nThe last one.", "end": 574}
    long["lines"] = [line(100, 119, 1, 10), line(120, 560, 1, 14), line(561, 574, 2, 5)]
    boxes = cite(cast(Source, long), statements=["The first line is here.", "It is the last one."])["boxes"]
    assert [(box["page"], box["y"]) for box in boxes] == [(1, 10), (1, 14), (1, 14), (2, 5)]
    assert sum(box["width"] for box in boxes if box["y"] == 14.0) < 44.0 / 2


def test_a_citation_has_the_boxes_and_the_path_that_its_source_has() -> None:
    citation = cite({**SOURCE, "lines": [], "page": None, "source": "hr/manual.md"}, [(100, 116)])
    assert (citation["page"], citation["boxes"], citation["source"]) == (None, [], "hr/manual.md")
    assert "source" not in cite(SOURCE)


def test_a_line_that_only_borders_on_a_span_is_not_touched() -> None:
    def line(start: int, x: float) -> TextLine:
        return {"start": start, "end": start + 10, "page": 1, "box": {"x": x, "y": x, "width": 1.0, "height": 1.0}}

    source = make_source("a" * 30)
    source["lines"] = [line(0, 0.0), line(10, 5.0), line(20, 9.0)]
    assert cite(source, [(10, 20)])["boxes"] == [{"page": 1, "x": 5.0, "y": 5.0, "width": 1.0, "height": 1.0}]


def test_each_marker_knows_what_it_rests_on() -> None:
    text = "It has a  warranty of 36 months. Masts are blue. Floats cost 35 euros each."
    first, second = make_source(text, start=100), make_source("Red.", number=2)
    whole = [cite(first, [(100, 175)]), cite(second)]
    quoted = "It has a warranty of 36 months. [1]\n\n| part | price |\n|---|---|\n| x | Red. [2] |\n\nFloats cost 35 euros each. [1]"
    one, other = cite_by_marker(quoted, whole, [first, second])
    assert [text[p["start"] - 100 : p["end"] - 100] for p in one["passages"]] == [
        "It has a  warranty of 36 months.", "Floats cost 35 euros each."
    ]  # fmt: skip
    assert other == whole[1]
    # Said in other words, by a long source: the sentence that shares most.
    longer = make_source(f"{text} {'Nothing happens here. ' * 20}The lid closes with a key.", number=1)
    written = cite_by_marker("A key closes it [1]. The guarantee is 36 months [1].", [cite(longer)], [longer])
    assert ["key" in p["text"] for p in written[0]["passages"]] == [True, False]
    # Markers that rest on the same need no telling apart, nor does code.
    same = cite_by_marker("Masts are blue [1]. Masts are blue [1].\n```\n[1]\n```", whole[:1], [first])
    assert same == whole[:1]


def test_what_can_be_no_marker_is_not_held_back() -> None:
    for text in ("[a", "[1/", "[ sea", "[sourcex", "[\n"):
        stream = MarkerStream(IDS, "number")
        assert stream.feed(text) == text
    for text in ("[", "[1", "[ 1 -", "[^", "[^1", "[so", "[SO", "[source", "[source 1, so", "[Cite:a", "[1 AND 2"):
        stream = MarkerStream(IDS, "number")
        assert stream.feed(text) == ""


def test_the_marker_of_a_code_block_is_left_alone() -> None:
    assert run("x\n```\n[1] [9]\n```\ny [1] [9]", "source") == "x\n```\n[1] [9]\n```\ny [Source 1]"
    assert run("x\n~~~ a\n[1] [9]\n```\n~~~~\ny [1] [9]", "source") == ("x\n~~~ a\n[1] [9]\n```\n~~~~\ny [Source 1]")
