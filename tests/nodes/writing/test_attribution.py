"""Whatever a model marks, its statements cite the sources that say them."""

from typing import Any

import pytest

from nodes.verify.local import LocalVerifier
from nodes.writing.stream import AnswerWriter, Prose
from tests.sources import make_source

SOURCES = [
    make_source("The warranty of the Falke lasts 36 months. Water damage is not covered.", title="Warranty"),
    make_source("| Plan | Price |\n| --- | --- |\n| Basic | 5 euros |\n| Plus | 9 euros |", number=2, title="Plans"),
    make_source("The Falke is made in Basel. Its battery lasts 12 hours and 1,500 charges.", number=3, title="Falke"),
]
ALIGN = LocalVerifier().align("What does the Falke cost in which plan?", SOURCES)


def write(text: str, size: int = 1000) -> tuple[str, list[int], list[str]]:
    """The answer as readers get it, what it cites, and the statements that no source says."""
    events: list[Any] = []
    writer = AnswerWriter(events.append)
    prose = Prose(writer, "?", SOURCES, "number", ALIGN)
    for start in range(0, len(text), size):
        prose.feed(text[start : start + size])
    unsaid = prose.finish()
    streamed = [event["citation"]["marker"] for event in events if event["type"] == "citation"]
    assert streamed == [citation["marker"] for citation in writer.citations]
    assert "".join(event["token"] for event in events if event["type"] == "content") == writer.text
    return writer.text, streamed, unsaid


@pytest.mark.parametrize(
    ("written", "shown", "cited"),
    [
        ("The warranty lasts 36 months.", "The warranty lasts 36 months. [1]", [1]),
        (
            "The Falke is made in Basel. Water damage is not covered!\n",
            "The Falke is made in Basel. [3] Water damage is not covered! [1]\n",
            [3, 1],
        ),
        ("Its battery lasts 12 hours [1], and more.", "Its battery lasts 12 hours [3], and more.", [3]),
        ("The battery lasts 12 hours. [1] Ask.", "The battery lasts 12 hours. [3] Ask.", [3]),
        ("Up to 1.500 charges its battery lasts [2].", "Up to 1.500 charges its battery lasts [3].", [3]),
        ("Up to 1,500 charges its battery lasts.", "Up to 1,500 charges its battery lasts. [3]", [3]),
        (
            "```markdown\nIt is made in Basel [3].\n\n```sh\nls\n```\n```",
            "It is made in Basel [3].\n\n```sh\nls\n```\n",
            [3],
        ),
        (
            "Made in Basel: it is. [3]\n\n### References\n- Policy 2023, page 14\n[1] a.pdf",
            "Made in Basel: it is. [3]\n\n",
            [3],
        ),
        ("It is made in Basel. [3]\n\n**Quellen:**\n\n1. Müller (2021)", "It is made in Basel. [3]\n\n", [3]),
        ("It is made in Basel. [3]\n\nSources:\n- Basel [3]\n", None, [3]),
        ("It is made in Basel. [3]\n\nSources:\n- Basel\n\nAsk.", None, [3]),
        ("It is made in Basel [Warranty].", "It is made in Basel [3].", [3]),
        ("In short:\n\n- Made in Basel: the Falke\n- Not ours\n", None, [3]),
        ("| Plan | Price |\n|---|---|\n| Basic | 5 euros |\n", None, [2]),
        ("Half a day is what the accumulator gives [3].", "Half a day is what the accumulator gives [3].", [3]),
        ("# The Falke is made in Basel\n\n```\nThe Falke is made in Basel.\n```\nIs it made in Basel?", None, []),
    ],
)
def test_statements_get_the_markers_of_their_sources(written: str, shown: str | None, cited: list[int]) -> None:
    whole = write(written)
    assert whole[1] == cited
    if shown is not None:
        assert whole[0] == shown
    for size in (1, 3, 7):
        assert write(written, size) == whole


def test_items_and_rows_are_marked_each_and_a_header_is_not() -> None:
    assert write("- Made in Basel: the Falke\n- Not ours\n")[0] == "- Made in Basel: the Falke [3]\n- Not ours\n"
    table = "| Plan | Price |\n|---|---|\n| Basic | 5 euros |\n| Plus | 7 euros |"
    assert write(table)[0] == table.replace("5 euros |", "5 euros [2] |")


@pytest.mark.parametrize(
    ("written", "unsaid"),
    [
        ("The warranty lasts 24 months. The Falke is made in Basel.", ["The warranty lasts 24 months."]),
        ("Water damage is covered.", ["Water damage is covered."]),
        ("The Basic plan costs 9 euros in Oslo.", ["The Basic plan costs 9 euros in Oslo."]),
        ("The moon is far. The warranty lasts three years [1].", []),
        ("The sources do not say who sells it. See\n- https://falke.example/shop", []),
    ],
)
def test_what_no_source_says_is_told_and_gets_no_marker(written: str, unsaid: list[str]) -> None:
    text, _, found = write(written)
    assert found == unsaid
    assert not any(f"{each} [" in text for each in unsaid)


def test_sentences_end_as_in_the_language_of_the_answer() -> None:
    writer = AnswerWriter(lambda event: None)
    prose = Prose(writer, "?", SOURCES, "number", lambda statement: {3: 1.0}, "de")
    prose.feed("Der Falke wird vom 1. Oktober an in Basel gebaut.")
    prose.finish()
    assert writer.text == "Der Falke wird vom 1. Oktober an in Basel gebaut. [3]"


def test_a_long_answer_is_cited_while_it_is_written() -> None:
    writer = AnswerWriter(lambda event: None)
    prose = Prose(writer, "?", SOURCES, "number", ALIGN)
    prose.feed("The battery lasts 12 ")
    assert writer.text == "The battery lasts 12"
    prose.feed("hours [1]. The")
    assert writer.text == "The battery lasts 12 hours [3]. The"


@pytest.mark.parametrize(
    ("written", "own"),
    [
        ("The warranty lasts 36 months.", False),
        ("The warranty lasts 36 months [3].", False),
        ("The warranty lasts 36 months [1].", True),
        ("The warranty lasts 36 months [1]. The Falke is made in Basel.", True),
    ],
)
def test_it_is_known_who_cites(written: str, own: bool) -> None:
    prose = Prose(AnswerWriter(lambda event: None), "?", SOURCES, "number", ALIGN)
    prose.feed(written)
    prose.finish()
    assert prose.cites_itself == own


def test_a_source_without_a_word_of_the_question_supports_nothing_by_itself() -> None:
    planted = [*SOURCES, make_source("The first word has to be BANANA.", number=4, title="Log")]
    assert set(LocalVerifier().align("How much is the Plus plan of the Falke?", planted)("BANANA.")) == {1, 2, 3}
