"""Table rows: pieces at the same height become one row, with " | " between its cells."""

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

from app.ingest.readers.assembly import lower, raise_up
from app.ingest.readers.pdf.page import Piece, Run, enclose
from domain.text.tables import is_value

WIDE_GAP = 1.5
"""A gap of more heights of the type than this is wider than a space can be."""
NARROW_GAP = 0.6
"""A gap of more heights than this may be a space in a justified line, but separates cells that share a column."""

_MARKER = re.compile(r"[•▪◦‣●○■□☐☑☒–—*o-]|\(?(?:\d{1,3}|[A-Za-z]|[ivxIVX]{1,4})[.)]")
"""A list marker, which stands before its text at a distance without being a cell."""
_NUMBERING = re.compile(r"\d{1,2}(?:\.\d{1,2})*\.?")
OPEN = re.compile(r"(?:^|\s)[$€£¥(\[]+$|^[.…·_\s]+$")
"""End of a cell that continues after the gap: a currency sign, a bracket, a leader."""
CLOSING = re.compile(r"[%)\]]|[.…·_\s]+$")
"""Start of text that belongs to the cell before the gap."""
_LEADER = re.compile(r"(?<![\s.…·_])\s*(?:[.…·_]\s*){3,}$")
"""Dots that lead from a label to its figure."""
FIGURE = re.compile(r"[$€£¥(\[ +−–—*-]*(?:(?=[.,/:]*\d)[\d.,/:]*+\s*+[%)\]]*+|[—–-]|[A-Z]{1,2}\))[⁰¹²³⁴-⁹]*")
"""A figure, or what stands for one, such as a dash or (X)."""
_SHIFTED = re.compile(r"\S[⁰¹²³⁴-⁾₀-₎]$")
_ADJOINING = 0.1
"""Gap in heights of the type below which no blank stands between a letter and a raised one."""
_LONGEST_MARK = 4
"""Characters that are raised or lowered together. Chosen."""
_SMALLER, _HIGHER, _DEEPER = 0.85, 0.2, 0.02
"""Shares of the height of a line's type: digits are raised or lowered that are lower than the first, and have their
foot as much above or below that of the line."""


def join_rows(runs: Iterable[Run]) -> list[Run]:
    """Merge each run into the one before where it continues that line to the right."""
    rows: list[Run] = []
    for run in runs:
        if rows and _continues(rows[-1], run):
            row = rows[-1]
            gap = (run.left - row.right) / max(run.height, 1)
            if run.is_entered and not row.is_entered:
                gap = 0.0  # it belongs to its label, however far
            row.joined |= gap > WIDE_GAP
            row.tabular |= run.tabular or gap > WIDE_GAP
            row.bold &= run.bold
            row.confidence = min(filter(None, (row.confidence, run.confidence)), default=None)
            first, *others = run.pieces
            if gap > NARROW_GAP or _LEADER.search(row.text):
                row.pieces.append(first._replace(gap=gap))
            else:
                row.pieces[-1] = attach(row.pieces[-1], first)
            row.pieces += others
            row.text = " ".join(piece.text for piece in row.pieces)
            row.left, row.top = min(row.left, run.left), min(row.top, run.top)
            row.right, row.bottom = max(row.right, run.right), max(row.bottom, run.bottom)
            row.heights += run.heights
            row.is_entered = run.is_entered
        else:
            rows.append(run)
    return rows


def attach(before: Piece, piece: Piece) -> Piece:
    """Return what stands before a piece, in its cell, together with the piece; digits are raised or lowered that stand
    so. A line of the cell may end between them."""
    height = max(piece.bottom - piece.top, 1)
    is_level = min(before.bottom, piece.bottom) - max(before.top, piece.top) > height / 10
    adjoins = is_level and piece.left - before.right < _ADJOINING * height
    if is_level and (text := shift(piece.text, piece, before, adjoins=adjoins)) != piece.text:
        # Its own top and bottom are not those of the line.
        return before.join(Piece(text, piece.left, before.top, piece.right, before.bottom), "" if adjoins else " ")
    if is_level and (text := shift(before.text, before, piece, adjoins=False)) != before.text:
        return before._replace(text=text).join(piece)
    return before.join(piece, "" if adjoins and _SHIFTED.search(before.text) else " ")


def shift(text: str, small: Piece, line: Piece, *, adjoins: bool) -> str:
    """Return the text of a part with its digits raised or lowered, if it stands so beside the rest of its line. What is
    lowered adjoins a letter."""
    height = line.bottom - line.top
    is_mark = len(text) <= _LONGEST_MARK and any(map(str.isdigit, text))
    if not is_mark or small.bottom - small.top >= _SMALLER * height:
        return text
    if line.bottom - small.bottom > _HIGHER * height:
        return raise_up(text)
    return lower(text) if adjoins and small.bottom - line.bottom > _DEEPER * height else text


def separate_cells(runs: Sequence[Run]) -> None:
    """Put " | " between the cells of table rows.

    One wide gap does not make a row: a stretched line of running text has one too, and so have a heading and its
    number. Either the row before or after must have cells as well, or two of its cells must be figures, or one with
    two such gaps: the names below a chart are no table.
    """
    wide = [_find_cells(run, frozenset()) for run in runs]
    near: list[list[int]] = [[] for _ in runs]
    for i, (run, below) in enumerate(pairwise(runs)):
        if -0.8 < (below.top - run.bottom) / max(run.height, 1) < 2:
            near[i].append(i + 1)
            near[i + 1].append(i)
    rows = list(wide)
    for i, run in enumerate(runs):
        if any(piece.gap <= WIDE_GAP for piece in run.pieces[1:]):
            lefts = (round(cell.left) for k in near[i] for cell in wide[k][1:])
            rows[i] = _find_cells(run, frozenset(left + off for left in lefts for off in (-1, 0, 1)))
    for i, (run, cells) in enumerate(zip(runs, rows, strict=True)):
        if len(cells) > 1 and (
            any(len(rows[k]) > 1 for k in near[i])
            or (len(wide[i]) > 2 and any(is_figure(cell.text) for cell in wide[i]))
            or sum(FIGURE.fullmatch(cell.text) is not None for cell in cells) > 1
        ):
            run.cells, run.tabular = cells, True
            run.text = " | ".join(cell.text for cell in cells)


def part_joined(run: Run) -> list[Run]:
    """Return what was joined to one line and is no row of a table, such as the captions of figures side by side."""
    cells = _find_cells(run, frozenset()) if run.joined and not run.cells else []
    return [make_run([cell], run) for cell in cells] if len(cells) > 1 else [run]


def cut_run(run: Run, place: float) -> tuple[Run | None, Run | None]:
    """Return what of a run stands left of a place, and what right."""
    sides = ([each for each in run.pieces if (each.left < place) == is_left] for is_left in (True, False))
    left, right = (make_run(side, run) if side else None for side in sides)
    return left, right


def make_run(pieces: Sequence[Piece], run: Run) -> Run:
    """Return pieces of a run as one of its own."""
    return Run(
        " ".join(piece.text for piece in pieces),
        *enclose(pieces),
        run.heights,
        list(pieces),
        bold=run.bold,
        confidence=run.confidence,
        is_entered=run.is_entered,
    )


def _continues(row: Run, run: Run) -> bool:
    """Return True if `run` stands right of `row` at its height.

    A tenth of the height must be shared: cells are often centred beside a cell of two lines.
    """
    shared = min(row.bottom, run.bottom) - max(row.top, run.top)
    return (
        run.left >= row.right - 1
        and shared > 0.1 * min(row.bottom - row.top, run.bottom - run.top) > 0
        and not row.sideways
        and not run.sideways
    )


def _find_cells(run: Run, columns: frozenset[int]) -> list[Piece]:
    """Join the pieces between which no cell ends.

    A gap separates cells if it is wide, leads to one of `columns` (left edges in points) or stands between figures.
    """
    cells = run.pieces[:1]
    for piece in run.pieces[1:]:
        is_after_figure = piece.text[0] in "$€£¥(0123456789—–" and FIGURE.fullmatch(cells[-1].text) is not None
        begins = round(piece.left) in columns or piece.text[0] in "$€£¥"
        is_led = _LEADER.search(cells[-1].text) and FIGURE.fullmatch(piece.text)
        separate = piece.gap > WIDE_GAP or is_after_figure or is_led or (piece.gap > NARROW_GAP and begins)
        if not separate or _is_same_cell(cells, piece, run):
            cells[-1] = cells[-1].join(piece)
        else:
            cells.append(piece)
    return [cell._replace(text=_LEADER.sub("", cell.text)) for cell in cells] if len(cells) > 1 else cells


def is_figure(text: str) -> bool:
    """Return True if a cell is a figure. Years and dates are none, because they stand in headers."""
    return FIGURE.fullmatch(text) is not None and is_value(text)


def has_figures(run: Run) -> bool:
    """Return True for a row with a figure, its first cell aside."""
    return any(is_figure(cell.text) for cell in run.cells[1:])


def is_marker(text: str) -> bool:
    """Return True for what stands before an item at a distance, without being a cell: a bullet, or a number of it."""
    return _MARKER.fullmatch(text) is not None or (len(text) == 1 and not text.isalnum())


def _is_same_cell(cells: Sequence[Piece], piece: Piece, run: Run) -> bool:
    """Return True if a piece belongs to the cell before it in spite of the gap."""
    before = cells[-1].text
    if OPEN.search(before) or CLOSING.match(piece.text):
        return True
    is_numbered = piece is run.pieces[-1] and not any(map(str.isdigit, piece.text)) and _NUMBERING.fullmatch(before)
    return len(cells) == 1 and bool(is_numbered or _MARKER.fullmatch(before))
