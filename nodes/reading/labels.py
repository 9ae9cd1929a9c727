"""Finds what has the very label that a question asks for: Article 35, step 4, the line "Spare code: grey owl 15"."""

import re
from collections.abc import Sequence
from functools import lru_cache

from domain.documents import name_place
from domain.text.blocks import find_item
from domain.text.languages import Language
from domain.text.terms import find_terms
from nodes.reading.phrases import read_patterns, read_phrases
from nodes.reading.units import Unit

_LABEL = re.compile(r"(?<!\w)([^\W\d_]{2,}|§{1,2}) ?(\d+(?:\.\d+)*[a-z]?|[IVXLC]+)(?![\w%]|[.,:/]\d)")
_VALUE = re.compile(r"([^:|\n]{1,60}):[ \n]+\S")


def find_labelled(question: str, units: Sequence[Unit], language: Language) -> list[int]:
    """Return the places of the units that have the label which the question asks for, and of what follows these in
    their block. The other words of the question are in the unit or in the names of its place."""
    said, label, kind = _read_label(question, language)
    wanted = find_terms(question, language)
    if not label:
        return [place for place, unit in enumerate(units) if _is_value(unit, wanted, language)]
    rest, own, another = wanted - find_terms(said, language), re.compile(label, re.I), re.compile(kind, re.I)
    found: list[int] = []
    for place, unit in enumerate(units):
        line = unit.text if kind == label else unit.text[find_item(unit.text) :]
        heading = unit.source["text"][slice(*unit.heading)].lstrip("# ") if unit.heading else ""
        before = units[found[-1]] if found and found[-1] == place - 1 else None
        goes_on = before is not None and before.source is unit.source and before.block == unit.block
        if (
            own.match(line) or own.match(heading) or (goes_on and kind != label and not another.match(line))
        ) and rest <= find_terms(unit.whole, language) | _read_names(unit, language):
            found.append(place)
    return found


@lru_cache(maxsize=256)
def _read_label(question: str, language: Language) -> tuple[str, str, str]:
    """Return the words of the question that give a label, a pattern of that, and one of all such labels: of steps, the
    same. All are empty where no words do."""
    numbers = [*enumerate(read_patterns(language, "questions", "ordinals"), 1)]
    steps = [(found[0], n) for n, ordinal in numbers if (found := ordinal.search(question))]
    steps += [(found[0], int(found[1])) for found in read_phrases(language, "questions")["step"].finditer(question)]
    for said, number in steps:
        return said, (label := rf"\s*\(?{number}[.)]\s"), label
    for found in _LABEL.finditer(question):
        if not found[1].isalpha() or find_terms(found[1], language):
            # A number of several parts is one without the word: a clause begins with "2.3".
            word = rf"\W{{0,3}}(?:{found[1]} ?)?" if "." in found[2] else f"{found[1]} ?"
            return found[0], rf"{word}{re.escape(found[2])}(?!\w|[.,:]\d)", rf"{word}\d"
    return "", "", ""


def _is_value(unit: Unit, wanted: frozenset[str], language: Language) -> bool:
    """Return True for a line of a label and its value, where label and place are what is asked for."""
    value = _VALUE.match(unit.whole, find_item(unit.whole)) if unit.kind not in ("table", "code") else None
    label = find_terms(value[1], language) if value else frozenset[str]()
    return bool(label) and label <= wanted <= label | _read_names(unit, language)


def _read_names(unit: Unit, language: Language) -> frozenset[str]:
    above, path = [text for text in unit.context if text.startswith("#")], unit.source["heading_path"]
    # Below a heading of its own, the one that its source begins with may be of a part before.
    return find_terms("\n".join((name_place(unit.source["title"], path[: -1 if above else None]), *above)), language)
