"""Finds tables in extracted text: rows are lines whose cells have " | " between them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile

BAR = " | "

_VALUE = re.compile(r"[$€£¥(\s+−–—-]*\d(?!.*/)(?!\d{3}\s*$)(?!\d*(?:st|nd|rd|th)\b)|[—–-]$")
"""The beginning of a cell that holds a value. Years, dates and ordinals stand in headers, so they do not count."""
_RULE = re.compile(r"[\s|:=+-]+")
_LINE = re.compile(r"[^\n]+")
_LONGEST_LABEL = 80
"""Limit, in characters, of a line without cells between two rows."""
_LONGEST_CAPTION = 200
_LONGEST_HEADER = 300
_MOST_CAPTIONS = 3
_MOST_LABELS = 2
"""Limit of lines without cells between two rows."""
_MOST_HEADER_ROWS = 4

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Table:
    """The place of a table in its text. `header` covers the rows before the first one with a value, and is empty where
    there are none; `captions` are the lines before the table that say what it is about."""

    start: int
    end: int
    header: Span
    captions: tuple[Span, ...]
    labels: tuple[Span, ...]
    """Lines without cells between the rows. Each says what the rows below it are about."""


def is_value(cell: str) -> bool:
    """Return True for a cell that holds a figure, as the cells of a header do not."""
    return _VALUE.match(cell.strip()) is not None


def find_tables(text: str) -> Iterator[Table]:
    """Yield the tables of a text, in order."""
    before: list[Span] = []
    rows: list[Span] = []
    labels: list[Span] = []
    for line in _LINE.finditer(text):
        span = line.span()
        if BAR in line[0]:
            rows += [*labels, span] if rows else [span]
            labels = []
        elif rows and len(line[0]) <= _LONGEST_LABEL and len(labels) < _MOST_LABELS and line[0].rstrip()[-1:] != ".":
            labels.append(span)
        else:
            if rows:
                yield from _make_table(text, before, rows)
            before = [*before, *rows, *labels, span][-_MOST_CAPTIONS:]
            rows, labels = [], []
    if rows:
        yield from _make_table(text, before, rows)


def _make_table(text: str, before: list[Span], rows: list[Span]) -> Iterator[Table]:
    if len([span for span in rows if BAR in text[slice(*span)]]) < 2:
        return
    header_end = rows[0][0]
    for start, end in rows[:_MOST_HEADER_ROWS]:
        cells = text[start:end].split(BAR)
        has_value = any(map(is_value, cells[1:])) and not _RULE.fullmatch(text[start:end])
        if BAR not in text[start:end] or has_value or end - rows[0][0] > _LONGEST_HEADER:
            break
        header_end = end
    captions = tuple(_find_captions(text, before))
    labels = tuple(span for span in rows if BAR not in text[slice(*span)])
    yield Table(rows[0][0], rows[-1][1], (rows[0][0], header_end), captions, labels)


def _find_captions(text: str, before: list[Span]) -> Iterator[Span]:
    """Yield the sentence that announces the table, or the short lines above it."""
    if before and text[slice(*before[-1])].rstrip().endswith(":"):
        start, end = before[-1]
        sentence = text.rfind(". ", start, end)
        start = start if sentence < 0 else sentence + 2
        if end - start <= _LONGEST_CAPTION:
            yield start, end
        return
    short = takewhile(lambda span: span[1] - span[0] <= _LONGEST_LABEL and BAR not in text[slice(*span)], before[::-1])
    yield from list(short)[::-1]
