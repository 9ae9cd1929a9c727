"""Automatic numbers of Word paragraphs, which the file states as rules and not as text."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from docx.document import Document
from docx.oxml.ns import qn

from app.ingest.readers.assembly import spell_number
from app.ingest.readers.symbols import spell_symbols

_STEP = re.compile(r"(0|[1-9]\d{0,3})[.)]?")
"""Labels that say no more than a number. "(2)" is as it is cited."""
_LEVELS = 9
_TICKS = frozenset("☐☑☒✓✔✗✘")
"""Bullets that say something."""


@dataclass(frozen=True, slots=True)
class Number:
    """What stands before a numbered or bulleted paragraph."""

    level: int
    """Depth of the list, from 0."""
    label: str
    """As shown, such as "1.", "4.2" or "(a)"; empty for bullets, unless they are boxes or ticks."""

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
    restarts_after: int
    """The deepest of the outer levels, counted from 1, that begins it anew."""
    is_legal: bool
    """True where the numbers of all levels are shown as figures."""
    style: str
    """The style of its paragraphs, which need not state the level then."""


class Numbering:
    """Counts the numbered paragraphs of a document in their order."""

    def __init__(self, document: Document) -> None:
        self._abstract: dict[str, str] = {}
        self._levels: dict[str, dict[int, _Level]] = {}
        """By the number of the list."""
        self._overrides: dict[tuple[str, int], int] = {}
        self._started: set[tuple[str, int]] = set()
        self._counts: dict[str, list[int]] = {}
        self._read(document)

    def find_level(self, number_id: str, styles: Iterable[str]) -> int | None:
        """Return the level that the list has for the first of these styles for which it has one."""
        levels = {rule.style: level for level, rule in self._levels.get(number_id, {}).items() if rule.style}
        return next((levels[style] for style in styles if style in levels), None)

    def count(self, number_id: str, level: int) -> Number | None:
        """Return the number of the next paragraph of this list; None where the file does not define the list."""
        levels = self._levels.get(number_id)
        if levels is None:
            return None
        level = max(0, min(level, _LEVELS - 1))
        counts = self._counts.setdefault(self._abstract[number_id], [0] * _LEVELS)
        if (number_id, level) in self._overrides and (number_id, level) not in self._started:
            self._started.add((number_id, level))
            counts[level] = self._overrides[number_id, level] - 1
        elif counts[level] == 0 and level in levels:
            counts[level] = levels[level].start - 1
        counts[level] += 1
        for deeper in range(level + 1, _LEVELS):
            if deeper not in levels or level < levels[deeper].restarts_after:
                counts[deeper] = 0
        rule = levels.get(level)
        if rule is None or rule.kind == "bullet":
            return Number(level, rule.pattern if rule and rule.pattern in _TICKS else "")

        def show(found: re.Match[str]) -> str:
            shown = int(found[1]) - 1
            other = levels.get(shown)
            kind = "decimal" if other is None or rule.is_legal else other.kind
            first = other.start if other else 1
            return _spell(counts[shown] or first, kind) if shown < _LEVELS else ""

        return Number(level, re.sub(r"%([1-9])", show, rule.pattern).strip()[:40])

    def _read(self, document: Document) -> None:
        part = next((r.target_part for r in document.part.rels.values() if r.reltype.endswith("/numbering")), None)
        root: Any = getattr(part, "element", None)
        if root is None:
            return
        abstracts = {each.get(qn("w:abstractNumId"), ""): each for each in root.iterchildren(qn("w:abstractNum"))}
        linked = {_value(each, "w:styleLink", ""): key for key, each in abstracts.items()}
        for number in root.iterchildren(qn("w:num")):
            number_id, key = number.get(qn("w:numId"), ""), _value(number, "w:abstractNumId", "")
            if key not in abstracts:
                continue
            # A list may have the levels of a style of lists, which another one defines.
            key = linked.get(_value(abstracts[key], "w:numStyleLink", "-"), key)
            self._abstract[number_id] = key
            self._levels[number_id] = dict(map(_read_level, abstracts[key].iterchildren(qn("w:lvl"))))
            for override in number.iterchildren(qn("w:lvlOverride")):
                self._levels[number_id] |= dict(map(_read_level, override.iterchildren(qn("w:lvl"))))
                if start := _value(override, "w:startOverride", ""):
                    level = _integer(override.get(qn("w:ilvl"), "0"), 0)
                    self._overrides[number_id, level] = _integer(start, 1)


def _read_level(element: Any) -> tuple[int, _Level]:
    level = _integer(element.get(qn("w:ilvl"), "0"), 0)
    kind, pattern = _value(element, "w:numFmt", "decimal"), _value(element, "w:lvlText", "")
    font = next((each.get(qn("w:ascii"), "") for each in element.iter(qn("w:rFonts"))), "")
    return level, _Level(
        kind,
        spell_symbols(pattern, font) if kind == "bullet" else pattern,
        _integer(_value(element, "w:start", "1"), 1),
        _integer(_value(element, "w:lvlRestart", ""), level),
        element.find(qn("w:isLgl")) is not None,
        _value(element, "w:pStyle", ""),
    )


def _value(element: Any, name: str, default: str) -> str:
    found = element.find(qn(name))
    return default if found is None else str(found.get(qn("w:val"), default))


def _integer(text: str, default: int) -> int:
    return int(text) if re.fullmatch(r"\d{1,6}", text) else default


def _spell(count: int, kind: str) -> str:
    if kind == "none":
        return ""
    if kind.endswith(("Letter", "Roman")):
        return spell_number(count, is_roman=kind.endswith("Roman"), is_upper=kind.startswith("upper"))
    return f"{count:02}" if kind == "decimalZero" else str(count)
