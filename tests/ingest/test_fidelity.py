"""Real files that packages bring: how many of the words that stand in a file are stored.

Run by `make field`. `real_files.json` names the packages with their hashes, and for each format what was reached; the
files themselves are not in the repository. Own words are what another library (for PDF: pdfium itself) takes from the
file, without order; so this finds text that is lost, not text at the wrong place."""

import hashlib
import json
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple, cast
from unicodedata import normalize

import pypdfium2
import pytest
from lxml import etree, html

from app.ingest.decoding import decode
from app.ingest.reading import read_document
from domain.errors import DocumentError

pytestmark = [pytest.mark.field, pytest.mark.timeout(600)]

EXPECTED: dict[str, Any] = json.loads(Path(__file__).with_name("real_files.json").read_text())
MOST_FILES = 12
"""Of one format, spread over all that there are."""
FEWEST_WORDS = 5
DOCX = r"word/(?:document|footnotes|endnotes|comments|header\d*|footer\d*)\.xml"
PPTX = r"ppt/(?:slides/slide|notesSlides/notesSlide|charts/chart|diagrams/data)\d*\.xml"
XLSX = r"xl/(?:sharedStrings|worksheets/sheet\d+)\.xml"
BLOCKS = {"p", "h", "tab", "br", "cr", "tc", "si", "c", "pt", "s", "line-break", "table-cell"}
"""Elements of Office and OpenDocument files that part words."""


class RealFile(NamedTuple):
    suffix: str
    name: str
    content: bytes


def test_what_real_files_say_is_stored(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    folder = pytestconfig.cache.mkdir("real_files") if pytestconfig.cache else tmp_path
    shares: dict[str, list[float]] = defaultdict(list)
    refused: dict[str, list[str]] = defaultdict(list)
    for file in _choose(_unpack(_fetch(folder, tmp_path))):
        try:
            own = _count_words(_read_own_words(file))
        except pypdfium2.PdfiumError:  # locked, or no PDF at all
            continue
        if own.total() < FEWEST_WORDS:
            continue
        try:
            document = read_document(file.name, file.content)
        except DocumentError as error:
            refused[file.suffix].append(f"{file.name}: {error}")
            continue
        stored = _count_words(" ".join([document.title, document.text, *map(str, document.metadata.values())]))
        shares[file.suffix].append((own & stored).total() / own.total())
        print(f"{file.suffix:6} {shares[file.suffix][-1]:.3f}  {file.name}")
    found = {
        suffix: {"files": len(each), "stored": round(sum(each) / len(each), 3), "refused": len(refused[suffix])}
        for suffix, each in sorted(shares.items())
    }
    print(json.dumps(found), *(line for lines in refused.values() for line in lines), sep="\n")
    for suffix, expected in EXPECTED["formats"].items():
        assert found[suffix]["files"] >= expected["files"], (suffix, refused[suffix])
        assert found[suffix]["stored"] >= expected["stored"] - 0.005, suffix


def _fetch(folder: Path, work: Path) -> list[Path]:
    """The packages' files, fetched by their usual clients where they are not there from the last time."""
    fetched = []
    for package in EXPECTED["packages"]:
        name, version, digest = package["name"], package["version"], package["sha256"]
        target = folder / f"{name}-{digest[:16]}"
        if not target.exists():
            (work / name).mkdir()
            if package["from"] == "pypi":
                (work / "wanted.txt").write_text(f"{name}=={version} --hash=sha256:{digest}\n")
                command = f"{sys.executable} -m pip download -q --no-deps --no-binary :all: -r {work}/wanted.txt"
            elif shutil.which("apt-get"):
                command = f"apt-get download -qq {name}={version}"
            else:
                continue
            subprocess.run(command.split(), cwd=work / name, check=True)
            [made] = (work / name).iterdir()
            assert hashlib.sha256(made.read_bytes()).hexdigest() == digest, name
            shutil.copy(made, target)
        fetched.append(target)
    return fetched


def _unpack(packages: Iterable[Path]) -> Iterator[RealFile]:
    for package in packages:
        packed = package.read_bytes()
        if not tarfile.is_tarfile(package):
            packed = subprocess.run(["dpkg-deb", "--fsys-tarfile", package], check=True, capture_output=True).stdout
        with tarfile.open(fileobj=BytesIO(packed)) as archive:
            for member in archive:
                path = Path(member.name)
                suffix = "eml" if "/mails/mail_test" in member.name else path.suffix.lstrip(".")
                if member.isfile() and suffix in EXPECTED["formats"]:
                    content = cast(Any, archive.extractfile(member)).read()
                    yield RealFile(suffix, path.with_suffix(f".{suffix}").name, content)


def _choose(files: Iterable[RealFile]) -> Iterator[RealFile]:
    by_suffix = defaultdict(list)
    for file in files:
        by_suffix[file.suffix].append(file)
    for each in by_suffix.values():
        yield from sorted(each)[:: -(-len(each) // MOST_FILES)]


def _count_words(text: str) -> Counter[str]:
    return Counter(re.findall(r"[^\W_]+", normalize("NFKC", text).replace("\u00ad", "").lower()))


def _read_own_words(file: RealFile) -> str:
    match file.suffix:
        case "docx":
            return _read_parts(file.content, DOCX, {"t", "v"})
        case "pptx":
            return _read_parts(file.content, PPTX, {"t", "v"})
        case "xlsx":
            return _read_sheets(file.content)
        case "odt" | "ods" | "odp":
            return _read_parts(file.content, r"content\.xml")
        case "epub":
            with zipfile.ZipFile(BytesIO(file.content)) as book:
                return "\n".join(_read_html(book.read(n)) for n in book.namelist() if n.endswith(("html", ".htm")))
        case "html":
            return _read_html(file.content)
        case "pdf":
            pages = pypdfium2.PdfDocument(file.content)
            return "\n".join(page.get_textpage().get_text_bounded() for page in pages)
        case "ipynb":
            cells = json.loads(file.content).get("cells", [])
            return "\n".join("".join(cell["source"]) for cell in cells)
        case "eml":
            return _read_mail(cast(EmailMessage, message_from_bytes(file.content, policy=cast(Any, default))))
        case _:
            return decode(file.content)


def _read_parts(content: bytes, parts: str, texts: set[str] | None = None) -> str:
    """Text within the parts whose names match: that of the elements `texts`, or all."""
    words = []
    with zipfile.ZipFile(BytesIO(content)) as archive:
        for name in filter(re.compile(parts).fullmatch, archive.namelist()):
            root = etree.fromstring(archive.read(name), etree.XMLParser(recover=True))
            for element in (root.find("{*}body") if texts is None else root).iter(etree.Element):
                local = etree.QName(element).localname
                words.append(" " if local in BLOCKS else "")
                words.append((element.text or "") if texts is None or local in texts else "")
                words.append((element.tail or "") if texts is None else "")
    return "".join(words)


def _read_sheets(content: bytes) -> str:
    """Strings of cells; how numbers are shown is for tests of the reader."""
    with zipfile.ZipFile(BytesIO(content)) as archive:
        names = archive.namelist()
        shared = "xl/sharedStrings.xml" in names and etree.fromstring(archive.read("xl/sharedStrings.xml")).findall("*")
        strings = ["".join(text.text or "" for text in one.iter("{*}t")) for one in shared or []]
        cells = [
            cell
            for name in names
            if re.fullmatch(r"xl/worksheets/sheet\d+\.xml", name)
            for cell in etree.fromstring(archive.read(name)).iter("{*}c")
        ]
        shown = [strings[int(cell.findtext("{*}v") or 0)] for cell in cells if cell.get("t") == "s"]
        return " ".join([*shown, *(text.text or "" for cell in cells for text in cell.iter("{*}t"))])


def _read_html(content: bytes) -> str:
    page = html.document_fromstring(content)
    for element in list(page.iter("script", "style", "head", "template", "noscript")):
        element.drop_tree()
    for element in page.iter(etree.Element):
        if element.tag not in {"a", "b", "i", "em", "strong", "span", "code", "sub", "sup", "tt", "font"}:
            element.tail = " " + (element.tail or "")
    return cast(str, page.text_content())


def _read_mail(mail: EmailMessage) -> str:
    parts = [str(mail[name] or "") for name in ("subject", "from", "to")]
    for part in mail.walk():
        if part.get_content_type() == "text/plain":
            parts.append(cast(str, part.get_content()))
    return "\n".join(parts)
