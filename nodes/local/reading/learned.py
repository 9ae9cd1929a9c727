"""Reads the most promising passages of the sources with a learned reader: does one of them hold the answer?

It was trained on English questions that a few words of the text answer; elsewhere the rules decide alone.
"""

import math
from collections.abc import Iterator, Sequence

from domain.documents import name_place
from domain.errors import EmbedderUnavailable
from domain.ports.embedding import Vector
from domain.ports.reading import Reader
from domain.text.languages import detect_language
from nodes.local.reading.questions import read_question
from nodes.local.reading.units import Unit

WINDOWS, WINDOW = 5, 800
"""Number of windows, and characters of one: about 200 tokens. More windows are cut off by the reader's own limit."""

_CERTAIN = 1e-6
"""Distance that a probability keeps from 0 and 1."""


async def read_odds(question: str, units: Sequence[Unit], promise: Vector, reader: Reader) -> float | None:
    """Return the log-odds that one of the most promising windows holds the answer: those of the best. `promise` has one
    number a unit. Returns None where the reader is down, for questions of how to do something and those of yes or no,
    and for sources in another language than English."""
    if (
        not units
        or not read_question(question).fact
        or detect_language(units[int(promise.argmax())].source["text"]) not in ("en", None)
    ):
        return None
    windows = sorted(cut_windows(units), key=lambda window: -promise[window.start : window.stop].max())[:WINDOWS]
    try:
        readings = await reader.read(question, [_make_text(units[window.start : window.stop]) for window in windows])
    except EmbedderUnavailable:
        return None
    best = min(max(*readings, _CERTAIN), 1 - _CERTAIN)
    return math.log(best / (1 - best))


def cut_windows(units: Sequence[Unit]) -> Iterator[range]:
    """Cut the units into windows, runs of units of one source of at most `WINDOW` characters or one unit."""
    first = length = 0
    for place, unit in enumerate(units):
        length += len(_with_lead(unit))
        if place > first and (length > WINDOW or unit.source is not units[first].source):
            yield range(first, place)
            first, length = place, len(_with_lead(unit))
    yield range(first, len(units))


def _make_text(units: Sequence[Unit]) -> str:
    source = units[0].source
    return "\n".join([name_place(source["title"], source["heading_path"]), *(_with_lead(unit) for unit in units)])


def _with_lead(unit: Unit) -> str:
    """Return the unit, with a lead-in or header that no unit before it shows."""
    return unit.whole if unit.follows_lead else unit.text
