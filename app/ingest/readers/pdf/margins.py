"""Lines that answer no question: running titles, page numbers, and tables of contents."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

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
_PAGE = re.compile(r"[\s.|…·_](\d{1,4})$")
"""The end of an entry."""
_MOST_PLACES = 20
"""Pages on which the heading that an entry names may stand, or a line like it."""
_LONGEST = 20
"""Words of an entry that are compared with the document's lines."""


class RunningLines:
    """The lines of a document that its pages repeat at their margins."""

    def __init__(self, pages: list[Page]) -> None:
        self._counts = Counter(
            key
            for number, page in enumerate(pages, start=1)
            for key in {
                key
                for index, line in enumerate(page.lines)
                if _is_at_margin(page.lines, index)
                for key in _make_keys(line, number)
            }
        )

    def holds(self, lines: Sequence[PageLine], index: int, page: int, often: int = _OFTEN) -> bool:
        """Return True if the line at `index` is a running title or a page number. `page` counts from 1."""
        return _is_at_margin(lines, index) and any(self._counts[key] >= often for key in _make_keys(lines[index], page))


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


def _make_keys(line: PageLine, page: int) -> set[str]:
    """Return the line's text, and the same with its numbers relative to the page's: page numbers then become equal on
    all pages, chapter numbers do not."""
    relative = re.sub(r"\d{1,4}", lambda digits: f"#{int(digits[0]) - page}", line.text)
    return {line.text, relative}


def _is_at_margin(lines: Sequence[PageLine], index: int) -> bool:
    has_body = len(lines) > 2 * _MARGIN_LINES
    return has_body and not _MARGIN_LINES <= index < len(lines) - _MARGIN_LINES and not lines[index].has_cells
