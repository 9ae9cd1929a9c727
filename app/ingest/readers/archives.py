"""ZIP archives of office formats, checked before anything in them is unpacked."""

import io
import zipfile

from lxml import etree

from domain.errors import OversizedDocument, UnreadableDocument

MAX_XML = 64 * 2**20
"""Largest size of the unpacked text parts in bytes. An XML tree takes about ten times as much memory."""
MAX_UNPACKED = 512 * 2**20
"""Largest size of all unpacked parts in bytes, pictures included."""
MAX_PARTS = 20_000
"""Largest number of parts."""

_TEXT_PARTS = (".xml", ".rels", ".xhtml", ".html", ".htm", ".opf", ".ncx")


def open_archive(data: bytes, name: str) -> zipfile.ZipFile:
    """Open the archive of a file; `name` says in messages which it is: "Word file".

    Parts are never larger than their declared sizes, which are checked here: `zipfile` reads no further.

    Raises `OversizedDocument` if the parts would be too many or too large, `UnreadableDocument` if the archive is
    damaged or encrypted.
    """
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
    except (zipfile.BadZipFile, ValueError, OSError, EOFError) as error:
        raise UnreadableDocument(f"The {name} is damaged or incomplete. Copy or download it again.") from error
    parts = archive.infolist()
    xml = sum(part.file_size for part in parts if part.filename.lower().endswith(_TEXT_PARTS))
    if len(parts) > MAX_PARTS or xml > MAX_XML or sum(part.file_size for part in parts) > MAX_UNPACKED:
        raise OversizedDocument(
            f"The {name} unpacks to more than this service reads ({MAX_XML // 2**20} MB of text parts). Split it."
        )
    return archive


def read_part(archive: zipfile.ZipFile, path: str, name: str) -> bytes:
    """Return a part of the archive. Raises `UnreadableDocument` if it is missing, damaged or encrypted."""
    try:
        return archive.read(path)
    except (KeyError, RuntimeError, NotImplementedError, zipfile.BadZipFile, OSError, EOFError) as error:
        raise UnreadableDocument(f"The {name} has no readable part {path!r}. Save it again and retry.") from error


def parse_xml(data: bytes) -> etree._Element:
    """Parse XML without entities and without the network. Raises `OversizedDocument`, which a part may be whose name
    does not say that it is XML, and `lxml.etree.XMLSyntaxError`, also for more than 256 levels."""
    if len(data) > MAX_XML:
        raise OversizedDocument(f"A part of the file unpacks to more than {MAX_XML // 2**20} MB of text. Split it.")
    parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=False, remove_comments=True)
    return etree.fromstring(data, parser)
