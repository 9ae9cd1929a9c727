"""Draws a page of a PDF. Parser workers do it, because a page may take any time and memory."""

import io
from collections.abc import Mapping
from typing import Any, Literal

from domain.errors import UnreadableDocument

MAX_PIXELS = 6_000_000
"""Largest picture. A larger page is drawn smaller."""


PictureFormat = Literal["png", "webp"]

_OPTIONS: Mapping[PictureFormat, Mapping[str, Any]] = {"png": {}, "webp": {"quality": 80, "method": 2}}
"""How a picture is written. The WebP of a page of text has a third of the bytes of its PNG, in half the time."""


def draw_page(pdf: bytes, number: int, dpi: int, kind: PictureFormat) -> bytes:
    """Return a picture of the page, counted from 1. Raises `UnreadableDocument` if it cannot be drawn."""
    import pypdfium2

    try:
        page = pypdfium2.PdfDocument(pdf)[number - 1]
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
