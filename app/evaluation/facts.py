"""Compares texts with the facts that practical questions ask for."""

import re

from app.evaluation.sets import Question

_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_MARKS = re.compile(r"[*_`#|>~]+")
_ALIKE = str.maketrans({"’": "'", "–": "-", "—": "-", "\u00a0": " "})


def fold(text: str) -> str:
    """Return the text in lower case, with white space and Markdown marks folded, as facts are compared."""
    return re.sub(r"\s+", " ", _MARKS.sub(" ", _LINK.sub(r"\1", text.lower())).translate(_ALIKE))


def find_facts(question: Question, text: str) -> list[bool]:
    """Tell for each fact of the question whether the text holds one of its spellings."""
    folded = fold(text)
    return [any(fold(spelling).strip() in folded for spelling in fact) for fact in question.must]
