"""Characters from PDFium, grouped into the lines in which the page shows them.

PDFium gives characters in the order of the content stream, with spaces inserted between words and line breaks where
the baseline changes. That order is kept because it is right for columns.
"""

import ctypes
import re
from collections.abc import Callable
from itertools import pairwise

import pypdfium2
from pypdfium2 import raw

from app.ingest.readers.assembly import squeeze
from app.ingest.readers.pdf.page import Piece, Run
from app.ingest.readers.pdf.tables import NARROW_GAP, WIDE_GAP
from domain.documents import Box
from domain.text.storable import make_storable

_HYPHEN = "\x02"
"""PDFium's code for a hyphen at the end of a line; it omits the line break after it."""
_LINE = re.compile(r"[^\r\n\x02]+\x02?|\x02")
_WORD = re.compile(r"[^\s\x02]+")
_AMOUNT = re.compile(r"[\d)%] [$€£¥]")
"""The beginning of an amount after another figure, which is another cell's however small the gap."""
_DEVICE_SIZE = 10_000_000
"""Side of the imaginary device on which PDFium shows the page: its mapping returns whole numbers."""
_BOLD_FONT = re.compile(rb"bold|black|heavy|semi|demi|cmbx", re.IGNORECASE)
"""Names of bold fonts. The weight that PDFium reports is no guide: where the file does not state it, PDFium guesses it
from the width of the stems, and italics come out bolder than bold."""
_LONGEST_FONT_NAME = 100


class View:
    """Maps page coordinates (origin bottom left, before cropping and rotation) to points on the page as shown."""

    def __init__(self, page: pypdfium2.PdfPage) -> None:
        self.width, self.height = page.get_size()
        self._x, self._y = self._map(page, 0, 0)
        x_unit, y_unit = self._map(page, 1000, 0), self._map(page, 0, 1000)
        self._xx, self._xy = (x_unit[0] - self._x) / 1000, (x_unit[1] - self._y) / 1000
        self._yx, self._yy = (y_unit[0] - self._x) / 1000, (y_unit[1] - self._y) / 1000

    def _map(self, page: pypdfium2.PdfPage, x: float, y: float) -> tuple[float, float]:
        across, down = ctypes.c_int(), ctypes.c_int()
        raw.FPDF_PageToDevice(page, 0, 0, _DEVICE_SIZE, _DEVICE_SIZE, 0, x, y, across, down)
        return across.value / _DEVICE_SIZE * self.width, down.value / _DEVICE_SIZE * self.height

    def show(self, box: raw.FS_RECTF) -> tuple[float, float, float, float]:
        """Return left, top, right and bottom of a box in page coordinates."""
        x1 = self._x + self._xx * box.left + self._yx * box.bottom
        x2 = self._x + self._xx * box.right + self._yx * box.top
        y1 = self._y + self._xy * box.left + self._yy * box.bottom
        y2 = self._y + self._xy * box.right + self._yy * box.top
        return min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2)

    def measure(self, run: Run) -> Box:
        """Return the run's box in percent of the page, clipped to the page."""
        left, right = (min(100.0, max(0.0, x / self.width * 100)) for x in (run.left, run.right))
        top, bottom = (min(100.0, max(0.0, y / self.height * 100)) for y in (run.top, run.bottom))
        return Box(x=round(left, 3), y=round(top, 3), width=round(right - left, 3), height=round(bottom - top, 3))


def read_characters(text_page: raw.FPDF_TEXTPAGE) -> str:
    """Return the page's characters in PDFium's order: its index of a character is that in this text."""
    read_code = raw.FPDFText_GetUnicode
    codes = [read_code(text_page, index) for index in range(raw.FPDFText_CountChars(text_page))]
    return "".join([chr(code) if code < 0x110000 else "�" for code in codes])


def read_runs(
    characters: str, text_page: raw.FPDF_TEXTPAGE, view: View, is_parted: Callable[[float, float, float], bool]
) -> list[Run]:
    """Return the characters of `read_characters`, cut where PDFium breaks the line. `is_parted` tells whether a rule
    stands between two words: right edge of one, left edge of the other, and a height that both share."""
    read_box = raw.FPDFText_GetLooseCharBox
    box = raw.FS_RECTF()
    reference = ctypes.byref(box)
    runs: list[Run] = []
    for line in _LINE.finditer(characters):
        if line[0].isspace():
            continue
        run: Run | None = None
        starts: list[int] = []
        for word in _WORD.finditer(characters, line.start(), line.end()):
            # The first and last characters of its words enclose a line; asking for every box would take twice as long.
            for index in (word.start(), word.end() - 1) if len(word[0]) > 1 else (word.start(),):
                if not read_box(text_page, index, reference):
                    continue
                left, top, right, bottom = view.show(box)
                gap = (left - run.right) / (bottom - top) if run is not None and bottom > top else 0.0
                if run is None:
                    run = Run("", left, top, right, bottom, pieces=[Piece("", left, top, right, bottom)])
                    starts = [line.start()]
                elif index == word.start() and (
                    gap > NARROW_GAP
                    or _AMOUNT.match(characters, index - 2)
                    or is_parted(run.right, left, (top + bottom) / 2)
                ):
                    run.tabular |= gap > WIDE_GAP
                    run.pieces.append(Piece("", left, top, right, bottom, gap))
                    starts.append(index)
                run.pieces[-1] = run.pieces[-1].join(Piece("", left, top, right, bottom))
                run.left, run.top = min(run.left, left), min(run.top, top)
                run.right, run.bottom = max(run.right, right), max(run.bottom, bottom)
                run.heights.append(bottom - top)
        if run is None:
            continue
        texts = [_tidy(characters[start:end]) for start, end in pairwise([*starts, line.end()])]
        run.pieces = [piece._replace(text=text) for text, piece in zip(texts, run.pieces, strict=True) if text]
        run.text = " ".join(piece.text for piece in run.pieces)
        if run.text:
            ends_of_line = (next(_WORD.finditer(characters, line.start(), line.end())).start(), word.end() - 1)
            run.bold = all(_is_bold(text_page, index) for index in ends_of_line)
            runs.append(run)
    return runs


def _is_bold(text_page: raw.FPDF_TEXTPAGE, index: int) -> bool:
    name = ctypes.create_string_buffer(_LONGEST_FONT_NAME)
    raw.FPDFText_GetFontInfo(text_page, index, name, _LONGEST_FONT_NAME, None)
    return _BOLD_FONT.search(name.value) is not None


def _tidy(characters: str) -> str:
    return squeeze(make_storable(characters.replace(_HYPHEN, "-")))
