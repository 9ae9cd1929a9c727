"""What all Office files have in common: parts in an archive, and what of them no reader takes."""

import io
import posixpath
import re
import zipfile
from collections.abc import Iterator, Mapping

from app.ingest.readers.archives import open_archive, parse_xml, read_part
from app.ingest.readers.assembly import Assembly
from domain.documents import UnreadKind

_STRICT = re.compile(rb"http://purl\.oclc\.org/ooxml/(\w+)/")
_KINDS: Mapping[str, UnreadKind] = {
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
    """Return the archive and its bytes; of a file in the strict form of the standard, with the names that all others
    have. Raises what `open_archive` does."""
    archive = open_archive(data, name)
    if b"purl.oclc.org/ooxml/" not in read_part(archive, "_rels/.rels", name):
        return archive, data
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as written:
        for part in archive.namelist():
            content = read_part(archive, part, name)
            if part.endswith((".xml", ".rels")):
                content = _STRICT.sub(rb"http://schemas.openxmlformats.org/\1/2006/", content)
            written.writestr(part, content)
    return zipfile.ZipFile(file), file.getvalue()


def skip_parts(assembly: Assembly, archive: zipfile.ZipFile, places: Mapping[str, str], read: set[str]) -> None:
    """Count the parts that are not read: those of other kinds of relations than `read`. `places` says where a page's
    parts are, such as "on slide 3", by the path of the page."""
    for page, where in places.items():
        for kind, path in _list_related(archive, page):
            if kind == "comments":
                comments = parse_xml(read_part(archive, path, "Office file"))
                assembly.skip("comment", where, sum(1 for _ in comments.iter("{*}comment", "{*}cm")))
            elif kind in _KINDS and kind not in read:
                assembly.skip(_KINDS[kind], where)


def _list_related(archive: zipfile.ZipFile, page: str) -> Iterator[tuple[str, str]]:
    """Yield the parts that a page is related to, and those that are in its drawing."""
    folder, file = posixpath.split(page)
    relations = f"{folder}/_rels/{file}.rels"
    if relations in archive.NameToInfo:
        for relation in parse_xml(read_part(archive, relations, "Office file")):
            kind = relation.get("Type", "").rpartition("/")[2]
            path = posixpath.normpath(posixpath.join("/", folder, relation.get("Target", ""))).lstrip("/")
            if path in archive.NameToInfo:
                yield kind, path
                if kind == "drawing":
                    yield from _list_related(archive, path)
