"""Days and months as texts write them: "2025-03-04", "04.03.2025", "4 March 2025" and "March 4, 2025" are the same."""

import re
from collections.abc import Iterator, Sequence
from datetime import date
from functools import cache

from domain.text.languages import LANGUAGES, Language, fold, read_words

_NAME = r"[^\W\d_]{3,12}"
_DAY = re.compile(
    r"(?<![\w.-])(?:"
    r"(?P<y1>\d{4})(?P<sign>[-/])(?P<m1>\d\d?)(?P=sign)(?P<d1>\d\d?)(?![\d/-])"
    r"|(?P<y2>\d{4})-(?P<m2>\d\d)(?!\S)"
    r"|(?P<d3>\d\d?)\. ?(?P<m3>\d\d?)\. ?(?P<y3>\d{4})(?!\w)"
    rf"|(?P<d4>\d\d?)(?:\.|st|nd|rd|th|er)? (?:of |de )?(?P<m4>{_NAME})\.?,? (?:del? )?(?P<y4>\d{{4}})(?!\w)"
    rf"|(?P<m5>{_NAME})\.? (?:(?P<d5>\d\d?)(?:st|nd|rd|th)?,? )?(?P<y5>\d{{4}})(?!\w))",
    re.IGNORECASE,
)
_YEAR = re.compile(r"(?<!\d)\d{4}(?!\d)")
_BEFORE, _BEHIND = 30, 7
"""Characters around a year in which its day stands, and one more."""


def find_days(text: str) -> list[tuple[str, str]]:
    """Return the days and months that a text names, as it writes them, each in the form 2025-03-04 or 2025-03. The name
    of a month without a day has a capital, as no other word that it may be."""
    return [
        (written, f"{day:%Y-%m-%d}" if has_day else f"{day:%Y-%m}")
        for written, day, has_day in _read_days(text)
        if has_day or not written[0].islower()
    ]


def find_day(text: str) -> str | None:
    """Return the first day that a text names, in the form 2025-03-04."""
    return next((f"{day:%Y-%m-%d}" for _, day, has_day in _read_days(text) if has_day), None)


def spell_days(text: str, language: Language = "en") -> list[str]:
    """Return each day that a text names in all forms, with its month in `language`."""
    return [
        f"{day.isoformat()} {day:%d.%m.%Y} {day.day} {read_words(language).months[day.month - 1]} {day.year}"
        for day in dict.fromkeys(day for _, day, has_day in _read_days(text) if has_day)
    ]


def _read_days(text: str) -> Iterator[tuple[str, date, bool]]:
    end = 0
    for year in _YEAR.finditer(text):
        # A month is not looked for before what is read already, nor is half a word.
        for found in _DAY.finditer(text, max(end, year.start() - _BEFORE), year.end() + _BEHIND):
            parts = {name[0]: part for name, part in found.groupdict().items() if part and name != "sign"}
            month, day = parts["m"], parts.get("d")
            number = int(month) if month.isdigit() else _read_month(fold(month))
            try:
                yield found[0], date(int(parts["y"]), number, int(day or 1)), bool(day)
            except ValueError:
                continue
            end = found.end()


@cache
def _read_months() -> Sequence[tuple[str, int]]:
    """Return the names of the months in all of our languages, with their numbers."""
    return [(each, n) for language in LANGUAGES for n, each in enumerate(read_words(language).months, start=1)]


def _read_month(name: str) -> int:
    """Return the number of a month by its name in any of our languages, or the beginning of that; 0 where it may be one
    of several."""
    names = _read_months()
    numbers = {n for each, n in names if each == name} or {n for each, n in names if each.startswith(name)}
    return numbers.pop() if len(numbers) == 1 else 0
