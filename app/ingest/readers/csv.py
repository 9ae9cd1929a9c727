"""Tables in text files, with commas or other delimiters."""

import csv
import io
from collections.abc import Iterator

from app.ingest.decoding import decode
from app.ingest.readers.assembly import Assembly, clean, name_title, squeeze
from app.ingest.readers.grids import add_grid, check_cells
from domain.documents import ParsedDocument

_DELIMITERS = ",;\t|"
_SAMPLE = 50
"""Lines from which the delimiter is told."""
_LONGEST_CELL = 1_000_000

csv.field_size_limit(_LONGEST_CELL)


def read_csv(source: str, data: bytes) -> ParsedDocument:
    """Read a table from a text file. Its first row is its header, unless that has numbers.

    Raises `OversizedDocument`, and `csv.Error` for a cell that does not end.
    """
    text = clean(decode(data))
    assembly = Assembly()
    add_grid(assembly, list(_read_rows(text)))
    return assembly.finish(name_title(source), source)


def _read_rows(text: str) -> Iterator[list[str]]:
    count = 0
    for row in csv.reader(io.StringIO(text), delimiter=_find_delimiter(text)):
        count += len(row)
        check_cells(count)
        yield [squeeze(cell) for cell in row]


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
        widths = [len(row) for row in csv.reader(lines, delimiter=delimiter)]
        usual = max(set(widths), key=widths.count, default=0)
        return (widths.count(usual) if usual > 1 else 0), usual

    return max(_DELIMITERS, key=rank)
