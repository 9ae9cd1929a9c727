"""What a model's prose cites, without a model."""

from typing import Any

from nodes.writing import AnswerWriter, Prose
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
