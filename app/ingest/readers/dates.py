"""The day that a document is of, as its file states it: when its text was changed last, else when it was made.

What cannot be read is no date: nothing here raises for it, because the text is worth reading without one.
"""

import re
from collections.abc import Iterable
from itertools import islice

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
_TEXT_HEADER = 4096
_MOST_LINES = 10
"""Lines at the beginning of a text in which its date is looked for."""
_STATED = re.compile(
    r"\W*(?:(?:date|updated|last[ -](?:updated|modified|changed)|datum|stand|fecha|data|дата|日付|日期)\W*[:：]\W*)?"
    r"(\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d\S*)?|\d{1,2}\.\d{1,2}\.\d{4}"
    r"|\d{1,2} [a-z]{3,9},? \d{4}|[a-z]{3,9} \d{1,2},? \d{4})\W*",
    re.IGNORECASE,
)
"""A line that is a date, or says that it is the date of the document."""


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


def read_text_date(data: bytes) -> Metadata:
    """Return the date that a text states at its beginning, on a line of its own."""
    return state_text_date(decode(data))


def state_text_date(text: str) -> Metadata:
    """Return the date that a text states at its beginning, on a line of its own."""
    lines = islice(filter(str.strip, text[:_TEXT_HEADER].splitlines()), _MOST_LINES)
    return state_day(*(found[1] for line in lines if (found := _STATED.fullmatch(line))))


def _read_part_dates(data: bytes, part: str, elements: Iterable[str]) -> Metadata:
    try:
        with open_archive(data, "file") as archive:
            properties = parse_xml(read_part(archive, part, "file"))
    except (DocumentError, etree.XMLSyntaxError):
        return {}
    return state_day(*(properties.findtext(f".//{element}") or "" for element in elements))
