"""What stands on a page besides its content: values of form fields, typewriter notes, comments and attached files."""

import ctypes
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pypdfium2
from pypdfium2 import raw

from app.ingest.readers.assembly import show_address, squeeze
from app.ingest.readers.pdf.characters import View
from app.ingest.readers.pdf.page import Edges, Piece, Run, Skipped
from app.ingest.readers.pdf.tables import cut_run

_MOST = 1000
"""Annotations of a page, and options of a field, that are looked at. Chosen."""
_TYPE = 12.0
"""Height in points of what is entered where its box is higher. Chosen."""
_LONGEST = 20_000
"""Bytes of a value or a note. Chosen: a page is full of less."""
_UNSEEN = raw.FPDF_ANNOT_FLAG_HIDDEN | raw.FPDF_ANNOT_FLAG_NOVIEW
_MOST_LINKS = 20
"""Links of a page whose addresses are shown. Chosen: a page with more is a list of references."""
_WITHOUT_TEXT = (raw.FPDF_ANNOT_LINK, raw.FPDF_ANNOT_POPUP)
_FILES = (raw.FPDF_ANNOT_FILEATTACHMENT, raw.FPDF_ANNOT_SOUND, raw.FPDF_ANNOT_MOVIE, raw.FPDF_ANNOT_RICHMEDIA)
_DRAWN = (raw.FPDF_ANNOT_STAMP, raw.FPDF_ANNOT_INK)
_BUTTONS = (raw.FPDF_FORMFIELD_UNKNOWN, raw.FPDF_FORMFIELD_PUSHBUTTON)
_CHOICES = (raw.FPDF_FORMFIELD_COMBOBOX, raw.FPDF_FORMFIELD_LISTBOX)
_BOXES = (raw.FPDF_FORMFIELD_CHECKBOX, raw.FPDF_FORMFIELD_RADIOBUTTON)


class Annotations(NamedTuple):
    """What stands on a page besides its content."""

    entered: list[Run]
    """From top to bottom."""
    skipped: list[Skipped]
    """What is not read."""
    links: list[tuple[str, Edges]]
    """The addresses that parts of the page lead to."""
    comments: list[Run]
    """What readers of the page have noted, each after their name."""


def read_annotations(page: pypdfium2.PdfPage, view: View) -> Annotations:
    """Read them. Asks PDFium, so hold its lock."""
    entered: list[Run] = []
    comments: list[Run] = []
    links: list[tuple[str, Edges]] = []
    skipped: list[Skipped] = []
    box = raw.FS_RECTF()
    for place in range(min(raw.FPDFPage_GetAnnotCount(page), _MOST)):
        each = raw.FPDFPage_GetAnnot(page, place)
        kind, text = raw.FPDFAnnot_GetSubtype(each), ""
        if kind == raw.FPDF_ANNOT_LINK and raw.FPDFAnnot_GetRect(each, ctypes.byref(box)):
            action = raw.FPDFLink_GetAction(raw.FPDFAnnot_GetLink(each))
            buffer = ctypes.create_string_buffer(_LONGEST)
            if raw.FPDFAction_GetURIPath(page.pdf, action, buffer, _LONGEST):
                links.append((squeeze(buffer.value.decode("utf-8", "replace")), view.show(box)))
        elif kind in _WITHOUT_TEXT or raw.FPDFAnnot_GetFlags(each) & _UNSEEN or raw.FPDFAnnot_HasKey(each, b"State"):
            pass
        elif kind == raw.FPDF_ANNOT_WIDGET:
            text = _read_field(page.formenv, each, skipped)
        elif kind == raw.FPDF_ANNOT_FREETEXT:
            text = _read_text(raw.FPDFAnnot_GetStringValue, each, b"Contents")
        elif kind in _FILES:
            name = _read_text(raw.FPDFAttachment_GetName, raw.FPDFAnnot_GetFileAttachment(each))
            skipped.append(("attachment", name, 1))
        elif said := _read_text(raw.FPDFAnnot_GetStringValue, each, b"Contents"):
            name = _read_text(raw.FPDFAnnot_GetStringValue, each, b"T")
            text = f"Comment by {name}: {said}" if name else f"Comment: {said}"
        elif kind in _DRAWN:
            skipped.append(("drawing", "", 1))
        if kind == raw.FPDF_ANNOT_STRIKEOUT:
            skipped.append(("deletion", "struck out by a note", 1))
        if text and raw.FPDFAnnot_GetRect(each, ctypes.byref(box)):
            edges = view.show(box)
            height = max(1.0, min(_TYPE, edges[3] - edges[1]))
            is_entered = kind in (raw.FPDF_ANNOT_WIDGET, raw.FPDF_ANNOT_FREETEXT)
            run = Run(text, *edges, [height], [Piece(text, *edges)], is_entered=True)
            (entered if is_entered else comments).append(run)
        raw.FPDFPage_CloseAnnot(each)
    return Annotations(sorted(entered, key=lambda run: (run.top, run.left)), skipped, links, comments)


def show_addresses(runs: Sequence[Run], links: Sequence[tuple[str, Edges]]) -> None:
    """Write the addresses of links behind their words, which end where a word does. What goes on in the next line has
    the same one."""
    for place, (address, (left, top, right, bottom)) in enumerate(links if len(links) <= _MOST_LINKS else ()):
        if [each for each, _ in links[place + 1 : place + 2]] == [address]:
            continue
        for run in runs:
            for number, piece in enumerate(run.pieces):
                shared = min(piece.right, right) - max(piece.left, left)
                if not (top < (piece.top + piece.bottom) / 2 < bottom and 2 * shared > right - left):
                    continue
                pitch = (piece.right - piece.left) / len(piece.text)
                start, end = ((edge - piece.left) / pitch for edge in (left, right))
                ends = [blank.start() for blank in re.finditer(r"\s|$", piece.text)]
                at = min(ends, key=lambda each: abs(each - end))
                words = piece.text[max(0, round(start) - 1) : at]
                if words.strip() and words.strip() not in address and (shown := show_address(words, address)):
                    run.pieces[number] = piece._replace(text=f"{piece.text[:at]}{shown}{piece.text[at:]}")
                    run.text = " ".join(each.text for each in run.pieces)


def _read_field(form: Any, field: Any, skipped: list[Skipped]) -> str:
    kind = raw.FPDFAnnot_GetFormFieldType(form, field) if form else raw.FPDF_FORMFIELD_UNKNOWN
    if kind in _BOXES:
        return "☒" if raw.FPDFAnnot_IsChecked(form, field) else "☐"
    text = "" if kind in _BUTTONS else _read_text(raw.FPDFAnnot_GetFormFieldValue, form, field)
    if kind in _CHOICES:  # the page shows their labels, not what is sent for them
        options = range(min(raw.FPDFAnnot_GetOptionCount(form, field), _MOST))
        chosen = (option for option in options if raw.FPDFAnnot_IsOptionSelected(form, field, option))
        text = ", ".join(_read_text(raw.FPDFAnnot_GetOptionLabel, form, field, option) for option in chosen) or text
    if not text and kind != raw.FPDF_FORMFIELD_PUSHBUTTON:
        skipped.append(("form field", "without a value", 1))
    return text


def _read_text(ask: Callable[..., int], *about: object) -> str:
    """Return a text of UTF-16 that PDFium writes into a buffer."""
    size = min(ask(*about, None, 0), _LONGEST)
    buffer = ctypes.create_string_buffer(size + 2)
    ask(*about, ctypes.cast(buffer, ctypes.POINTER(raw.FPDF_WCHAR)), size)
    return squeeze(buffer.raw[:size].decode("utf-16-le", "replace").rstrip("\0"))


def place_entered(runs: list[Run], entered: list[Run]) -> list[Run]:
    """Return the runs, with what is entered behind what stands left of it, or else before what stands right of it, or
    else below what it stands under."""
    placed = list(runs)
    for run in entered:
        level = [i for i, other in enumerate(placed) if _is_level(run, other)]
        before = [i for i in level if placed[i].left < run.left]
        above = [i for i, other in enumerate(placed) if other.bottom <= run.top and _overlap(run, other)]
        if before:
            at = max(before, key=lambda i: placed[i].left)
            placed[at : at + 1] = filter(None, cut_run(placed[at], run.left))
            at += 1
        elif level:
            at = min(level, key=lambda i: placed[i].left)
        else:
            at = max(above, key=lambda i: (placed[i].bottom, i)) + 1 if above else 0
        placed.insert(at, run)
    return placed


def _is_level(run: Run, other: Run) -> bool:
    shared = min(run.bottom, other.bottom) - max(run.top, other.top)
    return shared > min(run.bottom - run.top, other.bottom - other.top) / 2 and not other.sideways


def _overlap(run: Run, other: Run) -> bool:
    return min(run.right, other.right) > max(run.left, other.left)
