"""The date of a document: what its file states, or its path."""

import io
import os
import re
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import docx
import openpyxl
import pptx
import pytest
from fpdf import FPDF

from app.ingest.reading import read_document, read_own_metadata
from app.wiring.services import Services
from domain.scope import Scope
from nodes.prompting.messages import show_sources
from nodes.sources.sourcing import make_source
from tests.ingest.readers.test_office_readers import pack, save

MADE, CHANGED = datetime(2023, 4, 5, 9, tzinfo=UTC), datetime(2024, 2, 3, 9, tzinfo=UTC)
MARCH = datetime(2021, 3, 9, 12, tzinfo=UTC).timestamp()


def make_office(document: Any) -> bytes:
    """Save a Word file or a deck with its dates, or without known ones."""
    document.core_properties.created = MADE
    document.core_properties.modified = CHANGED
    return save(document)


def make_docx() -> Any:
    document = docx.Document()
    document.add_paragraph("The gauge holds four litres.")
    return document


def make_deck() -> Any:
    deck = pptx.Presentation()
    deck.slides.add_slide(deck.slide_layouts[5]).shapes.title.text = "Gauges"
    return deck


def make_workbook() -> bytes:
    workbook = openpyxl.Workbook()
    workbook.active.append(["Litres", 4])
    parts = unzip(save(workbook))
    # openpyxl writes the time of saving, whatever it was told.
    core = re.sub(rb"(modified [^>]*>)[^<]*", rb"\g<1>2024-02-03T09:00:00Z", parts["docProps/core.xml"])
    return pack(parts | {"docProps/core.xml": core})


def unzip(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def make_pdf(made: datetime | None = MADE) -> bytes:
    pdf = FPDF()
    pdf.add_page()
    pdf.set_font("Helvetica", size=12)
    pdf.cell(text="The gauge holds four litres of rain water.")
    if made:
        pdf.set_creation_date(made)
    return bytes(pdf.output())


OFFICE = (
    'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
    'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"'
)
ODT = {
    "mimetype": "application/vnd.oasis.opendocument.text",
    "META-INF/manifest.xml": "<manifest/>",
    "content.xml": f"<office:document-content {OFFICE}><office:body><office:text><text:p>Four litres.</text:p>"
    "</office:text></office:body></office:document-content>",
    "meta.xml": f'<office:document-meta {OFFICE} xmlns:dc="http://purl.org/dc/elements/1.1/" '
    'xmlns:meta="urn:oasis:names:tc:opendocument:xmlns:meta:1.0"><office:meta>'
    "<meta:creation-date>2023-04-05T09:00:00</meta:creation-date><dc:date>2024-02-03T09:00:00</dc:date>"
    "</office:meta></office:document-meta>",
}
HTML = b'<html><head><meta property="article:modified_time" content="2024-02-03T09:00:00Z"></head><p>Four litres.</p>'
RTF = rb"{\rtf1{\info{\creatim\yr2023\mo4\dy5\hr9}{\revtim\yr2024\mo2\dy3\hr9}}Four litres.}"


@pytest.mark.parametrize(
    ("name", "data", "day"),
    [
        ("a.pdf", make_pdf(), "2023-04-05"),
        ("a.docx", make_office(make_docx()), "2024-02-03"),
        ("a.pptx", make_office(make_deck()), "2024-02-03"),
        ("a.xlsx", make_workbook(), "2024-02-03"),
        ("a.odt", pack(ODT), "2024-02-03"),
        ("a.html", HTML, "2024-02-03"),
        ("a.rtf", RTF, "2024-02-03"),
        ("a.docx", save(make_docx()), None),  # python-docx states the day of its template
        ("a.pptx", save(make_deck()), None),
        ("a.pdf", make_pdf(datetime(2093, 1, 1, tzinfo=UTC)), None),
        ("a.odt", pack({name: part for name, part in ODT.items() if name != "meta.xml"}), None),
        ("a.txt", b"Dated 2024-02-03.", None),
        ("a.txt", b"Minutes\n\nDate: 3 February 2024\n\nWe met.", "2024-02-03"),
        ("a.txt", b"Due: 2024-02-03\nFebruary 2024", None),
        ("a.org", b"#+AUTHOR: Ann\n#+DATE: 2024-02-03\n\nFour litres.", "2024-02-03"),
        ("a.log", b"2024-02-03 10:00:00 started\n", None),
        ("a.md", b"---\ntitle: A\n---\n# A\n\n**Stand:** 03.02.2024\n", "2024-02-03"),
        ("a.md", b"---\nlastmod: 2024-02-03\n---\n# A\n", "2024-02-03"),
        ("a.md", b"+++\ndate = 2024-02-03T09:00:00Z\n+++\n# A\n", "2024-02-03 09:00:00+00:00"),
        ("notes_20240203.txt", b"We met.", "2024-02-03"),
        ("blog/2024/02/03/rain.html", b"<html><p>Four litres.", "2024-02-03"),
        ("backup-2024-02-03/rain-20241399.txt", b"Four litres.", None),
    ],
)
def test_a_file_states_its_date_or_none_is_known(name: str, data: bytes, day: str | None) -> None:
    metadata = read_document(name, data).metadata
    assert metadata == read_own_metadata(name, data)
    assert metadata.get("date") == day


async def test_the_model_reads_the_documents_own_date_and_never_the_files(services: Services, tmp_path: Path) -> None:
    stated, plain = tmp_path / "stated.pdf", tmp_path / "plain.txt"
    stated.write_bytes(make_pdf())
    plain.write_bytes(b"The mast is painted in May.")
    for path in (stated, plain):
        os.utime(path, (MARCH, MARCH))
    ingestion, store = services.library.ingestion, services.library.search
    await ingestion.add_path("w", tmp_path)
    days = {}
    for document in await services.library.documents.list("w"):
        [passage] = await store.read_outline(Scope("w"), document.id, 1)
        [shown] = show_sources([make_source(1, passage, score=1)]).splitlines()[:1]
        days[document.source.rpartition("/")[2]] = shown.partition(' date="')[2].strip('">')
    assert days == {"stated.pdf": "2023-04-05", "plain.txt": ""}
