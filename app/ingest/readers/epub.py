"""Electronic books."""

import posixpath
from collections.abc import Mapping, Set
from dataclasses import replace
from urllib.parse import unquote
from zipfile import ZipFile

from lxml import etree
from selectolax.lexbor import LexborHTMLParser, LexborNode

from app.ingest.decoding import decode
from app.ingest.metadata.dates import state_day
from app.ingest.readers.archives import open_archive, parse_xml, read_part
from app.ingest.readers.assembly import Assembly, squeeze
from app.ingest.readers.web.html import add_html
from app.ingest.readers.web.markup import parse_html
from domain.documents import ParsedDocument
from domain.errors import EncryptedDocument, UnreadableDocument
from domain.library.metadata import Metadata, select_metadata

MAX_CHAPTERS = 5000

_NAME = "EPUB file"
_DC = "{http://purl.org/dc/elements/1.1/}"
_CHAPTER_TYPES = ("application/xhtml+xml", "text/html", "application/x-dtbook+xml", "text/x-oeb1-document")


def read_epub(source: str, data: bytes) -> ParsedDocument:
    """Read a book's chapters in their order, without its table of contents.

    Raises `EncryptedDocument`, `OversizedDocument`, `UnreadableDocument`, and lxml's errors for malformed parts.
    """
    with open_archive(data, _NAME) as archive:
        if "META-INF/encryption.xml" in archive.namelist() and b"xmlenc#" in archive.read("META-INF/encryption.xml"):
            _check_encryption(archive)
        path, package = _read_package(archive)
        assembly = Assembly()
        pages: dict[str, LexborHTMLParser] = {}
        chapters, others = _list_chapters(package, posixpath.dirname(path))
        linked = {*map(posixpath.basename, chapters)}
        names = {name.lower(): name for name in archive.namelist()}
        for chapter in (*chapters, *others):
            if posixpath.basename(chapter) not in linked:
                assembly.skip("file", f"{posixpath.basename(chapter)}, to which nothing leads")
                continue
            try:
                name = chapter if chapter in archive.NameToInfo else names.get(chapter.lower(), chapter)
                page = decode(read_part(archive, name, _NAME))
            except UnreadableDocument:
                assembly.skip("file", f"{posixpath.basename(chapter)}, which is damaged or missing")
                continue
            tree = pages[chapter] = parse_html(page, is_xml=True)
            addresses = (unquote(each.attributes["href"] or "").partition("#")[0] for each in tree.css("a[href]"))
            linked.update(map(posixpath.basename, addresses))
    _place_notes(pages)
    while pages:
        add_html(assembly, pages.pop(next(iter(pages))))
    return replace(assembly.finish(_read_property(package, "title"), source), metadata=_describe(package))


def _place_notes(pages: Mapping[str, LexborHTMLParser]) -> None:
    """Write footnotes in brackets where they are referred to first. Elsewhere their numbers stand apart from the word
    before."""
    links: dict[str, list[LexborNode]] = {}
    for path, page in pages.items():
        for link in page.css("a[href]"):
            if "noteref" in f"{link.attributes.get('epub:type')} {link.attributes.get('role')}":
                name, _, place = (link.attributes["href"] or "").partition("#")
                target = posixpath.normpath(posixpath.join(posixpath.dirname(path), unquote(name))) if name else path
                links.setdefault(f"{target}#{place}", []).append(link)
    notes = {
        f"{path}#{note.attributes['id']}": note
        for path, page in (pages.items() if links else ())
        for note in page.css("[id]")
        if f"{path}#{note.attributes['id']}" in links
    }
    those = {note.mem_id for note in notes.values()}
    # What is within another note is read there.
    words = {place: "" if _is_within(note.parent, those) else _spell_note(note) for place, note in notes.items()}
    removed = {note.mem_id for place, note in notes.items() if words[place]}
    for place, referring in links.items():
        for number, link in enumerate(referring):
            if not _is_within(link, removed):  # what is removed with a note is gone for good
                said = words.get(place) if number == 0 else ""
                alone = link.parent is not None and link.parent.tag == "sup" and link.parent.text() == link.text()
                if said:
                    (link.parent or link if alone else link).replace_with(f" ({said})")
                elif not alone:
                    link.replace_with(f" [{squeeze(link.text())}]")
    for note in notes.values():
        if note.mem_id in removed:
            note.decompose()


def _spell_note(note: LexborNode) -> str:
    """Return the words of a note, without the links back that it begins and ends with."""
    words = squeeze(note.text(separator=" "))
    for back in note.css("a[href*='#']"):
        words = words.removeprefix(squeeze(back.text())).removesuffix(squeeze(back.text())).strip()
    return words.lstrip(". ")


def _is_within(node: LexborNode | None, those: Set[int]) -> bool:
    while node is not None and node.mem_id not in those:
        node = node.parent
    return node is not None


def read_book_metadata(data: bytes) -> Metadata:
    """Return author, language and date of a book without reading its text."""
    with open_archive(data, _NAME) as archive:
        return _describe(_read_package(archive)[1])


def _read_package(archive: ZipFile) -> tuple[str, etree._Element]:
    """Return the part that lists all others, and its path."""
    path = _find_package(archive)
    return path, parse_xml(read_part(archive, path, _NAME))


def _describe(package: etree._Element) -> Metadata:
    metadata = {"author": _read_property(package, "creator"), "language": _read_property(package, "language")}
    stated = select_metadata({key: value for key, value in metadata.items() if value})
    return stated | state_day(_read_property(package, "date"))


def _check_encryption(archive: ZipFile) -> None:
    """Raise `EncryptedDocument` if more than fonts is encrypted."""
    listed = parse_xml(read_part(archive, "META-INF/encryption.xml", _NAME))
    uris = [
        str(element.get("URI", "")) for element in listed.iter("{http://www.w3.org/2001/04/xmlenc#}CipherReference")
    ]
    if any(uri.lower().endswith((".xhtml", ".html", ".htm", ".xml")) for uri in uris):
        raise EncryptedDocument("The book is protected against copying. Get one without protection and try again.")


def _find_package(archive: ZipFile) -> str:
    """Return the path of the part that lists all others."""
    container = parse_xml(read_part(archive, "META-INF/container.xml", _NAME))
    for element in container.iter("{*}rootfile"):
        if path := element.get("full-path"):
            return str(path)
    raise UnreadableDocument("The EPUB file does not say where its content is. Save it again and retry.")


def _list_chapters(package: etree._Element, folder: str) -> tuple[list[str], list[str]]:
    """Return the paths of the parts in reading order, without the table of contents, and of those that stand in none:
    links may lead there."""
    chapters = {
        item.get("id"): posixpath.normpath(posixpath.join(folder, unquote(item.get("href", ""))))
        for item in package.iter("{*}item")
        if item.get("media-type") in _CHAPTER_TYPES and "nav" not in (item.get("properties") or "").split()
    }
    paths = (chapters.get(reference.get("idref")) for reference in package.iter("{*}itemref"))
    ordered = [*dict.fromkeys(path for path in paths if path)][:MAX_CHAPTERS]
    return ordered, [path for path in chapters.values() if path not in {*ordered}][: MAX_CHAPTERS - len(ordered)]


def _read_property(package: etree._Element, name: str) -> str:
    found = next(package.iter(_DC + name), None)
    return "" if found is None else squeeze("".join(str(text) for text in found.itertext()))
