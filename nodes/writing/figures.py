"""Which figures of an answer neither its sources state nor a calculation that it shows gives."""

import math
import re
from collections.abc import Iterable, Iterator, Sequence, Set
from itertools import accumulate, permutations

from domain.text.words import tokenize

_FIGURE = re.compile(r"\d+(?:[.,]\d+)*")
_SHOWN = re.compile(rf"{_FIGURE.pattern}|[+−–*/×·÷]|(?<=\s)[-x:](?=\s)")
"""The figures and signs of a calculation that is written out."""
_UNNAMED = re.compile(r"(?<=\d):00\b|(?<=[×*·/÷]) ?(?:7|12|24|60|100|365|1000)\b")
"""What sources often leave out: the minutes of a full hour (8 p.m. is 20:00), and what one unit has of another."""
_UNITS = (7.0, 12.0, 24.0, 60.0, 100.0, 365.0, 1000.0)
_MOST = 12
"""Figures of a statement that are tried as operands. More stand in lists."""


def find_unstated(statements: Sequence[str], given: Iterable[str]) -> list[str]:
    """Return the statements with a figure that no text which was `given` has, and that none of them computes from
    figures which are given or computed. Statements have no markers."""
    held = {value for text in given for figure in _list_figures(text) for value, _ in _read(figure)}
    # A number in words mostly counts what is spoken of: "two people of that name".
    lacking = {
        each: [found for found in _FIGURE.findall(_UNNAMED.sub("", each)) if not _holds(held, found)]
        for each in statements
    }
    while computed := {
        value
        for each, its in lacking.items()
        if its and (results := _compute(each, held))
        for figure in its
        if _gives(results, figure)
        for value, _ in _read(figure)
    }:
        held |= computed
        lacking = {each: [figure for figure in its if not _holds(held, figure)] for each, its in lacking.items()}
    return [each for each, its in lacking.items() if its]


def _list_figures(text: str) -> list[str]:
    # The key of a number in words is its digits; that of one in digits has lost its decimal comma.
    return [word if word[0].isdigit() else key for word, key in tokenize(text) if key[0].isdigit()]


def _holds(held: Set[float], figure: str) -> bool:
    return any(value in held for value, _ in _read(figure))


def _compute(statement: str, held: Set[float]) -> set[float]:
    """Return what two of the statement's figures that are held, a sum of neighbours, or a calculation that it writes
    out with them gives."""
    operands = [each for each in _list_figures(_UNNAMED.sub("", statement)) if _holds(held, each)][:_MOST]
    known = list(dict.fromkeys(value for each in operands for value, _ in _read(each)))
    results = {total for first in range(len(known)) for total in accumulate(known[first:])}
    results.update(result for pair in permutations(known, 2) for result in _combine(*pair))
    results.update(_calculate(shown, known) for shown in re.split("[=≈]", statement)[:-1])
    return results


def _gives(results: Set[float], figure: str) -> bool:
    """Return True where one of the results is the figure, as precisely as it is written."""
    return any(
        abs(result - value) <= 0.5 * 10**-decimals + 1e-9 for value, decimals in _read(figure) for result in results
    )


def _read(figure: str) -> Iterator[tuple[float, int]]:
    """Yield what a figure may mean, with its decimals: 1,500 is 1500, or in another country 1.5."""
    digits = re.split("[.,]", figure)
    if all(len(each) == 3 for each in digits[1:]):
        yield float("".join(digits)), 0
    if digits[1:]:
        yield float(f"{''.join(digits[:-1])}.{digits[-1]}"), len(digits[-1])


def _combine(one: float, other: float) -> Iterator[float]:
    yield from (one - other, one * other)
    if other:
        yield from (one / other, 100 * one / other, 100 * (one - other) / other)


def _calculate(shown: str, known: Sequence[float]) -> float:
    """Return the result of a calculation from known figures; not a number where it is none."""
    total, term, sign = 0.0, 0.0, ""
    for written in _SHOWN.findall(shown):
        if not written[0].isdigit():
            sign = written
            continue
        value = next((value for value, _ in _read(written) if value in (*known, *_UNITS)), math.nan)
        match sign:
            case "*" | "×" | "·" | "x":
                term *= value
            case "/" | "÷" | ":":
                term = term / value if value else math.nan
            case "":
                total, term = 0.0, value
            case _:
                total, term = total + term, value if sign == "+" else -value
        sign = ""
    return total + term
