"""Columns of tables: cells come under those of other rows, and the lines of a header over the columns they name.

The cells of a header have several lines, span columns, and stand anywhere in the content stream, so their places alone
tell what they belong to.
"""

import math
from bisect import bisect, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from statistics import median

from app.ingest.readers.pdf.headings import LARGER
from app.ingest.readers.pdf.page import Piece, Run, enclose
from app.ingest.readers.pdf.tables import has_figures, is_figure, part_joined
from domain.text.tables import join_cells, split_cells, write_rule

_APART = 3
"""Distance between rows, in heights of the type, from which another table begins."""
_HIGHEST_GAP = 2
"""Distance above a line of a header, in heights of the type, from which what is above is none of it."""
_SAME_CELL = 0.25
"""Distance between lines, in heights of the type, up to which they may be of the same cell."""
_MOST_LINES = 4
"""Lines of a header with as many cells as there are columns."""
_OVERLAP = -0.8
"""The same for lines that overlap, down to which they are not beside each other."""
_TIGHT = 0.9
"""Distance between the lines of a label, as a share of that between rows."""


def align_tables(runs: Sequence[Run]) -> list[Run]:
    """Return the runs, where the cells of a table's rows stand under each other, and the lines of its header are one
    row that is ruled off."""
    bodies = list(_find_bodies(runs))
    free = set(range(len(runs))).difference(*bodies)
    upward = sorted(free, key=lambda i: runs[i].bottom)
    headers: dict[int, Run] = {}
    for body in bodies:
        rows = [runs[i] for i in body]
        columns = _find_columns(rows)
        if len(columns) < 2:
            continue
        first = body[0]
        if any(map(has_figures, rows)) and (lines := _find_header(runs, upward, free, rows, columns)):
            named, header = _read_header([runs[i] for i in lines], columns)
            # What names few of the columns is the end of a cell above.
            if sum(map(bool, split_cells(header.text.split("\n")[0])[1:])) * 2 >= len(named) - 1:
                first = min(first, *lines)
                columns, headers[first] = named, header
                header.columns = [(column.left, column.right) for column in columns]
                free -= lines
        _join_labels(runs, free, body, columns)
        _join_cells(runs, free, body, columns)
        for i in free.intersection(range(first, body[-1])):
            if _is_label(runs[i], columns):
                runs[i].tabular, runs[i].bold = True, False
        for row in rows:
            if len(set(_find_places(row.cells, columns))) == len(row.cells):
                row.text = join_cells(_place(row.cells, columns))
                row.columns = [(column.left, column.right) for column in columns]
    kept = free.union(*bodies)
    aligned: list[Run] = []
    for i, run in enumerate(runs):
        aligned += [headers[i]] if i in headers else []
        aligned += part_joined(run) if i in kept else []
    return aligned


def _find_bodies(runs: Sequence[Run]) -> Iterator[list[int]]:
    """Yield the indexes of each table's rows below its header. Labels may stand between them."""
    rows: list[int] = []
    has_body, edge, last = False, math.inf, 0
    for i, run in enumerate(runs):
        is_row, figures = bool(run.cells), has_figures(run)
        if rows:
            gap = (run.top - runs[last].bottom) / max(run.height, 1)
            is_rest_of_cell = not is_row and run.left >= edge - 1 and gap < _SAME_CELL
            is_in_first_column = not is_row and run.right <= edge
            # Below the first figures, a row without any begins another table.
            is_next_row = is_row and (figures or not has_body)
            is_near = _OVERLAP < gap < _APART
            if not (is_near and (is_next_row or is_in_first_column or is_rest_of_cell)):
                if has_body or len(rows) > 1:
                    yield rows
                rows, has_body, edge = [], False, math.inf
            if is_rest_of_cell:
                last = i
        if is_row:
            if figures and not has_body:
                rows = _leave_out_header(runs, rows, len(run.cells))
            rows.append(i)
            last = i
            has_body, edge = has_body or figures, min(edge, run.cells[1].left)
    if has_body or len(rows) > 1:
        yield rows


def _leave_out_header(runs: Sequence[Run], rows: Sequence[int], width: int) -> list[int]:
    """Return those of the lines above the first figures that are rows of words. They are lines of the header, unless
    complete ones stand apart or are many. `width` is the number of cells of a complete row."""
    full = [k for k in rows if len(runs[k].cells) >= width]
    gaps = [(runs[k].top - runs[j].bottom) / runs[k].height for j, k in pairwise(full)]
    if len(full) > _MOST_LINES or max(gaps, default=0.0) > _SAME_CELL:
        return [k for k in rows if k > full[0]]
    return []


def _find_columns(rows: Sequence[Run]) -> list[Piece]:
    """Return the columns, from the left: pieces that enclose the cells which stand over each other.

    A cell that reaches over two of another row's would make one column of theirs. It is left out where fewer rows have
    such cells than would lose their columns.
    """
    cells = [cell for row in rows for cell in row.cells]
    columns = merge(cells)
    gaps = sorted((cell.right, after.left) for row in rows for cell, after in pairwise(row.cells))
    nearest = [*accumulate((left for _, left in reversed(gaps)), min)][::-1]

    def reaches_over(cell: Piece) -> bool:
        i = bisect_right(gaps, (cell.left, math.inf))
        return i < len(gaps) and nearest[i] < cell.right

    lost = sum(len(set(_find_places(row.cells, columns))) < len(row.cells) for row in rows)
    if sum(any(map(reaches_over, row.cells)) for row in rows) < lost:
        return merge(cell for cell in cells if not reaches_over(cell))
    return columns


def merge(cells: Iterable[Piece], gap: float = 0.0) -> list[Piece]:
    """Return pieces, from the left, that enclose the cells which no strip of blank space parts, so wide at least."""
    columns: list[Piece] = []
    for cell in sorted(cells, key=lambda cell: cell.left):
        if columns and cell.left < columns[-1].right + gap:
            columns[-1] = columns[-1]._replace(right=max(columns[-1].right, cell.right))
        else:
            columns.append(cell)
    return columns


def _place(cells: Sequence[Piece], columns: Sequence[Piece]) -> list[str]:
    """Return the text in each column."""
    texts = [""] * len(columns)
    for cell, place in zip(cells, _find_places(cells, columns), strict=True):
        texts[place] = f"{texts[place]} {cell.text}".strip()
    return texts


def _find_places(cells: Iterable[Piece], columns: Sequence[Piece]) -> list[int]:
    """Return for each cell the column that shares most of its width, or the nearest."""
    return [max(range(len(columns)), key=lambda i: _share(cell, columns[i])) for cell in cells]


def _share(cell: Piece, other: Piece) -> float:
    """Return the width that two have in common, or, negative, the distance between them."""
    return min(cell.right, other.right) - max(cell.left, other.left)


def _is_label(run: Run, columns: Sequence[Piece]) -> bool:
    """Return True if a line stands in the first column alone."""
    return run.left <= columns[0].right and run.right < columns[1].left


def _join_labels(runs: Sequence[Run], free: set[int], body: Sequence[int], columns: Sequence[Piece]) -> None:
    """Put the first lines of a row's label, which stand above the row, before its last one."""
    spaced = 1.5 * runs[body[0]].height
    pitch = min(spaced, median([runs[k].bottom - runs[i].bottom for i, k in pairwise(body)] or [spaced]))
    for i in body:
        row, bottom = runs[i], runs[i].bottom
        for above in range(i - 1, -1, -1):
            line = runs[above]
            is_near = 0 < bottom - line.bottom < _TIGHT * pitch and line.bold == row.bold and line.text[-1] != ":"
            if not (above in free and is_near and _is_label(line, columns)):
                break
            row.cells[0] = Piece(line.text, line.left, line.top, line.right, line.bottom).join(row.cells[0])
            row.left, row.top, bottom = min(row.left, line.left), line.top, line.bottom
            free.remove(above)


def _join_cells(runs: Sequence[Run], free: set[int], body: Sequence[int], columns: Sequence[Piece]) -> None:
    """Add the further lines of a cell of words, which stand below its row, to it."""
    for i in body:
        row, below = runs[i], i + 1
        while below in free and runs[below].left >= columns[1].left - 1:
            line, places = runs[below], _find_places(row.cells, columns)
            piece = Piece(line.text, line.left, line.top, line.right, line.bottom)
            [place] = _find_places([piece], columns)
            is_near = -line.height < line.top - runs[below - 1].bottom < _SAME_CELL * line.height
            if not is_near or place not in places or is_figure(row.cells[places.index(place)].text):
                break
            row.cells[places.index(place)] = row.cells[places.index(place)].join(piece)
            row.right, row.bottom = max(row.right, line.right), line.bottom
            free.remove(below)
            below += 1


def _find_header(
    runs: Sequence[Run], upward: Sequence[int], free: set[int], rows: Sequence[Run], columns: Sequence[Piece]
) -> set[int]:
    """Return the indexes of the lines above a table's rows that name its columns. `upward` sorts all lines by their
    bottoms."""
    first, top = rows[0], rows[0].top
    left, right = columns[0].left, max(row.right for row in rows)
    reach = right + (right - columns[0].right) / (len(columns) - 1) / 2
    lines: list[int] = []
    labels: list[int] = []
    below = bisect(upward, first.top + first.height / 2, key=lambda i: runs[i].bottom)
    for i in reversed(upward[:below]):
        run = runs[i]
        if top - run.bottom > _HIGHEST_GAP * first.height:
            break
        is_beside = run.left > reach or run.right < left
        if i not in free or is_beside or max(run.heights) < first.height / LARGER:
            continue
        if _is_label(run, columns):
            labels.append(i)
            top = top if lines else run.top
            continue
        right = max(right, *(runs[k].right for k in lines), 0)
        is_too_wide, is_too_large = run.right > reach, run.height > LARGER * first.height
        spans_label = any(each.left <= columns[0].right and each.right >= columns[1].left for each in run.pieces)
        holds_figure = any(is_figure(piece.text) and len(piece.text) > 1 for piece in run.pieces)
        is_title = len(run.pieces) == 1 and _is_title(run, columns, left, right)
        if is_too_wide or is_too_large or spans_label or holds_figure or is_title:
            break
        lines.append(i)
        top = min(top, run.top)
    if not lines:
        return set()
    top, bottom = min(runs[i].top for i in lines), max(runs[i].bottom for i in lines)
    return {*lines, *(i for i in labels if top < runs[i].bottom and runs[i].top < bottom)}


def _is_title(run: Run, columns: Sequence[Piece], left: float, right: float) -> bool:
    """Return True if a line is centred over the whole table, and not over its values, and reaches over columns."""
    middle = run.left + run.right
    off_table, off_values = abs(middle - left - right) / 2, abs(middle - columns[1].left - right) / 2
    reached = sum(_share(run.pieces[0], each) > 0 for each in columns)
    return off_table < run.height / 2 < off_values and reached > 1


def _read_header(lines: Sequence[Run], columns: Sequence[Piece]) -> tuple[list[Piece], Run]:
    """Return the columns, with those that no row has, and the header's row. What spans columns is said in each."""
    pieces = sorted((piece for line in lines for piece in line.pieces), key=lambda piece: piece.bottom)
    texts = [piece for piece in pieces if piece.left <= columns[0].right]
    cells = _join_lines([piece for piece in pieces if piece.left > columns[0].right])
    lowest = max(cell.bottom + cell.top for cell in cells) / 2
    found, wide, spans = list(columns), list(columns), list[Piece]()
    # From below, and first what stands over a column: another column begins where none is left.
    for cell in sorted(
        cells, key=lambda each: (each.bottom < lowest, -max(_share(each, column) for column in columns))
    ):
        [place] = _find_places([cell], found)
        is_over, is_named = _share(cell, found[place]) > 0, wide[place] != found[place]
        if cell.bottom < lowest and (is_named or not is_over):
            spans.append(cell)
            continue
        if is_named and not is_over:
            place = sum(column.left < cell.left for column in found)
            found.insert(place, cell)
            wide.insert(place, cell)
        wide[place] = wide[place].join(cell)
        texts.append(cell)
    for cell, places in _spread(sorted(spans, key=lambda cell: cell.bottom), wide):
        texts += [cell._replace(left=found[place].left, right=found[place].right) for place in places]
    row = _place(sorted(texts, key=lambda cell: cell.top), found)
    return found, Run(
        join_cells(row) + "\n" + write_rule(len(row)),
        *enclose(lines),
        [height for line in lines for height in line.heights],
        tabular=True,
        confidence=min((line.confidence for line in lines if line.confidence is not None), default=None),
    )


def _join_lines(pieces: Sequence[Piece]) -> list[Piece]:
    """Join the lines of each cell of a header, which begin, end or are centred at the same place."""
    cells: list[Piece] = []
    for piece in pieces:
        height = piece.bottom - piece.top
        for number, cell in enumerate(cells):
            left, right = piece.left - cell.left, piece.right - cell.right
            is_close = -height / 2 < piece.top - cell.bottom < _SAME_CELL * height
            if is_close and min(abs(left), abs(right), abs(left + right) / 2) < height:
                cells[number] = cell.join(piece)
                break
        else:
            cells.append(piece)
    return cells


def _spread(spans: Sequence[Piece], columns: Sequence[Piece]) -> Iterator[tuple[Piece, Sequence[int]]]:
    """Yield each cell that spans columns, with the numbers of these; the upper cells come first.

    A cell may span columns that are nearer to it than to the other cells at its height, and that the same cell above
    spans. Of the runs of such columns it spans the longest that it is centred over.
    """
    middles = [(column.left + column.right) / 2 for column in columns]
    above = [0] * len(columns)
    for number, cell in enumerate(spans, start=1):
        centre, height = (cell.left + cell.right) / 2, cell.bottom - cell.top
        level = [(each.left + each.right) / 2 for each in spans if abs(each.bottom - cell.bottom) < height / 2]
        mine = [i for i, x in enumerate(middles) if i and min(level, key=lambda other: abs(other - x)) == centre]
        home = min(mine, key=lambda i: abs(middles[i] - centre), default=0)
        mine = [i for i in mine if above[i] == above[home]]
        parts = [mine[i:j] for i in range(len(mine)) for j in range(i + 1, len(mine) + 1)]
        misses = [abs((columns[part[0]].left + columns[part[-1]].right) / 2 - centre) for part in parts]
        fitting = [part for part, miss in zip(parts, misses, strict=True) if miss <= min(misses) + height]
        places = max(fitting, key=len, default=[])
        for place in places:
            above[place] = number
        yield cell, places
