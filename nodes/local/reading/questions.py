"""Tells from its wording what a question asks for. The words are in `nodes/local/data/LANGUAGE/questions.toml`."""

from dataclasses import dataclass

from domain.text.languages import detect_language
from nodes.local.phrases import read_phrases

_SEVERAL = ("steps", "list", "comparison", "parts")


@dataclass(frozen=True, slots=True)
class Asked:
    """What a question asks for."""

    several: bool
    """True for steps, a list, a comparison or several parts, whose answers are long."""
    amount: bool
    """True for an amount, a date or a span of time."""
    fact: bool
    """True where a few words of a text may answer: not for steps, and not for yes or no."""


def read_question(question: str) -> Asked:
    """Return what a question asks for, by the words of its language."""
    patterns = read_phrases(detect_language(question) or "en", "questions")
    return Asked(
        several=any(patterns[name].search(question) for name in _SEVERAL),
        amount=patterns["amount"].search(question) is not None,
        fact=not any(patterns[name].search(question) for name in ("steps", "yes_no")),
    )
