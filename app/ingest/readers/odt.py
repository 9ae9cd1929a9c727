"""OpenDocument texts."""

import re
from collections.abc import Iterator

from lxml import etree

from app.ingest.readers.archives import open_archive, parse_xml, read_part
from app.ingest.readers.assembly import UNSEEN_LETTERS, Assembly, clean, squeeze
from app.ingest.readers.grids import add_table, check_cells
from domain.documents import ParsedDocument
from domain.errors import EncryptedDocument

_NAME = "ODT file"
_OFFICE = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
_TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
_TABLE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
_STYLE = "{urn:oasis:names:tc:opendocument:xmlns:style:1.0}"
_DC = "{http://purl.org/dc/elements/1.1/}"
_FO = "{urn:oasis:names:tc:opendocument:xmlns:xsl-fo-compatible:1.0}"

_HIDDEN = frozenset(
    {
        f"{_TEXT}tracked-changes",
        f"{_OFFICE}annotation",
        f"{_OFFICE}annotation-end",
        f"{_OFFICE}forms",
        f"{_TEXT}table-of-content",
        f"{_TEXT}alphabetical-index",
        f"{_TEXT}note-citation",
    }
)
"""What is no part of the text."""
_UNSEEN = frozenset({f"{_TEXT}hidden-text", f"{_TEXT}hidden-paragraph"})
_SMALLEST = 1.0
"""Size of type, in points, below which nobody reads it."""
_COLORS = frozenset({"transparent", "#ffffff", ""})
"""Backgrounds on which white letters cannot be seen."""
_CONTAINERS = frozenset({f"{_TEXT}section", f"{_TEXT}index-body", f"{_OFFICE}text"})
_MOST_REPEATS = 100
"""Largest number of times that a cell, row or space is repeated. Sheets state thousands for empty ones."""
_DEEPEST_LIST = 10


def read_odt(source: str, data: bytes) -> ParsedDocument:
    """Read an OpenDocument text: headings, paragraphs, lists and tables in their order, then the notes.

    Raises `EncryptedDocument`, `OversizedDocument`, `UnreadableDocument`, and lxml's errors for malformed parts.
    """
    with open_archive(data, _NAME) as archive:
        if b"manifest:encryption-data" in read_part(archive, "META-INF/manifest.xml", _NAME):
            raise EncryptedDocument("The ODT file is protected by a password. Save it without one and try again.")
        content = parse_xml(read_part(archive, "content.xml", _NAME))
        styles = [content]
        if "styles.xml" in archive.NameToInfo:
            styles.append(parse_xml(read_part(archive, "styles.xml", _NAME)))
        title = ""
        if "meta.xml" in archive.NameToInfo:
            found = next(parse_xml(read_part(archive, "meta.xml", _NAME)).iter(f"{_DC}title"), None)
            title = "" if found is None else squeeze("".join(found.itertext()))
    reader = _Reader(Assembly(), _find_numbered_lists(styles), _find_hidden_styles(styles))
    for body in content.iter(f"{_OFFICE}text"):
        reader.add_children(body)
    reader.add_notes(content)
    return reader.assembly.finish(reader.shown_title or title, source)


def _find_numbered_lists(styles: list[etree._Element]) -> set[tuple[str, int]]:
    """Return the styles and levels of lists that are numbered."""
    return {
        (style.get(f"{_STYLE}name", ""), int(level.get(f"{_TEXT}level", "1")))
        for part in styles
        for style in part.iter(f"{_TEXT}list-style")
        for level in style.iter(f"{_TEXT}list-level-style-number")
    }


def _find_hidden_styles(styles: list[etree._Element]) -> set[str]:
    """Return the names of styles whose text nobody sees: hidden, of no size, or white where nothing in the document
    has a colour behind it."""
    on_white = all(
        properties.get(f"{_FO}background-color", "").lower() in _COLORS for part in styles for properties in part.iter()
    )
    return {
        style.get(f"{_STYLE}name", "")
        for part in styles
        for style in part.iter(f"{_STYLE}style")
        for properties in style.iter(f"{_STYLE}text-properties")
        if properties.get(f"{_TEXT}display") == "none"
        or (on_white and properties.get(f"{_FO}color", "").lower() == "#ffffff")
        or _is_tiny(properties.get(f"{_FO}font-size", ""))
    }


def _is_tiny(size: str) -> bool:
    points = re.fullmatch(r"(\d{1,4}(?:\.\d{1,9})?)pt", size)
    return points is not None and float(points[1]) < _SMALLEST


class _Reader:
    def __init__(self, assembly: Assembly, numbered: set[tuple[str, int]], hidden: set[str]) -> None:
        self.assembly = assembly
        self.shown_title = ""
        self._numbered = numbered
        self._hidden = hidden

    def add_children(self, parent: etree._Element) -> None:
        """Append the content of the body or of a section. The parser bounds the depth."""
        for element in parent:
            if element.tag in _HIDDEN:
                continue
            if element.tag in _CONTAINERS:
                if element.get(f"{_TEXT}display") == "none":
                    self._note(element)
                else:
                    self.add_children(element)
            elif element.tag == f"{_TEXT}h":
                level = element.get(f"{_TEXT}outline-level", "1")
                self.assembly.add_heading(min(int(level), 6) if level.isdecimal() else 1, self._spell(element))
            elif element.tag == f"{_TEXT}p":
                self._add_paragraph(element)
            elif element.tag == f"{_TEXT}list":
                self.assembly.add_block("\n".join(self._list_items(element, "", 1)))
            elif element.tag == f"{_TABLE}table":
                self._add_table(element)

    def add_notes(self, content: etree._Element) -> None:
        """Append footnotes and endnotes."""
        for note in content.iter(f"{_TEXT}note-body"):
            self.assembly.add_block(" ".join(filter(None, map(self._spell, note))))

    def _add_paragraph(self, element: etree._Element) -> None:
        text = self._spell(element)
        if element.get(f"{_TEXT}style-name") == "Title" and text and not self.shown_title:
            self.shown_title = text
            self.assembly.add_heading(1, text)
            return
        self.assembly.add_block(text)
        for frame in element.iter(f"{_TABLE}table"):  # in a frame
            self._add_table(frame)

    def _list_items(self, element: etree._Element, style: str, level: int) -> Iterator[str]:
        style = element.get(f"{_TEXT}style-name") or style
        is_numbered = (style, level) in self._numbered
        indent = "  " * (level - 1)
        number = 0
        for item in element:
            if item.tag not in (f"{_TEXT}list-item", f"{_TEXT}list-header"):
                continue
            marker = ""
            for child in item:
                if child.tag in (f"{_TEXT}p", f"{_TEXT}h") and (text := self._spell(child)):
                    if not marker:
                        number += 1
                        marker = f"{number}. " if is_numbered else "- "
                        yield f"{indent}{marker}{text}"
                    else:
                        yield f"{indent}  {text}"
                elif child.tag == f"{_TEXT}list" and level < _DEEPEST_LIST:
                    yield from self._list_items(child, style, level + 1)

    def _add_table(self, table: etree._Element) -> None:
        rows: list[list[str]] = []
        has_header = False
        cells = 0
        for row in table.iter(f"{_TABLE}table-row"):
            if next(row.iterancestors(f"{_TABLE}table")) is not table:
                continue
            spelled = [text for cell in row for text in self._spell_cell(cell)]
            cells += len(spelled)
            check_cells(cells)
            if any(spelled):
                parent = row.getparent()
                has_header |= not rows and parent is not None and parent.tag == f"{_TABLE}table-header-rows"
                rows.append(spelled)
        add_table(self.assembly, rows, has_header=has_header or len(rows) > 1)

    def _spell_cell(self, cell: etree._Element) -> list[str]:
        if cell.tag != f"{_TABLE}table-cell":
            return [""] if cell.tag == f"{_TABLE}covered-table-cell" else []
        text = " ".join(filter(None, map(self._spell, cell.iter(f"{_TEXT}p", f"{_TEXT}h"))))
        return [text] * _read_count(cell.get(f"{_TABLE}number-columns-repeated"))

    def _spell(self, element: etree._Element) -> str:
        """Return the words that are shown, without those of notes and comments."""
        if element.get(f"{_TEXT}style-name") in self._hidden:
            self._note(element)
            return ""
        words: list[str] = []
        self._collect(element, words)
        lines = (squeeze(line) for line in clean("".join(words)).split("\n"))
        return "\n".join(filter(None, lines))

    def _collect(self, element: etree._Element, words: list[str]) -> None:
        words.append(element.text or "")
        for child in element:
            if child.tag == f"{_TEXT}line-break":
                words.append("\n")
            elif child.tag in (f"{_TEXT}s", f"{_TEXT}tab"):
                words.append(" ")
            elif child.tag in (f"{_TEXT}note", f"{_TABLE}table") or child.tag in _HIDDEN:
                pass
            elif child.tag in _UNSEEN or child.get(f"{_TEXT}style-name") in self._hidden:
                self._note(child)
            else:
                self._collect(child, words)
                if child.tag == f"{_TEXT}p":  # in a frame
                    words.append("\n")
            words.append(child.tail or "")

    def _note(self, element: etree._Element) -> None:
        self.assembly.leave_out("".join(element.itertext()), UNSEEN_LETTERS)


def _read_count(stated: str | None) -> int:
    return min(int(stated), _MOST_REPEATS) if stated is not None and re.fullmatch(r"\d{1,9}", stated) else 1
