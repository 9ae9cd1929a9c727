"""Draws pages of PDFs and pictures. Parser workers do it, because a page may take any time and memory."""

import io
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, Literal, NamedTuple

from app.ingest.pictures import wrap_picture
from app.ingest.recognition import is_picture
from domain.errors import UnreadableDocument

MAX_PIXELS = 6_000_000
"""Largest picture. A larger page is drawn smaller."""


PictureFormat = Literal["png", "webp"]

_OPTIONS: Mapping[PictureFormat, Mapping[str, Any]] = {"png": {}, "webp": {"quality": 80, "method": 2}}
"""How a picture is written. The WebP of a page of text has a third of the bytes of its PNG, in half the time."""


def has_page_pictures(media_type: str) -> bool:
    """Return True for the types of files whose pages can be drawn."""
    return media_type == "application/pdf" or media_type.startswith("image/")


def draw_page(data: bytes, number: int, dpi: int, kind: PictureFormat) -> bytes:
    """Return a picture of a page, counted from 1, of a PDF or of a file of pictures. Raises `UnreadableDocument` if it
    cannot be drawn."""
    import pypdfium2

    try:
        if is_picture(data):
            data, number = wrap_picture(data, number), 1
        document = pypdfium2.PdfDocument(data)
        document.init_forms()  # else the fields of a form are drawn empty
        page = document[number - 1]
        width, height = page.get_size()
        scale = dpi / 72
        pixels = width * height * scale**2
        if pixels > MAX_PIXELS:
            scale *= (MAX_PIXELS / pixels) ** 0.5
        picture = io.BytesIO()
        page.render(scale=scale).to_pil().save(picture, kind, **_OPTIONS[kind])
    except MemoryError:
        raise
    except Exception as error:  # nobody can list how foreign files fail
        raise UnreadableDocument(f"Page {number} cannot be drawn. Open the file itself.") from error
    return picture.getvalue()


SIDE = 1024
"""Longest side in pixels of a picture that a language model sees."""
MAX_JPEG = 500_000
"""Largest such picture in bytes. A page of text has 150 kB; what is larger is drawn coarser."""
_QUALITIES = (80, 50, 20)

_SPARSE = 200
"""Characters: a page with less text and any picture may be a scan or a slide. Chosen."""
_LARGE = 0.04
"""Share of the page that a picture needs to be no logo. Chosen."""
_DRAWN = 20
"""Lines and areas that make a page a diagram, a form or a table with rules. Chosen."""
_MOST_OBJECTS = 2000


class Figure(NamedTuple):
    """A page that shows more than text."""

    jpeg: bytes
    width: int
    height: int


def draw_figures(pdf: bytes, numbers: Sequence[int], most: int) -> dict[int, Figure]:
    """Return the first `most` of these pages that show more than text, by their numbers. Raises `UnreadableDocument`
    if one cannot be drawn."""
    import pypdfium2

    drawn: dict[int, Figure] = {}
    try:
        document = pypdfium2.PdfDocument(pdf)
        document.init_forms()
        for number in numbers:
            if number <= len(document) and len(drawn) < most and _shows_figure(page := document[number - 1]):
                image = page.render(scale=SIDE / max(page.get_size())).to_pil().convert("RGB")
                image.thumbnail((SIDE, SIDE))
                for quality in _QUALITIES:
                    picture = io.BytesIO()
                    image.save(picture, "jpeg", quality=quality)
                    if picture.tell() <= MAX_JPEG:
                        drawn[number] = Figure(picture.getvalue(), *image.size)
                        break
    except MemoryError:
        raise
    except Exception as error:  # nobody can list how foreign files fail
        raise UnreadableDocument("A page cannot be drawn. Open the file itself.") from error
    return drawn


def _shows_figure(page: Any) -> bool:
    from pypdfium2 import raw

    width, height = page.get_size()
    pictured, drawn = 0.0, 0
    kinds = (raw.FPDF_PAGEOBJ_IMAGE, raw.FPDF_PAGEOBJ_PATH, raw.FPDF_PAGEOBJ_SHADING)
    for each in islice(page.get_objects(filter=kinds, max_depth=3), _MOST_OBJECTS):
        if each.type == raw.FPDF_PAGEOBJ_IMAGE:
            left, bottom, right, top = each.get_bounds()
            pictured += (right - left) * (top - bottom) / (width * height)
        else:
            drawn += 1
    has_fields = any(
        raw.FPDFAnnot_GetSubtype(raw.FPDFPage_GetAnnot(page.raw, place)) == raw.FPDF_ANNOT_WIDGET
        for place in range(min(raw.FPDFPage_GetAnnotCount(page.raw), _MOST_OBJECTS))
    )
    is_sparse = page.get_textpage().count_chars() < _SPARSE
    return has_fields or pictured >= _LARGE or drawn >= _DRAWN or (is_sparse and (pictured > 0 or drawn > 0))
