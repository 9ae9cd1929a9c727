"""Tells whether a passage can answer a question at all: it has to have the names that the question gives,
and something of the kind that it asks for."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Literal

from domain.documents import name_place
from domain.ports.embedding import Vector
from domain.text.blocks import find_item
from domain.text.languages import detect_language
from domain.text.question import split_carried
from nodes.reading.phrases import read_phrases
from nodes.reading.units import Unit

Fit = Literal["none", "open", "figure"]
"""Whether a quote can answer: not; perhaps; it has the figure that is asked for."""

_WORD = re.compile(r"(?<![\w-])--?[^\W\d_][\w-]*|\w+(?:(?:::|[-.+/:])\w+)*")
_NAME = re.compile(
    r"--|\w+_\w|.*::|.*[a-z]{2}[A-Z][a-z]{2}"  # an option, a setting, a camelCase name
    r"|\d+(?:\.\d+)+$|(?:1[5-9]|20)\d\d$"  # a version, a year
    r"|(?=.*\d)(?!\d+[^\W\d_]{1,3}$).*[^\W\d]"  # a code, but no amount with its unit, such as 10m
)
_DATE = re.compile(r"\d{4}-\d\d(?:-\d\d)?$")
_FIGURE = re.compile(r"(?<![\w.-])v?\d[\d.,]*|(?<=\d-)\d+")


@lru_cache(maxsize=256)
def _list_names(question: str) -> tuple[re.Pattern[str], ...]:
    """Return a pattern for each identifier, version and year of the question. A date may be written otherwise, so it
    counts as its year."""
    words = (word[:4] if _DATE.match(word) else word for word in _WORD.findall(question))
    names = dict.fromkeys(word.casefold() for word in words if _NAME.match(word))
    return tuple(
        re.compile(rf"(?<!\w)(?<!\d\.){re.escape(name)}(?!\w|\.\d{'|-' * (name[0] == '-')})") for name in names
    )


def share_names(question: str, text: str) -> float:
    """Return the share of the identifiers, versions and years of the question that the text has; 1 without any."""
    names, folded = _list_names(question), text.casefold()
    return sum(name.search(folded) is not None for name in names) / len(names) if names else 1.0


def read_whole(unit: Unit) -> str:
    """Return what a unit says, with the names of its place."""
    source = unit.source
    path = name_place(source["title"], source["heading_path"])
    return "\n".join((unit.whole, *unit.context, path, unit.section, source.get("source", "")))


def has_figure(question: str, text: str) -> bool:
    """Return True where the text has a figure that the question has not."""
    own = _FIGURE.findall(question)
    return any(figure not in own for figure in _FIGURE.findall(text, find_item(text)))


def judge_fit(question: str, quoted: Sequence[Unit], shares: Vector) -> Fit:
    """Return "none" where the best of the units lacks a name of the question, or they have no figure but those of a
    question that asks for a number or a time; "figure" where they have one."""
    asked, _ = split_carried(question)
    if share_names(question, read_whole(quoted[int(shares.argmax())])) < 1:
        return "none"
    phrases = read_phrases(detect_language(asked) or "en", "questions")
    if not phrases["number"].search(asked):
        return "open"
    said, told = (" ".join(texts) for texts in zip(*((unit.text, unit.introduction) for unit in quoted), strict=True))
    if _has_amount(asked, said, phrases):
        return "figure"
    # A lead-in is quoted with its item, and says a figure less surely; a header says none of its row.
    return "open" if quoted[0].kind != "table" and _has_amount(asked, told, phrases) else "none"


def _has_amount(asked: str, said: str, phrases: Mapping[str, re.Pattern[str]]) -> bool:
    return has_figure(asked, said) or any(phrases[name].search(said) for name in ("numeral", "time"))
