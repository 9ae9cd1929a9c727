"""Tables whose rows are parted by rules across alone, or by blank space, and whose cells have several lines.

What stands between two rules or spaces is a row, whatever the order in which its lines were written.
"""

import re
from bisect import bisect
from collections.abc import Iterator, Sequence
from itertools import pairwise

from app.ingest.readers.grids import has_header
from app.ingest.readers.pdf.columns import merge
from app.ingest.readers.pdf.page import Edges, Piece, Run, enclose
from app.ingest.readers.pdf.rules import LONGEST_CELL, SHORTEST, is_across, put_rows, spell
from app.ingest.readers.pdf.tables import CLOSING, FIGURE, NARROW_GAP, OPEN, WIDE_GAP, is_marker

_APART = 3.0
"""Distance between lines, in heights of the type, from which another table begins."""
_FEWEST = 3
"""Rows of a table, its header among them."""
_ROW_GAP = 0.15
"""Heights of the type by which the space between rows is more than that between lines of a cell. Chosen."""
_END_GAP = 0.5
"""The same above a line with one cell."""
_SLACK = 0.25
"""Heights of the type by which lines may overlap."""
_TALLEST = 2.6
"""Heights of the type of lines that overlap. Chosen: those beside a cell in their middle."""
_FILLED = 0.6
"""Share of the cells that hold something: of a drawing there are fewer. Chosen."""
_MOST = 3000
"""Pieces of a page that are looked at. Chosen: of a map there are more."""

_Cells = dict[int, list[Piece]]
_Slab = list[Piece]
"""Pieces at one height, or that overlap in it."""


def fill_bands(runs: Sequence[Run], lines: Sequence[Edges]) -> list[Run]:
    """Return the runs, with one for each row of a table instead of those that stand in it."""
    filled = list(runs)
    regions = _find_regions(_list_slabs(filled))
    for run in filled if regions else ():
        run.pieces = _cut_names(run, regions)
    for region in _find_regions(_list_slabs(filled)) if regions else ():
        left, _, right, _ = enclose([piece for slab in region for piece in slab])
        cuts = [
            (line[1] + line[3]) / 2
            for line in lines
            if is_across(line) and line[0] < left + SHORTEST and line[2] > right - SHORTEST
        ]
        # Rules may stand below the header alone.
        tried = (_replace(filled, region, each) for each in ((cuts, ()) if cuts else ((),)))
        filled = next((each for each in tried if each is not filled), filled)
    return filled


def _is_free(run: Run) -> bool:
    return not (run.columns or run.sideways or run.is_entered)


def _list_slabs(runs: Sequence[Run]) -> list[_Slab]:
    """Return the pieces from top to bottom, with currency signs at their figures."""
    pieces = [piece for run in runs if _is_free(run) for piece in _join_signs(run.pieces)]
    slabs: list[_Slab] = []
    bottom = 0.0
    for piece in sorted(pieces, key=lambda piece: piece.top) if len(pieces) < _MOST else ():
        if not slabs or piece.top >= bottom - _SLACK * (piece.bottom - piece.top):
            slabs.append([])
            bottom = piece.bottom
        slabs[-1].append(piece)
        bottom = max(bottom, piece.bottom)
    return slabs


def _join_signs(pieces: Sequence[Piece]) -> list[Piece]:
    joined: list[Piece] = []
    for piece in pieces:
        if joined and (OPEN.search(joined[-1].text) or CLOSING.match(piece.text)):
            joined[-1] = joined[-1].join(piece)
        else:
            joined.append(piece)
    return joined


def _top(slab: _Slab) -> float:
    return min(piece.top for piece in slab)


def _bottom(slab: _Slab) -> float:
    return max(piece.bottom for piece in slab)


def _middle(slab: _Slab) -> float:
    return (_top(slab) + _bottom(slab)) / 2


def _height(slab: _Slab) -> float:
    return slab[0].bottom - slab[0].top


def _find_regions(slabs: Sequence[_Slab]) -> list[Sequence[_Slab]]:
    """Return lines below each other between whose pieces the same strips are blank."""
    found: list[Sequence[_Slab]] = []
    start = free = 0
    while start < len(slabs):
        end, columns = start, list[Piece]()
        while end < len(slabs):
            slab, height = slabs[end], _height(slabs[end])
            widened = merge([*columns, *slab], NARROW_GAP * height)
            is_near = end == start or _top(slab) - _bottom(slabs[end - 1]) < _APART * height
            if len(widened) < 2 or not is_near or any(_collide(each, widened) for each in slabs[start : end + 1]):
                break
            columns, end = widened, end + 1
        if end - start >= _FEWEST:
            first = start  # above which lines of the header may name one column
            while first > free and _stands_over(slabs[first - 1], slabs[first], columns):
                first -= 1
            found.append(slabs[first:end])
            free = end
        start = max(end, start + 1)
    return found


def _cut_names(run: Run, regions: Sequence[Sequence[_Slab]]) -> list[Piece]:
    """Return the pieces of a run, each word for itself that begins or ends where a column does, if the run stands close
    above lines and then names all of their columns: names may stand no further apart than words."""
    bodies = [body for slabs in regions for body in (slabs, slabs[1:])]  # without the names, or below them
    for slabs in bodies if len(run.pieces) > 1 and _is_free(run) else ():
        height = _height(slabs[0])
        if 0 < _top(slabs[0]) - run.bottom < _APART * height:
            columns = merge([piece for slab in slabs for piece in slab], NARROW_GAP * height)
            cut = [part for piece in run.pieces for part in _cut(piece, columns, height / 2)]
            if len(run.pieces) < len(cut) == len(columns) == len({_find(each, columns) for each in cut}):
                return cut
    return run.pieces


def _cut(piece: Piece, columns: Sequence[Piece], slack: float) -> Iterator[Piece]:
    pitch = (piece.right - piece.left) / len(piece.text)
    for gap in re.finditer(" ", piece.text):
        end, start = piece.left + pitch * gap.start(), piece.left + pitch * gap.end()
        for before, after in pairwise(columns):
            if min(abs(end - before.right), abs(start - after.left)) < slack and piece.left < before.right:
                yield piece._replace(text=piece.text[: gap.start()], right=min(end, before.right))
                rest = piece._replace(text=piece.text[gap.end() :], left=after.left, gap=NARROW_GAP + _SLACK)
                yield from _cut(rest, columns, slack)
                return
    yield piece


def _stands_over(slab: _Slab, below: _Slab, columns: Sequence[Piece]) -> bool:
    """Return True for a line close above another that names some columns, without the first."""
    is_close = _top(below) - _bottom(slab) < _ROW_GAP * _height(below)
    return is_close and all(
        sum(min(piece.right, each.right) > max(piece.left, each.left) for each in columns) == 1
        and piece.left > columns[0].right
        for piece in slab
    )


def _collide(slab: _Slab, columns: Sequence[Piece]) -> bool:
    """Return True where pieces that stand wide apart beside each other would be in one column."""
    placed = sorted(slab, key=lambda piece: piece.left)
    return any(
        _find(before, columns) == _find(after, columns)
        and after.left - before.right > WIDE_GAP * _height(slab)
        and min(before.bottom, after.bottom) - max(before.top, after.top) > _height(slab) / 2
        for before, after in pairwise(placed)
    )


def _find(piece: Piece, columns: Sequence[Piece]) -> int:
    """Return the column in which the piece's middle is, or the nearest. They stand from the left, apart."""
    middle = (piece.left + piece.right) / 2
    after = min(bisect(columns, middle, key=lambda column: column.left), len(columns) - 1)
    return min((max(after - 1, 0), after), key=lambda i: max(columns[i].left - middle, middle - columns[i].right))


def _replace(runs: list[Run], slabs: Sequence[_Slab], cuts: Sequence[float]) -> list[Run]:
    """Return the runs with rows instead of those pieces, if they are a table."""
    height = _height(slabs[0])
    columns = merge([piece for slab in slabs for piece in slab if len(slab) > 1], NARROW_GAP * height)
    bands = _part(slabs, cuts, columns)
    rows = [_fill(band, columns) for band in bands]
    while bands and len(rows[-1]) < 2:  # what stands below the table
        bands, rows = bands[:-1], rows[:-1]
    if not bands or not _is_table(bands, rows, columns):
        return runs
    rows = [{place: _arrange(cell) for place, cell in row.items()} for row in rows]
    texts = [[spell(row[place]) if place in row else "" for place in range(len(columns))] for row in rows]
    if max(len(text) for row in texts for text in row) > LONGEST_CELL:
        return runs
    edges = [(column.left, column.right) for column in columns]
    held = _find_runs(runs, [piece for band in bands for slab in band for piece in slab])
    is_bold = [all(run.bold for run in _find_runs(held, [piece for slab in band for piece in slab])) for band in bands]
    return put_rows(runs, held, edges, rows, texts, int(has_header(texts) and is_bold[0] and not all(is_bold)))


def _find_runs(runs: Sequence[Run], pieces: Sequence[Piece]) -> list[Run]:
    """Return the runs that pieces are of."""
    left, top, right, bottom = enclose(pieces)
    return [
        run
        for run in runs
        if left <= run.left and run.right <= right and top <= run.top and run.bottom <= bottom and _is_free(run)
    ]


def _part(slabs: Sequence[_Slab], cuts: Sequence[float], columns: Sequence[Piece]) -> list[list[_Slab]]:
    """Return the lines of each row: between rules, or between spaces that are wider than those between lines."""
    gaps = [_top(after) - _bottom(before) for before, after in pairwise(slabs)]
    least, height = min(gaps, default=0.0), _height(slabs[0])
    bands = [[slabs[0]]]
    for before, after, gap in zip(slabs, slabs[1:], gaps, strict=False):
        # What stands alone below a cell is its end, sooner than a row.
        is_end = len(after) == 1 and _find(after[0], columns) > 0
        is_cut = any(_middle(before) < cut < _middle(after) for cut in cuts)
        if is_cut or (not cuts and gap > least + (_END_GAP if is_end else _ROW_GAP) * height):
            bands.append([])
        bands[-1].append(after)
    return bands


def _fill(band: Sequence[_Slab], columns: Sequence[Piece]) -> _Cells:
    cells: _Cells = {}
    for slab in band:
        for piece in slab:
            cells.setdefault(_find(piece, columns), []).append(piece)
    return cells


def _arrange(pieces: Sequence[Piece]) -> list[Piece]:
    """Return the pieces of a cell line by line."""
    lines: list[list[Piece]] = []
    for piece in sorted(pieces, key=lambda each: each.top):
        if lines and piece.top < (lines[-1][0].top + lines[-1][0].bottom) / 2:
            lines[-1].append(piece)
        else:
            lines.append([piece])
    return [piece for line in lines for piece in sorted(line, key=lambda each: each.left)]


def _is_table(bands: Sequence[Sequence[_Slab]], rows: Sequence[_Cells], columns: Sequence[Piece]) -> bool:
    """Return True for rows with cells beside each other, some of which go on in further lines where others end. In the
    lines of several rows, each line has all cells, or figures. What stands behind markers is a list."""
    width, height = len(columns), _height(bands[0][0])
    told = [[_is_figure(cell) for place, cell in row.items() if place] for row in rows]
    if (
        len(rows) < _FEWEST
        or sum(map(len, rows)) < _FILLED * len(rows) * width
        or (any(map(any, told)) and all(all(cells) for cells in told if any(cells)) and width > 2)
        or all(is_marker(piece.text) for row in rows for piece in row.get(0, ()))
        or any(
            _bottom(slab) - _top(slab) > _TALLEST * height or _collide(slab, columns) for each in bands for slab in each
        )
    ):
        return False
    wrapped = several = joined = 0
    for band, row in zip(bands[1:], rows[1:], strict=True):
        if any(sum(FIGURE.fullmatch(piece.text) is not None for piece in cell) > 1 for cell in row.values()):
            return False
        wrapped += any(len({_find(piece, columns) for piece in slab}) < len(row) for slab in band[1:])
        beside = [slab for slab in band[1:] if len(slab) > 1]
        several += len(beside)
        joined += sum(any(piece.text[0].islower() for piece in slab) for slab in beside)
    return wrapped * _FEWEST >= len(rows) - 1 and 2 * joined >= several


def _is_figure(cell: Sequence[Piece]) -> bool:
    return all(FIGURE.fullmatch(piece.text) for piece in cell)
