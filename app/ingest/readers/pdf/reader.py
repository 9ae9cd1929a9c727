"""Read PDF files with PDFium: text lines in reading order, each with its box on the page."""

import re
import threading
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pypdfium2
from pypdfium2 import raw

from app.ingest.metadata.dates import state_day
from app.ingest.pictures import count_pictures, wrap_picture
from app.ingest.readers.assembly import MOST_UNREAD, Assembly, name_title, squeeze
from app.ingest.readers.pdf.annotations import place_entered, read_annotations, show_addresses
from app.ingest.readers.pdf.bands import fill_bands
from app.ingest.readers.pdf.characters import View, find_turn, join_initials, read_characters, read_runs
from app.ingest.readers.pdf.columns import align_tables
from app.ingest.readers.pdf.headings import LONGEST_HEADING, rank_headings
from app.ingest.readers.pdf.margins import RunningLines, find_contents, leave_out
from app.ingest.readers.pdf.order import join_figures, put_in_order
from app.ingest.readers.pdf.overleaf import join_pages
from app.ingest.readers.pdf.page import Page, PageLine
from app.ingest.readers.pdf.paragraphs import lay_out
from app.ingest.readers.pdf.rules import Drawn, fill_grids, find_grids
from app.ingest.readers.pdf.scans import can_recognise, describe_scans, recognise, refuse_many
from app.ingest.readers.pdf.tables import join_rows, separate_cells
from app.ingest.readers.pdf.visibility import Visibility
from app.ingest.reading_progress import note_pages
from domain.documents import Line, ParsedDocument
from domain.errors import EncryptedDocument, OversizedDocument, ScannedDocument, UnreadableDocument
from domain.library.metadata import Metadata
from domain.text.dictionary import CORRECT_EVERYWHERE, is_word
from domain.text.languages import detect_language, fold

MAX_PAGES = 5000

_PDFIUM = threading.Lock()
"""PDFium is not thread-safe, not even between documents. Held for one page at a time, so that a long file does not keep
a short one waiting."""

_BULLET = re.compile(r"^[•▪◦‣●○■] (?=\S)")
_DEEPEST = 6
"""Deepest level of a heading in Markdown. Files have more sizes of type than that."""

_SPARSE = 15
"""Characters per page. A file of pictures with less text than that is a scan with stamps or page numbers on it."""
_FEW = 100
"""Characters: a scan may have a stamp or a page number as text. Chosen."""
_MADE_UP = re.compile(r"\.\w{2,5}$|^(?:untitled|microsoft )|^(?:document|output|print|slide) ?\d*$", re.IGNORECASE)
"""A title that a program states where a person stated none."""
_COVERED = 0.5
"""Share of the page that a scan's pictures cover. Chosen."""
_XFA = (raw.FORMTYPE_XFA_FULL, raw.FORMTYPE_XFA_FOREGROUND)


def read_pdf(source: str, data: bytes) -> ParsedDocument:
    """Read text with line boxes; an empty line separates pages.

    A word broken at a line's end is joined again: with its hyphen, or without it where that only broke the word.

    Raises `EncryptedDocument`, `UnreadableDocument`, `OversizedDocument` and `ScannedDocument`.
    """
    with _PDFIUM:
        document = _open(data)
        document.init_forms()
        count, files = len(document), range(min(document.count_attachments(), MOST_UNREAD))
        attached = [squeeze(document.get_attachment(number).get_name()) for number in files]
        is_xfa = document.get_formtype() in _XFA
        metadata = squeeze(document.get_metadata_value("Title"))
    try:
        if count > MAX_PAGES:
            raise OversizedDocument(f"The PDF has {count} pages; {MAX_PAGES} are the limit. Split the file.")
        pages: list[Page] = []
        for index in range(count):
            with _PDFIUM:
                pages.append(_read_page(document, index))
            if pages[-1].is_scan and can_recognise():
                refuse_many(sum(page.is_scan for page in pages))
            note_pages(index + 1, count)
    finally:
        with _PDFIUM:
            document.close()
    if is_xfa and not any(page.has_fields for page in pages):
        raise UnreadableDocument("The PDF is a form that only Adobe Reader shows (XFA). Print it there to a new PDF.")
    return _assemble(source, _check_scans(pages), metadata, attached)


def read_picture(source: str, data: bytes) -> ParsedDocument:
    """Read the text of a picture, or of each in a TIFF file, as `read_pdf` reads scanned pages.

    Raises `UnreadableDocument`, `OversizedDocument` and `ScannedDocument`.
    """
    count = count_pictures(data)
    refuse_many(count)
    pages: list[Page] = []
    for number in range(1, count + 1):
        wrapped = wrap_picture(data, number)
        with _PDFIUM:
            document = _open(wrapped)
            pages.append(_read_page(document, 0))
            document.close()
        note_pages(number, count)
    return _assemble(source, _check_scans(pages))


def _check_scans(pages: list[Page]) -> list[Page]:
    """Return the pages. Raises `ScannedDocument` if most are pictures and there is hardly any text."""
    characters = sum(len(line.text) for page in pages for line in page.lines)
    if characters < _SPARSE * len(pages) and sum(page.is_picture for page in pages) * 2 > len(pages):
        if can_recognise():
            raise ScannedDocument("The pages are pictures in which text recognition (OCR) finds no text.")
        if any(page.is_mute for page in pages):
            raise ScannedDocument(
                "The PDF does not say which letters its signs are. Save it again from the program that it comes from, "
                'or have the pages recognised: pip install "askgraph[ocr]".'
            )
        raise ScannedDocument
    return pages


def read_pdf_date(data: bytes) -> Metadata:
    """Return the date of a PDF without reading its text."""
    with _PDFIUM:
        document = _open(data)
        try:
            return state_day(*map(document.get_metadata_value, ("ModDate", "CreationDate")))
        finally:
            document.close()


def _open(data: bytes) -> pypdfium2.PdfDocument:
    try:
        return pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        if error.err_code in (raw.FPDF_ERR_PASSWORD, raw.FPDF_ERR_SECURITY):
            raise EncryptedDocument("The PDF is protected by a password. Save it without one and try again.") from error
        raise UnreadableDocument("The PDF is damaged or incomplete. Copy or download it again.") from error


def _read_page(document: pypdfium2.PdfDocument, index: int) -> Page:
    try:
        page = document[index]
        text_page = page.get_textpage()
    except pypdfium2.PdfiumError as error:
        raise UnreadableDocument(f"Page {index + 1} of the PDF is damaged. Print it to a new PDF and retry.") from error
    try:
        if turned := find_turn(page, text_page.raw):
            page.set_rotation((page.get_rotation() + turned) % 360)
            text_page.close()
            text_page = page.get_textpage()
        view = View(page, turned)
        drawn = Drawn(page, view)
        grids = find_grids(drawn.lines)
        own = read_characters(text_page.raw)
        entered, skipped, links, noted = read_annotations(page, view)
        skipped += drawn.skipped()
        has_fields = bool(entered) or any(kind == "form field" for kind, _, _ in skipped)
        unmapped, signs = own.count("�"), len("".join(own.split()))
        if is_mute := unmapped * 2 > signs:
            skipped.append(("font", "without a mapping", 1))
            own = ""
        elif unmapped:
            skipped.append(("character", "of a font without a mapping", unmapped))
        seen, unseen = Visibility(page, text_page.raw, view, drawn.pictures).blank_unseen(own)
        read = read_runs(
            seen, text_page.raw, view, lambda *place: any(grid.parts(*place) for grid in grids), drawn.strikes
        )
        comments = [PageLine(run.text, run.height, False, "\n\n", view.measure(run)) for run in noted]
        show_addresses(read, links)
        tabled = fill_bands(fill_grids(place_entered(join_initials(read), entered), grids), drawn.lines)
        runs = put_in_order(join_rows(join_figures(tabled)))
        characters = sum(len(run.text) for run in runs)
        is_picture = characters < _SPARSE and (bool(drawn.pictures) or is_mute)
        scanned = is_mute or (characters < _FEW and drawn.covered >= _COVERED)
        doubtful, is_poor = 0, False
        if scanned and can_recognise():
            scan = recognise(page, turned)
            doubtful, is_poor = scan.doubtful, scan.is_poor
            if sum(len(run.text) for run in scan.runs) > characters:
                runs, view, skipped, own = put_in_order(join_rows(scan.runs)), scan.view, [], ""
        separate_cells(runs)
        runs = align_tables(runs)
        lines = lay_out(runs, view)
        return Page(lines, is_picture, skipped, own, is_mute, has_fields, unseen, scanned, doubtful, is_poor, comments)
    finally:
        text_page.close()
        page.close()


def _assemble(source: str, pages: list[Page], metadata: str = "", attached: Sequence[str] = ()) -> ParsedDocument:
    """Join the pages into one text with sections. `metadata` is the title that the file states, and `attached` the
    names of files in it. Comments stand at the end: they are no part of what they are about."""
    assembly = Assembly()
    for name in attached:
        assembly.skip("attachment", name)
    placed: list[Line] = []
    breaks = _Breaks(pages)
    running = RunningLines(pages)
    levels = rank_headings(pages, running.says_nothing)
    margins: list[tuple[int, int]] = []
    lines, repeated = join_pages(pages, find_contents(pages), running)
    assembly.pass_over(" ".join(repeated))
    heading, opened = "", 0
    level: int | None = None
    for (page, index, line, is_margin), following in zip(
        lines, [*(each.line for each in lines[1:]), None], strict=False
    ):
        before, level = level if index else None, levels[page - 1].get(index)
        continued = level is not None and level == before and line.gap != "\n\n" and len(heading) < LONGEST_HEADING
        text = _BULLET.sub("- ", breaks.rejoin(line, following))
        mark, gap = "", line.gap
        if level is not None and not continued:
            mark, gap = "#" * min(level, _DEEPEST) + " ", "\n\n"
        elif level is not None:
            gap = " " if gap else gap
        elif before is not None:
            gap = "\n\n"
        start = assembly.add_block(mark + text, gap=gap)
        end = start + len(mark) + len(text)
        # With its mark, or the page would begin behind it and a chunk hold nothing else.
        placed.append(Line(start, end, page, line.box))
        if is_margin:
            margins.append((start, end))
            if running.may_count(pages[page - 1].lines, index, page):
                assembly.skip("running line", "whose number is taken for the page's")
        if level is not None:
            heading, opened = (f"{heading} {line.text}", opened) if continued else (line.text, start)
            assembly.open_section(level, heading, opened)
    comments = [(number, line) for number, page in enumerate(pages, start=1) for line in page.comments]
    if comments:
        assembly.add_heading(1, "Comments")
    for number, line in comments:
        start = assembly.add_block(line.text)
        placed.append(Line(start, start + len(line.text), number, line.box))
    for number, each in enumerate(pages, start=1):
        assembly.expect(each.own)
        assembly.leave_out(" ".join(each.unseen), f"hidden on page {number}")
        for kind, what, count in each.skipped:
            assembly.skip(kind, f"{what} on page {number}".strip(), count)
    for remark in describe_scans(pages):
        assembly.skip("remark", remark)
    # Without a stated title, the file's name beats the largest line, which is often "Form 10-K" or a logo.
    document = assembly.finish(metadata if _is_title(metadata) else name_title(source), source)
    sections = tuple(part for section in document.sections for part in leave_out(section, margins))
    return replace(document, sections=sections, lines=tuple(placed), pages=len(pages))


class _Breaks:
    """Tells which hyphens at the ends of lines only break a word: where the document has it whole, or the language. Two
    words that are one together are parted so only in a document that breaks others."""

    def __init__(self, pages: list[Page]) -> None:
        text = " ".join(line.text for page in pages for line in page.lines)
        self._language = detect_language(text) or CORRECT_EVERYWHERE
        self._words = frozenset(re.findall(r"[^\W\d_]+", text.lower()))
        self._hyphened = frozenset(re.findall(r"(?<![^\W\d_])[^\W\d_]++-[^\W\d_]++", text.lower()))
        self._breaks_words = False
        pairs = (_find_break(*each) for page in pages for each in pairwise(page.lines))
        self._breaks_words = any(self._breaks(*pair) for pair in pairs if pair)

    def rejoin(self, line: PageLine, following: PageLine | None) -> str:
        """Return a line, without a hyphen at its end that only breaks a word."""
        pair = _find_break(line, following)
        return line.text[:-1] if pair and self._breaks(*pair) else line.text

    def _breaks(self, start: str, end: str) -> bool:
        if start + end in self._words or f"{start}-{end}" in self._hyphened:
            return start + end in self._words
        one, other, both = (is_word(fold(each), self._language) for each in (start, end, start + end))
        return both and (self._breaks_words or not (one and other))


def _find_break(line: PageLine, following: PageLine | None) -> tuple[str, str] | None:
    """Return what stands before and behind a hyphen at the end of a line, in lower case."""
    if following is None or following.gap != "":
        return None
    start, end = re.search(r"(?<![^\W\d_])[^\W\d_]++(?=-$)", line.text), re.match(r"[^\W\d_]+", following.text)
    return (start[0].lower(), end[0]) if start and end and end[0][0].islower() else None


def _is_title(text: str) -> bool:
    """Return True if a person wrote this stated title: authoring tools leave file names and numbers there."""
    letters = sum(map(str.isalpha, text))
    return letters >= 4 and letters * 2 > len(text) and not _MADE_UP.search(text)
