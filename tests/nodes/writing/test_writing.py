"""What a model's prose cites, without a model."""

from typing import Any

import pytest

from domain.library.citations import cite
from nodes.writing.stream import AnswerWriter, Prose, find_abstention, finish_turn
from tests.sources import make_source

FILLER = "The device is sold in boxes of cardboard. " * 9
WARRANTY = "The warranty lasts for 36 months."
CLAIMS = "Claims are handled by Petra Lindqvist."


def test_a_citation_shows_what_its_statements_rest_on() -> None:
    events: list[Any] = []
    writer = AnswerWriter(events.append)
    sources = [make_source(f"{FILLER}{WARRANTY} {FILLER}{CLAIMS}"), make_source("Short.", number=2)]
    prose = Prose(writer, "What about the warranty?", sources, "number")
    for token in (
        "Here is what I found. The warranty lasts ",
        "36 months [1",
        "]. It is short [2]. ",
        "Petra handles ",
    ):
        prose.feed(token)
    first = [event["citation"] for event in events if event["type"] == "citation"]
    assert [citation["marker"] for citation in first] == [1, 2]
    assert WARRANTY in first[0]["text"]
    assert CLAIMS not in first[0]["text"]
    prose.feed("claims [1].")
    prose.finish()
    assert [citation["marker"] for citation in writer.citations] == [1, 2]
    assert WARRANTY in writer.citations[0]["text"]
    assert CLAIMS in writer.citations[0]["text"]
    assert len([event for event in events if event["type"] == "citation"]) == 2


@pytest.mark.parametrize(
    ("reply", "begun", "ended"),
    [
        ("No answer here.", 15, 15),
        (" No answer here. But", 16, 16),
        ("No answer", None, 0),
        ("No answer ", None, 0),
        ("No answers", 0, 0),
        ("Yes.No answer here.", 0, 0),
        ("", None, 0),
        # Without its full stop it is known at the end.
        ("No answer here", None, 14),
        (" No answer here ", None, 16),
    ],
)
def test_an_abstention_is_recognised_at_the_beginning(reply: str, begun: int | None, ended: int) -> None:
    assert find_abstention(reply, "No answer here.", ended=False) == begun
    assert find_abstention(reply, "No answer here.", ended=True) == ended


def test_what_is_written_is_sent() -> None:
    events: list[Any] = []
    writer = AnswerWriter(events.append)
    for text in ("a", "", "b"):
        writer.write(text)
    writer.cite(cite(make_source("One.")))
    writer.cite(cite(make_source("Other.")))
    assert writer.text == "ab"
    assert events == [
        {"type": "content", "token": "a"},
        {"type": "content", "token": "b"},
        {"type": "citation", "citation": cite(make_source("One."))},
    ]
    writer.correct("why", "c", [])
    assert (writer.text, writer.citations) == ("c", [])
    assert events[-1] == {"type": "correction", "reason": "why", "answer": "c", "citations": []}


def test_links_of_the_question_and_the_sources_stay() -> None:
    writer = AnswerWriter(lambda event: None)
    source = make_source("See https://b.example/x here.", title="At https://c.example", heading="https://d.example")
    prose = Prose(writer, "Is https://a.example good?", [source], "number")
    prose.feed("https://a.example https://b.example/x https://c.example https://d.example ok")
    assert not prose.lost_links
    prose.feed(" https://e.example ok")
    prose.finish()
    assert prose.lost_links
    assert "d.example" in writer.text
    assert "e.example" not in writer.text


def test_a_finished_turn_joins_its_conversation() -> None:
    before: Any = {"run_id": "before", "rests_on": {"earlier": "hash"}}
    state: Any = {
        "run_id": "r", "question": "And it?", "standalone_question": "And the Falke?", "route": "needs_retrieval",
        "turns": [before],
    }  # fmt: skip
    citations = [cite(make_source(text, title=title)) for text, title in (("a", "A"), ("b", "B"), ("c", "A"))]
    assert finish_turn(state, "36 [1].", citations, "answered") == [
        before,
        {
            "run_id": "r", "question": "And it?", "standalone_question": "And the Falke?", "route": "needs_retrieval",
            "answer": "36 [1].", "documents": ["A", "B"], "document_ids": ["d"], "headings": [[]], "outcome": "answered",
            "rests_on": {"d": "", "earlier": "hash"},
        },
    ]  # fmt: skip
