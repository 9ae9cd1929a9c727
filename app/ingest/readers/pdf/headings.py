"""Headings: short lines in type larger than the body's, or bold ones that stand alone."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby

from app.ingest.readers.pdf.page import Page, PageLine

LONGEST_HEADING = 150

LARGER = 1.15
"""A line whose type is this many times the height of the body's is a heading."""
_CENTRED = 2
"""Largest distance of a centred line's middle from the page's, in percent of the page's width."""
_TABLE_HEADER_LINES = 4
"""This many bold lines in a row, unless centred, are the cells of a table's header rather than headings."""


def rank_headings(
    pages: list[Page], is_running: Callable[[Sequence[PageLine], int, int], bool]
) -> list[dict[int, int]]:
    """Return the headings of each page: index of the line to level, where the largest type has level 1. `is_running`
    is given a line by its page's lines, its index, and its page, which counts from 1.

    A line that stands on several pages is a running title, not a heading.
    """
    body = _measure_body(page.lines for page in pages)
    found = [set(_find_headings(page.lines, body)) for page in pages]
    counts = Counter(_key(page.lines[i]) for page, indexes in zip(pages, found, strict=True) for i in indexes)
    often = max(2, len(pages) // 10)
    sizes = sorted({size for (size, _), count in counts.items() if count <= often}, reverse=True)
    return [
        {
            i: sizes.index(_round(page.lines[i].height)) + 1
            for i in indexes
            if counts[_key(page.lines[i])] <= often and not is_running(page.lines, i, number)
        }
        for number, (page, indexes) in enumerate(zip(pages, found, strict=True), start=1)
    ]


def reads_like_heading(text: str) -> bool:
    """Return True if the text is short, has words, and ends neither like a sentence nor like a table row."""
    short = len(text) <= LONGEST_HEADING and text[-1] not in ".,;" and " | " not in text
    return short and re.search(r"[^\W\d_]{2}", text) is not None


def _find_headings(lines: list[PageLine], body: float) -> Iterator[int]:
    """Yield the indexes of lines that look like headings, given the height of the body's type."""
    smallest = LARGER * max(body, _measure_body([lines]))  # an annex may be set in larger type throughout
    short = [reads_like_heading(line.text) for line in lines]
    bold: list[bool] = []
    for line, is_short in zip(lines, short, strict=True):
        is_next_line = line.gap != "\n\n" and bold[-1:] == [True]
        bold.append(line.bold and is_short and (is_next_line or not line.text[0].islower()))
    for is_bold, run in groupby(range(len(lines)), key=lambda i: bold[i]):
        first, *others = run
        after = first + 1 + len(others)
        opens = (
            first == 0 or lines[first].gap == "\n\n" or (lines[first].gap == "\n" and not lines[first - 1].has_cells)
        )
        closes = after == len(lines) or lines[after].gap != " "
        centred = all(abs(line.box["x"] + line.box["width"] / 2 - 50) < _CENTRED for line in lines[first:after])
        if is_bold and opens and closes and (centred or after - first < _TABLE_HEADER_LINES):
            yield from (i for i in range(first, after) if _round(lines[i].height) >= body)
    yield from (i for i, line in enumerate(lines) if line.height >= smallest and short[i])


def _key(line: PageLine) -> tuple[float, str]:
    """Return a key that is equal for lines that look and read alike."""
    return _round(line.height), line.text


def _round(height: float) -> float:
    return round(height * 2) / 2


def _measure_body(pages: Iterable[list[PageLine]]) -> float:
    """Return the height in which most characters are set, in points."""
    characters: Counter[float] = Counter()
    for lines in pages:
        for line in lines:
            characters[_round(line.height)] += len(line.text)
    return max(characters, key=lambda height: characters[height], default=0.0)
