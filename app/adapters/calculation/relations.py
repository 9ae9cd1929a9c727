"""Reads the tables of a document's text as relations: named, typed columns, and rows that know where they stand."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import TypeVar

from domain.ports.calculation import Value
from domain.text.blocks import Block, Span, blank_struck, open_section, read_blocks
from domain.text.tables import is_row, is_rule, is_value, split_cells

_LONGEST_LEAD = 600
"""Characters of a caption with its header."""
_MOST_COLUMNS = 500
"""Columns of a table that are read."""
_FEWEST_RECORDS = 2
"""Lists in sequence that count as the records of a table."""

_ITEM = re.compile(r"[-*+][ \t]+(?P<key>[^:\n]{1,200}):[ \t]+(?P<value>.*)")
_MARKUP = re.compile(r"\*\*|`|<br ?/?>|!?\[(?P<label>[^\]\n]{0,200})\]\([^)\n]{0,500}\)")
_BLANK = frozenset(("", "-", "–", "—", "n/a", "na", "n.a.", "n.m.", "nm", "null", "none", "..", "...", "…"))

_LEFT_OUT = frozenset(("..", "...", "…", "⋮"))
"""Cells of a row that stands for those that are not shown: nothing is computed with a table that has one."""

_NUMBER = re.compile(
    r"(?P<open>\()?(?P<sign>[-+−–]?)[ ]?(?P<before>[$€£¥]|[A-Z]{3} )?[ ]?(?P<sign2>[-−–]?)"
    r"(?P<digits>\d[\d.,'’\u00a0\u202f]{0,30}|[.,]\d{1,15})(?P<power>[eE][-+]?\d{1,3})?"
    r"(?P<close>\))?[ ]?(?P<unit>[%‰€$£¥°]?(?:(?![¹²³⁴-⁹])[^\W\d_]{1,12}[²³]?)?(?:/[^\W\d_]{1,6})?)[ ]?"
    r"(?:[*†‡]{1,3}|(?<!\b10)[¹²³⁴-⁹]{1,3}|\[\w{1,3}\])?"
)
_POINT = re.compile(r"\d,\d{3}\.\d|\d\.\d{1,2}(?!\d)|\d\.\d{4,}|\d,\d{3},\d{3}|(?<!\d)0\.\d")
_COMMA = re.compile(r"\d\.\d{3},\d|\d,\d{1,2}(?![\d,])|\d,\d{4,}|\d\.\d{3}\.\d{3}|(?<!\d)0,\d")
"""What tells a decimal point from a decimal comma."""
_GROUPED = re.compile(r"\d{1,3}(?:,\d{3})*(?:\.\d*)?|\d+(?:\.\d*)?|\.\d+")
_MOST_DIGITS = 15
"""Longer figures are codes."""
_PLAIN = re.compile(r"-?(?:0|[1-9]\d{0,14})(?P<fraction>\.\d{1,2}|\.\d{4,15})?")
"""What most cells with numbers are. Three places may be thousands."""
_VOTERS = 2_000
"""Cells that tell a table's decimal sign."""

_ISO_DATE = re.compile(r"\d{4}-[01]\d(?:-[0-3]\d(?:[ T]\d\d:\d\d(?::\d\d)?)?)?")
_DATES = (
    ("%Y-%m-%d", "%Y-%m-%d"),
    ("%Y/%m/%d", "%Y-%m-%d"),
    ("%d.%m.%Y", "%Y-%m-%d"),
    ("%d %B %Y", "%Y-%m-%d"),
    ("%d %b %Y", "%Y-%m-%d"),
    ("%B %d, %Y", "%Y-%m-%d"),
    ("%b %d, %Y", "%Y-%m-%d"),
    ("%B %Y", "%Y-%m"),
    ("%b %Y", "%Y-%m"),
)
_FIGURE = re.compile(r"[-+−]?(?<![\w.,])\d[\d.,]{0,30}(?<=\d)")
_CURRENCIES = frozenset("$€£¥")

T = TypeVar("T")

_SLASHES = (("%m/%d/%Y", "%Y-%m-%d"), ("%d/%m/%Y", "%Y-%m-%d"))
"""Dates that both read are not converted."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column: of numbers, with the unit that all cells share, or of text."""

    name: str
    kind: str = "text"
    unit: str = ""

    def __str__(self) -> str:
        of = f" in {self.unit}" if self.unit else ""
        return f'"{self.name}" {self.kind}{of}'


@dataclass(frozen=True, slots=True)
class Relation:
    """A table. `spans` are the places of its rows in the text, `lead` its caption and header as they stand there."""

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Value, ...], ...]
    spans: tuple[Span, ...]
    lead: str

    def read_header(self, place: int) -> str:
        """Return what stands above a column; empty where nothing does, so that its name was made up."""
        name = self.columns[place].name
        return "" if name == f"c{place + 1}" and name not in self.lead else name


@dataclass(slots=True)
class _Records:
    """Lists in sequence that hold the rows of one table, as `app/ingest/readers/grids.py` writes wide ones."""

    keys: dict[str, None] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    rows: list[dict[str, str]] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)


@lru_cache(maxsize=4)
def read_relations(text: str) -> tuple[Relation, ...]:
    """Return the tables of a text in order. Kept for the next query, which is about the same documents."""
    return tuple(_find_relations(text))


@lru_cache(maxsize=4)
def _recall_blocks(text: str) -> tuple[Block, ...]:
    return tuple(read_blocks(text))


def read_headings(text: str) -> list[tuple[int, str]]:
    """Return the places of a text's headings, and how they stand there."""
    return [(b.start, text[b.start : b.end]) for b in _recall_blocks(text) if b.kind == "heading"]


def find_number(text: str) -> float | int | None:
    """Return the first number in a text; None where there is none."""
    figure = _FIGURE.search(text)
    found = _read_number(figure[0], has_comma=_has_comma([figure[0]])) if figure else None
    return found[0] if found else None


def is_record(relation: Relation, text: str) -> bool:
    """Return True where the rows stand in the text as lists."""
    return not is_row(text[slice(*relation.spans[0])].split("\n", 1)[0])


def read_cells(relation: Relation, text: str, row: int) -> list[str]:
    """Return the cells of a row as they stand in the text."""
    written = text[slice(*relation.spans[row])]
    if is_record(relation, text):
        items = {item["key"]: item["value"] for item in map(_ITEM.fullmatch, written.split("\n")) if item}
        return [str(relation.rows[row][0] or ""), *(items.get(column.name, "") for column in relation.columns[1:])]
    cells = [_clean(cell) for cell in split_cells(written)]
    return (cells + [""] * len(relation.columns))[: len(relation.columns)]


def _find_relations(text: str) -> Iterator[Relation]:
    heading, title, path = "", "", list[tuple[int, str]]()
    records = _Records()
    for block in _recall_blocks(text):
        record = _read_record(text, block)
        if record and (not records.rows or record.keys() & records.keys.keys()):
            records.names.append(text[block.start : block.lead[1]].rstrip(":") if block.lead else "")
            records.rows.append(record)
            records.keys |= dict.fromkeys(record)
            records.spans.append((block.start, block.end))
            continue
        yield from _join_records(records, heading)
        records = _Records()
        if block.kind == "heading":
            written = text[block.start : block.end]
            title = title or written
            path = open_section(path, written, written)
            heading = " › ".join(each.lstrip("# ") for _, each in path if each != title or len(path) == 1)
        elif block.kind == "table":
            yield from _read_table(text, block, heading)
    yield from _join_records(records, heading)


def _read_record(text: str, block: Block) -> dict[str, str]:
    """Return the cells of a list that is a record: each item is a name with its value."""
    if block.kind != "list" or len(block.parts) < 2:
        return {}
    items = [_ITEM.fullmatch(text[start:end]) for start, end in block.parts]
    cells = {item["key"]: item["value"] for item in items if item}
    return cells if len(cells) == len(items) else {}


def _join_records(records: _Records, heading: str) -> Iterator[Relation]:
    if len(records.rows) >= _FEWEST_RECORDS:
        keys = list(records.keys)[: _MOST_COLUMNS - 1]
        cells = [
            [name, *(row.get(key, "") for key in keys)] for name, row in zip(records.names, records.rows, strict=True)
        ]
        yield _make_relation(["name", *keys], cells, records.spans, heading, "")


def _read_table(text: str, block: Block, heading: str) -> Iterator[Relation]:
    lead = text[slice(*block.lead)] if block.lead else ""
    above = [line for line in lead.split("\n") if line.strip()]
    headers = [split_cells(line) for line in above if is_row(line) and not is_rule(line)]
    caption = [heading, " ".join(line.strip() for line in above if not is_row(line) and not is_rule(line))]
    spans = [span for span in block.parts if is_row(text[slice(*span)]) and not is_rule(text[slice(*span)])]
    cells = [split_cells(text[start:end]) for start, end in spans]
    if not cells or any(_LEFT_OUT.issuperset(row) for row in cells):
        return
    width = max(map(len, [*headers, *cells]))
    missing = width - max(map(len, headers), default=0)
    if headers and missing and not any(map(is_rule, above)):
        # Nothing rules it off, as in some PDFs, so nothing says which columns its cells stand above.
        if missing == 1 and not any(is_value(row[0]) for row in cells):
            headers = [["", *row] for row in headers]
        else:
            caption += [cell for row in headers for cell in row]
            headers = []
    names = [
        " ".join(dict.fromkeys(row[place] for row in headers if place < len(row) and row[place]))
        for place in range(min(width, _MOST_COLUMNS))
    ]
    yield _make_relation(names, cells, spans, " › ".join(filter(None, caption)), lead)


def _make_relation(
    names: Sequence[str], cells: Sequence[Sequence[str]], spans: Sequence[Span], caption: str, lead: str
) -> Relation:
    columns: list[Column] = []
    values: list[Sequence[Value]] = []
    plain = [[_clean(cell) for cell in row] for row in cells]
    has_comma = _has_comma([cell for row in plain for cell in row])
    for place, name in enumerate(_make_unique(names)):
        column, converted = _convert(name, [row[place] if place < len(row) else "" for row in plain], has_comma)
        columns.append(column)
        values.append(converted)
    return Relation(caption, tuple(columns), tuple(zip(*values, strict=True)), tuple(spans), lead[:_LONGEST_LEAD])


def _clean(cell: str) -> str:
    if not any(map(cell.__contains__, "*`<[\\~")):
        return cell
    cell = blank_struck(cell).strip()
    return (
        _MARKUP.sub(lambda found: found["label"] or " "[: found[0].startswith("<")], cell).replace("\\|", "|").strip()
    )


def _make_unique(names: Sequence[str]) -> list[str]:
    taken: set[str] = set()
    unique: list[str] = []
    for place, name in enumerate(names, 1):
        base = " ".join(_clean(name).replace('"', "'").split()) or f"c{place}"
        chosen, count = base, 1
        while chosen.lower() in taken:
            count += 1
            chosen = f"{base} {count}"
        taken.add(chosen.lower())
        unique.append(chosen)
    return unique


def _convert(name: str, cells: Sequence[str], has_comma: bool) -> tuple[Column, list[Value]]:
    """Return the column with its values: numbers or dates where all cells that are not blank are such."""
    filled = [cell for cell in cells if cell.lower() not in _BLANK]
    if filled and all(map(_ISO_DATE.fullmatch, filled)):
        return Column(name, "date"), [None if cell.lower() in _BLANK else cell for cell in cells]
    numbers = _convert_all(filled, lambda cell: _read_number(cell, has_comma=has_comma))
    units = {unit for _, unit in numbers}
    if len(set(filled)) > len({cell.rstrip("0") if "." in cell else cell for cell in filled}):
        units = set()  # 3.1 and 3.10 are versions
    if len(units) > 1 and units - {""} <= _CURRENCIES:  # accounts name it in the first row and the sum
        units.discard("")
    if len(units) == 1:
        of = iter(numbers)
        return Column(name, "number", units.pop()), [None if cell.lower() in _BLANK else next(of)[0] for cell in cells]
    readings = [dates for each in _DATES if (dates := _convert_all(filled, _date_reader(each)))]
    slashed = [dates for each in _SLASHES if (dates := _convert_all(filled, _date_reader(each)))]
    readings += slashed if len(slashed) == 1 or slashed[:1] == slashed[1:] else []
    if readings:
        days = iter(readings[0])
        return Column(name, "date"), [None if cell.lower() in _BLANK else next(days) for cell in cells]
    return Column(name), [cell or None for cell in cells]


def _convert_all(cells: Sequence[str], convert: Callable[[str], T | None]) -> list[T]:
    """Return all cells converted; nothing where one cannot be."""
    converted: list[T] = []
    for cell in cells:
        value = convert(cell)
        if value is None:
            return []
        converted.append(value)
    return converted


def _date_reader(form: tuple[str, str]) -> Callable[[str], str | None]:
    def read(cell: str) -> str | None:
        try:
            return datetime.strptime(cell, form[0]).strftime(form[1])  # noqa: DTZ007 - a day of no time zone
        except ValueError:
            return None

    return read


def _has_comma(cells: Sequence[str]) -> bool:
    """Return True where the figures of a table have a decimal comma."""
    voters = [cell for cell in cells[:_VOTERS] if cell]
    return sum(bool(_COMMA.search(cell)) for cell in voters) > sum(bool(_POINT.search(cell)) for cell in voters)


def _read_number(cell: str, *, has_comma: bool) -> tuple[float | int, str] | None:
    """Return a cell's number and unit. A code, such as one with zeros in front, is no number."""
    if not has_comma and (plain := _PLAIN.fullmatch(cell)):
        return (float(cell) if plain["fraction"] else int(cell)), ""
    found = _NUMBER.fullmatch(cell)
    if not found or (found["open"] is None) != (found["close"] is None):
        return None
    digits = re.sub("['’\u00a0\u202f]", "", found["digits"])
    if has_comma:
        digits = digits.translate({44: ".", 46: ","})
    whole = digits.split(".")[0]
    if not _GROUPED.fullmatch(digits) or len(digits) > _MOST_DIGITS + 5 or (len(whole) > 1 and whole[0] == "0"):
        return None
    bare = digits.replace(",", "")
    if len(whole.replace(",", "")) > _MOST_DIGITS:
        return None
    number = float(bare + (found["power"] or "")) if "." in bare or found["power"] else int(bare)
    is_negative = bool(found["open"]) or any(sign in "-−–" for sign in (found["sign"], found["sign2"]) if sign)
    unit = " ".join(filter(None, ((found["before"] or "").strip(), found["unit"])))
    return (-number if is_negative else number), unit
