"""Mails as files."""

import re
from collections.abc import Iterator
from dataclasses import replace
from email import policy
from email.errors import HeaderParseError
from email.header import decode_header, make_header
from email.message import Message
from email.parser import BytesParser
from email.utils import getaddresses, parsedate_to_datetime

from selectolax.lexbor import LexborHTMLParser

from app.ingest.decoding import decode
from app.ingest.readers.assembly import Assembly, clean, squeeze
from app.ingest.readers.html import add_html, check_nesting
from app.ingest.readers.plain import add_plain
from domain.documents import ParsedDocument
from domain.errors import OversizedDocument
from domain.library.metadata import Metadata, select_metadata

MAX_PARTS = 1000
"""Largest number of parts of a mail. Each attachment and each form of the text is one."""
_LONGEST_HEADER = 4000
_MOST_ADDRESSES = 20
"""Addresses of a field that are shown."""

# The modern policy parses each header by rules whose time grows with the square of its length.
_PARSER = BytesParser(policy=policy.compat32)


def read_eml(source: str, data: bytes) -> ParsedDocument:
    """Read a mail: who wrote it to whom and when, its text, and the names of its attachments, which are not opened.

    Raises `OversizedDocument`, and `RecursionError` for parts nested a thousand levels deep.
    """
    message = _PARSER.parsebytes(data)
    parts = list(_list_parts(message))
    assembly = Assembly()
    subject = _read_header(message, "Subject")
    if subject:
        assembly.add_heading(1, subject)
    fields = [f"{name}: {value}" for name in ("From", "To", "Cc") if (value := _read_addresses(message, name))]
    if sent := _read_date(message):
        fields.append(f"Date: {sent}")
    if subject:
        # Also here, where it can be quoted: headings are not.
        fields.append(f"Subject: {subject}")
    assembly.add_block("\n".join(fields))
    _add_body(assembly, parts)
    if names := [name for part in parts if (name := _name_attachment(part))]:
        assembly.add_block("Attachments:")
        assembly.add_block("\n".join(f"- {name}" for name in names), gap="\n")
    return replace(assembly.finish(subject, source), metadata=_describe(message))


def read_mail_metadata(data: bytes) -> Metadata:
    """Return sender, recipients, subject and date of a mail without reading its text."""
    return _describe(_PARSER.parsebytes(data, headersonly=True))


def _describe(message: Message) -> Metadata:
    found = {
        "from": _read_addresses(message, "From"),
        "to": _read_addresses(message, "To"),
        "subject": _read_header(message, "Subject"),
        "date": _read_date(message)[:10],
    }
    return select_metadata({key: value for key, value in found.items() if value})


def _list_parts(message: Message) -> Iterator[Message]:
    """Yield the parts that have content, without those of attached mails."""
    pending = [message]
    count = 0
    while pending:
        part = pending.pop()
        count += 1
        if count > MAX_PARTS:
            raise OversizedDocument(f"The mail has more than {MAX_PARTS:,} parts. Save its text and attachments.")
        payload = part.get_payload()
        if part.get_content_maintype() == "multipart" and isinstance(payload, list):
            pending += [inner for inner in reversed(payload) if isinstance(inner, Message)]
        else:
            yield part


def _add_body(assembly: Assembly, parts: list[Message]) -> None:
    """Add the mail's plain text, or the page if it has no text."""
    bodies = [part for part in parts if not _name_attachment(part)]
    texts = [part for part in bodies if part.get_content_type() == "text/plain"]
    shown = [text for part in texts if (text := _read_text(part)).strip()]
    for text in shown:
        add_plain(assembly, text)
    if shown:
        return
    for part in bodies:
        if part.get_content_type() == "text/html":
            page = _read_text(part)
            check_nesting(page)
            add_html(assembly, LexborHTMLParser(page))


def _read_text(part: Message) -> str:
    payload = part.get_payload(decode=True)
    if not isinstance(payload, bytes):
        return ""
    text = clean(decode(payload, declared=part.get_content_charset()))
    if part.get_param("format") == "flowed":  # RFC 3676: a line that ends in a space goes on
        joined = "" if part.get_param("delsp") == "yes" else " "
        text = re.sub(r"(?<!^--) \n(?=[^\n>])", lambda _: joined, text, flags=re.MULTILINE)
    return text


def _name_attachment(part: Message) -> str:
    """Return the name of an attached file or mail; empty for the mail's own text."""
    if part.get_content_type() == "message/rfc822":
        payload = part.get_payload()
        inner = payload[0] if isinstance(payload, list) and payload else None
        subject = _read_header(inner, "Subject") if isinstance(inner, Message) else ""
        return subject or "a mail"
    name = squeeze(_decode(part.get_filename() or ""))[:200]
    if name or part.get_content_disposition() == "attachment":
        return name or part.get_content_type()
    return ""


def _read_header(message: Message, name: str) -> str:
    return squeeze(_decode(str(message.get(name, ""))[:_LONGEST_HEADER]))


def _read_addresses(message: Message, name: str) -> str:
    """Return names and addresses: ``Ada <ada@example.com>, bob@example.com``."""
    raw = str(message.get(name, ""))[:_LONGEST_HEADER]
    addresses = [(squeeze(_decode(shown)), squeeze(address)) for shown, address in getaddresses([raw])]
    spelled = [f"{shown} <{address}>" if shown and shown != address else address for shown, address in addresses]
    more = len(spelled) - _MOST_ADDRESSES
    return ", ".join(filter(None, spelled[:_MOST_ADDRESSES])) + (f" and {more} more" if more > 0 else "")


def _read_date(message: Message) -> str:
    """Return the date in the form of ISO 8601, to the minute and with the sender's zone; empty where it is missing or
    wrong."""
    try:
        sent = parsedate_to_datetime(str(message.get("Date", ""))[:100])
    except (ValueError, TypeError, IndexError, OverflowError):
        return ""
    return sent.isoformat(" ", "minutes")


def _decode(value: str) -> str:
    try:
        return str(make_header(decode_header(value)))
    except (HeaderParseError, LookupError, UnicodeError, ValueError):
        return value
