"""Scans and pictures: what text recognition reads, where it stands, and what is said where it is not installed."""

import io
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pypdfium2
import pytest
from fpdf import FPDF
from PIL import Image, ImageOps
from pypdf import PdfReader, PdfWriter

from app.ingest import formats
from app.ingest.files import find_files
from app.ingest.parser_workers import ParserWorkers
from app.ingest.readers.pdf import scans
from app.ingest.reading import check_file, read_document
from domain.documents import Box, ParsedDocument, tell_unread
from domain.errors import OversizedDocument, ScannedDocument

LEFT = "The gauge on the roof holds four litres of rain. It is emptied at dawn by whoever wakes first. "
RIGHT = "Snow is melted on the stove before it is measured. Hail counts as snow, and so does sleet. "


def make_page() -> bytes:
    """A heading, two columns of text, and a table."""
    pdf = FPDF()
    pdf.add_page()
    pdf.set_font("Helvetica", "B", size=24)
    pdf.cell(0, 16, "Rain and snow", new_x="LMARGIN", new_y="NEXT")
    pdf.set_font("Helvetica", size=12)
    for left, text in ((10, LEFT), (110, RIGHT)):
        pdf.set_xy(left, 40)
        pdf.multi_cell(85, 6, text * 3)
    pdf.set_y(150)
    for row in (("Month", "Rain", "Snow"), ("January", "12", "340"), ("June", "87", "5")):
        for cell in row:
            pdf.cell(50, 9, cell)
        pdf.ln()
    return bytes(pdf.output())


def draw(pdf: bytes) -> Image.Image:
    image: Image.Image = pypdfium2.PdfDocument(pdf)[0].render(scale=200 / 72).to_pil()
    return image


def scan(image: Image.Image, kind: str = "PDF", **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, resolution=200, **options)
    return file.getvalue()


def join(*files: bytes) -> bytes:
    writer = PdfWriter()
    for file in files:
        writer.append(PdfReader(io.BytesIO(file)))
    whole = io.BytesIO()
    writer.write(whole)
    return whole.getvalue()


def find_box(document: ParsedDocument, words: str, page: int) -> Box:
    lines = [line for line in document.lines if words in document.text[line.start : line.end] and line.page == page]
    assert lines, document.text
    return lines[0].box


async def test_scanned_pages_are_read_where_they_stand_and_the_others_as_before() -> None:
    tilted = draw(make_page()).convert("L").rotate(-1, fillcolor=255, resample=Image.Resampling.BICUBIC)
    data = join(make_page(), scan(tilted))
    # A second is too little, unless a scan gets more.
    async with ParserWorkers(seconds=1) as workers:
        document = await workers.run(partial(read_document, "rain.pdf", data))
    _, text = document.text.split("June | 87 | 5", 1)
    assert text.lstrip("\n#").startswith(" Rain and snow\n")
    assert " ".join(text.split()).index((LEFT * 3).strip()) < " ".join(text.split()).index((RIGHT * 3).strip())
    assert "January | 12 | 340\nJune | 87 | 5" in text
    for words in ("The gauge on the roof", "Rain and snow"):
        native, recognised = find_box(document, words, 1), find_box(document, words, 2)
        assert "confidence" not in native
        assert 0.8 < recognised["confidence"] <= 1
        # The page was turned around its middle: by a degree, half a page away, the height of a line.
        assert recognised["x"] == pytest.approx(native["x"], abs=1.5)
        assert recognised["y"] + recognised["height"] / 2 == pytest.approx(native["y"] + native["height"] / 2, abs=1.5)


def test_pictures_are_read_the_right_way_up() -> None:
    upright = draw(make_page()).crop((0, 0, 840, 452)).reduce(2)
    orientation = Image.Exif()
    orientation[0x0112] = 6  # to be turned clockwise
    turned = scan(upright.rotate(90, expand=True), "JPEG", exif=orientation)
    document = read_document("photo.jpg", turned)
    assert (document.media_type, document.pages) == ("image/jpeg", 1)
    assert "Rain and snow" in document.text
    both = scan(upright, "TIFF", save_all=True, append_images=[Image.new("L", (400, 200), "white")])
    document = read_document("upload", both)
    assert (document.media_type, document.pages) == ("image/tiff", 2)
    assert {line.page for line in document.lines} == {1}
    with pytest.raises(ScannedDocument, match="finds no text"):
        read_document("white.png", scan(Image.new("L", (400, 200), "white"), "PNG"))


def test_pages_are_turned_until_their_words_run_from_left_to_right() -> None:
    upright = draw(make_page()).crop((0, 0, 840, 452)).reduce(2).convert("L")
    flagged = PdfWriter(io.BytesIO(scan(upright.rotate(90, expand=True))))
    flagged.pages[0].rotate(90)
    file = io.BytesIO()
    flagged.write(file)
    ways = [scan(upright.rotate(-turn, expand=True)) for turn in (0, 90, 180, 270)]
    document = read_document("rain.pdf", join(*ways, file.getvalue(), scan(ImageOps.mirror(upright))))
    pages = [[line for line in document.lines if line.page == page] for page in range(1, 7)]
    texts = [" ".join(document.text[line.start : line.end].strip("# ") for line in page) for page in pages]
    start = f"Rain and snow {LEFT}".replace(" ", "")
    assert all(text.replace(" ", "").startswith(start) for text in texts[:5]), texts
    assert "hardly be read, whichever way up: 6." in tell_unread(document.unread)  # it is mirrored
    for before, page in pairwise(pages[:4]):
        box, turned = before[0].box, page[0].box
        assert turned["x"] == pytest.approx(100 - box["y"] - box["height"], abs=1.5)
        assert turned["y"] == pytest.approx(box["x"], abs=1.5)
    assert pages[4][0].box["y"] == pytest.approx(pages[0][0].box["y"], abs=1.5)


def test_too_large_pictures_and_too_many_scans_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OversizedDocument, match="48 million pixels"):
        read_document("vast.png", scan(Image.new("1", (8000, 6000)), "PNG"))
    monkeypatch.setattr(scans, "MAX_SCANS", 1)
    page = scan(Image.new("L", (400, 500), "white"))
    with pytest.raises(OversizedDocument, match="Split"):
        read_document("book.pdf", join(page, page))


@pytest.mark.parametrize("make", [lambda image: scan(image), lambda image: scan(image, "PNG")])
def test_without_the_extra_a_scan_says_what_to_install(
    make: Callable[[Image.Image], bytes], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(scans, "find_spec", lambda _: None)
    monkeypatch.setattr(formats, "find_spec", lambda _: None)
    data = make(draw(make_page()))
    with pytest.raises(ScannedDocument, match=r'pip install "askgraph\[ocr\]"'):
        read_document("upload", data)
    with pytest.raises(ScannedDocument) if data.startswith(b"\x89PNG") else nullcontext():
        check_file("upload", data)
    (tmp_path / "logo.png").write_bytes(data)
    (tmp_path / "notes.md").write_text("# Notes")
    assert find_files(tmp_path) == ([tmp_path / "notes.md"], [tmp_path / "logo.png"])


def test_without_the_extra_the_pages_with_text_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scans, "find_spec", lambda _: None)
    document = read_document("mixed.pdf", join(make_page(), scan(draw(make_page()))))
    assert document.pages == 2
    assert {line.page for line in document.lines} == {1}
    assert "1" in tell_unread(document.unread)
    assert "askgraph[ocr]" in tell_unread(document.unread)
