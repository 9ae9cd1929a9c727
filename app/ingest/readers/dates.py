"""The day that a document is of, as its file states it: when its text was changed last, else when it was made.

What cannot be read is no date: nothing here raises for it, because the text is worth reading without one.
"""

import re
from collections.abc import Iterable

from lxml import etree
from selectolax.lexbor import LexborHTMLParser

from app.ingest.decoding import decode
from app.ingest.metadata.dates import state_day
from app.ingest.readers.archives import open_archive, parse_xml, read_part
from domain.errors import DocumentError
from domain.library.metadata import Metadata

_RTF = re.compile(rb"\\(revtim|creatim)\\yr(\d{4})\\mo(\d{1,2})\\dy(\d{1,2})")
_RTF_HEADER = 65_536
_HTML = (
    "article:modified_time",
    "dcterms.modified",
    "last-modified",
    "article:published_time",
    "dcterms.created",
    "dc.date",
    "date",
)
"""Names of the `meta` elements, the most telling first."""
_HTML_HEADER = 262_144


def read_office_date(data: bytes) -> Metadata:
    """Return the date of a Word, PowerPoint or Excel file."""
    return _read_part_dates(data, "docProps/core.xml", ("{*}modified", "{*}created"))


def read_opendocument_date(data: bytes) -> Metadata:
    """Return the date of an OpenDocument text."""
    return _read_part_dates(data, "meta.xml", ("{http://purl.org/dc/elements/1.1/}date", "{*}creation-date"))


def read_rtf_date(data: bytes) -> Metadata:
    """Return the date of an RTF document."""
    found = {each[1]: b"-".join(each.groups()[1:]).decode() for each in _RTF.finditer(data[:_RTF_HEADER])}
    return state_day(*(found.get(name, "") for name in (b"revtim", b"creatim")))


def read_html_date(data: bytes) -> Metadata:
    """Return the date of a web page."""
    found: dict[str, str] = {}
    for element in LexborHTMLParser(decode(data[:_HTML_HEADER])).css("meta[content]"):
        name = element.attributes.get("property") or element.attributes.get("name") or ""
        found.setdefault(name.lower(), element.attributes.get("content") or "")
    return state_day(*(found.get(name, "") for name in _HTML))


def _read_part_dates(data: bytes, part: str, elements: Iterable[str]) -> Metadata:
    try:
        with open_archive(data, "file") as archive:
            properties = parse_xml(read_part(archive, part, "file"))
    except (DocumentError, etree.XMLSyntaxError):
        return {}
    return state_day(*(properties.findtext(f".//{element}") or "" for element in elements))
