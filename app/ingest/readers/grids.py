"""Grids of cells, such as sheets and CSV files, written as tables, records and captions."""

import re
from collections import Counter
from collections.abc import Sequence

from app.ingest.readers.assembly import Assembly, squeeze
from domain.errors import OversizedDocument

MAX_CELLS = 2_000_000
"""Largest number of cells of a file."""

WIDEST_HEADER = 250
"""Length of a header in characters above which rows are written as records. A header is repeated in every chunk of its
table, so a longer one would take more of a chunk (500 characters) than the rows."""

_NUMBER = re.compile(r"[^\w\s]{0,3}\s?\d[\d.,:/ \u00a0'+-]*\s?[^\w\s]{0,3}")
"""A number, amount, percentage, date or time."""
_DISTINCT = 0.9
"""Share of the rows whose names have to differ."""
_SHORTEST_NAME = 4
"""Letters that names of rows have on average; codes have fewer."""

Row = Sequence[str]


def add_grid(assembly: Assembly, rows: Sequence[Row]) -> None:
    """Append a grid. Empty rows separate tables; a row of one cell above a table is its caption, elsewhere a
    paragraph."""
    held: list[Row] = []
    for row in [*rows, ()]:
        if any(row):
            held.append(row)
        elif held:
            _add_island(assembly, _drop_empty_columns(held))
            held = []


def add_table(assembly: Assembly, rows: Sequence[Row], *, has_header: bool) -> None:
    """Append rows as a table, or, where the header would be too long to repeat, each row as a record."""
    width = max(map(len, rows), default=0)
    if width == 0:
        return
    cells = [[_escape(cell) for cell in row] + [""] * (width - len(row)) for row in rows]
    if width == 1:
        assembly.add_block("\n".join(f"- {row[0]}" for row in cells if row[0]))
    elif has_header and len(cells) > 1 and len(" | ".join(cells[0])) > WIDEST_HEADER:
        _add_records(assembly, cells[0], cells[1:])
    else:
        lines = [" | ".join(row).rstrip() for row in cells]
        if has_header:
            lines.insert(1, " | ".join(["---"] * width))
        assembly.add_block("\n".join(lines))


def has_header(rows: Sequence[Row]) -> bool:
    """Return True if the first row names the columns: all cells but the first are filled, different, and no numbers."""
    if len(rows) < 2:
        return False
    first = [cell.strip() for cell in rows[0]]
    names = first if first[:1] != [""] else first[1:]
    return (
        len(first) == max(map(len, rows))
        and all(names)
        and len(set(names)) == len(names)
        and not any(_NUMBER.fullmatch(name) for name in names[:1])
        and (not any(_NUMBER.fullmatch(name) for name in names) or _is_all_years(names[1:]))
    )


def check_cells(count: int) -> None:
    """Raise `OversizedDocument` if a file has more cells than are read."""
    if count > MAX_CELLS:
        raise OversizedDocument(f"The file has more than {MAX_CELLS:,} cells. Split it.")


def _is_all_years(names: Sequence[str]) -> bool:
    return all(re.fullmatch(r"(?:19|20)\d\d", name) or not _NUMBER.fullmatch(name) for name in names)


def _add_island(assembly: Assembly, rows: list[Row]) -> None:
    """Append rows between which none is empty."""
    start = 0
    while start < len(rows) and _is_single(rows[start]):
        start += 1
    table = rows[start:]
    if len(table) == 0 and start > 2:  # a single column
        add_table(assembly, [[next(filter(None, row))] for row in rows], has_header=False)
        return
    for row in rows[:start]:
        assembly.add_block(squeeze(" ".join(row)))
    if table:
        add_table(assembly, table, has_header=has_header(table))


def _is_single(row: Row) -> bool:
    return sum(map(bool, row)) == 1


def _drop_empty_columns(rows: Sequence[Row]) -> list[Row]:
    """Drop the columns without any content, and make all rows equally long."""
    width = max(map(len, rows))
    padded = [[*row, *[""] * (width - len(row))] for row in rows]
    filled = [column for column in range(width) if any(row[column] for row in padded)]
    return [[row[column] for column in filled] for row in padded]


def _add_records(assembly: Assembly, header: Row, rows: Sequence[Row]) -> None:
    """Append each row as a list of its filled cells under its name, so that every part of it says which row it is of
    and which columns."""
    named_by = _find_name_column(rows)
    for number, row in enumerate(rows, start=2):
        name = (row[named_by] if named_by is not None else "") or f"Row {number}"
        columns = enumerate(zip(header, row, strict=True), start=1)
        items = [f"- {column or f'Column {place}'}: {cell}" for place, (column, cell) in columns if cell]
        if items:
            assembly.add_block(f"{name}:")
            assembly.add_block("\n".join(items), gap="\n")


def _find_name_column(rows: Sequence[Row]) -> int | None:
    """Return the column whose cells name the rows best: they differ, are words rather than codes, and other columns
    say the same most often. Of equals the first."""
    counts = [Counter(cell.casefold() for cell in row if cell) for row in rows]
    best: tuple[bool, int] | None = None
    found: int | None = None
    for column in range(len(rows[0])):
        cells = [row[column] for row in rows]
        filled = [cell for cell in cells if cell]
        if len(set(filled)) < _DISTINCT * len(rows):
            continue
        letters = sum(sum(map(str.isalpha, cell)) for cell in filled) / len(filled)
        is_name = letters >= _SHORTEST_NAME and not any("://" in cell for cell in filled)
        said = sum(count[cell.casefold()] - 1 for cell, count in zip(cells, counts, strict=True) if cell)
        if best is None or (is_name, said) > best:
            best, found = (is_name, said), column
    return found


def _escape(cell: str) -> str:
    """Return a cell on one line, without what would look like the border of a cell."""
    return squeeze(cell).replace(" | ", " / ").replace("|", "/")
