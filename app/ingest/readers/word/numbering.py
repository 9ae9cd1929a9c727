"""Automatic numbers of Word paragraphs, which the file states as rules and not as text."""

import re
from dataclasses import dataclass
from typing import Any

from docx.document import Document
from docx.oxml.ns import qn

_STEP = re.compile(r"\(?(\d{1,4})[.)]?")
_LEVELS = 9
_ROMAN = (("m", 1000), ("cm", 900), ("d", 500), ("cd", 400), ("c", 100), ("xc", 90), ("l", 50), ("xl", 40), ("x", 10))
_ROMAN_ONES = ("", "i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix")
_MOST_LETTERS = 10


@dataclass(frozen=True, slots=True)
class Number:
    """What stands before a numbered or bulleted paragraph."""

    level: int
    """Depth of the list, from 0."""
    label: str
    """As shown, such as "1.", "4.2" or "(a)"; empty for bullets."""

    @property
    def step(self) -> int | None:
        """The number of a step; None for bullets, letters and numbers of sections."""
        found = _STEP.fullmatch(self.label)
        return int(found[1]) if found else None


@dataclass(frozen=True, slots=True)
class _Level:
    kind: str
    pattern: str
    start: int


class Numbering:
    """Counts the numbered paragraphs of a document in their order."""

    def __init__(self, document: Document) -> None:
        self._abstract: dict[str, str] = {}
        self._levels: dict[str, dict[int, _Level]] = {}
        self._overrides: dict[tuple[str, int], int] = {}
        self._started: set[tuple[str, int]] = set()
        self._counts: dict[str, list[int]] = {}
        self._read(document)

    def count(self, number_id: str, level: int) -> Number | None:
        """Return the number of the next paragraph of this list; None where the file does not define the list."""
        abstract = self._abstract.get(number_id)
        levels = self._levels.get(abstract or "")
        if abstract is None or levels is None:
            return None
        level = max(0, min(level, _LEVELS - 1))
        counts = self._counts.setdefault(abstract, [0] * _LEVELS)
        if (number_id, level) in self._overrides and (number_id, level) not in self._started:
            self._started.add((number_id, level))
            counts[level] = self._overrides[number_id, level] - 1
        elif counts[level] == 0 and level in levels:
            counts[level] = levels[level].start - 1
        counts[level] += 1
        counts[level + 1 :] = [0] * (_LEVELS - level - 1)
        rule = levels.get(level)
        if rule is None or rule.kind in ("bullet", "none"):
            return Number(level, "")

        def show(found: re.Match[str]) -> str:
            shown = int(found[1]) - 1
            kind = levels[shown].kind if shown in levels else "decimal"
            return _spell(max(counts[shown], 1), kind) if shown < _LEVELS else ""

        return Number(level, re.sub(r"%([1-9])", show, rule.pattern).strip()[:40])

    def _read(self, document: Document) -> None:
        part = next((r.target_part for r in document.part.rels.values() if r.reltype.endswith("/numbering")), None)
        root: Any = getattr(part, "element", None)
        if root is None:
            return
        for abstract in root.iterchildren(qn("w:abstractNum")):
            self._levels[abstract.get(qn("w:abstractNumId"), "")] = {
                int(level.get(qn("w:ilvl"), "0")): _Level(
                    _value(level, "w:numFmt", "decimal"),
                    _value(level, "w:lvlText", ""),
                    _integer(_value(level, "w:start", "1"), 1),
                )
                for level in abstract.iterchildren(qn("w:lvl"))
            }
        for number in root.iterchildren(qn("w:num")):
            number_id = number.get(qn("w:numId"), "")
            self._abstract[number_id] = _value(number, "w:abstractNumId", "")
            for override in number.iterchildren(qn("w:lvlOverride")):
                if start := _value(override, "w:startOverride", ""):
                    level = _integer(override.get(qn("w:ilvl"), "0"), 0)
                    self._overrides[number_id, level] = _integer(start, 1)


def _value(element: Any, name: str, default: str) -> str:
    found = element.find(qn(name))
    return default if found is None else str(found.get(qn("w:val"), default))


def _integer(text: str, default: int) -> int:
    return int(text) if re.fullmatch(r"\d{1,6}", text) else default


def _spell(count: int, kind: str) -> str:
    if kind in ("lowerLetter", "upperLetter"):
        letters = chr(ord("a") + (count - 1) % 26) * min((count - 1) // 26 + 1, _MOST_LETTERS)
        return letters.upper() if kind == "upperLetter" else letters
    if kind in ("lowerRoman", "upperRoman") and count < 4000:
        spelled = ""
        for letters, value in _ROMAN:
            times, count = divmod(count, value)
            spelled += letters * times
        spelled += _ROMAN_ONES[count]
        return spelled.upper() if kind == "upperRoman" else spelled
    return f"{count:02}" if kind == "decimalZero" else str(count)
