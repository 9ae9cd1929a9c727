"""Recognising file formats by their content, without parsing it."""

import io
import re
import zipfile
from collections.abc import Callable

_ZIP = b"PK\x03\x04"
_RTF = b"{\\rtf"
_OPENDOCUMENT = b"mimetypeapplication/vnd.oasis.opendocument."
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
PICTURES = {
    "PNG": (b"\x89PNG\r\n\x1a\n",),
    "JPEG": (b"\xff\xd8\xff",),
    "TIFF": (b"II*\x00", b"MM\x00*"),
}
"""How files of pictures that are read begin."""
_SIGNATURES = (
    (b"GIF87a", "a GIF picture"),
    (b"GIF89a", "a GIF picture"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"BZh91AY&SY", "a bzip2 archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"\xfd7zXZ\x00", "an xz archive"),
    (b"Rar!\x1a\x07", "a RAR archive"),
    (b"\x7fELF", "a program"),
    (b"MZ\x90\x00", "a program"),
    (b"SQLite format 3\x00", "an SQLite database"),
    (_OLE, "an old Office file (such as .doc); save it as DOCX, PPTX or XLSX"),
)
_PARTS = (
    ("xl/workbook.bin", "a binary Excel workbook; save it as XLSX"),
    ("content.xml", "an OpenDocument file other than a text, a presentation or a sheet"),
)
# Possessive quantifiers: leading comments match in one way only, so a file full of them cannot cause backtracking.
_HTML_START = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*+(?:<\?xml[^>]*+>\s*+)?+(?:<!--(?:(?!-->).)*+-->\s*+)*+<(?:!doctype\s+html|html)\b",
    re.IGNORECASE | re.DOTALL,
)


# Each line begins in one way only: a field's name, or the white space of a folded line.
_MAIL = re.compile(rb"(?:From [^\r\n]*\r?\n)?(?:[!-9;-~]+:[^\r\n]*\r?\n(?:[ \t][^\r\n]*\r?\n)*+)++(?:\r?\n|\Z)")
_MANUAL = re.compile(rb"^\.(?:TH|Dd)[ \t]", re.MULTILINE)
_MAIL_FIELDS = (b"from:", b"date:")
_PAGE = b"\ncontent-type: multipart/related"


def is_pdf(data: bytes) -> bool:
    """True for a PDF, also one with other bytes before its header."""
    return data.lstrip().startswith(b"%PDF-") or (b"%PDF-" in data[:1024] and b"startxref" in data[-1024:])


def is_html(data: bytes) -> bool:
    """True for a whole web page; False for fragments, which look like any other text."""
    return _HTML_START.match(data[:4096]) is not None


def is_picture(data: bytes) -> bool:
    """True for a PNG, JPEG or TIFF file."""
    return any(data.startswith(starts) for starts in PICTURES.values())


def is_rtf(data: bytes) -> bool:
    """True for an RTF document."""
    return data.lstrip().startswith(_RTF)


def is_mail(data: bytes) -> bool:
    """True for a mail: it begins with fields, among them sender and date; and for a web page in the form of a mail."""
    found = _MAIL.match(data[:65536])
    if found is None:
        return False
    header = b"\n" + found[0].lower()
    return all(b"\n" + field in header for field in _MAIL_FIELDS) or _PAGE in header


def is_manual(data: bytes) -> bool:
    """True for the source of a manual page: it begins with a comment or a request of roff, and names the page."""
    return data.lstrip()[:1] in (b".", b"'") and _MANUAL.search(data[:65536]) is not None


def is_opendocument(kind: bytes) -> Callable[[bytes], bool]:
    """Make a test for OpenDocument files of this kind, which they name in their first part."""
    return lambda data: data.startswith(_ZIP) and data.startswith(_OPENDOCUMENT + kind + b"PK", 30)


def has_part(name: str) -> Callable[[bytes], bool]:
    """Make a test for ZIP archives that hold a file of this name, which is how office formats differ."""
    folder = name.split("/")[0].encode() + b"/"

    def test(data: bytes) -> bool:
        if not data.startswith(_ZIP):
            return False
        parts = _list_parts(data)
        if parts is None:  # the table of contents stands at the end, so a file that was cut has none
            return folder in data
        return name in parts

    return test


def starts_with(starts: tuple[bytes, ...]) -> Callable[[bytes], bool]:
    """Make a test for files that begin with one of these."""
    return lambda data: data.startswith(starts)


def is_encrypted_office(data: bytes) -> bool:
    """True for an Office file that is protected by a password."""
    return data.startswith(_OLE) and "EncryptedPackage".encode("utf-16-le") in data


def describe_foreign(data: bytes) -> str | None:
    """Name the type of a file of no supported format ("a PNG picture"); None for text and unknown types."""
    if data.startswith(_OLE) and "__substg1.0_".encode("utf-16-le") in data:
        return "a mail of Outlook (.msg); save it as EML"
    if data.startswith(_ZIP):
        parts = _list_parts(data)
        if parts is None:
            return "a damaged ZIP archive"
        return next((description for part, description in _PARTS if part in parts), "a ZIP archive")
    return next((description for signature, description in _SIGNATURES if data.startswith(signature)), None)


def is_binary(text: str) -> bool:
    """True for decoded bytes that are not text: they hold many zero or control characters. A text may be padded."""
    text = text.rstrip("\0")
    start = text[:65536]
    controls = sum(1 for character in start if character < " " and character not in "\t\n\r\f\v\b\x1b")
    return text.count("\0") * 50 > len(text) or controls * 50 > len(start)


def _list_parts(data: bytes) -> frozenset[str] | None:
    """The names of the files in a ZIP archive; None where its table of contents cannot be read."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return frozenset(archive.namelist())
    except (zipfile.BadZipFile, ValueError, OSError, EOFError):
        return None
