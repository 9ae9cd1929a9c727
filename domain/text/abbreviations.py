"""Abbreviations and the words that a text spells them out with."""

import re
from collections.abc import Mapping

_SHORT = r"[A-Z][\w&-]{0,8}[A-Z\d]s?"
_SHORT_IN_BRACKETS = re.compile(rf" \(({_SHORT})\)")
_LONG = re.compile(r"[^()\n.;]{4,100}\Z")
_SHORT_THEN_LONG = re.compile(rf"\b({_SHORT}) \(([^()\n]{{4,100}})\)")
_ASKED = re.compile(rf"\b{_SHORT}\b")

MOST = 5
"""Abbreviations of one question that are looked up."""


def list_abbreviations(question: str) -> list[str]:
    """Return the question's words that look like abbreviations; none of a question in capitals."""
    if question.upper() == question:
        return []
    return list(dict.fromkeys(word.removesuffix("s") for word in _ASKED.findall(question)))[:MOST]


def find_abbreviations(text: str) -> dict[str, str]:
    """Return the abbreviations that the text spells out, long form by short: "mean time between failures (MTBF)", or
    the other way round."""
    # The brackets first: looking for the long form from every character on takes fifty times as long.
    pairs = [
        (match[1], long[0])
        for match in _SHORT_IN_BRACKETS.finditer(text)
        if (long := _LONG.search(text[max(0, match.start() - 100) : match.start()]))
    ]
    pairs += [(short, long) for short, long in _SHORT_THEN_LONG.findall(text)]
    return {short: spelt for short, long in pairs if (spelt := _match_long_form(short.removesuffix("s"), long))}


def add_other_forms(question: str, abbreviations: Mapping[str, str]) -> str:
    """Return the question with the other form added behind each form that it uses."""
    query = question
    for short, long in abbreviations.items():
        has_short = re.search(rf"\b{re.escape(short)}\b", question)
        has_long = re.search(rf"\b{re.escape(long)}\b", question, re.IGNORECASE)
        if has_short and not has_long:
            query = query.replace(short, f"{short} {long}", 1)
        elif has_long and not has_short:
            query = f"{query} {short}"
    return query


def _match_long_form(short: str, text: str) -> str | None:
    """Return the shortest tail of `text` that contains the letters of `short` in order, the first of them at the
    beginning of a word (Schwartz & Hearst, PSB 2003)."""
    position = len(text)
    for number, letter in reversed(list(enumerate(short.lower()))):
        if not letter.isalnum():
            continue
        position = text.lower().rfind(letter, 0, position)
        while number == 0 and position > 0 and text[position - 1].isalnum():
            position = text.lower().rfind(letter, 0, position)
        if position < 0:
            return None
    long = text[position:].strip()
    words = long.split()
    return long if len(words) > 1 and len(words) <= min(len(short) + 5, 2 * len(short)) else None
