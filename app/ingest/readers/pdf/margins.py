"""Running titles and page numbers: lines that many pages repeat at their upper or lower edge."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from app.ingest.readers.pdf.page import Page, PageLine
from domain.documents import Section

_MARGIN_LINES = 2
"""Lines at the top and at the bottom of a page that may be running titles or page numbers."""
_OFTEN = 4
"""Pages that must repeat a line for it to be a running title."""


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

    def holds(self, lines: Sequence[PageLine], index: int, page: int) -> bool:
        """Return True if the line at `index` is a running title or a page number. `page` counts from 1."""
        return _is_at_margin(lines, index) and any(
            self._counts[key] >= _OFTEN for key in _make_keys(lines[index], page)
        )


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
