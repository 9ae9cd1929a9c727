"""The file formats that can be ingested.

`FORMATS` is the only list of them: reading, error messages, the command line, the HTTP API and the documents' check all
use it. To add a format, write a reader in `app/ingest/readers/` and add one line to `FORMATS`.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from app.ingest.decoding import decode
from app.ingest.recognition import (
    PICTURES,
    describe_foreign,
    has_part,
    is_binary,
    is_html,
    is_mail,
    is_manual,
    is_opendocument,
    is_pdf,
    is_rtf,
    starts_with,
)
from domain.documents import ParsedDocument
from domain.library.metadata import Metadata


@dataclass(frozen=True, slots=True)
class Format:
    """One file format."""

    name: str
    """Its name in messages and help texts."""
    suffixes: tuple[str, ...]
    """File name extensions in lower case, without the dot."""
    media_types: tuple[str, ...]
    """The first one is stored with the document."""
    reader: str
    """`module:function`, which takes the source's path, name or address, and the file's bytes, and raises
    `DocumentError`. Imported on first use, because some parsers are slow to import. A third part, such as the
    name that pandoc has for the format, is given to the function as well."""
    description: str
    """A noun phrase for messages, with its article: "a Word file (DOCX)"."""
    recognise: Callable[[bytes], bool] | None = None
    """Returns True for content that can only be this format; None where content does not tell."""
    is_text: bool = True
    """False for binary formats."""
    needs: str | None = None
    """A package without which a file of this format is read only where somebody names it, to be told what is missing:
    in a folder it is passed over."""
    metadata_reader: str | None = None
    """`module:function`, which takes the file's bytes and reads nothing but the metadata in them; None where files of
    this format have none, `reader` where that takes reading them."""

    @property
    def is_picture(self) -> bool:
        """True for files of pictures."""
        return self.media_type.startswith("image/")

    @property
    def media_type(self) -> str:
        """The media type stored with a document."""
        return self.media_types[0]

    @property
    def is_installed(self) -> bool:
        """True if all that it needs is there."""
        return self.needs is None or find_spec(self.needs) is not None

    def read(self, source: str, data: bytes) -> ParsedDocument:
        """Parse the file. Raises `DocumentError`, and whatever the parser raises on malformed input."""
        name, *more = self.reader.rsplit(":", self.reader.count(":") - 1)
        read: Callable[..., ParsedDocument] = _import(name)
        return read(source, data, *more)

    def read_metadata(self, data: bytes) -> Metadata:
        """Return the metadata that the file has in itself."""
        if self.metadata_reader is None:
            return {}
        if self.metadata_reader == self.reader:
            return self.read(self.name, data).metadata
        read: Callable[[bytes], Metadata] = _import(self.metadata_reader)
        return read(data)


def _import(name: str) -> Any:
    module, _, function = name.partition(":")
    return getattr(import_module(module), function)


def _read_by_pandoc(name: str, suffixes: str, media_type: str, dialect: str, **more: Any) -> Format:
    """Describe a format of text that pandoc reads under the name `dialect`."""
    reader = f"{_R}.pandoc:read_text:{dialect}"
    described = more.pop("description", name)
    return Format(name, tuple(suffixes.split()), (media_type,), reader, described, metadata_reader=reader, **more)


_OFFICE = "application/vnd.openxmlformats-officedocument"
_R = "app.ingest.readers"


FORMATS = [
    Format(
        "Markdown",
        ("md", "markdown", "mdx", "mdown", "mkd"),
        ("text/markdown", "text/x-markdown"),
        f"{_R}.markdown:read_markdown",
        "Markdown",
        metadata_reader=f"{_R}.markdown:read_front_matter",
    ),
    Format("reStructuredText", ("rst", "rest"), ("text/x-rst",), f"{_R}.rst:read_rst", "reStructuredText"),
    Format(
        "plain text",
        ("txt", "text", "log", "conf", "cfg", "ini"),
        ("text/plain",),
        f"{_R}.plain:read_plain",
        "plain text",
        metadata_reader=f"{_R}.dates:read_text_date",
    ),
    Format(
        "HTML",
        ("html", "htm", "xhtml"),
        ("text/html", "application/xhtml+xml"),
        f"{_R}.web.html:read_html",
        "a web page (HTML)",
        is_html,
        metadata_reader=f"{_R}.dates:read_html_date",
    ),
    Format(
        "PDF",
        ("pdf",),
        ("application/pdf",),
        f"{_R}.pdf.reader:read_pdf",
        "a PDF file",
        is_pdf,
        is_text=False,
        metadata_reader=f"{_R}.pdf.reader:read_pdf_date",
    ),
    *(
        Format(
            kind,
            suffixes,
            (f"image/{kind.lower()}",),
            f"{_R}.pdf.reader:read_picture",
            f"a {kind} picture",
            starts_with(PICTURES[kind]),
            is_text=False,
            needs="rapidocr",
        )
        for kind, suffixes in (("PNG", ("png",)), ("JPEG", ("jpg", "jpeg")), ("TIFF", ("tif", "tiff")))
    ),
    Format(
        "DOCX",
        ("docx",),
        (f"{_OFFICE}.wordprocessingml.document",),
        f"{_R}.word.reader:read_docx",
        "a Word file (DOCX)",
        has_part("word/document.xml"),
        is_text=False,
        metadata_reader=f"{_R}.dates:read_office_date",
    ),
    Format(
        "PPTX",
        ("pptx", "pptm"),
        (f"{_OFFICE}.presentationml.presentation", "application/vnd.ms-powerpoint.presentation.macroenabled.12"),
        f"{_R}.pptx:read_pptx",
        "a PowerPoint file (PPTX)",
        has_part("ppt/presentation.xml"),
        is_text=False,
        metadata_reader=f"{_R}.dates:read_office_date",
    ),
    Format(
        "XLSX",
        ("xlsx", "xlsm"),
        (f"{_OFFICE}.spreadsheetml.sheet", "application/vnd.ms-excel.sheet.macroenabled.12"),
        f"{_R}.xlsx:read_xlsx",
        "an Excel workbook (XLSX)",
        has_part("xl/workbook.xml"),
        is_text=False,
        metadata_reader=f"{_R}.dates:read_office_date",
    ),
    Format(
        "CSV",
        ("csv", "tsv"),
        ("text/csv", "text/tab-separated-values", "application/csv"),
        f"{_R}.csv:read_csv",
        "a table (CSV)",
    ),
    *(
        Format(
            name,
            (name.lower(),),
            (f"application/vnd.oasis.opendocument.{kind}",),
            f"{_R}.odt:read_opendocument",
            f"an OpenDocument {kind} ({name})",
            is_opendocument(kind.encode()),
            is_text=False,
            metadata_reader=f"{_R}.dates:read_opendocument_date",
        )
        for name, kind in (("ODT", "text"), ("ODS", "spreadsheet"), ("ODP", "presentation"))
    ),
    Format(
        "RTF",
        ("rtf",),
        ("application/rtf", "text/rtf"),
        f"{_R}.rtf:read_rtf",
        "an RTF document",
        is_rtf,
        is_text=False,
        metadata_reader=f"{_R}.dates:read_rtf_date",
    ),
    Format(
        "EPUB",
        ("epub",),
        ("application/epub+zip",),
        f"{_R}.epub:read_epub",
        "a book (EPUB)",
        has_part("META-INF/container.xml"),
        is_text=False,
        metadata_reader=f"{_R}.epub:read_book_metadata",
    ),
    Format(
        "EML",
        ("eml", "mbox", "mht", "mhtml"),
        ("message/rfc822", "application/mbox", "multipart/related"),
        f"{_R}.eml:read_eml",
        "a mail (EML)",
        is_mail,
        metadata_reader=f"{_R}.eml:read_mail_metadata",
    ),
    Format(
        "manual pages",
        ("man", "mdoc"),
        ("text/troff",),
        f"{_R}.manual:read_manual",
        "the source of a manual page",
        is_manual,
        metadata_reader=f"{_R}.manual:read_manual",
    ),
    _read_by_pandoc("Org", "org", "text/org", "org"),
    _read_by_pandoc("AsciiDoc", "adoc asciidoc", "text/asciidoc", "asciidoc"),
    _read_by_pandoc("MediaWiki", "mediawiki wiki", "text/x-wiki", "mediawiki"),
    _read_by_pandoc("LaTeX", "tex latex", "text/x-tex", "latex"),
    Format("Jupyter", ("ipynb",), ("application/x-ipynb+json",), f"{_R}.notebook:read_notebook", "a Jupyter notebook"),
    _read_by_pandoc("DocBook", "dbk docbook", "application/docbook+xml", "docbook"),
    _read_by_pandoc("OPML", "opml", "text/x-opml", "opml", description="an outline (OPML)"),
]

FALLBACK = "plain text"
"""Name of the format that a file has when neither its name nor its content nor its media type says another."""


def list_formats() -> str:
    """The names of all formats as they stand in a sentence: "Markdown, plain text and PDF"."""
    *others, last = [each.name for each in FORMATS]
    return f"{', '.join(others)} and {last}" if others else last


def get_format(name: str) -> Format:
    """The format of this name. Raises `KeyError`."""
    return {each.name: each for each in FORMATS}[name]


def find_format(source: str) -> Format | None:
    """The format that the extension of a path, file name or address stands for; None for any other extension."""
    suffix = find_suffix(source)
    return next((each for each in FORMATS if suffix in each.suffixes), None)


def is_read_from_folders(source: str, start: bytes | None = None) -> bool:
    """True for a file of a supported format for which all that it needs is installed. Where its name tells nothing, its
    `start` does; where that is not known, it may be one."""
    found = find_format(source)
    if found is None and not find_suffix(source):
        if start is None:
            return True
        found = recognise_format(start)
        if found is None:
            return describe_foreign(start) is None and not is_binary(decode(start))
    return found is not None and found.is_installed


def find_format_by_media_type(media_type: str | None) -> Format | None:
    """The format of a `Content-Type` value, parameters aside; None for any other type."""
    bare = (media_type or "").split(";")[0].strip().lower()
    return next((each for each in FORMATS if bare in each.media_types), None)


def recognise_format(data: bytes) -> Format | None:
    """The format that the content alone proves; None for text and for content of other formats."""
    return next((each for each in FORMATS if each.recognise is not None and each.recognise(data)), None)


def find_suffix(source: str) -> str:
    """The extension of a path, file name or address in lower case, without the dot; empty where there is none. What
    follows the last dot of "sync.1" or "Minutes of 3.5. in Rome" is none."""
    path = re.sub(r"^[^/]*://[^/?#]*|[?#].*", "", source) if "://" in source else source  # a host has no extension
    name = re.split(r"[/\\]", path.rstrip("/\\"))[-1]
    stem, dot, suffix = name.rpartition(".")
    return suffix.lower() if stem and dot and re.fullmatch(r"[A-Za-z]\w*+", suffix) else ""
