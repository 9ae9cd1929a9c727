"""Excel workbooks: each sheet is a section, with its cells as they are shown."""

import io
import re
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from typing import Any

import openpyxl
from openpyxl.cell.read_only import ReadOnlyCell
from openpyxl.worksheet._read_only import ReadOnlyWorksheet

from app.ingest.readers.archives import open_archive
from app.ingest.readers.assembly import Assembly, name_title, squeeze
from app.ingest.readers.grids import add_grid, check_cells
from domain.documents import ParsedDocument
from domain.errors import OversizedDocument

MAX_ROWS = 1_048_576
"""Largest number of rows of all sheets together, empty ones included. Excel's own limit for one sheet."""

_PLACES = re.compile(r"(?P<whole>[#0?,]{0,99}[#0?])(?:\.(?P<places>[0?#]{1,99}))?")
_IGNORED = re.compile(r"\[(?!\$)[^\]]{0,99}\]|_.|\*.")
"""Colours and conditions, spaces as wide as a character, characters that fill the cell."""
_CURRENCY = re.compile(r"\[\$([^\]-]{0,99})(?:-[^\]]{0,99})?\]")
_SCIENTIFIC_BELOW, _SCIENTIFIC_FROM = 1e-9, 1e15


def read_xlsx(source: str, data: bytes) -> ParsedDocument:
    """Read a workbook's visible sheets, with the results of formulas that were stored with it.

    Raises `OversizedDocument`, `UnreadableDocument`, and openpyxl's errors for malformed parts.
    """
    open_archive(data, "Excel file").close()
    workbook = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True)
    assembly = Assembly()
    rows_left = MAX_ROWS
    for sheet in workbook.worksheets:  # without sheets that are charts
        rows = [*_read_rows(sheet, rows_left)]
        rows_left -= len(rows)
        if sheet.sheet_state != "visible":
            assembly.unseen_words += sum(len(cell.split()) for row in rows for cell in row)
            continue
        if any(any(row) for row in rows):
            assembly.add_heading(2, sheet.title)
            add_grid(assembly, rows)
    return assembly.finish(squeeze(workbook.properties.title or "") or name_title(source), source)


def show_value(value: Any, number_format: str) -> str:
    """Spell a cell's value as Excel shows it; dates and times in the form of ISO 8601."""
    match value:
        case None:
            return ""
        case bool():
            return str(value).upper()
        case datetime():
            return value.date().isoformat() if value.time() == time() else value.isoformat(" ", "minutes")
        case date():
            return value.isoformat()
        case time():
            return value.isoformat("minutes" if value.second == 0 else "seconds")
        case timedelta():
            minutes, seconds = divmod(round(value.total_seconds()), 60)
            return f"{minutes // 60}:{minutes % 60:02}" + (f":{seconds:02}" if seconds else "")
        case int() | float():
            return _show_number(value, number_format or "General")
        case _:
            return squeeze(str(value))


def _read_rows(sheet: ReadOnlyWorksheet, rows_left: int) -> Iterator[list[str]]:
    sheet.reset_dimensions()  # the size that the file states need not be true
    cells = 0
    row: tuple[ReadOnlyCell, ...]
    for number, row in enumerate(sheet.iter_rows(), start=1):
        if number > rows_left:
            raise OversizedDocument(f"The Excel file has more than {MAX_ROWS:,} rows. Split it.")
        cells += len(row)
        check_cells(cells)
        yield [show_value(cell.value, getattr(cell, "number_format", "")) for cell in row]


def _show_number(value: float, number_format: str) -> str:
    sections = [_IGNORED.sub("", section) for section in number_format.split(";")]
    has_negative = value < 0 and len(sections) > 1 and sections[1] != ""
    section = sections[1] if has_negative else sections[0]
    places = _PLACES.search(re.sub(r'"[^"]*"|\\.', lambda quoted: " " * len(quoted[0]), _CURRENCY.sub("", section)))
    if places is None or "E+" in section or "/" in section:
        return _show_plainly(value)
    shown = _CURRENCY.sub(lambda currency: f'"{currency[1]}"', section)
    found = _PLACES.search(shown)
    assert found is not None
    whole, decimals = found["whole"], found["places"] or ""
    before, after = _unquote(shown[: found.start()]), _unquote(shown[found.end() :])
    scaled = value * 100 if "%" in before + after else value
    digits = f"{abs(scaled):{',' if ',' in whole.rstrip(',') else ''}.{len(decimals)}f}"
    for _ in range(len(decimals) - len(decimals.rstrip("#"))):
        digits = digits[:-1] if digits.endswith("0") else digits
    minus = "-" if value < 0 and not has_negative and digits.strip("0.,") else ""
    return squeeze(f"{minus}{before}{digits.removesuffix('.')}{after}")


def _show_plainly(value: float) -> str:
    if value == int(value) and abs(value) < _SCIENTIFIC_FROM:
        return str(int(value))
    if not _SCIENTIFIC_BELOW <= abs(value) < _SCIENTIFIC_FROM:
        return f"{value:.6g}"
    return f"{value:.10f}".rstrip("0").rstrip(".")


def _unquote(text: str) -> str:
    return re.sub(r'\\(.)|"', lambda found: found[1] or "", text)
