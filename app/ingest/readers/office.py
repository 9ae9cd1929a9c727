"""What all Office files have in common: parts in an archive, and what of them no reader takes."""

import io
import posixpath
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence

from lxml import etree

from app.ingest.readers.archives import open_archive, parse_xml, read_part
from app.ingest.readers.assembly import Assembly
from domain.documents import UnreadKind

_STRICT = re.compile(rb"http://purl\.oclc\.org/ooxml/(\w+)/")
_KINDS: Mapping[str, UnreadKind] = {
    "aFChunk": "attachment",
    "chart": "chart",
    "chartEx": "chart",
    "comments": "comment",
    "diagramData": "drawing",
    "image": "picture",
    "oleObject": "attachment",
    "package": "attachment",
}
"""Parts by what relates a page to them."""


def open_office(data: bytes, name: str) -> tuple[zipfile.ZipFile, bytes]:
    """Return the archive and its bytes: of a file in the strict form of the standard, with the names that all others
    have, and without relations to parts that it lacks, such as a lost picture. Raises what `open_archive` does."""
    archive = open_archive(data, name)
    is_strict = b"purl.oclc.org/ooxml/" in read_part(archive, "_rels/.rels", name)
    changed: dict[str, bytes] = {}
    for part in archive.namelist():
        if part.endswith(".rels") or (is_strict and part.endswith(".xml")):
            content = read_part(archive, part, name)
            kept = _drop_lost(archive, part, content) if part.endswith(".rels") else content
            if is_strict or kept != content:
                changed[part] = _STRICT.sub(rb"http://schemas.openxmlformats.org/\1/2006/", kept)
    if not changed:
        return archive, data
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as written:
        for part in archive.namelist():
            written.writestr(part, changed[part] if part in changed else read_part(archive, part, name))
    return zipfile.ZipFile(file), file.getvalue()


def _drop_lost(archive: zipfile.ZipFile, part: str, content: bytes) -> bytes:
    relations = parse_xml(content)
    folder = posixpath.dirname(posixpath.dirname(part))
    lost = [
        relation
        for relation in relations
        if relation.get("TargetMode") != "External" and _find_path(folder, relation) not in archive.NameToInfo
    ]
    for relation in lost:
        relations.remove(relation)
    return etree.tostring(relations) if lost else content


def _find_path(folder: str, relation: etree._Element) -> str:
    return posixpath.normpath(posixpath.join("/", folder, relation.get("Target", ""))).lstrip("/")


def skip_parts(assembly: Assembly, archive: zipfile.ZipFile, places: Mapping[str, str], read: set[str]) -> None:
    """Count the parts that are not read: those of other kinds of relations than `read`. `places` says where a page's
    parts are, such as "on slide 3", by the path of the page."""
    for page, where in places.items():
        for kind, path in _list_related(archive, page):
            if kind in read:
                continue
            if kind == "comments":
                comments = parse_xml(read_part(archive, path, "Office file"))
                assembly.skip("comment", where, sum(1 for _ in comments.iter("{*}comment", "{*}cm")))
            elif kind in _KINDS:
                assembly.skip(_KINDS[kind], where)


def read_boxes(archive: zipfile.ZipFile, page: str) -> Iterator[list[str]]:
    """Yield the paragraphs of each box and shape with words that is drawn over a page."""
    for kind, path in _list_related(archive, page):
        if kind == "drawing":
            for box in parse_xml(read_part(archive, path, "Office file")).iter("{*}txBody"):
                texts = ("".join(each.text or "" for each in part.iter("{*}t")) for part in box.iter("{*}p"))
                if said := [text for text in texts if text.strip()]:
                    yield said


def read_addresses(archive: zipfile.ZipFile, page: str) -> dict[str, str]:
    """Return the addresses that a page links to, by the names that it has for them."""
    relations = _read_relations(archive, page)
    return {each.get("Id", ""): each.get("Target", "") for each in relations if each.get("TargetMode") == "External"}


def _read_relations(archive: zipfile.ZipFile, page: str) -> Sequence[etree._Element]:
    folder, file = posixpath.split(page)
    path = f"{folder}/_rels/{file}.rels"
    return parse_xml(read_part(archive, path, "Office file")) if path in archive.NameToInfo else ()


def _list_related(archive: zipfile.ZipFile, page: str) -> Iterator[tuple[str, str]]:
    """Yield the parts that a page is related to, and those that are in its drawing."""
    for relation in _read_relations(archive, page):
        kind = relation.get("Type", "").rpartition("/")[2]
        path = _find_path(posixpath.dirname(page), relation)
        if path in archive.NameToInfo:
            yield kind, path
            if kind == "drawing":
                yield from _list_related(archive, path)
