"""The day that a document is of, where it is known."""

import re
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from domain.library.metadata import Metadata

_DAY = re.compile(r"(?:D:)?(\d{4})-?(\d{1,2})-?(\d{1,2})")
_EARLIEST = date(1980, 1, 2)
_PLACEHOLDERS = frozenset({date(2013, 12, 23), date(2013, 1, 27), date(2020, 2, 2)})
"""What programs write where they know no date: python-docx, python-pptx, and builds of Python packages."""


def state_day(*written: str, key: str = "date") -> Metadata:
    """Return the first of these dates that can be one, as metadata; none where there is none."""
    for text in written:
        if found := _DAY.match(text.strip()):
            with suppress(ValueError):
                day = date(*map(int, found.groups()))
                if _EARLIEST <= day <= datetime.now(UTC).date() + timedelta(days=1) and day not in _PLACEHOLDERS:
                    return {key: day.isoformat()}
    return {}


def read_file_day(path: Path) -> Metadata:
    """Return when a file of this machine was changed last, which says something where the file itself does not."""
    try:
        changed = path.stat().st_mtime
    except OSError:
        return {}
    return state_day(datetime.fromtimestamp(changed, UTC).isoformat(), key="file_date")
