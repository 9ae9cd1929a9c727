"""The day that a document is of, where it is known."""

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta

from domain.library.metadata import Metadata

_DAY = re.compile(r"(?:D:)?(\d{4})-?(\d{1,2})-?(\d{1,2})")
_FORMS = ("%d %B %Y", "%d %b %Y", "%B %d %Y", "%b %d %Y", "%d.%m.%Y")
"""Other ways to write a day that mean one alone."""
_IN_NAME = re.compile(r"(?<!\d)(\d{4})([-_.]?)(\d\d)\2(\d\d)(?!\d)")
_IN_FOLDER = re.compile(r"[/\\](\d{4})([-_./\\]?)(\d\d)\2(\d\d)(?=[/\\])")
_EARLIEST = date(1980, 1, 2)
_PLACEHOLDERS = frozenset({date(2013, 12, 23), date(2013, 1, 27), date(2020, 2, 2)})
"""What programs write where they know no date: python-docx, python-pptx, and builds of Python packages."""


def state_day(*written: str) -> Metadata:
    """Return the first of these dates that can be one, as metadata; none where there is none."""
    for text in written:
        for day in _read_days(text.strip(" <[")):  # as Org writes days
            if _EARLIEST <= day <= datetime.now(UTC).date() + timedelta(days=1) and day not in _PLACEHOLDERS:
                return {"date": day.isoformat()}
    return {}


def find_day(source: str) -> Metadata:
    """Return the day that the name of a file says, else that of a folder or address that it is in: "2016-03-09.md" or
    "2016/03/09/notes.md"."""
    name = re.split(r"[/\\]", source)[-1]
    found = [*reversed(_IN_NAME.findall(name)), *reversed(_IN_FOLDER.findall(source))]
    return state_day(*(f"{year}-{month}-{day}" for year, _, month, day in found))


def _read_days(text: str) -> Iterator[date]:
    with suppress(ValueError):
        if found := _DAY.match(text):
            yield date(*map(int, found.groups()))
    for form in _FORMS:
        with suppress(ValueError):
            yield datetime.strptime(text.replace(",", ""), form).date()  # noqa: DTZ007 (a day has no zone)
