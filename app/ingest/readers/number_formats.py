"""Values as spreadsheets and charts show them."""

import re
from datetime import date, datetime, time, timedelta
from decimal import ROUND_HALF_UP, Decimal, localcontext
from functools import lru_cache
from typing import Any

from app.ingest.readers.assembly import squeeze

_PLACES = re.compile(r"(?P<whole>[#0?,]{0,99}[#0?])(?:\.(?P<places>[0?#]{1,99}))?(?P<thousands>,{0,9})")
_PLACE = re.compile("[#0?]")
_GENERAL = re.compile("General", re.IGNORECASE)
_NEGATIVE = re.compile(r"\D*[-\u2212\u2013(]|.*[-\u2212\u2013]$")
"""What says of itself that it is negative."""
_IGNORED = re.compile(r'("[^"]*"|\\.)|\[(?!\$|[<>=])[^\]]{0,99}\]|_.|\*.')
"""Colours, spaces as wide as a character, characters that fill the cell."""
_CONDITION = re.compile(r"\[(?P<sign>[<>]=?|<>|=)(?P<limit>-?\d{1,20}(?:\.\d{1,20})?)\]")
_CURRENCY = re.compile(r"\[\$([^\]-]{0,99})(?:-[^\]]{0,99})?\]")
_TOTAL = re.compile(r"\[(?:m{1,9}|(s{1,9}))\](\.0{1,3})?", re.IGNORECASE)
_DECIMALS = re.compile(r"s\]?\.(0{1,3})", re.IGNORECASE)
_QUOTED = re.compile(r'"([^"]*)"|\\(.)')
_HELD = "\ue000"
"""Stands for a character that a format shows as it is."""
_SCIENTIFIC_BELOW, _SCIENTIFIC_FROM = 1e-9, 1e15


def show_value(value: Any, number_format: str) -> str:
    """Spell a cell's value as Excel shows it; dates and times in the form of ISO 8601."""
    match value:
        case None:
            return ""
        case bool():
            return str(value).upper()
        case datetime() | time() | timedelta():
            return _show_time(value, number_format)
        case date():
            return value.isoformat()
        case int() | float():
            return show_number(value, number_format)
        case _:
            return squeeze(str(value))


def _show_time(value: datetime | time | timedelta, number_format: str) -> str:
    """Spell a time, with a day where the format does not leave it out, and seconds with as many decimals."""
    letters = {*_QUOTED.sub("", "".join(_split(number_format))).lower()}
    if isinstance(value, timedelta):
        span = value
        if (total := _TOTAL.search(number_format)) and not letters & {*"hms"}:
            number = span.total_seconds() if total[1] else int(span / timedelta(minutes=1))
            return show_number(number, _TOTAL.sub(lambda found: f"0{found[2] or ''}", number_format))
    else:
        span = timedelta(hours=value.hour, minutes=value.minute, seconds=value.second, microseconds=value.microsecond)
    decimals = _DECIMALS.search(number_format)
    places = len(decimals[1]) if decimals else 0
    minutes, seconds = divmod(round(abs(span.total_seconds()), places), 60)
    shown = f"{minutes // 60:0{1 if span is value else 2}.0f}:{minutes % 60:02.0f}"
    if seconds and ("s" in letters or not isinstance(value, datetime)):
        shown += f":{seconds:0{places + 2 + (places > 0)}.{places}f}"
    if not isinstance(value, datetime) or (letters & {*"hs"} and not letters & {*"yd"}):
        return f"-{shown}" if span < timedelta() else shown
    return f"{value.date().isoformat()} {shown}" if span else value.date().isoformat()


def show_number(value: float, number_format: str) -> str:
    """Spell a number in a format of Excel: `#,##0.0,,"M"` shows 12345678 as 12.3M. A negative number keeps its sign,
    also where the format shows a colour instead."""
    sections = _split(number_format)
    letters, text, places = _read_section(_choose(value, sections))
    if _GENERAL.search(text):
        digits = _GENERAL.sub(_show_plainly(abs(value)), text, count=1)
    elif "E+" in text or "/" in text:
        return _show_plainly(value)
    elif places is None:
        if text and "@" not in text:
            return squeeze(_fill(text, letters))
        return "" if not text and len(sections) > 1 else _show_plainly(value)
    else:
        whole = places["whole"]
        thousands = len(places["thousands"]) + len(whole) - len(whole.rstrip(","))
        # As Excel does: of the decimal number that it shows, halves away from zero.
        with localcontext(rounding=ROUND_HALF_UP):
            scaled = Decimal(f"{abs(value):.15g}").scaleb(2 * ("%" in text) - 3 * thousands)
            if _PLACE.search(text, places.end()):
                digits = _mask(text, scaled)
            else:
                digits = _show_digits(scaled, whole, places["places"] or "")
                digits = text[: places.start()] + digits + text[places.end() :]
    shown = squeeze(_fill(digits, letters))
    is_said = len(sections) > 1 and _NEGATIVE.match(shown)
    return f"-{shown}" if value < 0 and re.search("[1-9]", digits) and not is_said else shown


@lru_cache(maxsize=256)
def _read_section(section: str) -> tuple[str, str, re.Match[str] | None]:
    """Return what a section shows as it is, its text with a sign in place of each such character, and its places."""
    letters = "".join(quoted or escaped for quoted, escaped in _QUOTED.findall(section))
    text = _QUOTED.sub(lambda found: _HELD * len(found[1] or found[2] or ""), section)
    return letters, text, _PLACES.search(text)


@lru_cache(maxsize=256)
def _split(number_format: str) -> tuple[str, ...]:
    """Return the sections of a format, for positive and negative numbers, zero and text."""
    text = _CURRENCY.sub(lambda currency: f'"{currency[1]}"', number_format or "General")
    text = _IGNORED.sub(lambda found: found[1] or "", text)
    quoted = _QUOTED.sub(lambda found: _HELD * len(found[0]), text)
    sections, start = [], 0
    for found in re.finditer(";|$", quoted):
        sections.append(text[start : found.start()])
        start = found.end()
    return tuple(sections)


def _choose(value: float, sections: tuple[str, ...]) -> str:
    """Return the section for a value."""
    if any("[" in section for section in sections):
        conditions = [_CONDITION.match(section) for section in sections]
        for section, condition in zip(sections, conditions, strict=True):
            if condition is None or _holds(value, condition["sign"], float(condition["limit"])):
                return section[condition.end() if condition else 0 :]
        return "General"
    if value < 0 and len(sections) > 1:
        return sections[1] or sections[0]
    return sections[2] if value == 0 and len(sections) > 2 else sections[0]


def _holds(value: float, sign: str, limit: float) -> bool:
    return ("<" in sign and value < limit) or (">" in sign and value > limit) or ("=" in sign and value == limit)


def _show_digits(value: Decimal, whole: str, places: str) -> str:
    """Return the digits: as many as there are zeros at least, and of those after the point no needless ones."""
    before, _, after = f"{value:.{len(places)}f}".partition(".")
    before = before.lstrip("0").zfill(whole.count("0"))
    if "," in whole.rstrip(","):
        head = len(before) % 3
        before = ",".join(filter(None, [before[:head], *(before[i : i + 3] for i in range(head, len(before), 3))]))
    kept = len(places.rstrip("#"))
    after = after[:kept] + after[kept:].rstrip("0")
    return f"{before}.{after}" if after else before


def _mask(text: str, value: Decimal) -> str:
    """Return a text whose places are for single digits, such as 000-00-0000."""
    digits = list(f"{value:.0f}".zfill(text.count("0")))
    shown: list[str] = []
    for each in reversed(text):
        shown.append(each if not _PLACE.match(each) else digits.pop() if digits else "")
    return "".join([*digits, *reversed(shown)])


def _fill(text: str, letters: str) -> str:
    held = iter(letters)
    return re.sub(_HELD, lambda _: next(held, ""), text) if letters else text


def _show_plainly(value: float) -> str:
    if value == int(value) and abs(value) < _SCIENTIFIC_FROM:
        return str(int(value))
    if not _SCIENTIFIC_BELOW <= abs(value) < _SCIENTIFIC_FROM:
        return f"{value:.6g}"
    return f"{value:.10f}".rstrip("0").rstrip(".")
