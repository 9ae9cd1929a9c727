"""OpenDocument texts."""

import io
import re
import zipfile
from copy import deepcopy

from lxml import etree

from app.ingest.readers.archives import open_archive, parse_xml, read_part
from app.ingest.readers.assembly import UNSEEN_LETTERS, squeeze
from app.ingest.readers.grids import check_cells
from app.ingest.readers.pandoc import Walk, parse
from domain.documents import ParsedDocument
from domain.errors import EncryptedDocument

_NAME = "ODT file"
_OFFICE = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
_TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
_TABLE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
_DC = "{http://purl.org/dc/elements/1.1/}"
_DRAW = "{urn:oasis:names:tc:opendocument:xmlns:drawing:1.0}"
_STYLE = "{urn:oasis:names:tc:opendocument:xmlns:style:1.0}"
_FO = "{urn:oasis:names:tc:opendocument:xmlns:xsl-fo-compatible:1.0}"

_NO_TEXT = frozenset(
    {f"{_TEXT}{name}" for name in ("tracked-changes", "table-of-content", "alphabetical-index")}
    | {f"{_OFFICE}annotation", f"{_OFFICE}annotation-end", f"{_OFFICE}forms"}
)
"""What is no part of the text."""
_UNSEEN = frozenset({f"{_TEXT}hidden-text", f"{_TEXT}hidden-paragraph"})
_BLOCKS = frozenset(f"{_TEXT}{name}" for name in ("h", "list", "p", "section"))
_KNOWN = _BLOCKS | frozenset(
    f"{_TEXT}{name}"
    for name in (
        "a", "bookmark", "bookmark-ref", "bookmark-start", "bookmark-end", "line-break", "list-header", "list-item",
        "note", "note-body", "note-citation", "reference-mark-start", "reference-ref", "s", "span", "tab",
    )
)  # fmt: skip
"""Elements of a text that pandoc reads. It drops all others with their words, such as fields."""
_SMALLEST = 1.0
"""Size of type, in points, below which nobody reads it."""
_COLORS = frozenset({"transparent", "#ffffff", ""})
"""Backgrounds on which white letters cannot be seen."""
_REPEATED = f"{_TABLE}number-columns-repeated"
_MOST_REPEATS = 100
"""Largest number of times that a cell, row or space is repeated. Sheets state thousands for empty ones."""
_NO_STYLES = b'<o:document-styles xmlns:o="urn:oasis:names:tc:opendocument:xmlns:office:1.0"/>'


def read_odt(source: str, data: bytes) -> ParsedDocument:
    """Read an OpenDocument text, without what is hidden.

    Raises `EncryptedDocument`, what `open_archive` and `parse` raise, and lxml's errors for malformed parts.
    """
    with open_archive(data, _NAME) as archive:
        if b"manifest:encryption-data" in read_part(archive, "META-INF/manifest.xml", _NAME):
            raise EncryptedDocument("The ODT file is protected by a password. Save it without one and try again.")
        parts = {
            name: parse_xml(read_part(archive, name, _NAME) if name in archive.NameToInfo else _NO_STYLES)
            for name in ("content.xml", "styles.xml", "meta.xml")
        }
    walk = Walk()
    walk.quotes = False
    walk.assembly.expect("".join(map(str, parts["content.xml"].itertext())))
    _leave_out(walk, parts["content.xml"], _find_hidden_styles([parts["content.xml"], parts["styles.xml"]]))
    title = "".join(map(_prepare, parts["content.xml"].iter(f"{_OFFICE}text"))) or parts["meta.xml"].findtext(
        f".//{_DC}title"
    )
    if parts["content.xml"].find(f"{_OFFICE}automatic-styles") is None:
        # pandoc refuses a text that has no styles at all.
        parts["content.xml"].insert(0, etree.Element(f"{_OFFICE}automatic-styles"))
    return walk.read(parse(_pack(parts), "odt"), source, title)


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


def _leave_out(walk: Walk, content: etree._Element, hidden: set[str]) -> None:
    """Remove what is no text and what nobody sees, and count the words of the latter."""
    found: list[etree._Element] = []
    elements = etree.iterwalk(content, events=("start",), tag=etree.Element)
    for _, element in elements:
        is_unseen = element.tag in _UNSEEN or element.get(f"{_TEXT}style-name") in hidden
        if is_unseen or (element.tag == f"{_TEXT}section" and element.get(f"{_TEXT}display") == "none"):
            walk.assembly.leave_out("".join(map(str, element.itertext())), UNSEEN_LETTERS)
        elif element.tag in _NO_TEXT:
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
        elif element.tag == f"{_TEXT}s":
            element.set(f"{_TEXT}c", "1")
        elif element.get(f"{_TEXT}style-name") == "Title" and element.tag == f"{_TEXT}p":
            title = title or squeeze("".join(map(str, element.itertext())))
            element.tag = f"{_TEXT}h"
            element.set(f"{_TEXT}outline-level", "1")
        elif element.tag == f"{_TABLE}table-cell":
            repeated = element.attrib.pop(_REPEATED, "1")
            times = min(int(repeated), _MOST_REPEATS) if re.fullmatch(r"\d{1,9}", repeated) else 1
            count += times
            check_cells(count)
            for _ in range(times - 1):
                element.addnext(deepcopy(element))
        elif element.tag.startswith(_TEXT) and element.tag not in _KNOWN:
            holds_blocks = any(child.tag in _BLOCKS for child in element)
            element.tag = f"{_TEXT}section" if holds_blocks else f"{_TEXT}span"
    return title


def _pack(parts: dict[str, etree._Element]) -> bytes:
    """Return an archive of these parts alone: without pictures, and with no more than was checked."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, part in parts.items():
            archive.writestr(name, etree.tostring(part))
    return file.getvalue()
