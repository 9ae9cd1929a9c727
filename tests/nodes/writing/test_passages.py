"""Passages that are shown where no answer is sure."""

import pytest

from domain.ports.judgement import Quote
from nodes.wording.notices import read_catalogue
from nodes.writing.passages import show_passages
from nodes.writing.stream import AnswerWriter, discard
from tests.sources import make_source


def test_a_passage_is_plain_text_with_its_addresses_and_the_words_of_the_question_marked() -> None:
    text = "- Ask [the *help* desk](https://example.org/desk) ![logo](logo.png) by mail to help@example.org."
    writer = AnswerWriter(discard)
    source = make_source(text, number=1, score=1.0)
    show_passages(
        writer, "mail of the help desk", [Quote(1, 0, len(text), text)], [source], [], read_catalogue("en"), "number"
    )
    assert "Ask the **help** **desk** logo by **mail** to help@example.org." in writer.text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Run jq '.[] | select(.a >= 2)' *.txt", "Run jq '.[] | select(.a >= 2)' \\*.txt"),
        ("Set `log_type <all>` or **log_type** to [x](https://a.example)", "Set `log_type <all>` or **log_type** to x"),
        ("PostUp = wg set %i private-key <(pass a_b)", "PostUp = wg set %i private-key <(pass a_b)"),
        ("4. Set log_type", "4. Set **log_type**"),
        ("Ask [us](https://a.example/b(c(d)))", "Ask [us\\](https://a.example/b(c(d)))"),
        ("```sh\nlog_type --file <name>\n```", "**log_type** --file \\<name>"),
    ],
)
def test_code_in_a_passage_stays_as_it_is(text: str, shown: str) -> None:
    writer = AnswerWriter(discard)
    quote, source = Quote(1, 0, len(text), text), make_source(text, number=1, score=1.0)
    show_passages(writer, "what is log_type", [quote], [source], [], read_catalogue("en"), "number")
    assert writer.text.splitlines()[-1].strip() == shown


def test_rows_stand_below_the_names_of_their_columns() -> None:
    text = "| arrival | 14 euros\\|day |\n| stay |"
    writer = AnswerWriter(discard)
    source = make_source(text, number=1, score=1.0)
    quote = Quote(1, 0, len(text), text, lead="We pay:\n\n| Absence | *Allowance* |\n| --- | ---: |")
    without_header = Quote(1, 0, len(text), text)
    wording = read_catalogue("en")
    framing = show_passages(writer, "pay for arrival", [quote, without_header], [source], [], wording, "number")
    rows = "   **arrival** | 14 euros\\|day\n   stay |"
    assert f"   We pay:\n   \n   Absence | Allowance\n   --- | ---\n{rows}" in writer.text
    assert "   arrival | 14 euros\\|day\n   --- | ---\n   stay |" in writer.text
    assert (framing["opening"], framing["closing"]) == (len(wording.passages.opening), 0)
