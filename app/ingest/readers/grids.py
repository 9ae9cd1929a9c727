"""Grids of cells, such as sheets and CSV files, written as tables, records and captions."""

import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import chain, groupby, pairwise

from app.ingest.readers.assembly import MOST_HEADERS, Assembly, squeeze
from domain.errors import OversizedDocument

MAX_CELLS = 2_000_000
"""Largest number of cells of a file."""

WIDEST_HEADER = 250
"""Length of a header in characters above which rows are written as records. A header is repeated in every chunk of its
table, so a longer one would take more of a chunk (500 characters) than the rows."""

_NUMBER = re.compile(r"[^\w\s]{0,3}\s?\d[\d.,:/ \u00a0'+-]*\s?[^\w\s]{0,3}")
"""A number, amount, percentage, date or time."""
_DATE = re.compile(r"(?:19|20)\d\d(?:[-/]\d\d(?:-\d\d)?)?")
_MOST_NOTES = 8
"""Rows of several cells above a header."""
_SAMPLE = 50
"""Rows from which it is told what a column holds."""
_DISTINCT = 0.9
"""Share of the rows whose names have to differ."""
_SHORTEST_NAME = 4
"""Letters that names of rows have on average; codes have fewer."""

Row = Sequence[str]
_Table = tuple[list[int], Sequence[Row]]
"""The numbers of its columns, and its rows."""


def add_grid(assembly: Assembly, rows: Iterable[Row]) -> None:
    """Append a grid. Empty rows separate tables, and so do empty columns between tables that have headers of their own.
    What stands above a header, and rows of one cell apart from a table, are paragraphs. What goes on below an empty
    row in the columns of the table above has its header."""
    above: _Table | None = None
    for island in _split_rows(rows):
        for part in _split_columns(island):
            for piece in _split_rows(part):
                for table in _split_stacked(piece):
                    above = _add_island(assembly, table, above)


def add_table(assembly: Assembly, rows: Sequence[Row], *, has_header: bool) -> None:
    """Append rows as a table, or, where the header would be too long to repeat, each row as a record."""
    width = max(map(len, rows), default=0)
    if width == 0:
        return
    rows = _pad(rows)
    if width == 1:
        assembly.add_block("\n".join(f"- {squeeze(row[0])}" for row in rows if any(row)))
    elif has_header and len(rows) > 1 and len(" | ".join(rows[0])) > WIDEST_HEADER:
        _add_records(assembly, rows[0], rows[1:])
    else:
        assembly.add_table(rows, headers=int(has_header))


def has_header(rows: Sequence[Row]) -> bool:
    """Return True if the first row names the columns: its names differ or stand above figures, and are no numbers but
    years and dates above what is neither. The first column may lack a name, as may those filled here and there."""
    width = max(map(len, rows), default=0)
    names = [cell.strip() for cell in rows[0]] + [""] * (width - len(rows[0])) if len(rows) > 1 else []
    named = [name for name in names if name]
    return (
        len(named) > 0
        and (len(named) == len(set(named)) or _has_figures(rows[1:]))
        and 2 * sum(map(bool, names[1:])) >= width - 1
        and not _NUMBER.fullmatch(names[0])
        and all(_is_name(name, rows, place) for place, name in enumerate(names) if place)
    )


def count_names(rows: Sequence[Row], beside: Sequence[Container[int]], below: Sequence[Container[int]]) -> int:
    """Return the number of rows at the top that name the columns, where names of groups of columns are merged above
    those of the columns; 0 where they are not. `beside` and `below` have for each row the columns in which a cell goes
    on from the left and from above; without words there."""
    columns = range(max(map(len, rows), default=0))
    groups = next((number for number, row in enumerate(beside) if not any(column in row for column in columns)), 0)
    if not 0 < groups < min(MOST_HEADERS, len(rows) - 1) or any(map(is_figure, chain(*rows[: groups + 1]))):
        return 0
    is_merged = [any(column in row for column in columns) for row in below[: groups + 2]]
    if is_merged[-1] or not (any(is_merged) or _has_figures(rows[groups + 1 :])):
        return 0
    for column in columns:
        told = [row[column] if column < len(row) else "" for row in rows[: groups + 1]]
        is_grouped = any(column in row or column + 1 in row for row in beside[:groups])
        if not (told[-1] or column in below[groups]) if is_grouped else sum(map(bool, told)) != 1:
            return 0
    return groups + 1


def is_figure(cell: str) -> bool:
    """Return True for a number, an amount, a percentage or a time, which is no year or date that may be a name."""
    return _NUMBER.fullmatch(cell) is not None and not _DATE.fullmatch(cell)


def check_cells(count: int) -> None:
    """Raise `OversizedDocument` if a file has more cells than are read."""
    if count > MAX_CELLS:
        raise OversizedDocument(f"The file has more than {MAX_CELLS:,} cells. Split it.")


def _is_name(name: str, rows: Sequence[Row], place: int) -> bool:
    if name and not _NUMBER.fullmatch(name):
        return True
    below = [row[place] for row in rows[1:] if place < len(row) and row[place]]
    if not name:
        return 2 * len(below) < len(rows)
    return _DATE.fullmatch(name) is not None and not any(map(_DATE.fullmatch, below))


def _pad(rows: Sequence[Row]) -> list[Row]:
    width = max(map(len, rows))
    return [row if len(row) == width else [*row, *[""] * (width - len(row))] for row in rows]


def _split_rows(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Yield the rows between empty ones, of the same length."""
    for is_filled, held in groupby(rows, any):
        if is_filled:
            yield _pad(list(held))


def _split_stacked(rows: list[Row]) -> Iterator[list[Row]]:
    """Yield the tables that stand one below the other without an empty row: each begins with rows of one cell above a
    row of names, below which there are figures as above it, or the names are the same."""
    start = first = 0
    for number, row in enumerate(rows[:-2]):
        if not _is_single(row):
            first = number + 1
        elif not _is_single(names := rows[number + 1]) and not any(map(is_figure, names)):
            before = rows[start:first]
            if names in before or all(any(map(is_figure, chain(*part))) for part in (before, [rows[number + 2]])):
                yield before
                start = first
    yield rows[start:]


def _split_columns(rows: list[Row]) -> list[list[Row]]:
    """Return the tables between empty columns; all as one where a part has no header of its own, or has figures where
    the names of its rows would stand."""
    filled = enumerate(map(any, zip(*rows, strict=True)))
    runs = [[place for place, _ in run] for is_filled, run in groupby(filled, lambda each: each[1]) if is_filled]
    if len(runs) < 2:
        return [rows]
    # Of the other columns blanks remain, so that columns keep their numbers.
    parts: list[list[Row]] = [[[*[""] * run[0], *row[run[0] : run[-1] + 1]] for row in rows] for run in runs]
    tables = [_drop_empty_columns([row for row in part if any(row)])[1] for part in parts]
    headers = [_find_header(table) if len(table[0]) > 1 else None for table in tables]
    names = [table[header + 1][0] for header, table in zip(headers, tables, strict=True) if header is not None]
    return parts if len(names) == len(tables) and not any(map(is_figure, names[1:])) else [rows]


def _find_header(rows: Sequence[Row]) -> int | None:
    """Return the first row that can be a header. Where rows stand above it that fill most columns, there must be
    figures below."""
    notes = 0
    for number, row in enumerate(rows):
        if 2 * sum(map(bool, row)) <= len(row):
            continue
        if has_header(rows[number:]) and (not notes or _has_figures(rows[number + 1 :])):
            return number
        notes += 1
        if all(row) or notes > _MOST_NOTES:
            break
    return None


def _add_island(assembly: Assembly, rows: list[Row], above: _Table | None) -> _Table | None:
    """Append rows between which none is empty. Returns the table that they are, or the one above."""
    places, table = _drop_empty_columns(rows)
    header = _find_header(table)
    if header is None and above and _goes_on(places, table, above):
        columns, (names, *_) = above
        lead = next(number for number, row in enumerate(table) if not _is_single(row))
        for row in table[:lead]:
            assembly.add_block(squeeze("".join(row)))
        shown = [[row[place] if place < len(row) else "" for place in columns] for row in rows[lead:]]
        add_table(assembly, [names, *shown], has_header=True)
        return above
    start, names, data = _join_names(table, header) if header is not None else (None, [], 0)
    if start is None:
        start = data = next((number for number, row in enumerate(table) if not _is_single(row)), len(table))
        if start == len(table) > 2:  # a single column
            add_table(assembly, [[next(filter(None, row))] for row in table], has_header=False)
            return above
    for row in table[:start]:
        assembly.add_block(squeeze(" ".join(dict.fromkeys(row))))
    if header is None:
        body = _drop_empty_columns(table[data:])[1] if data < len(table) else []
        add_table(assembly, body, has_header=False)
        # A row of names may stand apart from the tables that it is for.
        is_names = len(body) == 1 and not any(map(is_figure, body[0])) and sum(map(bool, body[0])) > 1
        return (places, table[data:]) if is_names else above
    columns, table = _drop_empty_columns([names, *table[data:]])
    for label, part in _split_sections(table[1:]):
        assembly.add_block(squeeze(label))
        add_table(assembly, [table[0], *part], has_header=True)
    return [places[column] for column in columns], table[:_SAMPLE]


def _join_names(rows: Sequence[Row], header: int) -> tuple[int, Row, int]:
    """Return the first row of names, the names of the columns, and the first row below. Names of groups above them,
    without which they would be the same, and units below are part of them."""
    start, names, data = header, list(rows[header]), header + 1
    if header and len(set(filter(None, names))) < sum(map(bool, names)):
        group, joined = "", list(names)
        for place, (above, name) in enumerate(zip(rows[header - 1], names, strict=True)):
            group = above or group
            joined[place] = f"{group if name or above else ''} {name}".strip()
        if len(set(joined)) == len(joined):
            start, names = header - 1, joined
    below = rows[data] if data + 1 < len(rows) else ()
    if below and not (below[0] and names[0]) and not any(map(is_figure, below)):
        figures = [place for place, column in enumerate(zip(*rows[data + 1 :], strict=True)) if _is_numeric(column)]
        if figures and all(any(map(str.isalpha, below[place])) for place in figures):
            names = [f"{name} {unit}".strip() for name, unit in zip(names, below, strict=True)]
            data += 1
    return start, names, data


def _split_sections(rows: Sequence[Row]) -> Iterator[tuple[str, Sequence[Row]]]:
    """Yield the parts of a table below rows that hold nothing but the name of a part, such as a period, with these."""
    labels = [number for number, row in enumerate(rows) if row[0] and _is_single(row)]
    are_names = len(labels) > 1 and not labels[0] and all(after - label > 1 for label, after in pairwise(labels))
    if not are_names or labels[-1] == len(rows) - 1 or not _has_figures(rows):
        yield "", rows
        return
    for label, after in pairwise([*labels, len(rows)]):
        yield rows[label][0], rows[label + 1 : after]


def _goes_on(places: Sequence[int], rows: Sequence[Row], above: _Table) -> bool:
    """Return True if the rows fill columns of the table above with the same kinds of cells, and one with figures."""
    columns, known = above
    if len(places) < 2 or not {*places} <= {*columns}:
        return False
    kinds = [_is_numeric(column) for column in zip(*rows, strict=True)]
    as_above = [_is_numeric([row[columns.index(place)] for row in known[1:]]) for place in places]
    return any(kinds) and (kinds == as_above or len(known) == 1)


def _has_figures(rows: Sequence[Row]) -> bool:
    return any(map(_is_numeric, zip(*rows, strict=False)))


def _is_numeric(cells: Sequence[str]) -> bool:
    filled = [cell for cell in cells[:_SAMPLE] if cell]
    return 2 * sum(_NUMBER.fullmatch(cell) is not None for cell in filled) > len(filled)


def _is_single(row: Row) -> bool:
    return sum(map(bool, row)) == 1


def _drop_empty_columns(rows: Sequence[Row]) -> _Table:
    """Return the columns that hold anything, and the rows of these."""
    filled = [place for place, column in enumerate(zip(*rows, strict=True)) if any(column)]
    return filled, rows if len(filled) == len(rows[0]) else [[row[place] for place in filled] for row in rows]


def _add_records(assembly: Assembly, header: Row, rows: Sequence[Row]) -> None:
    """Append each row as a list of its filled cells under its name, so that every part of it says which row it is of
    and which columns."""
    named_by = _find_name_column(rows)
    for number, row in enumerate(rows, start=2):
        name = (row[named_by] if named_by is not None else "") or f"Row {number}"
        columns = enumerate(zip(header, row, strict=True), start=1)
        items = [f"- {column or f'Column {place}'}: {cell}" for place, (column, cell) in columns if cell]
        if items:
            assembly.add_block(f"{squeeze(name)}:")
            assembly.add_block("\n".join(map(squeeze, items)), gap="\n")


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
