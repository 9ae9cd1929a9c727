"""Characters from PDFium, grouped into the lines in which the page shows them.

PDFium gives characters in the order of the content stream, with spaces inserted between words and line breaks where
the baseline changes. That order is kept because it is right for columns.
"""

import ctypes
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import pypdfium2
from pypdfium2 import raw

from app.ingest.readers.assembly import squeeze
from app.ingest.readers.pdf.page import Edges, Piece, Run, enclose
from app.ingest.readers.pdf.tables import FIGURE, NARROW_GAP, WIDE_GAP, shift
from domain.documents import Box
from domain.text.storable import make_storable

_HYPHEN = "\x02"
"""PDFium's code for a hyphen at the end of a line; it omits the line break after it."""
_LINE = re.compile(r"[^\r\n\x02]+\x02?|\x02")
_WORD = re.compile(r"[^\s\x02]+")
_SIGNS = re.compile(r"(?:(?!\r\n)[^ ])+")
_AMOUNT = re.compile(r"[\d)%] [$€£¥]")
"""The beginning of an amount after another figure, which is another cell's however small the gap."""
_DEVICE_SIZE = 10_000_000
"""Side of the imaginary device on which PDFium shows the page: its mapping returns whole numbers."""
_BOLD_FONT = re.compile(rb"bold|black|heavy|semi|demi|cmbx", re.IGNORECASE)
"""Names of bold fonts. The weight that PDFium reports is no guide: where the file does not state it, PDFium guesses it
from the width of the stems, and italics come out bolder than bold."""
_LONGEST_FONT_NAME = 100
_SAMPLE = 300
"""Characters of a page from which it is told how its words run."""
_UPRIGHT, _SHORT = 0.8, 3
"""Width of a word as a share of its height, from which it is no word that runs up the page, and its characters."""
_NARROWEST, _FEWEST = 0.4, 3
"""Gap in heights of the type from which columns that stand close may begin, and widths of their figures that tell that
these end alike."""
_COVERED = 0.2
"""Share of a space's width within which the next letter begins that is drawn over it. Chosen."""
_EVEN = 1.0
"""Points by which the edges of characters of a word may differ that are no raised or lowered part."""


class View:
    """Maps page coordinates (origin bottom left, before cropping and rotation) to points on the page as shown, or as it
    is turned to be read: by so many degrees clockwise."""

    def __init__(self, page: pypdfium2.PdfPage, turned: int = 0) -> None:
        self._turned = turned
        self.width, self.height = page.get_size()
        self._x, self._y = self._map(page, 0, 0)
        x_unit, y_unit = self._map(page, 1000, 0), self._map(page, 0, 1000)
        self._xx, self._xy = (x_unit[0] - self._x) / 1000, (x_unit[1] - self._y) / 1000
        self._yx, self._yy = (y_unit[0] - self._x) / 1000, (y_unit[1] - self._y) / 1000

    def _map(self, page: pypdfium2.PdfPage, x: float, y: float) -> tuple[float, float]:
        across, down = ctypes.c_int(), ctypes.c_int()
        raw.FPDF_PageToDevice(page, 0, 0, _DEVICE_SIZE, _DEVICE_SIZE, 0, x, y, across, down)
        return across.value / _DEVICE_SIZE * self.width, down.value / _DEVICE_SIZE * self.height

    def show(self, box: raw.FS_RECTF) -> Edges:
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
        for _ in range(self._turned, 360 if self._turned else 0, 90):  # round to where it is shown
            left, top, right, bottom = 100 - bottom, left, 100 - top, right
        return Box(x=round(left, 3), y=round(top, 3), width=round(right - left, 3), height=round(bottom - top, 3))


def read_characters(text_page: raw.FPDF_TEXTPAGE) -> str:
    """Return the page's characters in PDFium's order: its index of a character is that in this text. Words in a font
    that does not say which letters its signs are have U+FFFD for each."""
    read_code = raw.FPDFText_GetUnicode
    codes = [read_code(text_page, index) for index in range(raw.FPDFText_CountChars(text_page))]
    characters = "".join([chr(code) if code < 0x110000 else "�" for code in codes])

    def replace(word: re.Match[str]) -> str:
        is_mapped = raw.FPDFText_HasUnicodeMapError(text_page, word.start()) != 1
        return word[0] if is_mapped else "�" * len(word[0])

    return _SIGNS.sub(replace, characters)


def find_turn(page: pypdfium2.PdfPage, text_page: raw.FPDF_TEXTPAGE) -> int:
    """Return by how many degrees a page is to be turned clockwise for most of its words to run from left to right."""
    count = raw.FPDFText_CountChars(text_page)
    angles = Counter(
        round(raw.FPDFText_GetCharAngle(text_page, index) / (math.pi / 2)) % 4 * 90
        for index in range(0, count, count // _SAMPLE + 1)
    )
    [(angle, _)] = angles.most_common(1) or [(-page.get_rotation(), 0)]
    return int(-angle - page.get_rotation()) % 360


def read_runs(
    characters: str,
    text_page: raw.FPDF_TEXTPAGE,
    view: View,
    is_parted: Callable[[float, float, float], bool],
    is_struck: Callable[[Piece, Edges], bool],
) -> list[Run]:
    """Return the characters of `read_characters`, cut where PDFium breaks the line. `is_parted` tells whether a rule
    stands between two words: right edge of one, left edge of the other, and a height that both share. `is_struck` tells
    whether a line goes through a word of a line with these edges."""

    def measure(index: int) -> Piece | None:
        box = raw.FS_RECTF()
        if raw.FPDFText_GetLooseCharBox(text_page, index, ctypes.byref(box)):
            return Piece(characters[index], *view.show(box))
        return None

    measured: list[tuple[int, int, list[tuple[int, Piece, bool]]]] = []
    for line in _LINE.finditer(characters):
        measured.append((line.start(), line.end(), []))
        for match in _WORD.finditer(characters, line.start(), line.end()):
            for start, word in _measure_word(match, measure):
                opened, _, before = measured[-1]
                last = before[-1][1] if before else word
                # PDFium breaks no line where the next one begins below the end of a column.
                if word.top >= (last.top + last.bottom) / 2 and word.right <= last.left:
                    measured[-1] = opened, start, before
                    measured.append((start, line.end(), []))
                measured[-1][2].append((start, word, start == match.start()))
    edges_within = _find_edges([[word for _, word, _ in found] for *_, found in measured])
    runs: list[Run] = []
    for line_start, line_end, found in measured:
        words = [(start, word) for start, word, _ in found]
        cells: list[tuple[int, float, list[Piece]]] = []
        right = 0.0
        for place, (start, word, is_first) in enumerate(found):
            height = word.bottom - word.top
            gap = (word.left - right) / height if place and height > 0 else 0.0
            if place and _name_edge(words[place - 1][1], word) in edges_within:
                gap = max(gap, WIDE_GAP + 0.1)
            if not place:
                cells.append((line_start, 0.0, []))
            elif is_first and (
                gap > NARROW_GAP
                or _AMOUNT.match(characters, start - 2)
                or is_parted(right, word.left, (word.top + word.bottom) / 2)
            ):
                cells.append((start, gap, []))
            cells[-1][2].append(word)
            right = max(right, word.right)
        if not words:
            continue
        held = [word for _, word in words]
        edges = enclose(held)
        marked = list(characters[line_start:line_end])
        base = _find_base(held)
        for place, (start, word) in enumerate(words):
            at = start - line_start
            if place and _is_covered(measure, start - 1, words[place - 1][1], word):
                marked[at - 1] = ""
            adjoins = at > 0 and not marked[at - 1].isspace()
            if base and (shifted := shift(word.text, word, base, adjoins=adjoins)) != word.text:
                marked[at : at + len(word.text)] = [shifted, *[""] * (len(word.text) - 1)]
            if is_struck(word, edges):
                marked[at] = f"~~{marked[at]}"
                marked[at + len(word.text) - 1] += "~~"
        ends = [*(start for start, _, _ in cells[1:]), line_end]
        pieces = [
            Piece(text, *enclose(parts), gap)
            for (start, gap, parts), end in zip(cells, ends, strict=True)
            if (text := _tidy("".join(marked[start - line_start : end - line_start])))
        ]
        if pieces:
            runs.append(
                Run(
                    " ".join(piece.text for piece in pieces),
                    *edges,
                    [word.bottom - word.top for word in held for _ in word.text[:2]],
                    pieces,
                    tabular=any(gap > WIDE_GAP for _, gap, _ in cells),
                    bold=all(
                        _is_bold(text_page, index) for index in (words[0][0], words[-1][0] + len(words[-1][1].text) - 1)
                    ),
                )
            )
    return runs


def _is_covered(measure: Callable[[int], Piece | None], index: int, before: Piece, word: Piece) -> bool:
    """Return True for a space at `index` between two words that the second is drawn over: a place for a hyphen."""
    if not (before.text[-1].isalpha() and word.text[0].islower() and abs(word.left - before.right) < _EVEN):
        return False
    space = measure(index)
    return space is not None and space.text == " " and word.left - space.left < _COVERED * (space.right - space.left)


def _name_edge(before: Piece, word: Piece) -> tuple[int, int]:
    """Return the edges on both sides of a gap, in half points."""
    return round(2 * before.right), round(2 * word.left)


def _find_edges(lines: Sequence[Sequence[Piece]]) -> set[tuple[int, int]]:
    """Return the gaps that part a column of figures, which end alike, from one of words, which begin alike."""
    found: dict[tuple[int, int], set[int]] = {}
    for line in lines:
        end = 0.0
        for before, word in pairwise(line):
            height = word.bottom - word.top
            is_cell = before is line[0] or before.left - end > NARROW_GAP * height
            is_wide = word.left - before.right > _NARROWEST * height
            end = before.right
            if is_cell and is_wide and before.text[0].isdigit() and FIGURE.fullmatch(before.text):
                found.setdefault(_name_edge(before, word), set()).add(round(before.left))
    return {edge for edge, starts in found.items() if len(starts) >= _FEWEST}


def join_initials(runs: Sequence[Run]) -> list[Run]:
    """Put a large first letter, which stands beside several lines, before the word that it begins."""
    joined: list[Run] = []
    for run in runs:
        letter = joined[-1] if joined else run
        is_beside = (
            letter.top < run.bottom < letter.bottom - run.height / 2 and abs(run.left - letter.right) < run.height
        )
        if len(letter.text) == 1 and letter.text.isupper() and run.text[0].islower() and is_beside:
            run.text = joined.pop().text + run.text
            run.pieces[0] = run.pieces[0]._replace(text=letter.text + run.pieces[0].text)
        joined.append(run)
    return joined


def _measure_word(word: re.Match[str], measure: Callable[[int], Piece | None]) -> Iterator[tuple[int, Piece]]:
    """Yield the word, or the parts of it that are as high each, with their places. The first and last characters
    enclose it; asking for every box would take twice as long."""
    first, last = measure(word.start()), measure(word.end() - 1)
    if first is None or last is None or _is_even(first, last):
        if ends := [each for each in (first, last) if each]:
            yield word.start(), Piece(word[0], *enclose(ends))
        return
    start, parts = word.start(), [first]
    for index in range(word.start() + 1, word.end()):
        if (each := measure(index)) and not _is_even(parts[-1], each):
            yield start, Piece(word.string[start:index], *enclose(parts))
            start, parts = index, []
        parts += [each] if each else []
    yield start, Piece(word.string[start : word.end()], *enclose(parts))


def _is_even(one: Piece, other: Piece) -> bool:
    return abs(one.bottom - other.bottom) + abs(one.top - other.top) < _EVEN


def _find_base(words: Sequence[Piece]) -> Piece | None:
    """Return the longest word in the type that most of a line is set in; none where all is as high, or upright."""
    heights = Counter[int]()
    for word in words:
        heights[round(word.bottom - word.top)] += len(word.text)
    if len(heights) < 2:
        return None
    [(usual, _)] = heights.most_common(1)
    base = max((w for w in words if round(w.bottom - w.top) == usual), key=lambda word: len(word.text))
    return base if base.right - base.left > _UPRIGHT * usual or len(base.text) < _SHORT else None


def _is_bold(text_page: raw.FPDF_TEXTPAGE, index: int) -> bool:
    name = ctypes.create_string_buffer(_LONGEST_FONT_NAME)
    raw.FPDFText_GetFontInfo(text_page, index, name, _LONGEST_FONT_NAME, None)
    return _BOLD_FONT.search(name.value) is not None


def _tidy(characters: str) -> str:
    return squeeze(make_storable(characters.replace(_HYPHEN, "-").replace("~~ ~~", " ")))
