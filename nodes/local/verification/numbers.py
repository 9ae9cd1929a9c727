"""Numbers with their units, as sentences state them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from domain.text.terms import STOP_WORDS
from nodes.local.verification.words import NUMBER_WORDS, stem_of

SCALES = {"hundred": 1e2, "thousand": 1e3, "k": 1e3, "million": 1e6, "m": 1e6, "billion": 1e9, "bn": 1e9}

_NUMBER = re.compile(
    r"(?P<currency>[$€£¥]\s?)?(?<![\w.])(?<![A-Za-z][/–-])(?<!\d/)(?P<value>\d+(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?"
    rf"|\b(?:{'|'.join(NUMBER_WORDS)})\b)(?P<percent>\s?%|\s+percent\b)?"
    r"(?:[\s-]?(?P<scale>hundred|thousand|million|billion|bn|k|m)\b)?(?:[\s-]+(?P<unit>[^\W\d_]+))?",
    re.IGNORECASE,
)

_ROUGHLY = re.compile(r"(?:about|around|approximately|nearly|almost|over|roughly|some|than|~)\s*[$€£]?$", re.IGNORECASE)

_ROUGHLY_WITHIN = 30
"""Characters before a number in which such a word is looked for."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number of a sentence."""

    value: float
    unit: str
    """The stem of the noun behind it, "%", a currency sign, or empty."""
    text: str
    """The number as written, for the reader."""
    roughly: bool
    """True for "about 30" and the like."""


def read_numbers(text: str) -> Iterator[Number]:
    """Yield the numbers of a text, in order, digits and spelt ones."""
    for match in _NUMBER.finditer(text):
        plain = match["value"].replace(",", "")
        value = float(NUMBER_WORDS.get(plain.lower(), plain)) * SCALES.get((match["scale"] or "").lower(), 1)
        unit = "%" if match["percent"] else (match["currency"] or "").strip()
        noun = match["unit"] or ""
        if not unit and noun.lower() not in STOP_WORDS:
            unit = stem_of(noun)
        shown = match[0] if unit and unit not in "%$€£¥" else match[0].removesuffix(noun)
        before = text[max(0, match.start() - _ROUGHLY_WITHIN) : match.start()]
        yield Number(value, unit, shown.strip(" -"), bool(_ROUGHLY.search(before)))


def agree(number: Number, other: Number) -> bool:
    """Return True where both may mean the same: equal, apart by a scale that one leaves out, or within 10% of a rough
    one."""
    # "from $220 to $249 billion" omits the first scale.
    if number.value == other.value or (number.value and other.value / number.value in SCALES.values()):
        return True
    return (number.roughly or other.roughly) and abs(number.value - other.value) <= 0.1 * max(number.value, other.value)
