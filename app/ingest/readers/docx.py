import io
import re
import zipfile
from collections.abc import Iterator

from docx import Document
from docx.document import Document as WordDocument
from docx.oxml import parse_xml
from docx.oxml.ns import qn
from docx.table import Table, _Cell
from docx.text.paragraph import Paragraph

from app.ingest.readers.assembly import Assembly, clean, squeeze
from domain.documents import ParsedDocument
from domain.errors import OversizedDocument, UnreadableDocument

MAX_XML = 64 * 2**20
"""Largest size of the unpacked XML in bytes. An XML tree takes about ten times as much memory."""
MAX_UNPACKED = 512 * 2**20
"""Largest size of all unpacked parts in bytes, pictures included."""

_HEADING = re.compile(r"heading (\d)", re.IGNORECASE)


def read_docx(source: str, data: bytes) -> ParsedDocument:
    """Read a Word document: headings, paragraphs, lists and tables in their order, then the notes, without page headers
    and footers.

    Raises `OversizedDocument` before unpacking if the parts would be too large, `UnreadableDocument` if the archive is
    damaged, and python-docx's errors for missing or malformed parts.
    """
    _check_size(data)
    document = Document(io.BytesIO(data))
    assembly = Assembly()
    shown_title = _add_content(assembly, document)
    for note in _spell_notes(document):
        assembly.add_block(note)
    return assembly.finish(shown_title or document.core_properties.title, source)


def _check_size(data: bytes) -> None:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            parts = archive.infolist()
    except (zipfile.BadZipFile, ValueError, OSError, EOFError) as error:
        raise UnreadableDocument("The Word file is damaged or incomplete. Copy or download it again.") from error
    xml = sum(part.file_size for part in parts if part.filename.endswith((".xml", ".rels")))
    if xml > MAX_XML or sum(part.file_size for part in parts) > MAX_UNPACKED:
        raise OversizedDocument(
            f"The Word file unpacks to more than this service reads ({MAX_XML // 2**20} MB of text parts). Split it."
        )


def _add_content(assembly: Assembly, document: WordDocument) -> str | None:
    """Add the body, and return the first paragraph in the style Title. The property of that name is often a
    template's."""
    title: str | None = None
    gap = "\n\n"
    for block in _iterate(document):
        if isinstance(block, Table):
            for number, row in enumerate(_spell_rows(block)):
                assembly.add_block(row, gap="\n" if number else "\n\n")
            gap = "\n\n"
            continue
        text = clean(_spell(block)).strip()
        if not text:
            continue
        style = (block.style.name if block.style is not None else None) or ""
        if found := _HEADING.match(style):
            assembly.add_heading(int(found[1]), text)
            gap = "\n\n"
        elif style.lower() == "title":
            title = title or text
            assembly.add_block(text)
        elif style.lower().startswith("list") or _is_numbered(block):
            assembly.add_block(f"- {text}", gap=gap)
            gap = "\n"
        else:
            assembly.add_block(text)
            gap = "\n\n"
    return title


def _iterate(document: WordDocument) -> Iterator[Paragraph | Table]:
    """Yield paragraphs and tables in order, also those inside content controls, which python-docx leaves out."""
    for element in document.element.body.iter(qn("w:p"), qn("w:tbl")):
        if any(ancestor.tag in (qn("w:tbl"), qn("w:txbxContent")) for ancestor in element.iterancestors()):
            continue
        yield Paragraph(element, document) if element.tag == qn("w:p") else Table(element, document)


def _spell_notes(document: WordDocument) -> Iterator[str]:
    """Yield footnotes and endnotes, which stand in their own parts."""
    for relation in document.part.rels.values():
        if relation.reltype.endswith(("/footnotes", "/endnotes")):
            for element in parse_xml(relation.target_part.blob).iter(qn("w:p")):
                yield clean(_spell(Paragraph(element, document))).strip()


def _spell(paragraph: Paragraph) -> str:
    """Return all words of a paragraph, also those in links, insertions and text boxes. Deleted text has other tags."""
    words: list[str] = []
    for node in paragraph._p.iter(qn("w:t"), qn("w:tab"), qn("w:br"), qn("w:cr"), qn("w:noBreakHyphen"), qn("w:p")):
        if node.tag == qn("w:t"):
            if not any(ancestor.tag == _FALLBACK for ancestor in node.iterancestors()):
                words.append(node.text or "")
        elif node.tag == qn("w:noBreakHyphen"):
            words.append("-")
        elif node.tag == qn("w:tab"):
            if node.getparent().tag == qn("w:r"):
                words.append(" ")
        elif node is not paragraph._p:
            words.append("\n")
    return "".join(words)


_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
"""Word writes a text box twice, the second time for old readers."""


def _spell_rows(table: Table) -> Iterator[str]:
    for row in table.rows:
        cells: list[str] = []
        seen: list[object] = []
        for cell in row.cells:
            if cell._tc not in seen:  # a merged cell is listed once per column it spans
                seen.append(cell._tc)
                cells.append(_spell_cell(cell))
        if any(cells):
            yield " | ".join(cells)


def _spell_cell(cell: _Cell) -> str:
    paragraphs = (p for p in cell._tc.iter(qn("w:p")) if not any(a.tag == qn("w:p") for a in p.iterancestors()))
    return squeeze(" ".join(_spell(Paragraph(element, cell)) for element in paragraphs))


def _is_numbered(paragraph: Paragraph) -> bool:
    properties = paragraph._p.pPr
    return properties is not None and properties.numPr is not None
