"""PDF by PDFium: text lines in reading order, each with its box on the page.

PDFium gives characters in the order of the content stream, with blanks put between words and line breaks where
the baseline changes. That order is kept, because it is right for columns; pieces that continue a line to the
right (the cells of a table row) are put on one line, with " | " between them.
"""

import ctypes
import re
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, pairwise
from typing import NamedTuple

import pypdfium2
from pypdfium2 import raw

from app.ingest.readers.assembly import Assembly, name_title, squeeze
from domain.documents import Box, Line, ParsedDocument, Section
from domain.errors import EncryptedDocument, OversizedDocument, ScannedDocument, UnreadableDocument

MEDIA_TYPE = "application/pdf"

MAX_PAGES = 5000

_PDFIUM = threading.Lock()
"""PDFium is not thread-safe at all, not even between documents. Held for a page at a time, so that a long file does
not keep a short one waiting."""

_HYPHEN = "\x02"
"""What PDFium gives for a hyphen that ends a line; it omits the line break after it."""
_LINE = re.compile(r"[^\r\n\x02]+\x02?|\x02")
_WORD = re.compile(r"[^\s\x02]+")
_UNITS = 10_000_000
"""Side of the imaginary device on which PDFium shows the page: its mapping yields whole numbers."""
_LARGER = 1.15
"""A line whose type is this much larger than the body's is a heading."""
_LONGEST_HEADING = 150
_SPARSE = 15
"""Characters per page; a file of pictures with less text than that is a scan with stamps or page numbers on it."""
_ITEM = re.compile(r"[•▪◦‣●○■□☐☑☒–—-] |\(?(?:\d{1,3}|[A-Za-z]|[ivxIVX]{1,4})[.)] ")
"""How a list item begins."""
_WIDE = 1.5
"""A gap of so many heights of the type is wider than a blank can be."""
_LOOSE = 0.6
"""A gap of so many heights may still be a blank in a justified line, but parts cells that stand in one column."""
_MARKER = re.compile(r"[•▪◦‣●○■□☐☑☒–—*o-]|\(?(?:\d{1,3}|[A-Za-z]|[ivxIVX]{1,4})[.)]")
"""Stands before its text at a distance, without being a cell."""
_NUMBERING = re.compile(r"\d{1,2}(?:\.\d{1,2})*\.?")
_OPEN = re.compile(r"(?:^|\s)[$€£¥(\[]+$|^[.…·_\s]+$")
"""Ends a cell that goes on after the gap: a currency sign, a bracket, a leader."""
_CLOSING = re.compile(r"[%)\]]|[.…·_\s]+$")
"""Begins what belongs to the cell before the gap."""
_STRONG = re.compile(rb"bold|black|heavy|semi|demi|cmbx", re.IGNORECASE)
"""How fonts say in their name that they are bold. The weight that PDFium reports is no guide: where the file does not
say it, it is guessed from the width of the stems, and italics come out bolder than bold."""
_MARGIN = 2
"""Lines of a page, from above and from below, that may be running titles or page numbers."""
_OFTEN = 4
"""Pages on which a line at the margin stands that is one."""
_CENTRED = 2
"""Percent of the page's width that the middle of a centred line may be off the page's."""
_LONGEST_FONT_NAME = 100
_MOST_TITLES = 4
"""So many bold lines in a row, if they are not centred, are the cells of a table's header, not headings."""
_FIGURE = re.compile(r"[$€£¥(\[ +−–—-]*(?:[\d.,/:]*\d[\d.,/:]*\s*[%)\]]*|[—–-])")


class _Piece(NamedTuple):
    """What stands on a line between gaps that may part cells."""

    text: str
    left: float
    gap: float
    """Before it, in heights of the type."""


@dataclass(slots=True)
class _Run:
    """Characters on one line. Coordinates are points on the page as shown, from its top left."""

    text: str
    left: float
    top: float
    right: float
    bottom: float
    heights: list[float] = field(default_factory=list)
    pieces: list[_Piece] = field(default_factory=list)
    tabular: bool = False
    """There is a gap in it wider than a blank can be."""
    strong: bool = False
    """It begins and ends in bold type."""

    @property
    def height(self) -> float:
        """Of the type: superscripts enlarge the box, but hardly the mean."""
        return sum(self.heights) / len(self.heights)

    @property
    def sideways(self) -> bool:
        return self.bottom - self.top > 3 * self.height


@dataclass(frozen=True, slots=True)
class _PageLine:
    text: str
    height: float
    """Of the type, in points."""
    strong: bool
    gap: str
    """What stands between the line before and this one: a blank where the paragraph goes on, a line break in
    tables and lists, an empty line before a paragraph."""
    box: Box


@dataclass(frozen=True, slots=True)
class _Page:
    lines: list[_PageLine]
    is_picture: bool
    """It has an image and hardly any text."""


class _View:
    """Maps page coordinates (origin bottom left, before cropping and rotation) to points on the page as shown."""

    def __init__(self, page: pypdfium2.PdfPage) -> None:
        self.width, self.height = page.get_size()
        self._x, self._y = self._map(page, 0, 0)
        x_unit, y_unit = self._map(page, 1000, 0), self._map(page, 0, 1000)
        self._xx, self._xy = (x_unit[0] - self._x) / 1000, (x_unit[1] - self._y) / 1000
        self._yx, self._yy = (y_unit[0] - self._x) / 1000, (y_unit[1] - self._y) / 1000

    def _map(self, page: pypdfium2.PdfPage, x: float, y: float) -> tuple[float, float]:
        across, down = ctypes.c_int(), ctypes.c_int()
        raw.FPDF_PageToDevice(page, 0, 0, _UNITS, _UNITS, 0, x, y, across, down)
        return across.value / _UNITS * self.width, down.value / _UNITS * self.height

    def show(self, box: raw.FS_RECTF) -> tuple[float, float, float, float]:
        """Left, top, right, bottom."""
        x1 = self._x + self._xx * box.left + self._yx * box.bottom
        x2 = self._x + self._xx * box.right + self._yx * box.top
        y1 = self._y + self._xy * box.left + self._yy * box.bottom
        y2 = self._y + self._xy * box.right + self._yy * box.top
        return min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2)

    def measure(self, run: _Run) -> Box:
        """The run's box in percent, within the page."""
        left, right = (min(100.0, max(0.0, x / self.width * 100)) for x in (run.left, run.right))
        top, bottom = (min(100.0, max(0.0, y / self.height * 100)) for y in (run.top, run.bottom))
        return Box(x=round(left, 3), y=round(top, 3), width=round(right - left, 3), height=round(bottom - top, 3))


def read_pdf(source: str, data: bytes) -> ParsedDocument:
    """Text with line boxes. Pages are set apart by an empty line.

    A word broken at a line's end is put together again: with its hyphen, or without where the document also has the
    word unbroken and unhyphenated.

    Raises `EncryptedDocument`, `UnreadableDocument`, `OversizedDocument` and `ScannedDocument`.
    """
    with _PDFIUM:
        document = _open(data)
        count = len(document)
        metadata = squeeze(document.get_metadata_value("Title"))
    try:
        if count > MAX_PAGES:
            raise OversizedDocument(f"The PDF has {count} pages; {MAX_PAGES} are the limit. Split the file.")
        pages: list[_Page] = []
        for index in range(count):
            with _PDFIUM:
                pages.append(_read_page(document, index))
    finally:
        with _PDFIUM:
            document.close()
    characters = sum(len(line.text) for page in pages for line in page.lines)
    if characters < _SPARSE * count and sum(page.is_picture for page in pages) * 2 > count:
        raise ScannedDocument
    return _assemble(source, pages, metadata)


def _open(data: bytes) -> pypdfium2.PdfDocument:
    try:
        return pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        if error.err_code in (raw.FPDF_ERR_PASSWORD, raw.FPDF_ERR_SECURITY):
            raise EncryptedDocument("The PDF is protected by a password. Save it without one and try again.") from error
        raise UnreadableDocument("The PDF is damaged or incomplete. Copy or download it again.") from error


def _read_page(document: pypdfium2.PdfDocument, index: int) -> _Page:
    try:
        page = document[index]
        text_page = page.get_textpage()
    except pypdfium2.PdfiumError as error:
        raise UnreadableDocument(f"Page {index + 1} of the PDF is damaged. Print it to a new PDF and retry.") from error
    try:
        view = _View(page)
        runs = _join_rows(_split_runs(text_page.raw, view))
        _part_cells(runs)
        is_sparse = sum(len(run.text) for run in runs) < _SPARSE
        return _Page(_lay_out(runs, view), is_sparse and _has_image(page))
    finally:
        text_page.close()
        page.close()


def _has_image(page: pypdfium2.PdfPage) -> bool:
    return any(True for _ in page.get_objects(filter=(raw.FPDF_PAGEOBJ_IMAGE,), max_depth=3))


def _split_runs(text_page: raw.FPDF_TEXTPAGE, view: _View) -> list[_Run]:
    """The page's characters, cut where PDFium breaks the line."""
    read_code, read_box = raw.FPDFText_GetUnicode, raw.FPDFText_GetLooseCharBox
    codes = [read_code(text_page, index) for index in range(raw.FPDFText_CountChars(text_page))]
    characters = "".join([chr(code) if code < 0x110000 else "�" for code in codes])
    box = raw.FS_RECTF()
    reference = ctypes.byref(box)
    runs: list[_Run] = []
    for line in _LINE.finditer(characters):
        if line[0].isspace():
            continue
        run: _Run | None = None
        cuts: list[tuple[int, float, float]] = []
        for word in _WORD.finditer(characters, line.start(), line.end()):
            # the ends of its words enclose a line; asking for every character would take twice the time
            for index in (word.start(), word.end() - 1) if len(word[0]) > 1 else (word.start(),):
                if not read_box(text_page, index, reference):
                    continue
                left, top, right, bottom = view.show(box)
                if run is None:
                    run = _Run("", left, top, right, bottom)
                    cuts = [(line.start(), left, 0.0)]
                elif index == word.start() and left - run.right > _LOOSE * (bottom - top) > 0:
                    gap = (left - run.right) / (bottom - top)
                    run.tabular |= gap > _WIDE
                    cuts.append((index, left, gap))
                run.left, run.top = min(run.left, left), min(run.top, top)
                run.right, run.bottom = max(run.right, right), max(run.bottom, bottom)
                run.heights.append(bottom - top)
        if run is None:
            continue
        ends = [start for start, _, _ in cuts[1:]] + [line.end()]
        texts = [_tidy(characters[start:end]) for (start, _, _), end in zip(cuts, ends, strict=True)]
        run.pieces = [_Piece(text, left, gap) for text, (_, left, gap) in zip(texts, cuts, strict=True) if text]
        run.text = " ".join(piece.text for piece in run.pieces)
        if run.text:
            ends_of_line = (next(_WORD.finditer(characters, line.start(), line.end())).start(), word.end() - 1)
            run.strong = all(_is_strong(text_page, index) for index in ends_of_line)
            runs.append(run)
    return runs


def _is_strong(text_page: raw.FPDF_TEXTPAGE, index: int) -> bool:
    name = ctypes.create_string_buffer(_LONGEST_FONT_NAME)
    raw.FPDFText_GetFontInfo(text_page, index, name, _LONGEST_FONT_NAME, None)
    return _STRONG.search(name.value) is not None


def _tidy(characters: str) -> str:
    return squeeze(_join_surrogates(characters.replace(_HYPHEN, "-")))


def _join_surrogates(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _join_rows(runs: Iterable[_Run]) -> list[_Run]:
    """Runs that continue the run before on its right, at the same height, become one."""
    rows: list[_Run] = []
    for run in runs:
        if rows and _continues(rows[-1], run):
            row = rows[-1]
            gap = (run.left - row.right) / max(run.height, 1)
            row.tabular |= run.tabular or gap > _WIDE
            row.strong &= run.strong
            row.text += " " + run.text
            row.pieces += [piece._replace(gap=piece.gap or gap) for piece in run.pieces]
            row.left, row.top = min(row.left, run.left), min(row.top, run.top)
            row.right, row.bottom = max(row.right, run.right), max(row.bottom, run.bottom)
            row.heights += run.heights
        else:
            rows.append(run)
    return rows


def _continues(row: _Run, run: _Run) -> bool:
    """A tenth of the height must be shared: cells are often centred beside a cell of two lines."""
    shared = min(row.bottom, run.bottom) - max(row.top, run.top)
    return (
        run.left >= row.right - 1
        and shared > 0.1 * min(row.bottom - row.top, run.bottom - run.top) > 0
        and not row.sideways
        and not run.sideways
    )


def _part_cells(runs: Sequence[_Run]) -> None:
    """Put " | " between the cells of table rows.

    One wide gap does not make a row: a stretched line of running text has one too, and so have a heading and its
    number. The row before or after must have cells as well, or two of its cells be figures.
    """
    wide = [_find_cells(run, frozenset()) for run in runs]
    near: list[list[int]] = [[] for _ in runs]
    for i, (run, below) in enumerate(pairwise(runs)):
        if -0.8 < (below.top - run.bottom) / max(run.height, 1) < 2:
            near[i].append(i + 1)
            near[i + 1].append(i)
    rows = list(wide)
    for i, run in enumerate(runs):
        if any(piece.gap <= _WIDE for piece in run.pieces[1:]):
            lefts = (round(cell.left) for k in near[i] for cell in wide[k][1:])
            rows[i] = _find_cells(run, frozenset(left + off for left in lefts for off in (-1, 0, 1)))
    for i, (run, cells) in enumerate(zip(runs, rows, strict=True)):
        if len(cells) > 1 and (
            any(len(rows[k]) > 1 for k in near[i])
            or sum(_FIGURE.fullmatch(cell.text) is not None for cell in cells) > 1
        ):
            run.text = " | ".join(cell.text for cell in cells)
            run.tabular = True


def _find_cells(run: _Run, columns: frozenset[int]) -> list[_Piece]:
    """The pieces put together where no cell ends. A gap parts cells if it is wide, leads to one of `columns`
    or stands between figures."""
    cells = run.pieces[:1]
    for piece in run.pieces[1:]:
        parted = piece.gap > _WIDE or (
            piece.gap > _LOOSE
            and (
                round(piece.left) in columns
                or (piece.text[0] in "$€£¥(0123456789—–" and _FIGURE.fullmatch(cells[-1].text) is not None)
            )
        )
        if not parted or _belong(cells, piece, run):
            cells[-1] = cells[-1]._replace(text=f"{cells[-1].text} {piece.text}")
        else:
            cells.append(piece)
    return cells


def _belong(cells: Sequence[_Piece], piece: _Piece, run: _Run) -> bool:
    """Whether a piece belongs to the cell before it in spite of the gap."""
    before = cells[-1].text
    if _OPEN.search(before) or _CLOSING.match(piece.text):
        return True
    is_numbered = piece is run.pieces[-1] and not any(map(str.isdigit, piece.text)) and _NUMBERING.fullmatch(before)
    return len(cells) == 1 and bool(is_numbered or _MARKER.fullmatch(before))


def _lay_out(runs: Sequence[_Run], view: _View) -> list[_PageLine]:
    """Decide where paragraphs end, and which line breaks are only the right margin's."""
    lines: list[_PageLine] = []
    block: list[_Run] = []
    for run in runs:
        if block and not _follows(block[-1], run):
            lines += _break_lines(block, view)
            block = []
        block.append(run)
    return lines + _break_lines(block, view)


def _follows(before: _Run, run: _Run) -> bool:
    """Whether a line belongs to the block of the one before: it stands close below, or farther in a table with much
    space between its rows, and in the midst of a sentence of double-spaced text."""
    gap = (run.top - before.bottom) / max(run.height, 1)
    if not 0.6 <= gap < 1.5:
        return -0.8 < gap < 0.6
    if before.tabular or run.tabular:
        return before.tabular and run.tabular
    alike = before.strong == run.strong and abs(before.height - run.height) <= 0.1 * run.height
    aligned = abs(before.left - run.left) < run.height
    return alike and aligned and before.text[-1] not in ".!?:" and _ITEM.match(run.text) is None


def _break_lines(block: Sequence[_Run], view: _View) -> list[_PageLine]:
    margin = max((run.right for run in block), default=0.0)
    lines: list[_PageLine] = []
    for before, run in zip([None, *block], block, strict=False):
        if before is None:
            gap = "\n\n"
        elif re.search(r"\w-$", before.text) and re.match(r"\w", run.text):
            gap = ""
        else:
            gap = " " if _flows(before, run, margin) else "\n"
        lines.append(_PageLine(run.text, run.height, run.strong, gap, view.measure(run)))
    return lines


def _flows(before: _Run, run: _Run, margin: float) -> bool:
    """Whether a sentence goes on: the line was full, so that the next word did not fit on it any more."""
    if before.tabular or run.tabular or _ITEM.match(run.text) or abs(before.height - run.height) > 0.1 * run.height:
        return False
    if before.strong and not run.strong and _reads_like_heading(before.text):
        return False
    first_word = len(run.text.split(maxsplit=1)[0]) + 1
    return before.right + first_word * (run.right - run.left) / len(run.text) > margin


def _assemble(source: str, pages: list[_Page], metadata: str) -> ParsedDocument:
    assembly = Assembly()
    placed: list[Line] = []
    words = _collect_words(pages)
    levels = _rank_headings(pages)
    running = _count_running(pages)
    margins: list[tuple[int, int]] = []
    for number, (page, found) in enumerate(zip(pages, levels, strict=True), start=1):
        heading, opened = "", 0
        level: int | None = None
        for index, (line, following) in enumerate(zip(page.lines, [*page.lines[1:], None], strict=False)):
            before, level = level, found.get(index)
            continued = level is not None and level == before and line.gap != "\n\n" and len(heading) < _LONGEST_HEADING
            text = _mend(line.text, following, words)
            start = assembly.add_block(text, gap=line.gap)
            placed.append(Line(start, start + len(text), number, line.box))
            if _is_at_margin(page.lines, index) and any(running[key] >= _OFTEN for key in _say_alike(line, number)):
                margins.append((start, start + len(text)))
            if level is not None:
                heading, opened = (f"{heading} {line.text}", opened) if continued else (line.text, start)
                assembly.open_section(level, heading, opened)
    # without a title in the metadata, the file's name beats the largest line, which is often "Form 10-K" or a logo
    document = assembly.finish(metadata if _is_title(metadata) else name_title(source), source, MEDIA_TYPE)
    sections = tuple(part for section in document.sections for part in _leave_out(section, margins))
    return replace(document, sections=sections, lines=tuple(placed), pages=len(pages))


def _leave_out(section: Section, margins: Sequence[tuple[int, int]]) -> Iterator[Section]:
    """The section's parts between running titles and page numbers, which say nothing that a question asks for."""
    start = section.start
    for cut, after in margins:
        if section.start <= cut and after <= section.end:
            if start < cut:
                yield replace(section, start=start, end=cut)
            start = after
    if start < section.end:
        yield replace(section, start=start)


def _count_running(pages: list[_Page]) -> Counter[str]:
    """On how many pages each line stands at the upper or lower edge."""
    return Counter(
        key
        for number, page in enumerate(pages, start=1)
        for key in {
            key
            for index, line in enumerate(page.lines)
            if _is_at_margin(page.lines, index)
            for key in _say_alike(line, number)
        }
    )


def _say_alike(line: _PageLine, page: int) -> set[str]:
    """What the line says, and that with its numbers counted from the page's: the page numbers of a document become
    equal, those of chapters do not."""
    counted = re.sub(r"\d{1,4}", lambda digits: f"#{int(digits[0]) - page}", line.text)
    return {line.text, counted}


def _is_at_margin(lines: Sequence[_PageLine], index: int) -> bool:
    has_body = len(lines) > 2 * _MARGIN
    return has_body and not _MARGIN <= index < len(lines) - _MARGIN and not _has_cells(lines[index])


def _collect_words(pages: list[_Page]) -> frozenset[str]:
    return frozenset(
        word for page in pages for line in page.lines for word in re.findall(r"[^\W\d_]+", line.text.lower())
    )


def _mend(text: str, following: _PageLine | None, words: frozenset[str]) -> str:
    """The line without the hyphen at its end where that only broke a word."""
    if following is not None and following.gap == "":
        broken, rest = re.search(r"[^\W\d_]+(?=-$)", text), re.match(r"[^\W\d_]+", following.text)
        if broken and rest and rest[0][0].islower() and (broken[0] + rest[0]).lower() in words:
            return text[:-1]
    return text


def _rank_headings(pages: list[_Page]) -> list[dict[int, int]]:
    """For each page, which of its lines are headings, and of which level, the largest type first.

    Headings are short lines in type larger than the body's, or bold ones that stand alone. What stands on several
    pages is a running title, not a heading.
    """
    body = _measure_body(page.lines for page in pages)
    found = [set(_find_headings(page.lines, body)) for page in pages]
    counts = Counter(_key(page.lines[i]) for page, indexes in zip(pages, found, strict=True) for i in indexes)
    often = max(2, len(pages) // 10)
    sizes = sorted({size for (size, _), count in counts.items() if count <= often}, reverse=True)
    return [
        {i: sizes.index(_round(page.lines[i].height)) + 1 for i in indexes if counts[_key(page.lines[i])] <= often}
        for page, indexes in zip(pages, found, strict=True)
    ]


def _find_headings(lines: list[_PageLine], body: float) -> Iterator[int]:
    """Where lines look like headings, beside text of the height `body`."""
    smallest = _LARGER * max(body, _measure_body([lines]))  # an annex may be set in larger type throughout
    short = [_reads_like_heading(line.text) for line in lines]
    bold: list[bool] = []
    for line, is_short in zip(lines, short, strict=True):
        goes_on = line.gap != "\n\n" and bold[-1:] == [True]
        bold.append(line.strong and is_short and (goes_on or not line.text[0].islower()))
    for is_bold, run in groupby(range(len(lines)), key=lambda i: bold[i]):
        first, *others = run
        after = first + 1 + len(others)
        opens = (
            first == 0 or lines[first].gap == "\n\n" or (lines[first].gap == "\n" and not _has_cells(lines[first - 1]))
        )
        closes = after == len(lines) or lines[after].gap != " "
        centred = all(abs(line.box["x"] + line.box["width"] / 2 - 50) < _CENTRED for line in lines[first:after])
        if is_bold and opens and closes and (centred or after - first < _MOST_TITLES):
            yield from (i for i in range(first, after) if _round(lines[i].height) >= body)
    yield from (i for i, line in enumerate(lines) if line.height >= smallest and short[i])


def _has_cells(line: _PageLine) -> bool:
    return " | " in line.text


def _key(line: _PageLine) -> tuple[float, str]:
    """Equal for lines that look and read alike, page numbers aside."""
    return _round(line.height), re.sub(r"\d+", "0", line.text)


def _round(height: float) -> float:
    return round(height * 2) / 2


def _measure_body(pages: Iterable[list[_PageLine]]) -> float:
    """The height in which most characters are set."""
    characters: Counter[float] = Counter()
    for lines in pages:
        for line in lines:
            characters[_round(line.height)] += len(line.text)
    return max(characters, key=lambda height: characters[height], default=0.0)


def _reads_like_heading(text: str) -> bool:
    short = len(text) <= _LONGEST_HEADING and text[-1] not in ".,;" and " | " not in text
    return short and re.search(r"[^\W\d_]{2}", text) is not None


def _is_title(text: str) -> bool:
    """Whether a metadata title was written by a person: authoring tools leave file names and numbers there."""
    letters = sum(map(str.isalpha, text))
    return (
        letters >= 4
        and letters * 2 > len(text)
        and not re.search(r"\.\w{2,5}$|^untitled|^microsoft |^document\d*$", text, re.IGNORECASE)
    )
