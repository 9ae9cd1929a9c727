"""Parses spans of time as people write them."""

import re
from datetime import timedelta

_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def parse_span(text: str) -> timedelta | None:
    """Return the span that `text` names in minutes, hours, days or weeks (`30m`, `24h`, `7d`, `2w`), or None."""
    span = re.fullmatch(r"(\d{1,6})([mhdw])", text.strip())
    return timedelta(**{_UNITS[span[2]]: int(span[1])}) if span else None
