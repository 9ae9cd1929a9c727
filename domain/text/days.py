"""Days as texts write them: "2025-03-04", "04.03.2025", "4 March 2025", and March 4, 2025 are the same."""

import re
from collections.abc import Iterator
from datetime import date

from domain.text.languages import LANGUAGES, Language, fold, read_words

_MONTH = r"(?P<{}>[a-z]{{3,12}})\.?"
_DAY = re.compile(
    r"(?<![\w.-])(?:"
    r"(?P<y>\d{4})(?P<sign>[-/])(?P<m>\d\d?)(?P=sign)(?P<d>\d\d?)(?![\d/-])"
    r"|(?P<d2>\d\d?)\. ?(?P<m2>\d\d?)\. ?(?P<y2>\d{4})(?!\w)"
    rf"|(?P<d3>\d\d?)(?:\.|st|nd|rd|th|er)? (?:of |de )?{_MONTH.format('m3')},? (?:del? )?(?P<y3>\d{{4}})(?!\w)"
    rf"|{_MONTH.format('m4')} (?P<d4>\d\d?)(?:st|nd|rd|th)?,? (?P<y4>\d{{4}})(?!\w))"
)
_YEAR = re.compile(r"(?<!\d)\d{4}(?!\d)")
_BEFORE, _BEHIND = 30, 7
"""Characters around a year in which its day stands, and one more."""


def spell_days(text: str, language: Language = "en") -> list[str]:
    """Return each day that a text names in all forms, with its month in `language`."""
    return [
        f"{day.isoformat()} {day:%d.%m.%Y} {day.day} {read_words(language).months[day.month - 1]} {day.year}"
        for day in dict.fromkeys(_find_days(text))
    ]


def _find_days(text: str) -> Iterator[date]:
    folded = fold(text) if _YEAR.search(text) else ""
    spans = ((max(0, year.start() - _BEFORE), year.end() + _BEHIND) for year in _YEAR.finditer(folded))
    for found in (each for span in spans for each in _DAY.finditer(folded, *span)):
        year, month, day = (next(filter(None, (found[f"{part}{n}"] for n in ("", "2", "3", "4")))) for part in "ymd")
        for number in [int(month)] if month.isdigit() else _read_month(month):
            try:
                yield date(int(year), number, int(day))
            except ValueError:
                continue


def _read_month(name: str) -> list[int]:
    """Return the number of a month by its name in any of our languages, or the beginning of that; nothing where it may
    be one of several."""
    names = [(each, n) for language in LANGUAGES for n, each in enumerate(read_words(language).months, start=1)]
    numbers = {n for each, n in names if each == name} or {n for each, n in names if each.startswith(name)}
    return [*numbers] if len(numbers) == 1 else []
