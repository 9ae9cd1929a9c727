"""Compares the numbers of a question with the ranges that a text states: 3000 euros with "from 2,500 to 10,000
euros"."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from domain.text.terms import analyse, content_words

_DIGITS = r"[€$£]?(?:\d{1,3}(?:[,'’]\d{3})+|\d+)(?:\.\d+)?(?:[km](?![^\W\d_])|\s(?:thousand|million)\b)?"
_NUMBER = rf"(?<![\w.,/-]){_DIGITS}"
"""A number that is not part of a code, a date or another number."""
_UNIT = r"(?:\s?[€$£%]|\s[^\W\d_]+\b)?"
_SCALES = {"k": 1e3, "m": 1e6, "thousand": 1e3, "million": 1e6}
_CURRENCIES = {"€": "euro", "eur": "euro", "$": "dollar", "usd": "dollar", "£": "pound", "gbp": "pound", "%": "percent"}

_ABOVE = r"(?:(?:more|greater|higher|longer)\sthan|above|over|exceeding|beyond)"
_BELOW = r"(?:(?:less|fewer|lower|shorter)\sthan|below|under)"
_RANGE = re.compile(
    rf"""(?P<low>{_NUMBER})(?:{_UNIT}\s(?:up\s)?to\s|\s?[–—-]\s?)(?P<high>{_DIGITS})(?![\w/-])
      | between\s(?P<from>{_NUMBER}){_UNIT}\sand\s(?P<to>{_NUMBER})
      | \b(?:up\sto|at\smost|(?:no|not)\s{_ABOVE}|maximum\sof)\s(?P<most>{_NUMBER})
      | \b(?:at\sleast|(?:no|not)\s{_BELOW}|minimum\sof)\s(?P<least>{_NUMBER})
      | \b{_ABOVE}\s(?P<above>{_NUMBER})
      | \b{_BELOW}\s(?P<below>{_NUMBER})
      | (?P<floor>{_NUMBER})(?:\+|{_UNIT}\s(?:or|and)\s(?:more|above|over|up(?:wards)?|longer|older)\b)
      | (?P<ceiling>{_NUMBER}){_UNIT}\s(?:or|and)\s(?:less|fewer|below|under|shorter|younger)\b""",
    re.VERBOSE | re.IGNORECASE,
)
_ASKED = re.compile(
    rf"(?:(?<!no )(?<!not )\b(?:(?P<above>{_ABOVE})|(?P<below>{_BELOW})|(?P<when>in|since|until|by|during|year))\s)?"
    rf"(?P<number>{_NUMBER})(?![\w/]|-\d)",
    re.IGNORECASE,
)
_YEAR = re.compile(r"(?:1[89]|20)\d\d")


@dataclass(frozen=True, slots=True)
class Amount:
    """A number of a question. `term` is its index term, `unit` the stem of the word after it, or empty."""

    term: str
    value: float
    unit: str


@dataclass(frozen=True, slots=True)
class Range:
    """A range that a text states, both ends included."""

    low: float
    high: float
    unit: str


Fit = Literal["encloses", "excludes", "both"]


def read_amounts(question: str) -> list[Amount]:
    """Return the numbers of a question, without years and parts of codes. "More than 500" is the float just above
    500."""
    amounts = []
    for match in _ASKED.finditer(question):
        number = match["number"]
        unit = _read_unit(number, question[match.end() :])
        terms = content_words(number)
        if not terms or (match["when"] and not unit and _YEAR.fullmatch(number.strip())):
            continue
        value = _read_number(number)
        if match["above"] or match["below"]:
            value = math.nextafter(value, math.inf if match["above"] else -math.inf)
        amounts.append(Amount(terms[0], value, unit))
    return amounts


@lru_cache(maxsize=256)
def read_ranges(text: str) -> tuple[Range, ...]:
    """Return the ranges that a text states, in order. Cached: every amount of a question is compared with the same
    texts, and a question may be nothing but amounts."""
    return tuple(_find_ranges(text))


def _find_ranges(text: str) -> Iterator[Range]:
    for match in _RANGE.finditer(text):
        ends = {name: _read_number(number) for name, number in match.groupdict().items() if number}
        low, high = -math.inf, math.inf
        for name, value in ends.items():
            if name in ("low", "from", "least", "floor"):
                low = value
            elif name in ("high", "to", "most", "ceiling"):
                high = value
            elif name == "above":
                low = math.nextafter(value, math.inf)
            else:
                high = math.nextafter(value, -math.inf)
        if low <= high:
            numbers = re.findall(_DIGITS, match[0], re.IGNORECASE)
            after_last = text[match.start() + match[0].rindex(numbers[-1]) + len(numbers[-1]) :]
            yield Range(low, high, _read_unit(numbers[-1], after_last))


def compare(amount: Amount, text: str) -> Fit | None:
    """Return how the ranges of `text` relate to the amount: all of them enclose it, all exclude it, or both occur. None
    where the text states no range of that unit; a missing unit matches any."""
    ranges = (r for r in read_ranges(text) if not (r.unit and amount.unit) or r.unit == amount.unit)
    fits = [r.low <= amount.value <= r.high for r in ranges]
    if not fits:
        return None
    return "encloses" if all(fits) else "both" if any(fits) else "excludes"


def _read_number(number: str) -> float:
    digits = re.search(r"\d[\d,'’]*(?:\.\d+)?", number)
    assert digits is not None
    scale = _SCALES.get(number[digits.end() :].strip().lower(), 1.0)
    return float(re.sub(r"[,'’]", "", digits[0])) * scale


def _read_unit(number: str, following: str) -> str:
    if number.strip()[0] in _CURRENCIES:
        return _CURRENCIES[number.strip()[0]]
    word = re.match(r"\s?([€$£%])|\s([^\W\d_]+)", following)
    if word is None:
        return ""
    unit = (word[1] or word[2]).lower()
    return _CURRENCIES.get(unit) or next(iter(analyse(unit)), "")
