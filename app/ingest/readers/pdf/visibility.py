"""Words of a page that nobody sees: off the page, of no size, drawn without ink, or white on white.

Text recognition lays its words without ink over the picture of a page: those are kept.
"""

import ctypes
import re
from collections.abc import Sequence

import numpy as np
import pypdfium2
from numpy.typing import NDArray
from pypdfium2 import raw

from app.ingest.readers.pdf.characters import View
from app.ingest.readers.pdf.page import Edges

_WORD = re.compile(r"[^\s\x02]+")
_SMALLEST = 1.0
"""Height of a character, in points, below which nobody reads it."""
_WHITE = 250
"""Value from which a channel of a colour counts as white, of 255."""
_MOST_MARKS = 20
_DEEPEST, _MOST_FORMED = 5, 20_000
"""Limits of forms within one another, and of what is drawn by them."""
_OPAQUE = 5
"""Opacity below which a colour leaves no ink, of 255."""


def _address(each: raw.FPDF_PAGEOBJECT) -> int:
    return ctypes.cast(each, ctypes.c_void_p).value or 0


def _is_optional(text: raw.FPDF_PAGEOBJECT) -> bool:
    """Return True for what may be of a layer that is not shown."""
    name, size = (raw.FPDF_WCHAR * 3)(), ctypes.c_ulong()
    marks = (raw.FPDFPageObj_GetMark(text, i) for i in range(min(raw.FPDFPageObj_CountMarks(text), _MOST_MARKS)))
    return any(
        raw.FPDFPageObjMark_GetName(mark, name, ctypes.sizeof(name), size)
        and name[0:2] == [0x4F, 0x43]
        and size.value == 6
        for mark in marks
    )


class Visibility:
    """Tells which words of a page are seen. Asks PDFium, so hold its lock."""

    def __init__(
        self, page: pypdfium2.PdfPage, text_page: raw.FPDF_TEXTPAGE, view: View, pictures: Sequence[Edges]
    ) -> None:
        self._page = page
        self._text_page = text_page
        self._view = view
        self._pictures = pictures
        self._shown: NDArray[np.uint8] | None = None
        self._formed: set[int] = set()
        """Words of forms, any of which may be of a layer: what PDFium tells of a form does not say so."""
        count, get = raw.FPDFPage_CountObjects(page), raw.FPDFPage_GetObject
        self._enter_forms([get(page, i) for i in range(count)])

    def blank_unseen(self, characters: str) -> tuple[str, list[str]]:
        """Return the page's characters, with blanks for words that nobody sees, and these words."""
        unseen: list[str] = []

        def blank(word: re.Match[str]) -> str:
            # Boxes to tick and rules are often drawn by other means than their characters.
            if not any(map(str.isalnum, word[0])) or not self._is_unseen(word.start()):
                return word[0]
            unseen.append(word[0])
            return " " * len(word[0])

        return _WORD.sub(blank, characters), unseen

    def _enter_forms(self, objects: Sequence[raw.FPDF_PAGEOBJECT], depth: int = 0) -> None:
        for each in objects:
            kind = raw.FPDFPageObj_GetType(each)
            if kind == raw.FPDF_PAGEOBJ_TEXT and depth:
                self._formed.add(_address(each))
            elif kind == raw.FPDF_PAGEOBJ_FORM and depth < _DEEPEST and len(self._formed) < _MOST_FORMED:
                count = min(raw.FPDFFormObj_CountObjects(each), _MOST_FORMED)
                self._enter_forms([raw.FPDFFormObj_GetObject(each, i) for i in range(count)], depth + 1)

    def _is_unseen(self, index: int) -> bool:
        box = raw.FS_RECTF()
        if not raw.FPDFText_GetLooseCharBox(self._text_page, index, ctypes.byref(box)):
            return False
        left, top, right, bottom = self._view.show(box)
        if right < 0 or bottom < 0 or left > self._view.width or top > self._view.height:
            return True
        if max(right - left, bottom - top) < _SMALLEST:
            return True
        text = raw.FPDFText_GetTextObject(self._text_page, index)
        if text and raw.FPDFTextObj_GetTextRenderMode(text) == raw.FPDF_TEXTRENDERMODE_INVISIBLE:
            return not self._is_on_picture(left, top, right, bottom)
        if text and (_address(text) in self._formed or _is_optional(text)) and self._is_blank(left, top, right, bottom):
            return True
        red, green, blue, alpha = (ctypes.c_uint() for _ in range(4))
        if not raw.FPDFText_GetFillColor(self._text_page, index, red, green, blue, alpha):
            return False
        if alpha.value < _OPAQUE:
            return not self._is_on_picture(left, top, right, bottom)
        return min(red.value, green.value, blue.value) >= _WHITE and self._is_blank(left, top, right, bottom)

    def _is_on_picture(self, left: float, top: float, right: float, bottom: float) -> bool:
        x, y = (left + right) / 2, (top + bottom) / 2
        return any(x1 <= x <= x2 and y1 <= y <= y2 for x1, y1, x2, y2 in self._pictures)

    def _is_blank(self, left: float, top: float, right: float, bottom: float) -> bool:
        """Return True if the page is white there, as it is drawn: white letters on a colour leave some of that."""
        if self._shown is None:
            self._shown = self._page.render(scale=1, grayscale=True).to_numpy()
        height, width = self._shown.shape[:2]
        x1, x2 = max(0, int(left)), min(width, int(right) + 1)
        y1, y2 = max(0, int(top)), min(height, int(bottom) + 1)
        return bool((self._shown[y1:y2, x1:x2] >= _WHITE).all())
