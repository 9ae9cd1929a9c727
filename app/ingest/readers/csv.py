"""Tables in text files, with commas or other delimiters."""

import csv
import io
import re
from functools import partial
from typing import Any

from app.ingest.decoding import decode
from app.ingest.readers.assembly import Assembly, clean, name_title, squeeze
from app.ingest.readers.grids import add_grid, check_cells
from domain.documents import ParsedDocument

_DELIMITERS = ",;\t|^~"
_SAMPLE = 50
"""Lines from which the delimiter is told."""
_WIDEST = 100
"""Columns of a file whose line ends are lost. Chosen."""
_LONGEST_CELL = 1_000_000
_STATED = re.compile(r"sep=(.)\n", re.IGNORECASE)
"""The first line of a file that says what its delimiter is."""
_ENCLOSED = re.compile(r'"([^"]*)"')

csv.field_size_limit(_LONGEST_CELL)


def read_csv(source: str, data: bytes) -> ParsedDocument:
    """Read a table from a text file. Its first row is its header, unless that has numbers.

    Raises `OversizedDocument`, and `csv.Error` for a cell that is too long.
    """
    text = clean(decode(data))
    assembly = Assembly()
    add_grid(assembly, _read_rows(text))
    return assembly.finish(name_title(source), source)


def _read_rows(text: str) -> list[list[str]]:
    """Return the rows. Where quotes do not enclose whole cells, they are letters."""
    text = _part_records(text)
    stated = _STATED.match(text)
    text = text[stated.end() :] if stated else text
    delimiter = stated[1] if stated else _find_delimiter(text)
    plain = partial(_parse, text, delimiter=delimiter, quoting=csv.QUOTE_NONE)
    for escape in (None, "\\"):
        try:
            rows = _parse(text, delimiter=delimiter, strict=True, escapechar=escape, skipinitialspace=True)
        except csv.Error:
            continue
        # Lines of a cell, or rows between a quote that is a letter and another that is one?
        if any("\n" in cell for row in rows for cell in row) and _is_even(plain()):
            break
        return [[squeeze(cell) for cell in row] for row in rows]
    return [[squeeze(_unquote(cell)) for cell in row] for row in plain()]


def _part_records(text: str) -> str:
    """Return fields between tabs that lost their line ends as rows: of the least width at which each column is of
    figures throughout below its name, or of none, and one of figures."""
    fields = text.strip("\n\t").split("\t")
    count = len(fields) if "\n" not in text.strip("\n") else 0
    for width in range(2, min(count // 3, _WIDEST) + 1):
        rows = [fields[start : start + width] for start in range(0, count, width)]
        if count % width or any(map(str.isdecimal, rows[0])):
            continue
        kinds = [{*map(str.isdecimal, column)} for column in zip(*rows[1:], strict=True)]
        if all(len(kind) == 1 for kind in kinds) and {True} in kinds:
            return "\n".join(map("\t".join, rows))
    return text


def _parse(text: str, **form: Any) -> list[list[str]]:
    rows: list[list[str]] = []
    count = 0
    for row in csv.reader(io.StringIO(text), **form):
        count += len(row)
        check_cells(count)
        rows.append(row)
    return rows


def _unquote(cell: str) -> str:
    enclosed = _ENCLOSED.fullmatch(cell.strip())
    return enclosed[1] if enclosed else cell


def _is_even(rows: list[list[str]]) -> bool:
    return len({len(row) for row in rows if row}) < 2


def _find_delimiter(text: str) -> str:
    """Return the delimiter that cuts the first lines into the same number of cells most often; of equals, the one that
    gives most cells."""
    lines: list[str] = []
    for line in io.StringIO(text):
        if line.strip():
            lines.append(line)
        if len(lines) == _SAMPLE:
            break

    def rank(delimiter: str) -> tuple[int, int]:
        widths = [len(row) for row in csv.reader(lines, delimiter=delimiter, skipinitialspace=True)]
        usual = max(set(widths), key=widths.count, default=0)
        return (widths.count(usual) if usual > 1 else 0), usual

    return max(_DELIMITERS, key=rank)
