"""Tables that are drawn with rules: what stands between the same lines is one cell, however long its text is."""

import ctypes
from bisect import bisect
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import islice, pairwise, takewhile, zip_longest
from typing import Any, NamedTuple

import pypdfium2
from pypdfium2 import raw

from app.ingest.readers.assembly import MOST_HEADERS, join_headers
from app.ingest.readers.grids import has_header
from app.ingest.readers.grids import is_figure as is_count
from app.ingest.readers.pdf.characters import View
from app.ingest.readers.pdf.page import Edges, Piece, Run, Skipped, enclose
from app.ingest.readers.pdf.tables import FIGURE, attach
from domain.text.tables import join_cells, write_rule

NEAR = 2.0
"""Distance in points up to which lines meet, and a rectangle is a line."""
SHORTEST = 6.0
"""Length in points above which a line may part cells. The ends of double lines are shorter."""
LONGEST_CELL = 1500
"""Characters of a cell. A longer one is a column of text in a frame. Chosen."""
_ABOVE = 2
"""Lines of a page's margin that may stand above what goes on there. Chosen."""
_MOST = 3000
"""Lines that are drawn on a page. One with more is a picture."""
_LARGE = 0.04
"""Share of the page that a picture needs to be no logo. Chosen."""
_MIDDLE = (0.35, 0.75)
"""Part of a word's height, from its top, in which a line that goes through it lies. Chosen."""
_BEYOND = 1.5
"""Heights of the type by which such a line is longer than what it strikes out. Chosen."""
_SIDES = 5
"""Steps in which a rectangle is drawn."""
_SHAPES = 10
"""Shapes other than lines and rectangles that make a drawing. Chosen."""


class _Rule(NamedTuple):
    """A line at `at`, from `start` to `end`, across the page or down it."""

    at: float
    start: float
    end: float


class Grid:
    """The rules of a table, in points from the top left of the page, and the edges that part its columns and rows."""

    def __init__(self, across: Sequence[_Rule], down: Sequence[_Rule]) -> None:
        self.across, self.down = across, down
        # A table may be open at its sides.
        self.xs, self.ys = _unite((rule.at for rule in down), across), _unite((rule.at for rule in across), down)

    def parts(self, before: float, after: float, y: float) -> bool:
        """Return True if an edge between columns stands between two words at this height, from right to left edge."""
        return self.ys[0] < y < self.ys[-1] and any(before - NEAR < x < after + NEAR for x in self.xs)

    def find(self, piece: Piece) -> tuple[int, range] | None:
        """Return row and columns of the cell in which a piece stands. Of rows that it spans the first."""
        x, y = (piece.left + piece.right) / 2, (piece.top + piece.bottom) / 2
        column, row = bisect(self.xs, x) - 1, bisect(self.ys, y) - 1
        if not (0 <= column < len(self.xs) - 1 and 0 <= row < len(self.ys) - 1):
            return None
        parting = [edge for edge, x in enumerate(self.xs) if _crosses(self.down, x, y)]
        start, end = column, column + 1
        # Where rules part columns in the header alone, what stands in one of them is its cell.
        if not self._is_within(piece, column) or any(0 < edge < len(self.xs) - 1 for edge in parting):
            start = max((edge for edge in parting if edge <= column), default=0)
            end = min((edge for edge in parting if edge > column), default=len(self.xs) - 1)
        while row > 0 and not _crosses(self.across, self.ys[row], x):
            row -= 1
        return row, range(start, end)

    def place(self, cell: range, pieces: Sequence[Piece], *, is_name: bool) -> Sequence[int]:
        """Return for each piece of a cell the column under whose name it stands; nothing where that is not so of each:
        what goes over columns, stands in the middle of several or names them is said of all."""
        places = [bisect(self.xs, (piece.left + piece.right) / 2) - 1 for piece in pieces]
        left, _, right, _ = enclose(pieces)
        off_middle = abs(left + right - self.xs[cell.start] - self.xs[cell.stop]) / 2
        is_shared = (is_name or off_middle < NEAR) and len({*places}) == 1 < len(cell)
        return places if not is_shared and all(map(self._is_within, pieces, places)) else ()

    def _is_within(self, piece: Piece, column: int) -> bool:
        return self.xs[column] - NEAR < piece.left and piece.right < self.xs[column + 1] + NEAR

    def spans(self, row: int, other: int, column: int) -> bool:
        """Return True if no rule parts two rows in a column."""
        x = (self.xs[column] + self.xs[column + 1]) / 2
        return not any(_crosses(self.across, y, x) for y in self.ys[row + 1 : other + 1])


class Drawn:
    """What is drawn on a page besides its text. Asks PDFium, so hold its lock."""

    def __init__(self, page: pypdfium2.PdfPage, view: View) -> None:
        self.pictures: list[Edges] = []
        self._shapes = 0
        self._paper: float = view.width * view.height
        self.lines = list(islice(self._read_lines(page, view), _MOST))
        across = (line for line in self.lines if is_across(line))
        self._across = sorted(across, key=lambda line: line[1])

    @property
    def covered(self) -> float:
        """Return the share of the page that pictures cover."""
        return sum(map(_measure, self.pictures)) / self._paper

    def strikes(self, word: Piece, line: Edges) -> bool:
        """Return True if a line goes through a word that is hardly longer than the line of the word."""
        height = word.bottom - word.top
        first = bisect(self._across, word.top + _MIDDLE[0] * height, key=lambda rule: rule[1])
        return any(
            line[0] - _BEYOND * height <= rule[0] <= word.left + NEAR
            and word.right - NEAR <= rule[2] <= line[2] + _BEYOND * height
            for rule in takewhile(lambda rule: rule[3] < word.top + _MIDDLE[1] * height, self._across[first:])
        )

    def skipped(self) -> Iterator[Skipped]:
        """Yield what is drawn and not read."""
        if large := sum(_measure(each) >= _LARGE * self._paper for each in self.pictures):
            yield "picture", "", large
        if self._shapes >= _SHAPES:
            yield "drawing", "", 1

    def _read_lines(self, page: pypdfium2.PdfPage, view: View) -> Iterator[Edges]:
        """Yield the straight lines that are drawn, and rectangles that are as thin, as boxes on the page as shown.

        Asks PDFium itself, because most objects are text, for which the package's would be made too.
        """
        box = [ctypes.c_float() for _ in range(4)]
        x, y, fill, stroke = ctypes.c_float(), ctypes.c_float(), ctypes.c_int(), ctypes.c_int()
        placed = raw.FS_MATRIX()
        for number in range(raw.FPDFPage_CountObjects(page)):
            each = raw.FPDFPage_GetObject(page, number)
            kind = raw.FPDFPageObj_GetType(each)
            if kind == raw.FPDF_PAGEOBJ_TEXT or not raw.FPDFPageObj_GetBounds(each, *box):
                continue
            left, bottom, right, top = (edge.value for edge in box)
            edges = view.show(raw.FS_RECTF(left, top, right, bottom))
            if _is_picture(each, kind):
                self.pictures.append(edges)
            if kind != raw.FPDF_PAGEOBJ_PATH:
                continue
            if min(right - left, top - bottom) <= NEAR:
                yield edges
                continue
            count = min(raw.FPDFPath_CountSegments(each), _MOST)
            self._shapes += count > _SIDES
            raw.FPDFPath_GetDrawMode(each, fill, stroke)
            raw.FPDFPageObj_GetMatrix(each, placed)
            matrix = pypdfium2.PdfMatrix.from_raw(placed)
            start = last = (0.0, 0.0)
            for index in range(count if stroke.value else 0):
                segment = raw.FPDFPath_GetPathSegment(each, index)
                raw.FPDFPathSegment_GetPoint(segment, x, y)
                point = matrix.on_point(x.value, y.value)
                drawn = raw.FPDFPathSegment_GetType(segment)
                start = point if drawn == raw.FPDF_SEGMENT_MOVETO else start
                if drawn == raw.FPDF_SEGMENT_LINETO:
                    yield view.show(raw.FS_RECTF(*last, *point))
                if raw.FPDFPathSegment_GetClose(segment):
                    yield view.show(raw.FS_RECTF(*point, *start))
                last = point


def _is_picture(drawn: Any, kind: int, depth: int = 3) -> bool:
    """Return True for a picture, and for what holds one."""
    if kind != raw.FPDF_PAGEOBJ_FORM or not depth:
        return bool(kind == raw.FPDF_PAGEOBJ_IMAGE)
    parts = (raw.FPDFFormObj_GetObject(drawn, i) for i in range(min(raw.FPDFFormObj_CountObjects(drawn), _MOST)))
    return any(_is_picture(part, raw.FPDFPageObj_GetType(part), depth - 1) for part in parts)


def is_across(line: Edges) -> bool:
    """Return True for a rule across the page. One that is 1 point thick has a box of 2, about."""
    left, top, right, bottom = line
    return round(bottom - top, 3) <= NEAR and right - left > SHORTEST


def _measure(edges: Edges) -> float:
    left, top, right, bottom = edges
    return (right - left) * (bottom - top)


def find_grids(lines: Iterable[Edges]) -> list[Grid]:
    """Return the grids of rules of a page, which have two columns at least."""
    across: list[_Rule] = []
    down: list[_Rule] = []
    for left, top, right, bottom in lines:
        if is_across((left, top, right, bottom)):
            across.append(_Rule((top + bottom) / 2, left, right))
        elif is_across((top, left, bottom, right)):
            down.append(_Rule((left + right) / 2, top, bottom))
    across, down = _join(across), _join(down)
    grids = []
    while across:
        # The rules that meet, directly or through others.
        rows, columns, fresh = [], [], [across.pop()]
        while fresh:
            rows += fresh
            met = [rule for rule in down if any(_meet(each, rule) for each in fresh)]
            down = [rule for rule in down if rule not in met]
            columns += met
            fresh = [rule for rule in across if any(_meet(rule, each) for each in met)]
            across = [rule for rule in across if rule not in fresh]
        if columns:
            grids.append(Grid(rows, columns))
    return [grid for grid in grids if len(grid.xs) > 2 and len(grid.ys) > 1]


def fill_grids(runs: Sequence[Run], grids: Sequence[Grid]) -> list[Run]:
    """Return the runs, with one for each row of a grid instead of those that stand in it. The first rows are a header
    where they alone are bold."""
    filled = list(runs)
    for grid in grids:
        inside = [run for run in filled if all(grid.find(piece) for piece in run.pieces)]
        held: dict[tuple[int, range], list[Piece]] = {}
        plain: set[int] = set()
        for run in inside:
            for piece in run.pieces:
                if cell := grid.find(piece):
                    held.setdefault(cell, []).append(piece)
                    plain.update(() if run.bold else (cell[0],))
        longest = max((sum(len(piece.text) for piece in pieces) for pieces in held.values()), default=0)
        several = sum(count > 1 for count in Counter(row for row, _ in {(row, cell[0]) for row, cell in held}).values())
        # What a page before has begun may end with one row, at the top.
        is_top = sum(run.bottom < grid.ys[0] + NEAR for run in filled) <= _ABOVE
        if any(map(_is_stacked, held.values())) or several < (1 if is_top else 2) or longest > LONGEST_CELL:
            continue
        first = min(plain, default=0)
        placed = {(row, at): grid.place(at, held[row, at], is_name=row < first) for row, at in held}
        # What it names there may go on, too, in one empty cell beside all rows.
        named = {0} if is_top and len(grid.ys) > 2 and grid.spans(0, len(grid.ys) - 2, 0) else set[int]()
        columns = sorted({column for cell, places in placed.items() for column in places or cell[1][:1]} | named)
        edges = [(grid.xs[column], grid.xs[column + 1]) for column in columns]
        rows: dict[int, dict[int, list[Piece]]] = {}
        for (row, span), pieces in held.items():
            # As on web pages, what spans columns is said in each, unless it is about all.
            said = [column for column in columns if column in span] if {*columns} - {*span} else span[:1]
            for piece, own in zip_longest(pieces, placed[row, span]):
                for column in said if own is None else (own,):
                    rows.setdefault(row, {}).setdefault(column, []).append(piece)
        last = max((row for row in rows if row < first and max(rows[row]) > columns[0]), default=-1)
        header = sum(row <= last for row in rows)
        texts: list[list[str]] = []
        for above, row in pairwise([-1, *sorted(rows)]):
            cells = {column: spell(rows[row][column]) for column in rows[row]}
            # What spans rows is said in each, so that each can be read alone.
            spanned = [texts and grid.spans(above, row, column) for column in columns]
            texts.append(
                [cells.get(column, texts[-1][place] if spanned[place] else "") for place, column in enumerate(columns)]
            )
        filled = put_rows(filled, inside, edges, [rows[row] for row in sorted(rows)], texts, header)
    return filled


def spell(cell: Sequence[Piece]) -> str:
    """Return the words of a cell."""
    return reduce(attach, cell).text


def put_rows(
    runs: Sequence[Run],
    held: Sequence[Run],
    edges: Sequence[tuple[float, float]],
    rows: Sequence[Mapping[int, Sequence[Piece]]],
    texts: Sequence[Sequence[str]],
    headers: int,
) -> list[Run]:
    """Return the runs, with rows of a table, of which the first `headers` are its header, instead of those that it
    holds. Names above figures are a header, too."""
    if not headers and has_header(texts) and any(map(is_count, texts[1][1:])):
        headers = 1
    if 1 < headers <= MOST_HEADERS:
        above = [piece for row in rows[:headers] for cell in row.values() for piece in cell]
        rows, texts, headers = [{0: above}, *rows[headers:]], [join_headers(texts[:headers]), *texts[headers:]], 1
    made: list[Run] = []
    for row, cells in zip(rows, texts, strict=True):
        text = join_cells(cells)
        pieces = [piece for cell in row.values() for piece in cell]
        text += f"\n{write_rule(len(cells))}" if len(made) + 1 == headers else ""
        around, heights = enclose(pieces), [piece.bottom - piece.top for piece in pieces]
        made.append(Run(text, *around, heights, [Piece(text.split("\n")[0], *around)], tabular=True, columns=edges))
    first, gone = runs.index(held[0]), {id(run) for run in held}
    return [*runs[:first], *made, *(run for run in runs[first:] if id(run) not in gone)]


def _is_stacked(pieces: Sequence[Piece]) -> bool:
    """Return True for figures that stand below each other, each of a row that no rule parts from the next."""
    figures = [piece for piece in pieces if FIGURE.fullmatch(piece.text)]
    below = sum(after.top >= before.bottom - NEAR for before, after in pairwise(figures))
    return below > 1 and len(figures) * 2 > len(pieces)


def _join(rules: Iterable[_Rule]) -> list[_Rule]:
    """Join the rules that lie on each other or go on from each other."""
    joined: list[_Rule] = []
    for rule in sorted(rules, key=lambda rule: (round(rule.at / NEAR), rule.start)):
        last = joined[-1] if joined else None
        if last and abs(rule.at - last.at) <= NEAR and last.start - NEAR <= rule.start <= last.end + NEAR:
            joined[-1] = last._replace(end=max(last.end, rule.end))
        else:
            joined.append(rule)
    return joined


def _unite(edges: Iterable[float], rules: Iterable[_Rule]) -> list[float]:
    """Return the places of rules, and where those that meet them begin and end."""
    ends = [end for rule in rules for end in (rule.start, rule.end)]
    united: list[float] = []
    for edge in sorted([*edges, min(ends), max(ends)]):
        if not united or edge - united[-1] > NEAR:
            united.append(edge)
    return united


def _meet(across: _Rule, down: _Rule) -> bool:
    return down.start - NEAR <= across.at <= down.end + NEAR and across.start - NEAR <= down.at <= across.end + NEAR


def _crosses(rules: Iterable[_Rule], at: float, place: float) -> bool:
    """Return True if one of the rules is at an edge, beside a place along it."""
    return any(abs(rule.at - at) <= NEAR and rule.start <= place <= rule.end for rule in rules)
