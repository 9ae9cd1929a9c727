"""Lines that answer no question: running titles, page numbers, and tables of contents."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import median

from app.ingest.readers.pdf.headings import LARGER
from app.ingest.readers.pdf.page import Page, PageLine
from domain.documents import Section

_MARGIN_LINES = 2
"""Lines at the top and at the bottom of a page that may be running titles or page numbers."""
_OFTEN = 4
"""Pages that must repeat a line for it to be a running title."""
_FEWEST = 4
"""Entries of a table of contents on a page. Fewer lines may end in such numbers by chance."""
_DRIFT = 5
"""Distances that page numbers may differ by: a printed page may fill more than one of the file's."""
_NUMBER = re.compile(r"(?:^|(?<=\s))\d{1,4}(?=\s*$|[\s/]+(?:\w+\s+)?\d{1,4}$)|^\d{1,4}(?=\s)|(?<=/)\d{1,4}$")
"""A number that may be a page's: alone, at either end of its line, or before that of all pages."""
_APART = 0.6
"""Heights of a line from which what stands at the edge of a page is apart from its text. Chosen."""
_PAGE = re.compile(r"[\s.|…·_](\d{1,4})$")
"""The end of an entry."""
_MOST_PLACES = 20
"""Pages on which the heading that an entry names may stand, or a line like it."""
_LONGEST = 20
"""Words of an entry that are compared with the document's lines."""


class RunningLines:
    """The lines of a document that its pages repeat at their margins."""

    def __init__(self, pages: list[Page]) -> None:
        self._places: defaultdict[str, set[int]] = defaultdict(set)
        for number, page in enumerate(pages, start=1):
            for index in range(len(page.lines)):
                for key in _make_keys(page.lines, index, number):
                    self._places[key].add(number)

    def holds(self, lines: Sequence[PageLine], index: int, page: int, often: int = _OFTEN) -> bool:
        """Return True if the line at `index` is a running title or a page number. `page` counts from 1."""
        return any(len(self._places[key]) >= often for key in _make_keys(lines, index, page))

    def repeats(self, lines: Sequence[PageLine], index: int, page: int) -> bool:
        """Return True for a line that answers no question there: a page number, or one that a page before has said."""
        keys = [key for key in _make_keys(lines, index, page) if len(self._places[key]) >= _OFTEN]
        return bool(keys) and (lines[index].text not in keys or page > min(self._places[lines[index].text]))


def find_contents(pages: Sequence[Page]) -> list[range]:
    """Return the lines of each page that are a table of contents, by their indexes.

    Their numbers rise, and most are those of pages on which the rest of the line stands, if as many pages are added to
    each as come before page 1, or a few more.
    """
    places: defaultdict[str, set[int]] = defaultdict(set)
    for number, page in enumerate(pages, start=1):
        for line in page.lines:
            places[_bare(line.text)].add(number)
    found = []
    for page in pages:
        entries: dict[int, tuple[list[str], int]] = {}
        for i, line in enumerate(page.lines):
            end = _PAGE.search(line.text, max(0, len(line.text) - 5))
            if end and int(end[1]) <= len(pages):
                entries[i] = line.text[: end.start()].split()[-_LONGEST:], int(end[1])
        named: defaultdict[int, dict[int, int]] = defaultdict(dict)
        if all(before <= after for (_, before), (_, after) in pairwise(entries.values())):
            for i, (words, stated) in entries.items():
                # A heading may have its number on a line of its own.
                ends = (places.get(_bare(" ".join(words[k:])), ()) for k in range(len(words)))
                for place in {place for end in ends if len(end) <= _MOST_PLACES for place in end}:
                    for distance in range(_DRIFT):
                        named[place - stated - distance][i] = place
        most = max((len(set(each.values())) for each in named.values()), default=0)
        is_contents = most >= _FEWEST and most * 2 >= len({stated for _, stated in entries.values()})
        found.append(range(min(entries), max(entries) + 1) if is_contents else range(0))
    return found


def _bare(text: str) -> str:
    """Return the letters and digits of a text, to compare it by."""
    return re.sub(r"[\W_]", "", text).casefold()


def leave_out(section: Section, spans: Sequence[tuple[int, int]]) -> Iterator[Section]:
    """Yield the section's parts between `spans`, which answer no question."""
    start = section.start
    for cut, after in spans:
        if section.start <= cut and after <= section.end:
            if start < cut:
                yield replace(section, start=start, end=cut)
            start = after
    if start < section.end:
        yield replace(section, start=start)


def _make_keys(lines: Sequence[PageLine], index: int, page: int) -> set[str]:
    """Return the text of a line at a page's margin, and the same with its numbers relative to the page's: page numbers
    then become equal on all pages, chapter numbers do not. These stand alone and first or last, apart from the text."""
    has_body = len(lines) > 2 * _MARGIN_LINES
    line, is_above = lines[index], index < _MARGIN_LINES
    if not has_body or line.has_cells or _MARGIN_LINES <= index < len(lines) - _MARGIN_LINES:
        return set()
    relative = _NUMBER.sub(lambda digits: f"#{int(digits[0]) - page}", line.text)
    edge = lines[index : _MARGIN_LINES + 1] if is_above else lines[len(lines) - _MARGIN_LINES - 1 : index + 1]
    gaps = (
        (after.box["y"] - before.box["y"] - before.box["height"]) / line.box["height"]
        for before, after in pairwise(edge)
    )
    is_page = max(gaps, default=0.0) > _APART and line.height < LARGER * median(each.height for each in lines)
    return {line.text, relative} if is_page else {line.text}
