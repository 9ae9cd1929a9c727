"""Tells from its wording what a question asks for. The words are in `nodes/local/data/LANGUAGE/questions.toml`."""

import re
from dataclasses import dataclass

from domain.text.languages import LANGUAGES, Language, fold, read_words
from nodes.local.phrases import read_questions

_SEVERAL = ("steps", "list", "comparison", "parts")
_WORD = re.compile(r"[^\W\d_]+")


@dataclass(frozen=True, slots=True)
class Asked:
    """What a question asks for."""

    several: bool
    """True for steps, a list, a comparison or several parts, whose answers are long."""
    amount: bool
    """True for an amount, a date or a span of time."""


def read_question(question: str) -> Asked:
    """Return what a question asks for, by the words of its language."""
    patterns = read_questions(guess_language(question))
    return Asked(
        several=any(patterns[name].search(question) for name in _SEVERAL),
        amount=patterns["amount"].search(question) is not None,
    )


def guess_language(question: str) -> Language:
    """Return the language with the most function words in the question; English where none has more."""
    words = [fold(word) for word in _WORD.findall(question)]
    return max(LANGUAGES, key=lambda each: sum(word in read_words(each).stop_words for word in words))
