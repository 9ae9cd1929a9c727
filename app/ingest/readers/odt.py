"""OpenDocument texts, presentations and sheets."""

import io
import re
import zipfile
from collections.abc import Iterator
from copy import deepcopy

from lxml import etree

from app.ingest.readers.archives import open_archive, parse_xml, read_part
from app.ingest.readers.assembly import FIELD, UNSEEN_LETTERS, Assembly, spell_number, squeeze
from app.ingest.readers.boxes import Box, put_in_order
from app.ingest.readers.grids import add_grid, check_cells
from app.ingest.readers.pandoc import Walk, parse
from domain.documents import ParsedDocument
from domain.errors import EncryptedDocument

_NAME = "OpenDocument file"
_OFFICE = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
_TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
_TABLE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
_DC = "{http://purl.org/dc/elements/1.1/}"
_DRAW = "{urn:oasis:names:tc:opendocument:xmlns:drawing:1.0}"
_STYLE = "{urn:oasis:names:tc:opendocument:xmlns:style:1.0}"
_FO = "{urn:oasis:names:tc:opendocument:xmlns:xsl-fo-compatible:1.0}"

_PRESENTATION = "{urn:oasis:names:tc:opendocument:xmlns:presentation:1.0}"
_SVG = "{urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0}"
_HREF = "{http://www.w3.org/1999/xlink}href"

_NO_TEXT = frozenset(
    {f"{_TEXT}{name}" for name in ("tracked-changes", "table-of-content", "alphabetical-index", "note-citation")}
    | {f"{_OFFICE}annotation", f"{_OFFICE}annotation-end", f"{_OFFICE}forms"}
)
"""What is no part of the text."""
_UNSEEN = frozenset({f"{_TEXT}hidden-text", f"{_TEXT}hidden-paragraph"})
_BLOCKS = frozenset(f"{_TEXT}{name}" for name in ("h", "list", "p", "section"))
_BLANKS = tuple(f"{_TEXT}{name}" for name in ("line-break", "s", "tab"))
_KNOWN = _BLOCKS | frozenset(
    f"{_TEXT}{name}"
    for name in (
        "a", "bookmark", "bookmark-ref", "bookmark-start", "bookmark-end", "line-break", "list-item",
        "note", "note-body", "note-citation", "reference-mark-start", "reference-ref", "s", "span", "tab",
    )
)  # fmt: skip
"""Elements of a text that pandoc reads. It drops all others with their words, such as fields."""
_SMALLEST = 1.0
"""Size of type, in points, below which nobody reads it."""
_COLORS = frozenset({"transparent", "#ffffff", ""})
"""Backgrounds on which white letters cannot be seen."""
_REPEATED = f"{_TABLE}number-columns-repeated"
_VALUES = ("string-", "date-", "time-", "boolean-", "")
_START = f"{_TEXT}start-value"
_MOST_REPEATS = 100
"""Largest number of times that a cell, row or space is repeated. Sheets state thousands for empty ones."""
_GROUPS = (f"{_DRAW}g", f"{_DRAW}a")
_INCH = {"in": 1.0, "cm": 2.54, "mm": 25.4, "pt": 72.0, "pc": 6.0, "px": 96.0}
_LENGTH = re.compile(rf"(-?\d{{1,9}}(?:\.\d{{1,9}})?)({'|'.join(_INCH)})")
_NO_STYLES = b'<o:document-styles xmlns:o="urn:oasis:names:tc:opendocument:xmlns:office:1.0"/>'


def read_opendocument(source: str, data: bytes) -> ParsedDocument:
    """Read an OpenDocument text, presentation or sheet, without what is hidden.

    Raises `EncryptedDocument`, what `open_archive` and `parse` raise, and lxml's errors for malformed parts.
    """
    with open_archive(data, _NAME) as archive:
        if b"manifest:encryption-data" in read_part(archive, "META-INF/manifest.xml", _NAME):
            raise EncryptedDocument(
                "The OpenDocument file is protected by a password. Save it without one and try again."
            )
        parts = {
            name: parse_xml(read_part(archive, name, _NAME) if name in archive.NameToInfo else _NO_STYLES)
            for name in ("content.xml", "styles.xml", "meta.xml")
        }
        content = parts["content.xml"]
        walk = Walk()
        walk.quotes = False
        parts |= _read_equations(walk.assembly, archive, content)
    for edge in parts["styles.xml"].iterfind(f".//{_STYLE}master-page/*"):
        kind = etree.QName(edge).localname[:6]
        if kind in walk.edges and edge.get(f"{_STYLE}display") != "false":
            for field in edge.iterdescendants(etree.Element):
                field.text = field.text if field.tag in _KNOWN else FIELD
            walk.edges[kind] += map(_read_words, edge.iter(f"{_TEXT}p"))
    walk.assembly.expect(" ".join(map(str, content.itertext())))
    _leave_out(walk, content, _find_hidden_styles([content, parts["styles.xml"]]))
    stated = parts["meta.xml"].findtext(f".//{_DC}title")
    for body in [*content.iter(f"{_OFFICE}spreadsheet")]:
        _add_sheets(walk.assembly, body)
        walk.assembly.add_edges(walk.edges)
        return walk.assembly.finish(stated, source)
    for body in [*content.iter(f"{_OFFICE}presentation")]:
        _join_slides(body)
    _number(content, [content, parts["styles.xml"]])
    title = "".join(map(_prepare, content.iter(f"{_OFFICE}text"))) or stated
    if content.find(f"{_OFFICE}automatic-styles") is None:
        # pandoc refuses a text that has no styles at all.
        content.insert(0, etree.Element(f"{_OFFICE}automatic-styles"))
    return walk.read(parse(_pack(parts), "odt"), source, title)


def _find_hidden_styles(styles: list[etree._Element]) -> set[str]:
    """Return the names of styles whose text nobody sees: hidden, of no size, or white where nothing in the document
    has a colour behind it; and of hidden sheets."""
    on_white = all(
        properties.get(f"{_FO}background-color", "").lower() in _COLORS for part in styles for properties in part.iter()
    )
    return {
        style.get(f"{_STYLE}name", "")
        for part in styles
        for style in part.iter(f"{_STYLE}style")
        for properties in style.iter(f"{_STYLE}text-properties", f"{_STYLE}table-properties")
        if properties.get(f"{_TABLE}display") == "false"
        or "none" in (properties.get(f"{_TEXT}display"), properties.get(f"{_TABLE}display"))
        or (on_white and properties.get(f"{_FO}color", "").lower() == "#ffffff")
        or _is_tiny(properties.get(f"{_FO}font-size", ""))
    }


def _is_tiny(size: str) -> bool:
    points = re.fullmatch(r"(\d{1,4}(?:\.\d{1,9})?)pt", size)
    return points is not None and float(points[1]) < _SMALLEST


def _leave_out(walk: Walk, content: etree._Element, hidden: set[str]) -> None:
    """Remove what is no text and what nobody sees, and count the words of the latter."""
    found: list[etree._Element] = []
    elements = etree.iterwalk(content, events=("start",), tag=etree.Element)
    for _, element in elements:
        is_unseen = element.tag in _UNSEEN or element.get(f"{_TEXT}style-name") in hidden
        if is_unseen or (element.tag == f"{_TEXT}section" and element.get(f"{_TEXT}display") == "none"):
            walk.assembly.leave_out("".join(map(str, element.itertext())), UNSEEN_LETTERS)
        elif element.tag == f"{_TABLE}table" and element.get(f"{_TABLE}style-name") in hidden:
            walk.assembly.leave_out(" ".join(map(str, element.itertext())), "on a hidden sheet")
        elif element.tag in _NO_TEXT:
            walk.assembly.skip("comment", number=int(element.tag == f"{_OFFICE}annotation"))
            walk.assembly.skip("deletion", "tracked", sum(1 for _ in element.iter(f"{_TEXT}deletion")))
            walk.assembly.pass_over("".join(map(str, element.itertext())))
        else:
            continue
        found.append(element)
        elements.skip_subtree()
    for element in found:
        element.addprevious(etree.Comment(""))  # keeps what follows the element apart from it
        _remove(element)


def _remove(element: etree._Element) -> None:
    """Remove an element, without the text that follows it."""
    parent, before = element.getparent(), element.getprevious()
    if parent is not None and before is not None:
        before.tail = (before.tail or "") + (element.tail or "")
        parent.remove(element)


def _read_equations(assembly: Assembly, archive: zipfile.ZipFile, content: etree._Element) -> dict[str, etree._Element]:
    """Return the parts that are equations by their paths, and count other objects and pictures."""
    equations: dict[str, etree._Element] = {}
    for frame in content.iter(f"{_DRAW}frame"):
        for thing in frame.findall(f"{_DRAW}object") or frame.findall(f"{_DRAW}image")[:1]:
            path = f"{thing.get(_HREF, '').removeprefix('./')}/content.xml"
            if not thing.tag.endswith("object"):
                assembly.skip("picture")
            elif path not in archive.NameToInfo:
                assembly.skip("attachment")
            elif (part := parse_xml(read_part(archive, path, _NAME))).tag.endswith("}math"):
                equations[path] = part
            else:
                is_chart = next(part.iter(f"{_OFFICE}chart"), None) is not None
                assembly.skip("chart" if is_chart else "attachment")
    return equations


def _join_slides(body: etree._Element) -> None:
    """Make one text of all slides, each below its title."""
    text = etree.Element(f"{_OFFICE}text")
    for number, page in enumerate(body.iter(f"{_DRAW}page"), start=1):
        titles = [each for each in page.iter() if each.get(f"{_PRESENTATION}class") == "title"]
        heading = etree.SubElement(text, f"{_TEXT}h", {f"{_TEXT}outline-level": "1"})
        heading.text = squeeze(" ".join(map(_read_words, titles))) or f"Slide {number}"
        for shape in _list_shapes(page):
            for block in [*shape.iter(*_BLOCKS, f"{_TABLE}table")]:
                around = [*block.iterancestors()]
                if not any(each.tag in _BLOCKS or each.tag == f"{_TABLE}table" or each in titles for each in around):
                    text.append(block)
    parent = body.getparent()
    assert parent is not None
    parent.replace(body, text)


def _list_shapes(around: etree._Element) -> Iterator[etree._Element]:
    """Yield what a slide holds as it is read, shapes of groups in the group's place, and last what is no shape, such as
    notes."""
    boxes = [*map(_measure, around.iterchildren(etree.Element))]
    others = (child for child, box in zip(around.iterchildren(etree.Element), boxes, strict=True) if not box)
    for shape in [*put_in_order([box for box in boxes if box]), *others]:
        if shape.tag in _GROUPS:
            yield from _list_shapes(shape)
        else:
            yield shape


def _measure(shape: etree._Element) -> Box | None:
    """Return where a shape or a group stands; None for what is no shape."""
    if shape.tag in _GROUPS:
        inner = [*filter(None, map(_measure, shape.iterchildren(etree.Element)))]
        left, top = (min((getattr(box, edge) for box in inner), default=0.0) for edge in ("left", "top"))
        right, bottom = (max((getattr(box, edge) for box in inner), default=0.0) for edge in ("right", "bottom"))
        is_other = any(box.is_other for box in inner)
        return Box(shape, left, top, right, bottom, "\n".join(box.words for box in inner if box.words), is_other)
    if not shape.tag.startswith(_DRAW):
        return None
    left, top, width, height = (_read_length(shape, name) for name in ("x", "y", "width", "height"))
    is_other = next(shape.iter(f"{_TABLE}table"), None) is not None
    words = [] if is_other else [squeeze(_read_words(each)) for each in shape.iter(f"{_TEXT}p", f"{_TEXT}h")]
    return Box(shape, left, top, left + width, top + height, "\n".join(filter(None, words)), is_other)


def _read_length(shape: etree._Element, name: str) -> float:
    """Return a length in inches; 0 where none is stated."""
    stated = _LENGTH.fullmatch(shape.get(f"{_SVG}{name}", ""))
    return float(stated[1]) / _INCH[stated[2]] if stated else 0.0


def _add_sheets(assembly: Assembly, body: etree._Element) -> None:
    """Add each sheet as a section. Cells show what they show in the sheet; one over several rows is said in each, and
    so is one over several columns that the row above fills."""
    count = 0
    for table in body.iterchildren(f"{_TABLE}table"):
        assembly.add_heading(1, table.get(f"{_TABLE}name", ""))
        rows: list[list[str]] = []
        spanned: dict[int, tuple[int, str]] = {}
        hidden = _find_hidden_columns(table)
        for row in table.iter(f"{_TABLE}table-row"):
            if row.get(f"{_TABLE}visibility") in ("collapse", "filter"):
                assembly.leave_out("".join(map(str, row.itertext())), "in a hidden row")
                continue
            cells: list[str] = []
            over_columns: list[tuple[int, int]] = []
            for cell in row.iterchildren(f"{_TABLE}table-cell", f"{_TABLE}covered-table-cell"):
                shown = squeeze(" ".join(map(_read_words, cell.iterchildren(f"{_TEXT}p")))) or _read_value(cell)
                times = _read_number(cell, _REPEATED)
                over_columns.append((len(cells), _read_number(cell, f"{_TABLE}number-columns-spanned")))
                check_cells(count + times if shown else 0)
                for _ in range(times if shown else min(times, _MOST_REPEATS)):
                    left, said = spanned.pop(len(cells), (0, ""))
                    said = shown or said
                    if not shown and left > 1:
                        spanned[len(cells)] = left - 1, said
                    elif (over := _read_number(cell, f"{_TABLE}number-rows-spanned")) > 1:
                        spanned[len(cells)] = over - 1, said
                    cells.append(said)
            for start, width in over_columns if sum(map(bool, cells)) > 1 else ():
                named = rows[-1][start : start + width] if rows else []
                is_named = len(named) == width and all(named)
                for column in range(start + 1, min(start + width, len(cells)) if is_named else 0):
                    cells[column] = cells[start]
                    spanned |= {column: spanned[start]} if start in spanned else {}
            for column in hidden:
                if column < len(cells) and cells[column]:
                    assembly.leave_out(cells[column], "in a hidden column")
                    cells[column] = ""
            times = _read_number(row, f"{_TABLE}number-rows-repeated")
            times = times if any(cells) else 1
            count += len(cells) * times
            check_cells(count)
            rows += [cells] * times
        width = max((place + 1 for cells in rows for place, cell in enumerate(cells) if cell), default=0)
        add_grid(assembly, [[*cells[:width], *[""] * (width - len(cells))] for cells in rows])


def _read_value(cell: etree._Element) -> str:
    """Return the value of a cell that does not say how it shows it, as programs write that are no office."""
    return next(filter(None, (cell.get(f"{_OFFICE}{name}value", "") for name in _VALUES)), "")


def _read_words(element: etree._Element) -> str:
    """Return the words of an element, with blanks that have elements of their own, and between paragraphs."""
    if next(element.iter(*_BLANKS), None) is not None:
        element = deepcopy(element)
        for blank in element.iter(*_BLANKS):
            blank.text = " "
    if paragraphs := [*element.iterdescendants(f"{_TEXT}p")]:
        return " ".join(map(_read_words, paragraphs))
    return "".join(map(str, element.itertext()))


def _find_hidden_columns(table: etree._Element) -> list[int]:
    hidden: list[int] = []
    place = 0
    for column in table.iter(f"{_TABLE}table-column"):
        count = _read_number(column, f"{_TABLE}number-columns-repeated")
        if column.get(f"{_TABLE}visibility") in ("collapse", "filter"):
            hidden += range(place, place + min(count, _MOST_REPEATS))
        place += count
    return hidden


def _number(content: etree._Element, styles: list[etree._Element]) -> None:
    """Write the numbers of headings before their words, which pandoc drops, and begin a list of its own where an item
    states its number."""
    levels = {
        _read_number(each, f"{_TEXT}level"): each
        for part in styles
        for each in part.iter(f"{_TEXT}outline-level-style")
    }
    counts: dict[int, int] = {}
    for heading in content.iter(f"{_TEXT}h"):
        level = _read_number(heading, f"{_TEXT}outline-level")
        if level not in levels or heading.get(f"{_TEXT}is-list-header") == "true" or not "".join(heading.itertext()):
            continue
        first = _read_number(levels[level], _START)
        counts = {each: count for each, count in counts.items() if each <= level}
        stated = _read_number(heading, _START) if heading.get(_START) else counts.get(level, first - 1) + 1
        counts[level] = stated
        shown = range(level + 1 - _read_number(levels[level], f"{_TEXT}display-levels"), level + 1)
        if levels[level].get(f"{_STYLE}num-format") and next(heading.iterancestors(f"{_TEXT}list"), None) is None:
            label = ".".join(_spell(counts.get(each, 1), levels[each]) for each in sorted(levels) if each in shown)
            prefix, suffix = (levels[level].get(f"{_STYLE}num-{each}", "") for each in ("prefix", "suffix"))
            heading.text = f"{prefix}{label}{suffix} {heading.text or ''}"
    lists = {each.get(f"{_STYLE}name"): each for part in styles for each in part.iter(f"{_TEXT}list-style")}
    for item in reversed([*content.iter(f"{_TEXT}list-item")]):
        around = [*item.iterancestors(f"{_TEXT}list")]
        named = lists.get(next((name for each in around if (name := each.get(f"{_TEXT}style-name"))), ""))
        if item.get(_START) is None or named is None:
            continue
        style = deepcopy(named)
        for level in style:
            if level.get(f"{_TEXT}level") == str(len(around)):
                level.set(_START, item.get(_START, ""))
        style.set(f"{_STYLE}name", f"{style.get(f'{_STYLE}name')}-{len(lists)}")
        lists[style.get(f"{_STYLE}name")] = style
        named.addnext(style)
        begun = etree.Element(f"{_TEXT}list", {f"{_TEXT}style-name": style.get(f"{_STYLE}name", "")})
        around[0].addnext(begun)
        begun.extend([item, *item.itersiblings()])


def _spell(number: int, style: etree._Element) -> str:
    kind = style.get(f"{_STYLE}num-format", "")
    if kind not in ("a", "A", "i", "I"):
        return str(number)
    return spell_number(number, is_roman=kind in "iI", is_upper=kind in "AI")


def _read_number(element: etree._Element, name: str) -> int:
    """Return how often something is repeated or how far it goes."""
    stated = element.get(name, "1")
    return int(stated) if re.fullmatch(r"\d{1,9}", stated) else 1


def _prepare(body: etree._Element) -> str:
    """Write in elements that pandoc reads what it would drop, and bound what it would repeat without end. Returns the
    title that the text begins with; empty where it has none."""
    count, title = 0, ""
    for element in [*body.iterdescendants(etree.Element)]:
        if element.tag == f"{_DRAW}text-box":
            around = next(element.iterancestors(f"{_TEXT}p", f"{_TEXT}h"), None)
            if around is not None:
                for block in reversed(element):
                    around.addnext(block)
        elif element.tag == f"{_TEXT}list-header" and (around := element.getparent()) is not None:
            for block in element:  # has no number
                around.addprevious(block)
            around.remove(element)
        elif element.tag == f"{_TEXT}s":
            element.set(f"{_TEXT}c", "1")
        elif element.get(f"{_TEXT}style-name") == "Title" and element.tag == f"{_TEXT}p":
            title = title or squeeze(_read_words(element))
            element.tag = f"{_TEXT}h"
            element.set(f"{_TEXT}outline-level", "1")
        elif element.tag == f"{_TABLE}table-cell":
            times = min(_read_number(element, _REPEATED), _MOST_REPEATS)
            element.attrib.pop(_REPEATED, "")
            count += times
            check_cells(count)
            for _ in range(times - 1):
                element.addnext(deepcopy(element))
        elif element.tag.startswith(_TEXT) and element.tag not in _KNOWN:
            holds_blocks = any(child.tag in _BLOCKS for child in element)
            if element.tag == f"{_TEXT}ruby-text":
                element.text = f"({''.join(map(str, element.itertext()))})"
            element.tag = f"{_TEXT}section" if holds_blocks else f"{_TEXT}span"
    for holder in reversed([*body.iter(f"{_TABLE}table-cell", f"{_TEXT}note-body")]):
        _simplify(holder)
    return title


def _simplify(holder: etree._Element) -> None:
    """Write as paragraphs what pandoc drops in a cell or a note: headings, sections, tables and lists of notes."""
    is_note = holder.tag == f"{_TEXT}note-body"
    for block in [*holder.iter(*_BLOCKS, f"{_TABLE}table")]:
        if block.tag == f"{_TEXT}h":
            block.tag = f"{_TEXT}p"
        elif block.tag == f"{_TABLE}table":
            for row in block.iter(f"{_TABLE}table-row"):
                words = etree.Element(f"{_TEXT}p")
                words.text = ", ".join(filter(None, map(_read_words, row)))
                block.addprevious(words)
            _remove(block)
        elif block.tag == f"{_TEXT}section" or (is_note and block.tag == f"{_TEXT}list"):
            for child in block.iterchildren() if block.tag.endswith("section") else [*block.iter(f"{_TEXT}p")]:
                block.addprevious(child)
            _remove(block)


def _pack(parts: dict[str, etree._Element]) -> bytes:
    """Return an archive of these parts alone: without pictures, and with no more than was checked."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, part in parts.items():
            archive.writestr(name, etree.tostring(part))
    return file.getvalue()
