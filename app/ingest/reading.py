"""From bytes to a document: finds out what a file is, and says what is wrong with it."""

import io
import re
import zipfile
from collections.abc import Callable
from typing import Literal

from app.ingest.readers.docx import MEDIA_TYPE as DOCX
from app.ingest.readers.docx import read_docx
from app.ingest.readers.html import MEDIA_TYPE as HTML
from app.ingest.readers.html import read_html
from app.ingest.readers.markdown import MEDIA_TYPE as MARKDOWN
from app.ingest.readers.markdown import read_markdown
from app.ingest.readers.pdf import MEDIA_TYPE as PDF
from app.ingest.readers.pdf import read_pdf
from app.ingest.readers.plain import MEDIA_TYPE as PLAIN
from app.ingest.readers.plain import decode, read_plain
from domain.documents import ParsedDocument
from domain.errors import (
    DocumentError,
    EmptyDocument,
    EncryptedDocument,
    MistypedDocument,
    OversizedDocument,
    UnreadableDocument,
    UnsupportedDocument,
)

MAX_BYTES = 50_000_000
MAX_CHARACTERS = 10_000_000
"""About 4,000 pages; embedding that takes an hour on two cores."""

Kind = Literal["Markdown", "plain text", "HTML", "PDF", "DOCX"]

_BY_SUFFIX: dict[str, Kind] = {
    "md": "Markdown",
    "markdown": "Markdown",
    "txt": "plain text",
    "text": "plain text",
    "html": "HTML",
    "htm": "HTML",
    "xhtml": "HTML",
    "pdf": "PDF",
    "docx": "DOCX",
}
_BY_MEDIA_TYPE: dict[str, Kind] = {
    MARKDOWN: "Markdown",
    "text/x-markdown": "Markdown",
    PLAIN: "plain text",
    HTML: "HTML",
    "application/xhtml+xml": "HTML",
    PDF: "PDF",
    DOCX: "DOCX",
}
_READERS: dict[Kind, Callable[[str, bytes], ParsedDocument]] = {
    "Markdown": read_markdown,
    "plain text": read_plain,
    "HTML": read_html,
    "PDF": read_pdf,
    "DOCX": read_docx,
}
_UNMISTAKABLE: dict[str | None, Kind] = {"PDF": "PDF", "DOCX": "DOCX", "HTML": "HTML"}
"""Kinds that content alone tells."""
_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "a PNG picture"),
    (b"\xff\xd8\xff", "a JPEG picture"),
    (b"GIF87a", "a GIF picture"),
    (b"GIF89a", "a GIF picture"),
    (b"II*\x00", "a TIFF picture"),
    (b"MM\x00*", "a TIFF picture"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"BZh91AY&SY", "a bzip2 archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"\xfd7zXZ\x00", "an xz archive"),
    (b"Rar!\x1a\x07", "a RAR archive"),
    (b"\x7fELF", "a program"),
    (b"MZ\x90\x00", "a program"),
    (b"SQLite format 3\x00", "an SQLite database"),
    (b"{\\rtf", "an RTF document"),
)
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
# Possessive throughout: leading comments can match in one way only, or a file of them would hold the process for ever.
_HTML_START = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*+(?:<\?xml[^>]*+>\s*+)?+(?:<!--(?:(?!-->).)*+-->\s*+)*+<(?:!doctype\s+html|html)\b",
    re.IGNORECASE | re.DOTALL,
)


def find_kind(name: str) -> Kind | None:
    """What the extension of a path, file name or address promises; None where it promises nothing we read."""
    return _BY_SUFFIX.get(_find_suffix(name))


def read_document(
    source: str, data: bytes, *, media_type: str | None = None, max_bytes: int = MAX_BYTES
) -> ParsedDocument:
    """The document in a file. `source` is its path, name or address; what its extension says must be true of the
    content. Where it says nothing, the content decides, then `media_type`.

    Raises a subclass of `DocumentError` whose message says what is wrong and what to do. It does not name the file: who
    reports it does.
    """
    kind = check_file(source, data, media_type=media_type, max_bytes=max_bytes)
    document = _read(kind, source, data)
    if not document.text.strip():
        raise EmptyDocument(f"The {kind} file holds no text that could be searched.")
    if len(document.text) > MAX_CHARACTERS:
        raise OversizedDocument(
            f"The text has {len(document.text):,} characters; {MAX_CHARACTERS:,} are the limit. Split it."
        )
    return document


def check_file(source: str, data: bytes, *, media_type: str | None = None, max_bytes: int = MAX_BYTES) -> Kind:
    """What kind of file it is. Raises as `read_document` does, for whatever can be told without reading the text."""
    if len(data) > max_bytes:
        raise OversizedDocument(
            f"The file has {len(data) / 1e6:.1f} MB; {max_bytes / 1e6:.0f} MB are the limit. Split it."
        )
    if not data.strip(b"\x00 \t\r\n"):
        raise EmptyDocument("The file is empty. Check that it was saved or uploaded completely.")
    return _decide(source, data, media_type)


def _read(kind: Kind, source: str, data: bytes) -> ParsedDocument:
    try:
        return _READERS[kind](source, data)
    except DocumentError:
        raise
    except Exception as error:  # nobody can list how parsers fail on foreign files
        raise UnreadableDocument(
            f"The {kind} file cannot be read ({type(error).__name__}: {error}). Save it again and retry."
        ) from error


def _find_name(source: str) -> str:
    path = re.sub(r"[?#].*", "", source) if "://" in source else source
    return re.split(r"[/\\]", path.rstrip("/\\"))[-1] or source


def _find_suffix(source: str) -> str:
    stem, dot, suffix = _find_name(source).rpartition(".")
    return suffix.lower() if stem and dot else ""


def _decide(source: str, data: bytes, media_type: str | None) -> Kind:
    """The kind that name and content agree on."""
    suffix = _find_suffix(source)
    declared = _BY_SUFFIX.get(suffix)
    found = _recognise(data)
    if declared is None:
        if found in _UNMISTAKABLE:
            return _UNMISTAKABLE[found]
        declared = _BY_MEDIA_TYPE.get((media_type or "").split(";")[0].strip().lower())
        if declared is None:
            if suffix or found is not None:
                what = f"It is {found}." if found else f"“.{suffix}” is not a type this service reads."
                raise UnsupportedDocument(f"{what} Markdown, plain text, HTML, PDF and DOCX are supported.")
            declared = "plain text"
    if declared in ("PDF", "DOCX"):
        return _confirm_binary(declared, found, data)
    return _confirm_text(declared, found, data)


def _confirm_binary(declared: Literal["PDF", "DOCX"], found: str | None, data: bytes) -> Kind:
    if found == declared:
        return declared
    if found is None and _is_binary(data):
        raise UnreadableDocument(f"The {declared} file is damaged: its beginning is wrong. Copy or download it again.")
    what = {None: "plain text", "HTML": "a web page (HTML)", "DOCX": "a Word file (DOCX)"}.get(found, found)
    raise MistypedDocument(f"The name says {declared}, but the content is {what}. Give it the right extension.")


def _confirm_text(declared: Kind, found: str | None, data: bytes) -> Kind:
    if found not in (None, "HTML"):
        raise MistypedDocument(f"The name says {declared}, but the content is {found}. Give it the right extension.")
    if _is_binary(data):
        raise MistypedDocument(f"The name says {declared}, but the content is binary data, not text.")
    return declared


def _recognise(data: bytes) -> str | None:
    """``PDF``, ``DOCX``, ``HTML``, a description of something we do not read, or None for text and the unknown."""
    if data.lstrip().startswith(b"%PDF-") or (b"%PDF-" in data[:1024] and b"startxref" in data[-1024:]):
        return "PDF"
    if data.startswith(_OLE):
        if "EncryptedPackage".encode("utf-16-le") in data:
            raise EncryptedDocument("The Office file is protected by a password. Save it without one and try again.")
        return "an old Office file (such as .doc); save it as DOCX"
    if data.startswith(b"PK\x03\x04"):
        return _recognise_zip(data)
    for signature, description in _SIGNATURES:
        if data.startswith(signature):
            return description
    return "HTML" if _HTML_START.match(data[:4096]) else None


def _recognise_zip(data: bytes) -> str:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = set(archive.namelist())
    except (zipfile.BadZipFile, ValueError, OSError, EOFError):
        # the list of contents stands at the end of the file, so a DOCX that was cut has none
        return "DOCX" if b"word/" in data or b"[Content_Types].xml" in data[:4096] else "a damaged ZIP archive"
    if "word/document.xml" in names:
        return "DOCX"
    for part, description in (
        ("xl/workbook.xml", "an Excel workbook"),
        ("ppt/presentation.xml", "a PowerPoint file"),
        ("META-INF/container.xml", "an EPUB book"),
        ("content.xml", "an OpenDocument file"),
    ):
        if part in names:
            return description
    return "a ZIP archive"


def _is_binary(data: bytes) -> bool:
    """Whether this is not text: zero characters, or many control characters."""
    text = decode(data)
    start = text[:65536]
    controls = sum(1 for character in start if character < " " and character not in "\t\n\r\f\v\b\x1b")
    return "\0" in text or controls * 50 > len(start)
