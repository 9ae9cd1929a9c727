import io
import re
import zipfile
from collections.abc import Iterator

from docx import Document
from docx.document import Document as WordDocument
from docx.oxml.ns import qn
from docx.table import Table, _Cell
from docx.text.paragraph import Paragraph

from app.ingest.readers.assembly import Assembly, clean, squeeze
from domain.documents import ParsedDocument
from domain.errors import OversizedDocument, UnreadableDocument

MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"

MAX_XML = 64 * 2**20
"""Bytes of XML once unpacked. An XML tree takes some ten times that in memory."""
MAX_UNPACKED = 512 * 2**20
"""Bytes of all parts once unpacked, pictures included."""

_DAMAGE = (KeyError, ValueError, AttributeError, IndexError, zipfile.BadZipFile, SyntaxError, OSError, EOFError)
"""python-docx checks little: a part that is missing or malformed surfaces as any of these. lxml's parse errors are
SyntaxErrors."""
_HEADING = re.compile(r"heading (\d)", re.IGNORECASE)


def read_docx(source: str, data: bytes) -> ParsedDocument:
    """A Word document: headings, paragraphs, lists and tables in their order.

    Raises `OversizedDocument` before anything is unpacked where the parts would be too large, `UnreadableDocument`
    where the file is damaged.
    """
    _check_size(data)
    try:
        document = Document(io.BytesIO(data))
        assembly = Assembly()
        shown_title = _add_content(assembly, document)
        return assembly.finish(shown_title or document.core_properties.title, source, MEDIA_TYPE)
    except _DAMAGE as error:
