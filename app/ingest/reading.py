"""From bytes to a document: decide a file's format, parse it, and say what is wrong with one that cannot be read."""

import re
from dataclasses import replace

from app.ingest.decoding import decode, note_guess
from app.ingest.files import check_size
from app.ingest.formats import (
    FALLBACK,
    Format,
    find_format,
    find_format_by_media_type,
    find_suffix,
    get_format,
    list_formats,
    recognise_format,
)
from app.ingest.metadata.dates import find_day
from app.ingest.recognition import describe_foreign, is_binary, is_encrypted_office
from domain.documents import ParsedDocument, Unread, tell_unread
from domain.errors import (
    DocumentError,
    EmptyDocument,
    EncryptedDocument,
    MistypedDocument,
    OversizedDocument,
    ScannedDocument,
    UnreadableDocument,
    UnsupportedDocument,
)
from domain.library.metadata import Metadata

MAX_BYTES = 50_000_000
MAX_CHARACTERS = 10_000_000
"""About 4,000 pages, which take an hour to embed on two cores."""

_CHARSET = re.compile(r";\s*charset=[\"']?([\w.:-]{1,40})", re.IGNORECASE)
_MANUAL_PAGE = re.compile(r"\.[1-9][a-z]{0,9}\.(?:gz|bz2|xz)$")
"""The end of the name of a manual page that is packed."""


def read_document(
    source: str, data: bytes, *, media_type: str | None = None, max_bytes: int = MAX_BYTES
) -> ParsedDocument:
    """Parse a file. `source` is its path, name or address.

    The content must agree with the name's extension. Where the extension says nothing, the content decides, then
    `media_type`.

    Raises a subclass of `DocumentError` whose message says what is wrong and what to do. The message does not name the
    file: the caller reports it together with its name.
    """
    check_size(len(data), max_bytes)
    found = _choose_format(source, data, media_type)
    is_one_text = found.is_text and found.name != "EML"  # each part of a mail has an encoding of its own
    if is_one_text and (declared := _CHARSET.search(media_type or "")):
        data = decode(data, declared=declared[1]).encode()
    document = _parse(found, source, data)
    if not any(map(str.isalnum, document.text)):
        told = f"The {found.name} file holds no text that could be searched. {tell_unread(document.unread)}"
        raise EmptyDocument(told.rstrip())
    if len(document.text) > MAX_CHARACTERS:
        raise OversizedDocument(
            f"The text has {len(document.text):,} characters; {MAX_CHARACTERS:,} are the limit. Split it."
        )
    # Most readers leave to this what a file says about itself.
    metadata = find_day(source) | (document.metadata or found.read_metadata(data))
    guess = note_guess(data) if is_one_text else ""
    unread = (*document.unread, Unread(kind="remark", number=1, where=guess)) if guess else document.unread
    return replace(document, media_type=found.media_type, metadata=metadata, unread=unread)


def read_own_metadata(source: str, data: bytes, media_type: str | None = None) -> Metadata:
    """Return the metadata that a file has in itself, such as front matter and its date, without reading its text."""
    return find_day(source) | _choose_format(source, data, media_type).read_metadata(data)


def check_file(source: str, data: bytes, *, media_type: str | None = None, max_bytes: int = MAX_BYTES) -> None:
    """Raise as `read_document` does, for everything that shows without parsing."""
    check_size(len(data), max_bytes)
    if not _choose_format(source, data, media_type).is_installed:
        raise ScannedDocument


def _choose_format(source: str, data: bytes, media_type: str | None) -> Format:
    """Return the format that content, name and media type agree on. Raises `DocumentError`."""
    if not data.strip(b"\x00 \t\r\n"):
        raise EmptyDocument("The file is empty. Check that it was saved or uploaded completely.")
    if is_encrypted_office(data):
        raise EncryptedDocument("The Office file is protected by a password. Save it without one and try again.")
    recognised = recognise_format(data)
    foreign = describe_foreign(data) if recognised is None else None
    named, stated = find_format(source), find_format_by_media_type(media_type)
    if named and named.recognise and not recognised and stated and stated.is_text and not stated.recognise:
        named = stated  # the content would show what the name says
    declared = named or recognised or stated
    if declared is None:
        if foreign is not None or is_binary(decode(data)):
            suffix = find_suffix(source)
            what = (
                f"It is {foreign or 'no text'}."
                if foreign or not suffix
                else f"“.{suffix}” is not a type this service reads."
            )
            hint = " If it is a manual page, unpack it first." if _MANUAL_PAGE.search(source) else ""
            raise UnsupportedDocument(f"{what}{hint} Supported formats: {list_formats()}.")
        declared = get_format(FALLBACK)
    _confirm(declared, recognised, foreign, data)
    return declared


def _confirm(declared: Format, recognised: Format | None, foreign: str | None, data: bytes) -> None:
    """Raise unless the content can be what the name or the media type says."""
    if declared == recognised:
        return
    if foreign is not None or (recognised is not None and not (declared.is_text and recognised.is_text)):
        content = foreign if recognised is None else recognised.description
        raise MistypedDocument(
            f"The name says {declared.name}, but the content is {content}. Give it the right extension."
        )
    looks_binary = is_binary(decode(data))
    if declared.is_text and looks_binary:
        raise MistypedDocument(f"The name says {declared.name}, but the content is binary data, not text.")
    if declared.recognise is not None and not declared.is_text:
        if looks_binary:
            raise UnreadableDocument(
                f"The {declared.name} file is damaged: its beginning is wrong. Copy or download it again."
            )
        raise MistypedDocument(
            f"The name says {declared.name}, but the content is plain text. Give it the right extension."
        )


def _parse(found: Format, source: str, data: bytes) -> ParsedDocument:
    try:
        return found.read(source, data)
    except (DocumentError, MemoryError):
        raise
    except RecursionError as error:
        raise UnreadableDocument(f"The {found.name} file is nested too deeply to be read.") from error
    except Exception as error:  # nobody can list how parsers fail on foreign files
        raise UnreadableDocument(
            f"The {found.name} file cannot be read ({type(error).__name__}: {error}). Save it again and retry."
        ) from error
