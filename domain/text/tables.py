"""Tells rows, headers and labels of tables apart: rows are lines whose cells have " | " between them."""

import re
from collections.abc import Sequence

_VALUE = re.compile(r"[$€£¥(\s+−–—-]*\d(?!.*/)(?!\d{3}\s*$)(?!\d*(?:st|nd|rd|th)\b)|[$€£¥\s]*[—–-]$")
"""The beginning of a cell that holds a value. Years, dates and ordinals stand in headers, so they do not count."""
_RULE = re.compile(r"[ \t]*+(?:\|[ \t]*+)?:?-++:?[ \t]*+(?:\|[ \t]*+:?-++:?[ \t]*+)*+\|?[ \t]*+")
_ROW = re.compile(r"[ \t]*\|.*\||.*[ \t]\|(?:[ \t]|$)")
_LONGEST_LABEL = 80
"""Limit, in characters, of a line without cells between two rows."""
_LONGEST_HEADER = 160
"""Limit, in characters, of a header that no row rules off."""
_MOST_HEADER_ROWS = 4


def is_value(cell: str) -> bool:
    """Return True for a cell that holds a figure, as the cells of a header do not."""
    return _VALUE.match(cell.strip()) is not None


def is_row(line: str) -> bool:
    """Return True for a line that has cells."""
    return "|" in line and _ROW.match(line) is not None


def is_rule(line: str) -> bool:
    """Return True for a row of dashes, which rules off the header above it."""
    return "-" in line and "|" in line and _RULE.fullmatch(line) is not None


def write_rule(columns: int) -> str:
    """Return the row of dashes that rules off a header. Without a pipe, dashes would make a heading of one column's."""
    return " | ".join(["---"] * columns) if columns > 1 else "|---|"


def is_label(line: str) -> bool:
    """Return True for a line that may stand between two rows to say what the rows below it are about."""
    return len(line) <= _LONGEST_LABEL and not line.rstrip().endswith(".")


def split_cells(row: str) -> list[str]:
    """Return the cells of a row, without outer pipes. An escaped pipe is part of its cell."""
    bare = row.strip()
    bare = bare[1:] if bare.startswith("|") and bare.endswith("|") and len(bare) > 1 else bare
    bare = bare[:-1] if bare.endswith("|") and row.lstrip().startswith("|") else bare
    return [cell.strip() for cell in re.split(r"(?<!\\)\|(?=\s|$)|(?<=\s)(?<!\\)\|", bare)]


def join_cells(cells: Sequence[str]) -> str:
    """Return the row that `split_cells` reads. Where the first cell is empty it has outer pipes, because Markdown takes
    a pipe at the beginning for the table's edge."""
    row = " | ".join(cells).rstrip()
    return row if not cells or cells[0] or row.strip(" |") == "" else f"|{row} |"


def find_header(text: str, rows: Sequence[tuple[int, int]]) -> int:
    """Return how many of the rows at the top are the table's header, with the row that rules it off: those above such a
    row, else those before the first value, or one where none is near. `rows` are spans of `text`."""
    lines = [text[start:end] for start, end in rows[: _MOST_HEADER_ROWS + 1]]
    for number, line in enumerate(lines):
        if number and is_rule(line):
            return number + 1
    count = length = 0
    for line in lines:
        length += len(line)
        if not is_row(line) or length > _LONGEST_HEADER:
            break
        if any(map(is_value, split_cells(line)[1:])):
            return count
        count += 1
    # Where no figure tells, a second row is more often one of the table than of its header.
    return min(count, 1)
