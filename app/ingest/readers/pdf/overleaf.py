"""What goes on overleaf: a table or a sentence is one, and the running lines between its parts come after it."""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile
from typing import NamedTuple

from app.ingest.readers.pdf.margins import TWICE, RunningLines
from app.ingest.readers.pdf.page import Page, PageLine
from app.ingest.readers.pdf.tables import is_figure
from domain.text.tables import join_cells, split_cells

_HEADER = 4
"""Lines of a table in which its header is looked for."""


class Placed(NamedTuple):
    """A line of the document."""

    page: int
    """Counts from 1."""
    number: int
    """Its place among the lines of the page."""
    line: PageLine
    is_margin: bool


def join_pages(pages: list[Page], contents: Sequence[range], running: RunningLines) -> tuple[list[Placed], list[str]]:
    """Return the lines of all pages in the order of the text, and the headers that pages repeat, which are not among
    them. `contents` are the lines of tables of contents."""
    ordered: list[Placed] = []
    header: list[str] = []
    repeated: list[str] = []

    def is_between(each: Placed) -> bool:
        return each.is_margin or running.holds(pages[each.page - 1].lines, each.number, each.page)

    def mark(each: Placed) -> Placed:
        says_nothing = running.says_nothing(pages[each.page - 1].lines, each.number, each.page, TWICE)
        return each._replace(is_margin=each.is_margin or says_nothing)

    for number, page in enumerate(pages, start=1):
        lines = [
            Placed(number, i, line, i in contents[number - 1] or running.says_nothing(page.lines, i, number))
            for i, line in enumerate(page.lines)
        ]
        between = [*takewhile(is_between, reversed(ordered))][::-1]
        kept = len(ordered) - len(between)
        head = [*takewhile(is_between, lines)]
        lower = lines[len(head) :]
        last = ordered[kept - 1] if kept else None
        gap = _find_gap(last.line, lower[0].line) if last and lower else None
        if last and gap == "\n":
            header = _find_header(ordered[max(0, kept - len(pages[last.page - 1].lines)) : kept]) or header
            again = next((i for i, each in enumerate(lower) if each.line.text.split("\n")[0] not in header), 0)
            unnamed = _list_unnamed(lower[again:], header if again else ())
            rest, names = _go_on(last.line, lower[again].line, header, is_unnamed=len(unnamed) > 1)
            if rest.text != lower[again].line.text or _may_follow(last.line, rest):
                lower[again] = lower[again]._replace(line=rest)
                for i, cells in enumerate(unnamed[1:], start=again + 1):
                    text = join_cells([split_cells(last.line.text)[0], *cells])
                    lower[i] = lower[i]._replace(line=replace(lower[i].line, text=text))
                repeated.append(names)
                repeated += [each.line.text for each in lower[:again]]
                del lower[:again]
            else:
                gap = None
        if gap is None:
            ordered += lines
            continue
        lower[0] = lower[0]._replace(line=replace(lower[0].line, gap=gap))
        cut = next((i for i, each in enumerate(lower) if i and each.line.gap == "\n\n"), len(lower))
        ordered[kept:] = [*lower[:cut], *map(mark, [*between, *head]), *lower[cut:]]
    return ordered, repeated


def _find_gap(before: PageLine, line: PageLine) -> str | None:
    """Return what separates two lines if the second, on the next page, goes on with what the first is of."""
    if before.columns and line.columns:
        is_same = len(before.columns) == len(line.columns) and all(
            min(right, other[1]) > max(left, other[0])
            for (left, right), other in zip(before.columns, line.columns, strict=True)
        )
        return "\n" if is_same else None
    alike = before.bold == line.bold and abs(before.height - line.height) <= 0.1 * line.height
    goes_on = before.text[-1] == "," or (before.text[-1] not in ".!?:;" and line.text[0].islower())
    if not alike or before.has_cells or line.has_cells or not goes_on:
        return None
    return "" if re.search(r"\w-$", before.text) else " "


def _list_unnamed(lines: Sequence[Placed], header: Sequence[str]) -> list[list[str]]:
    """Return what rows at the top of a page have besides their first cell, which is empty, or the header's where no
    rule parts it from that: it goes on from the page before."""
    rows = (split_cells(each.line.text) for each in takewhile(lambda each: bool(each.line.columns), lines))
    empty = {"", *(split_cells(line)[0] for line in header)}
    return [cells[1:] for cells in takewhile(lambda cells: cells[0] in empty, rows)]


def _go_on(before: PageLine, line: PageLine, header: Sequence[str], *, is_unnamed: bool) -> tuple[PageLine, str]:
    """Return a row overleaf, without a header that no rule parts from it, which is returned, too, and with the name of
    the row before where it and the next have none, or it has nothing but words that go on with that row's."""
    if "\n" in line.text:
        return line, ""
    cells, names = split_cells(line.text), split_cells(header[-1]) if header else []
    is_fused = len(names) == len(cells) and all(map(str.startswith, cells, names))
    cells = [cell[len(name) :].strip() for cell, name in zip(cells, names, strict=True)] if is_fused else cells
    if is_unnamed or (not cells[0] and not any(map(is_figure, cells))):
        cells[0] = split_cells(before.text)[0]
    return replace(line, text=join_cells(cells)), " ".join(names) if is_fused else ""


def _may_follow(before: PageLine, line: PageLine) -> bool:
    """Return True unless a row is a header, of another table."""
    return "\n" not in line.text and _has_figures(before) <= _has_figures(line)


def _has_figures(line: PageLine) -> bool:
    return any(map(is_figure, split_cells(line.text)[1:]))


def _find_header(lines: Sequence[Placed]) -> list[str]:
    """Return the lines of the header of the table that ends there; none if it begins before."""
    starts = [i for i, each in enumerate(lines) if each.line.gap == "\n\n"]
    first = [each.line.text for each in lines[starts[-1] :][:_HEADER]] if starts else []
    ruled = next((i for i, text in enumerate(first) if "\n" in text), 0)
    return [text.split("\n")[0] for text in first[: ruled + 1]]
