"""Excel workbooks: each sheet is a section, with its cells as they are shown."""

import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, time, timedelta
from itertools import chain, groupby
from typing import IO, Any

import openpyxl
from openpyxl.cell.read_only import ReadOnlyCell
from openpyxl.worksheet._read_only import ReadOnlyWorksheet
from openpyxl.worksheet._reader import FORMULA_TAG, WorkSheetParser
from openpyxl.worksheet.cell_range import CellRange

from app.ingest.readers.assembly import Assembly, name_title, squeeze
from app.ingest.readers.grids import add_grid, check_cells, is_figure
from app.ingest.readers.office import open_office, skip_parts
from domain.documents import ParsedDocument
from domain.errors import OversizedDocument

MAX_ROWS = 1_048_576
"""Largest number of rows of all sheets together, empty ones included. Excel's own limit for one sheet."""

_MOST_GROUPS = 4
"""Rows of a header, one above the other."""
_UNSOLVED = (
    "Cells with formulas are empty, because the file holds no results of theirs: open it in a spreadsheet program, and "
    "save it there."
)

_PLACES = re.compile(r"(?P<whole>[#0?,]{0,99}[#0?])(?:\.(?P<places>[0?#]{1,99}))?")
_IGNORED = re.compile(r"\[(?!\$)[^\]]{0,99}\]|_.|\*.")
"""Colours and conditions, spaces as wide as a character, characters that fill the cell."""
_CURRENCY = re.compile(r"\[\$([^\]-]{0,99})(?:-[^\]]{0,99})?\]")
_SCIENTIFIC_BELOW, _SCIENTIFIC_FROM = 1e-9, 1e15


def read_xlsx(source: str, data: bytes) -> ParsedDocument:
    """Read what a workbook shows, with the results of formulas that were stored with it. Rows that are folded in or
    filtered out are read; those that are hidden, columns and sheets are not.

    Raises `OversizedDocument`, `UnreadableDocument`, and openpyxl's errors for malformed parts.
    """
    archive, data = open_office(data, "Excel file")
    workbook = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True)
    assembly = Assembly()
    rows_left, unsolved = MAX_ROWS, 0
    own: list[str] = []
    for sheet in workbook.worksheets:  # without sheets that are charts
        with sheet._get_source() as content:
            parser = _SheetParser(sheet, content)
            rows = _read_rows(sheet, parser, rows_left)
        rows_left -= len(rows)
        own += chain.from_iterable(rows.values())
        if sheet.sheet_state != "visible":
            assembly.leave_out(" ".join(cell for row in rows.values() for cell in row), "on a hidden sheet")
            continue
        unsolved += parser.unsolved
        stated = {*rows}
        _leave_out_hidden(rows, parser, assembly)
        _spread_merged(rows, parser.merged_cells.mergeCell if parser.merged_cells else ())
        if any(map(any, rows.values())):
            assembly.add_heading(2, sheet.title)
            # What the file does not state between two rows is empty.
            gaps = ([[], rows[number]] if number - 1 not in stated else [rows[number]] for number in sorted(rows))
            add_grid(assembly, chain.from_iterable(gaps))
    assembly.expect("".join(own))
    skip_parts(
        assembly,
        archive,
        {sheet._worksheet_path: f"on sheet “{sheet.title}”" for sheet in workbook.worksheets},
        set(),
    )
    document = assembly.finish(squeeze(workbook.properties.title or "") or name_title(source), source)
    return replace(document, notes=(_UNSOLVED,) if unsolved else ())


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


class _SheetParser(WorkSheetParser):  # type: ignore[misc]
    def __init__(self, sheet: ReadOnlyWorksheet, content: IO[bytes]) -> None:
        book = sheet.parent
        formats = {"date_formats": book._date_formats, "timedelta_formats": book._timedelta_formats}
        super().__init__(content, sheet._shared_strings, data_only=True, epoch=book.epoch, **formats)
        self.unsolved = 0
        """Formulas whose results are not stored."""

    def parse_cell(self, element: Any) -> dict[str, Any]:
        cell: dict[str, Any] = super().parse_cell(element)
        # A formula whose result is an empty text says that it is a text.
        self.unsolved += cell["data_type"] == "n" and cell["value"] is None and element.find(FORMULA_TAG) is not None
        return cell


def _read_rows(sheet: ReadOnlyWorksheet, parser: _SheetParser, most: int) -> dict[int, list[str]]:
    """Return the rows that the file states, by their numbers from 1."""
    rows: dict[int, list[str]] = {}
    count = 0
    for number, cells in parser.parse():
        row = rows[number] = [""] * max((cell["column"] for cell in cells), default=0)
        count += len(row)
        check_cells(count)
        if len(rows) > most:
            raise OversizedDocument(f"The Excel file has more than {MAX_ROWS:,} rows. Split it.")
        for cell in cells:
            shown = ReadOnlyCell(sheet, **cell)
            row[shown.column - 1] = show_value(shown.value, shown.number_format)
    return rows


def _leave_out_hidden(rows: dict[int, list[str]], parser: _SheetParser, assembly: Assembly) -> None:
    filtered = getattr(parser, "auto_filter", None)
    range_of = CellRange(filtered.ref) if filtered and filtered.filterColumn else None
    for number in [number for number in rows if _is_hidden(parser.row_dimensions.get(str(number), {}))]:
        if not range_of or not range_of.min_row <= number <= range_of.max_row:
            assembly.leave_out(" ".join(rows.pop(number)), "in a hidden row")
    for column in filter(_is_hidden, parser.column_dimensions.values()):
        left, right = int(column["min"]) - 1, int(column["max"])
        for row in rows.values():
            assembly.leave_out(" ".join(row[left:right]), "in a hidden column")
            row[left:right] = [""] * len(row[left:right])


def _is_hidden(stated: Mapping[str, str]) -> bool:
    return stated.get("hidden") in ("1", "true") and stated.get("outlineLevel", "0") == "0"


def _spread_merged(rows: dict[int, list[str]], merged: Sequence[CellRange]) -> None:
    """Repeat each merged cell in the rows and columns that it spans, so that each row can be read alone, unless it is
    alone in its rows, as a title is. The names of groups of columns are put before the names of the columns."""
    groups = _find_groups(rows, merged)
    for number in sorted(groups):
        below = rows.setdefault(number + 1, [])
        for place, text in enumerate(rows.pop(number)):
            if text:
                end = groups[number].get(place, place + 1)
                below += [""] * (end - len(below))
                for column in [column for column in range(place, end) if below[column]] or [place]:
                    below[column] = f"{text} {below[column]}".rstrip()
    count, last = 0, max(rows, default=0)
    for span in merged:
        left, right = span.min_col - 1, span.max_col
        text = next(iter(rows.get(span.min_row, [])[left:right]), "")
        beside = rows.get(span.min_row - 1) or rows.get(span.max_row + 1, [])
        # Among notes a cell is merged to be longer, and stands above or below nothing of the kind.
        if text and (right - left == 1 or (right <= len(beside) and all(beside[left:right]))):
            for number in range(span.min_row, min(span.max_row, last) + 1):
                row = rows.get(number, [])
                count += max(len(row), right)
                check_cells(count)
                if any(row[:left]) or any(row[right:]):
                    row += [""] * (left - len(row))
                    row[left:right] = [text] * (right - left)


def _find_groups(rows: Mapping[int, list[str]], merged: Sequence[CellRange]) -> dict[int, dict[int, int]]:
    """Return, by its number, each row with names of groups above names of columns: where each group begins, and before
    which column it ends. The rows' own names stand to their left."""
    groups: dict[int, dict[int, int]] = {}
    for top, spans in groupby(sorted(merged, key=lambda each: each.min_row), lambda each: each.min_row):
        row = rows.get(top, [])
        wide = [span for span in spans if span.max_col > span.min_col and any(row[span.min_col - 1 : span.min_col])]
        ends = {span.min_col - 1: span.max_col for span in wide}
        bottom = max((span.max_row for span in wide), default=top)
        first, *others = [rows.get(bottom + number, []) for number in range(1, _MOST_GROUPS)]
        grouped = {place for start, end in ends.items() for place in range(start, end)}
        if (
            (top - 1 in groups or sum(map(bool, rows.get(top - 1, ()))) < 2)
            and not all(top - number in groups for number in range(1, _MOST_GROUPS))
            and bottom - top < _MOST_GROUPS
            and any(sum(map(bool, first[start:end])) > 1 for start, end in ends.items())
            and any(any(other[: min(ends)]) for other in (first, *others))
            and not any(map(is_figure, first))
            and not any(
                row[place] and first[place] for place in range(min(len(row), len(first))) if place not in grouped
            )
        ):
            groups |= dict.fromkeys(range(top, bottom + 1), ends)
    return groups


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
