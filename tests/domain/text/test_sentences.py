"""Sentences of prose, lists, tables and wrapped lines."""

import random

import pytest

from domain.text.sentences import split_sentences


def pieces(text: str) -> list[str]:
    return [text[start:end] for start, end in split_sentences(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It works. It is fast.", ["It works.", "It is fast."]),
        ("Dr. J. Smith and Mr. Brown left at 5 p.m. yesterday.", ["Dr. J. Smith and Mr. Brown left at 5 p.m. yesterday."]),
        ("It costs 3.50 euros. See Fig. 3 and No. 5, e.g. today.", ["It costs 3.50 euros.", "See Fig. 3 and No. 5, e.g. today."]),
        ("He lives in the U.S. The rest do not.", ["He lives in the U.S.", "The rest do not."]),
        ("He works for the U.S. Army now.", ["He works for the U.S. Army now."]),
        ("2.1. The fee is due. It is low.", ["2.1. The fee is due.", "It is low."]),
        ("**2.1**. Fees are due at 2.1. It is low.", ["**2.1**. Fees are due at 2.1.", "It is low."]),
        ("The answer is no. He left.", ["The answer is no.", "He left."]),
        ('She said "It works." He nodded.', ['She said "It works."', "He nodded."]),
        ("Why? Because! Well… Good.", ["Why?", "Because!", "Well… Good."]),
        ("“Stop!” he cried.", ["“Stop!” he cried."]),
        ("他来了。我走了！好", ["他来了。", "我走了！", "好"]),
        ("It is slow. Old ones did not offer zstd.:", ["It is slow.", "Old ones did not offer zstd.:"]),
        ("the first result . the second result .", ["the first result .", "the second result ."]),
        ("Er kostet dich 37 Euro [12]. 22,80 Euro gelten sonst.", ["Er kostet dich 37 Euro [12].", "22,80 Euro gelten sonst."]),
        ("Es gilt bis zum 24. Lebensjahr. Danach nicht.", ["Es gilt bis zum 24. Lebensjahr.", "Danach nicht."]),
        ("It is open to 5 p.m. Monday to Friday. It opens at 9 a.m. The rest is closed.", ["It is open to 5 p.m. Monday to Friday.", "It opens at 9 a.m.", "The rest is closed."]),
        ("Er wohnt in Haus 24. Das ist groß.", ["Er wohnt in Haus 24.", "Das ist groß."]),
        ("Das gilt seit 1996. Kinder sind frei.", ["Das gilt seit 1996.", "Kinder sind frei."]),
        ("**Rule 1.** Ask first. __Then__ *go.* ~~Or not.~~ So **it.**", ["**Rule 1.**", "Ask first.", "__Then__ *go.*", "~~Or not.~~", "So **it.**"]),
        ("It is so.[1] That too [2]. And this. [3] End.", ["It is so.[1]", "That too [2].", "And this. [3]", "End."]),
    ],
)  # fmt: skip
def test_prose(text: str, expected: list[str]) -> None:
    assert pieces(text) == expected


def test_headings_items_and_rows_are_sentences_of_their_own() -> None:
    text = "# Warranty\nIt lasts 24 months.\n\n- one\n- two. Really.\n1. first\n2. second\n\n| a | b |\n|---|---|\n| 1 | 2 |"
    lines = text.replace("\n\n", "\n").replace("two. Really.", "two.\nReally.").split("\n")
    assert pieces(text) == lines


def test_a_row_is_one_sentence() -> None:
    text = "Light | Meaning | Remedy\nred | Fault. Twice. | Call us. Wait.\noff | All is well\nsteady | none\nIt ends here. Yes."
    assert pieces(text) == [*text.split("\n")[:4], "It ends here.", "Yes."]


def test_a_line_broken_by_the_margin_goes_on_and_a_short_line_does_not() -> None:
    wrapped = (
        "Comparable sales increased in the thirteen-week period and in the fifty-two-week\n"
        "Period ended in January because more customers came back to the stores again."
    )
    assert len(pieces(wrapped)) == 1
    assert pieces("Total revenue\nOperating income\n5,000") == ["Total revenue", "Operating income", "5,000"]


def test_what_is_kept_together_moves_no_sentence() -> None:
    assert pieces("Call `a. b. c()` first. Then stop.") == ["Call `a. b. c()` first.", "Then stop."]
    assert pieces("It takes approx. two days [1. 2]. Then stop.") == ["It takes approx. two days [1. 2].", "Then stop."]


def test_only_white_space_lies_outside() -> None:
    choice = random.Random(7)
    alphabet = ["word", "Word", " ", "  ", "\n", "\n\n", "- ", "1. ", "\t", "e.g.", "U.S.", "[1]", *'.!?|"…。#']
    for _ in range(3000):
        text = "".join(choice.choices(alphabet, k=choice.randint(0, 40)))
        position = 0
        for start, end in split_sentences(text):
            assert position <= start < end <= len(text)
            assert not text[position:start].strip()
            assert text[start:end] == text[start:end].strip()
            position = end
        assert not text[position:].strip()


@pytest.mark.parametrize("word", ["etc", "inc", "ltd", "co", "corp", "al"])
def test_some_abbreviations_may_close_a_sentence(word: str) -> None:
    assert pieces(f"It was made by Acme, {word}. The price is low.") == [
        f"It was made by Acme, {word}.",
        "The price is low.",
    ]
    assert pieces(f"It was made by Acme {word}. Lindqvist alone.") == [f"It was made by Acme {word}. Lindqvist alone."]


@pytest.mark.parametrize("text", ["He met J. Smith there.", "It is of the U.S. Navy."])
def test_an_initial_closes_nothing_before_a_name(text: str) -> None:
    assert len(pieces(text)) == 1


def test_an_initial_closes_a_sentence_before_a_word_that_begins_one() -> None:
    assert pieces("It is made in the U.S. The price is low.") == ["It is made in the U.S.", "The price is low."]
    assert pieces("This is plan B. The price is low.") == ["This is plan B.", "The price is low."]
    # A whole word in capitals is no initial, nor is a longer one with full stops.
    assert len(pieces("It was sold by NASA. Lindqvist bought it.")) == 2
    assert len(pieces("See www.x. Lindqvist wrote it.")) == 1
    assert len(pieces("See example.com. Lindqvist wrote it.")) == 2
