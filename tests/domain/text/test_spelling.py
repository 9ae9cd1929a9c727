"""Correcting the misspelt words of a question."""

from collections.abc import Sequence

import pytest

from domain.text.spelling import correct

MEANT = {"fakle": "falke", "waranty": "warranty", "batery": "battery", "calib": "calibration"}


class Vocabulary:
    def __init__(self) -> None:
        self.asked: list[tuple[list[str], str | None]] = []

    async def suggest(self, words: Sequence[str], unfinished: str | None) -> dict[str, str]:
        self.asked.append((list(words), unfinished))
        return {word: MEANT[word] for word in words if word in MEANT and (word != "calib" or unfinished == word)}


@pytest.mark.parametrize(
    ("query", "corrected"),
    [
        ("How long is the waranty of the Fakle?", "How long is the warranty of the Falke?"),
        ("waranty WARANTY wARANTY wAranty Waranty", "warranty WARANTY wARANTY wAranty Warranty"),
        ("the Fakle's batery, please", "the Falke's battery, please"),
        ("“waranty”", "“warranty”"),
        ("when to calib", "when to calibration"),
        ("when to calib?", "when to calib?"),
        ("calib now", "calib now"),
        # Parts of codes, names with joints, addresses and contractions.
        ("batery-2 x_waranty fakle.de me@fakle batery4 waranty/fakle", "batery-2 x_waranty fakle.de me@fakle batery4 waranty/fakle"),
        ("What is it?", "What is it?"),
        ("", ""),
        ("?!", "?!"),
    ],
)  # fmt: skip
async def test_words_are_replaced_where_they_stand(query: str, corrected: str) -> None:
    assert await correct([query], Vocabulary().suggest) == [corrected]


async def test_words_are_asked_for_once_and_levelled() -> None:
    vocabulary = Vocabulary()
    query = "Which Café sells waranty? A café. IL-6 and MBTA and the WARRANTY of covid19 readr"
    texts = await correct([query, "waranty readr fakle"], vocabulary.suggest)
    assert texts == [query.replace("waranty", "warranty"), "warranty readr falke"]
    assert vocabulary.asked == [(["cafe", "sells", "waranty", "readr", "fakle"], "readr")]


async def test_what_holds_no_word_asks_nothing() -> None:
    vocabulary = Vocabulary()
    await correct(["IL-6 of what?"], vocabulary.suggest)
    assert vocabulary.asked == []
