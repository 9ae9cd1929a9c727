"""Excel workbooks: each sheet is a section, with its cells as they are shown."""

import io
import re
from collections.abc import Mapping, Sequence
from itertools import chain, groupby
from typing import IO, Any

import openpyxl
from openpyxl.cell.read_only import ReadOnlyCell
from openpyxl.cell.rich_text import CellRichText
from openpyxl.utils.cell import column_index_from_string, coordinate_from_string
from openpyxl.worksheet._read_only import ReadOnlyWorksheet
from openpyxl.worksheet._reader import FORMULA_TAG, WorkSheetParser
from openpyxl.worksheet.cell_range import CellRange

from app.ingest.readers.assembly import BREAK, FIELD, Assembly, mark, name_title, squeeze
from app.ingest.readers.grids import add_grid, check_cells, is_figure
from app.ingest.readers.number_formats import show_value
from app.ingest.readers.office import open_office, read_addresses, read_boxes, skip_parts
from domain.documents import ParsedDocument
from domain.errors import OversizedDocument

MAX_ROWS = 1_048_576
"""Largest number of rows of all sheets together, empty ones included. Excel's own limit for one sheet."""

_STRINGS = "xl/sharedStrings.xml"
_MARKED = re.compile(rb"<(?:\w+:)?(?:vertAlign|strike)\b")
_RAISED = {"superscript": frozenset({"sup"}), "subscript": frozenset({"sub"})}
_LINK = re.compile(r'HYPERLINK\("([^"]+)"')
_FIELD = re.compile(r"&(?:\[\w+\]|\w)")
_MOST_GROUPS = 4
"""Rows of a header, one above the other."""


def read_xlsx(source: str, data: bytes) -> ParsedDocument:
    """Read what a workbook shows, with the results of formulas that were stored with it. Rows that are folded in are
    read; those that are filtered out or hidden, columns and sheets are not.

    Raises `OversizedDocument`, `UnreadableDocument`, and openpyxl's errors for malformed parts.
    """
    archive, data = open_office(data, "Excel file")
    is_rich = _STRINGS in archive.NameToInfo and _MARKED.search(archive.read(_STRINGS)) is not None
    workbook = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True, rich_text=is_rich)
    assembly = Assembly()
    rows_left = MAX_ROWS
    own: list[str] = []
    for chart in workbook.chartsheets:
        assembly.skip("chart", f"on sheet “{chart.title}”")
    edges: dict[str, list[str]] = {"header": [], "footer": []}
    for sheet in workbook.worksheets:
        with sheet._get_source() as content:
            parser = _SheetParser(sheet, content)
            rows = _read_rows(sheet, parser, rows_left)
        rows_left -= len(rows)
        own += chain.from_iterable(rows.values())
        if sheet.sheet_state != "visible":
            assembly.leave_out(" ".join(cell for row in rows.values() for cell in row), "on a hidden sheet")
            continue
        for kind, texts in edges.items():
            edge = getattr(getattr(parser, "HeaderFooter", None), f"odd{kind.capitalize()}", None)
            parts = (edge.left, edge.center, edge.right) if edge else ()
            texts += [_FIELD.sub(FIELD, part.text) for part in parts if part.text]
        boxes = [*read_boxes(archive, sheet._worksheet_path)]
        _link(rows, parser, read_addresses(archive, sheet._worksheet_path), assembly)
        stated = {*rows}
        _leave_out_hidden(rows, parser, assembly)
        _spread_merged(rows, parser.merged_cells.mergeCell if parser.merged_cells else ())
        if boxes or any(map(any, rows.values())):
            assembly.add_heading(2, sheet.title)
        if any(map(any, rows.values())):
            # What the file does not state between two rows is empty.
            gaps = ([[], rows[number]] if number - 1 not in stated else [rows[number]] for number in sorted(rows))
            add_grid(assembly, chain.from_iterable(gaps))
        for box in boxes:
            assembly.add_paragraph(BREAK.join(box))
        if parser.unsolved:
            place = f"on sheet “{sheet.title}”, without a stored result: save it in a spreadsheet program"
            assembly.skip("formula", place, parser.unsolved)
    assembly.add_edges(edges)
    assembly.expect(" ".join(own))
    skip_parts(
        assembly,
        archive,
        {sheet._worksheet_path: f"on sheet “{sheet.title}”" for sheet in workbook.worksheets},
        set(),
    )
    return assembly.finish(squeeze(workbook.properties.title or "") or name_title(source), source)


class _SheetParser(WorkSheetParser):  # type: ignore[misc]
    def __init__(self, sheet: ReadOnlyWorksheet, content: IO[bytes]) -> None:
        book = sheet.parent
        formats = {"date_formats": book._date_formats, "timedelta_formats": book._timedelta_formats}
        super().__init__(content, sheet._shared_strings, data_only=True, epoch=book.epoch, rich_text=True, **formats)
        self.unsolved = 0
        """Formulas whose results are not stored."""
        self.linked: dict[str, str] = {}
        """Addresses that formulas state, by their cells."""
        self._book = book
        self._looks: dict[int, frozenset[str]] = {}

    def show(self, cell: ReadOnlyCell) -> str:
        """Spell a cell, with what of its looks has a meaning."""
        style, value = cell._style_id, cell.value
        if style not in self._looks:
            self._looks[style] = _find_looks(self._book._fonts[self._book._cell_styles[style].fontId])
        looks = self._looks[style]
        if isinstance(value, CellRichText):
            runs = [(looks, each) if isinstance(each, str) else (_find_looks(each.font), each.text) for each in value]
            return squeeze(mark(runs))
        shown = show_value(value, cell.number_format)
        return mark([(looks, shown)]) if looks else shown

    def parse_cell(self, element: Any) -> dict[str, Any]:
        cell: dict[str, Any] = super().parse_cell(element)
        may_be_formula = cell["value"] is None or element.get("t") == "str"
        if may_be_formula and (formula := element.find(FORMULA_TAG)) is not None:
            # A formula whose result is an empty text says that it is a text.
            self.unsolved += cell["data_type"] == "n" and cell["value"] is None
            if linked := _LINK.match(formula.text or ""):
                self.linked[element.get("r", "A1")] = linked[1]
        return cell


def _find_looks(font: Any) -> frozenset[str]:
    return frozenset({"s"} if font.strike else ()) | _RAISED.get(font.vertAlign, frozenset())


def _read_rows(sheet: ReadOnlyWorksheet, parser: _SheetParser, most: int) -> dict[int, list[str]]:
    """Return the rows that the file states, by their numbers from 1."""
    rows: dict[int, list[str]] = {}
    count = 0
    for number, stated in parser.parse():
        cells = [cell for cell in stated if cell["value"] is not None]  # others only have a format
        row = rows[number] = [""] * max((cell["column"] for cell in cells), default=0)
        count += len(row)
        check_cells(count)
        if len(rows) > most:
            raise OversizedDocument(f"The Excel file has more than {MAX_ROWS:,} rows. Split it.")
        for cell in cells:
            shown = ReadOnlyCell(sheet, **cell)
            row[shown.column - 1] = parser.show(shown)
    return rows


def _link(
    rows: Mapping[int, list[str]], parser: _SheetParser, addresses: Mapping[str, str], assembly: Assembly
) -> None:
    """Mark the words of cells that are links. A figure stays one."""
    found = parser.hyperlinks.hyperlink if parser.hyperlinks else ()
    places = {(each.ref or "").partition(":")[0]: addresses.get(each.id or "", "") for each in found} | parser.linked
    for place, address in places.items():
        column, number = coordinate_from_string(place)
        row, index = rows.get(number, []), column_index_from_string(column) - 1
        if index < len(row) and not is_figure(row[index]):
            row[index] = assembly.link(row[index], address)


def _leave_out_hidden(rows: dict[int, list[str]], parser: _SheetParser, assembly: Assembly) -> None:
    filtered = getattr(parser, "auto_filter", None)
    range_of = CellRange(filtered.ref) if filtered and filtered.filterColumn else None
    found: dict[str, list[str]] = {}
    for number in [number for number in rows if _is_hidden(parser.row_dimensions.get(str(number), {}))]:
        is_filtered = range_of and range_of.min_row <= number <= range_of.max_row
        found.setdefault("filtered" if is_filtered else "hidden", []).append(" ".join(rows.pop(number)))
    for why, texts in found.items():
        assembly.leave_out(" ".join(texts), f"in {len(texts)} {why} rows" if len(texts) > 1 else f"in a {why} row")
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
