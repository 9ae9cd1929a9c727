"""Lines that answer no question: repeated running titles, page numbers, and tables of contents."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import median

from app.ingest.readers.pdf.page import Page, PageLine
from domain.documents import Section
from domain.text.languages import LANGUAGES, read_words

_MARGIN_LINES = 2
"""Lines at the top and at the bottom of a page that may be running titles or page numbers."""
TWICE, _OFTEN, _MANY = 2, 4, 20
"""Pages that must repeat a line for it to stand between the parts of what goes on, to be a running title, and for a
number at its end to be the page's. Chosen."""
_APART, _WIDER = 1.2, 1.5
"""Room between such a line and the body: in heights of the line, and in rooms between two lines of the body. Chosen."""
_NUMBER = re.compile(r"(?<![^\W_])(\d{1,4})(?![^\W_])")
_AT_END = re.compile(r"(?:^|\s(?=\d+$))(\d{1,4})(?=\s|$)")
_NAMES = "|".join(sorted({re.escape(name) for each in LANGUAGES for name in read_words(each).pages}))
_PAGE_NUMBER = re.compile(
    rf"(?:^[\W_]*|[|·•–—]\s*|\s[-/]\s+|\b(?:{_NAMES})\.?\s*)(\d{{1,4}})"
    r"(?=[\W_]*$|\s*[|·•–—]|\s+[-/]\s|\s*(?:/|\s[^\W\d_]{1,4}\s)\s*\d{1,4}\b)",
    re.IGNORECASE,
)
"""A number that stands alone, between marks, or behind the word for a page, and before the number of all pages."""
_NUMBERED = re.compile(rf"(?:[\W\d_]|\b(?:{_NAMES})\b|(?<=\d\s)[^\W\d_]{{1,4}}(?=\s\d))+", re.IGNORECASE)
"""A line that has a page's number and no other words."""
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
    """The lines of a document that its pages repeat at their margins, apart from the body: the same words, or the same
    beside a number that counts the pages."""

    def __init__(self, pages: Sequence[Page]) -> None:
        self._places: dict[str, list[int]] = defaultdict(list)
        """The pages that have a line, by its keys."""
        for number, page in enumerate(pages, start=1):
            for key in {key for i in range(len(page.lines)) for key in _make_keys(page.lines, i, number)}:
                self._places[key].append(number)
        # Where all pages have few lines, these are the body.
        full = {number for number, page in enumerate(pages, start=1) if len(page.lines) > 2 * _MARGIN_LINES}
        self._places = {key: found for key, found in self._places.items() if not full.isdisjoint(found)}

    def holds(self, lines: Sequence[PageLine], index: int, page: int, often: int = TWICE) -> bool:
        """Return True if `often` pages have such a line as that at `index`. `page` counts from 1."""
        return bool(self._find(lines, index, page, _NUMBER, often))

    def says_nothing(self, lines: Sequence[PageLine], index: int, page: int, often: int = _OFTEN) -> bool:
        """Return True if that line is a page's number, or says again what one on a page before says. A line is read
        where it stands first: nothing else may say it. Other numbers than a page's may rise from page to page, too."""
        before = self._find(lines, index, page, _PAGE_NUMBER, often) or self._find(lines, index, page, _AT_END, _MANY)
        return bool(before) and (min(map(min, before)) < page or _NUMBERED.fullmatch(lines[index].text) is not None)

    def may_count(self, lines: Sequence[PageLine], index: int, page: int) -> bool:
        """Return True if only the number of such lines speaks for their numbers being the pages'."""
        counted = self._find(lines, index, page, _AT_END, _MANY)
        return bool(counted) and not self._find(lines, index, page, _PAGE_NUMBER, TWICE)

    def _find(
        self, lines: Sequence[PageLine], index: int, page: int, number: re.Pattern[str], often: int
    ) -> list[list[int]]:
        places = (self._places.get(key, []) for key in _make_keys(lines, index, page, number))
        return [each for each in places if len(each) >= often]


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


def _make_keys(lines: Sequence[PageLine], index: int, page: int, number: re.Pattern[str] = _NUMBER) -> Iterator[str]:
    """Yield a line's text, and the same with a `number` relative to the page's: page numbers then become equal on all
    pages. Nothing for a line of the body."""
    text = lines[index].text
    if _MARGIN_LINES <= index < len(lines) - _MARGIN_LINES or lines[index].has_cells or not _is_apart(lines, index):
        return
    yield text
    for found in number.finditer(text):
        yield f"{text[: found.start(1)]}#{int(found[1]) - page}{text[found.end(1) :]}"


def _is_apart(lines: Sequence[PageLine], index: int) -> bool:
    """Return True if there is more room between a line and the body than between the lines of the body."""
    boxes = [line.box for line in lines]
    rooms = [abs(below["y"] - above["y"] - above["height"]) for above, below in pairwise(boxes)]
    body = rooms[_MARGIN_LINES : len(rooms) - _MARGIN_LINES]
    least = max(_APART * boxes[index]["height"], _WIDER * median(body) if body else 0)
    is_top = index < _MARGIN_LINES
    between = rooms[index:_MARGIN_LINES] if is_top else rooms[len(rooms) - _MARGIN_LINES : index]
    return any(room > least for room in between)
