"""Reads the most promising passages of the sources with a learned reader: does one of them hold the answer?

The reader reads a few windows, runs of neighbouring units, round the units that promise most by their words and
source. It was trained on English questions that a few words of the text answer; elsewhere the rules decide alone.
"""

import math
from collections.abc import Sequence

import numpy as np

from domain.documents import name_place
from domain.errors import EmbedderUnavailable
from domain.ports.embedding import Vector
from domain.ports.reading import Reader
from domain.text.languages import detect_language
from nodes.reading.questions import asks_for
from nodes.reading.units import Unit

WINDOWS, WINDOW = 5, 800
"""Number of windows, and characters of one: about 200 tokens. More windows are cut off by the reader's own limit."""

_CERTAIN = 6.0
"""Limit of a window's log-odds, either way."""

_ENOUGH = 1.5
"""The reader stops at the first window with at least these log-odds. It then reads 2.6 to 4.2 windows instead of 5, at
the same AUC of confidence."""


async def read_odds(question: str, units: Sequence[Unit], promise: Vector, reader: Reader) -> float | None:
    """Return the log-odds that one of the windows holds the answer: those of the first that surely does, else of the
    best. `promise` has one number a unit. Returns None where the reader is down, for questions of how to do something
    and those of yes or no, and for sources in another language than English."""
    if (
        not units
        or asks_for(question, "steps", "yes_no")
        or detect_language(units[int(promise.argmax())].source["text"]) not in ("en", None)
    ):
        return None
    best = -_CERTAIN
    for first, last in choose_windows(units, promise):
        try:
            [reading] = await reader.read(question, [_make_text(units[first : last + 1])])
        except EmbedderUnavailable:
            return None
        best = max(best, _log_odds(reading))
        if best >= _ENOUGH:
            break
    return best


def choose_windows(units: Sequence[Unit], promise: Vector) -> list[tuple[int, int]]:
    """Return at most `WINDOWS` windows, each as its first and last unit, the most promising first. A window grows round
    its best unit on both sides alike, within its source, until it is as long as it may be or meets another."""
    taken: set[int] = set()
    windows: list[tuple[int, int]] = []
    for best in map(int, np.argsort(-promise, kind="stable")):
        if len(windows) == WINDOWS:
            break
        if best in taken:
            continue
        first = last = best
        room = WINDOW - len(_with_lead(units[best]))
        sides = [-1, 1]
        while sides:
            side = sides.pop(0)
            beside = first - 1 if side < 0 else last + 1
            if not 0 <= beside < len(units) or beside in taken or units[beside].source is not units[best].source:
                continue
            room -= len(_with_lead(units[beside]))
            if room < 0:
                break
            first, last = min(first, beside), max(last, beside)
            sides.append(side)
        taken.update(range(first, last + 1))
        windows.append((first, last))
    return windows


def _make_text(units: Sequence[Unit]) -> str:
    source = units[0].source
    return "\n".join([name_place(source["title"], source["heading_path"]), *(_with_lead(unit) for unit in units)])


def _with_lead(unit: Unit) -> str:
    """The unit, with a lead-in or header that no unit before it shows."""
    return unit.whole if unit.follows_lead else unit.text


def _log_odds(probability: float) -> float:
    clipped = min(max(probability, 1e-6), 1 - 1e-6)
    return max(-_CERTAIN, min(_CERTAIN, math.log(clipped / (1 - clipped))))
