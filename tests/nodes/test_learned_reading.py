"""A reader's say in how sure the answer is."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from domain.errors import EmbedderUnavailable
from nodes.grade.local import Signs, estimate_confidence
from nodes.reading.learned import WINDOW, WINDOWS, choose_windows, read_odds
from nodes.reading.units import split_units
from tests.sources import make_source


class Reader:
    """Takes texts with the word for those that answer."""

    name = "reader"

    def __init__(self, word: str = "Rye", probability: float = 0.8) -> None:
        self.word, self.probability = word, probability
        self.texts: list[str] = []

    async def read(self, question: str, texts: Sequence[str]) -> list[float]:
        self.texts += texts
        return [self.probability if self.word in text else 0.1 for text in texts]


class NoReader(Reader):
    async def read(self, question: str, texts: Sequence[str]) -> list[float]:
        raise EmbedderUnavailable("The reader failed.")


SOURCES = [
    make_source("Bread is baked. It rests for an hour before that."),
    make_source("Name | Price\n--- | ---\nRye | 3\nOat | 4", number=2, title="Prices"),
]
UNITS = [unit for source in SOURCES for unit in split_units(source)]
PROMISE = np.array([0.1, 0.6, 0.2, 0.1], dtype=np.float32)


async def test_the_best_passage_decides() -> None:
    reader = Reader()
    assert await read_odds("How long?", UNITS, PROMISE, reader) == pytest.approx(math.log(4), abs=1e-4)
    assert len(reader.texts) == 2


async def test_nothing_more_is_read_once_a_passage_surely_answers() -> None:
    first, reader = "It rests", Reader("It rests", 0.9)
    assert await read_odds("How long?", UNITS, PROMISE, reader) == pytest.approx(math.log(9), abs=1e-4)
    [text] = reader.texts
    assert first in text


async def test_passages_are_read_under_their_title_and_header() -> None:
    reader = Reader()
    await read_odds("What is the price of rye?", UNITS, PROMISE, reader)
    assert reader.texts[0].endswith("\nBread is baked.\nIt rests for an hour before that.")
    assert reader.texts[1] == "Prices\nName | Price\n--- | ---\nRye | 3\nOat | 4"


async def test_a_list_is_read_under_its_lead_in() -> None:
    reader = Reader()
    units = split_units(make_source("For rye take:\n\n- flour\n- water", title="Rye"))
    await read_odds("What is rye made of?", units, np.array([0.5, 0.5], dtype=np.float32), reader)
    assert reader.texts == ["Rye\nFor rye take:\n- flour\n- water"]


@pytest.mark.parametrize("question", ["How do I bake rye?", "Does rye rest?", "I have oat, is it baked?"])
async def test_questions_that_no_few_words_answer_are_left_to_the_rules(question: str) -> None:
    assert await read_odds(question, UNITS, PROMISE, Reader()) is None


async def test_without_a_reader_or_in_another_language_the_rules_decide() -> None:
    assert await read_odds("How long?", UNITS, PROMISE, NoReader()) is None
    assert await read_odds("How long?", [], PROMISE[:0], Reader()) is None
    german = split_units(make_source("Für Brötchen benötigt man ungefähr fünf Stunden. Danach kühlen sie völlig aus."))
    assert await read_odds("Wie lange?", german, np.ones(len(german), dtype=np.float32), Reader()) is None


def test_windows_grow_round_the_most_promising_units() -> None:
    text = " ".join(f"Sentence number {n} tells a little about the bakery." for n in range(300))
    units = split_units(make_source(text))
    promise = np.zeros(len(units), dtype=np.float32)
    promise[[200, 50, 51]] = 3, 2, 1
    windows = choose_windows(units, promise)
    assert len(windows) == WINDOWS
    assert windows[0][0] < 200 < windows[0][1]
    assert windows[1][0] < 50 < 51 < windows[1][1]
    for first, last in windows:
        assert units[last].end - units[first].start <= WINDOW + last - first
    taken = [n for first, last in windows for n in range(first, last + 1)]
    assert len(taken) == len(set(taken))


def test_what_the_reader_says_moves_the_confidence() -> None:
    signs = Signs(merit=5.0, covered=0.8, similarity=0.6)
    sure, unsure = (estimate_confidence(replace(signs, answered=odds)) for odds in (3.0, -3.0))
    assert sure > estimate_confidence(signs) > unsure
