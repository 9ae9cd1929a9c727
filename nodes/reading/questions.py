"""Tells from its wording what a question asks for. The words are in `domain/languages`, in table `questions`."""

from domain.text.languages import detect_language
from nodes.reading.phrases import read_phrases

SEVERAL = ("steps", "list", "comparison", "parts")
"""Kinds of questions whose answers are long."""


def asks_for(question: str, *kinds: str) -> bool:
    """Return True where the wording of the question, in its language, is that of one of the kinds."""
    patterns = read_phrases(detect_language(question) or "en", "questions")
    return any(patterns[kind].search(question) for kind in kinds)
