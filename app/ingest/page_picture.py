"""Draws a page of a PDF. Parser workers do it, because a page may take any time and memory."""

import io

from domain.errors import UnreadableDocument

MAX_PIXELS = 6_000_000
"""Largest picture. A larger page is drawn smaller."""


def draw_page(pdf: bytes, number: int, dpi: int) -> bytes:
    """Return the page, counted from 1, as a PNG picture. Raises `UnreadableDocument` if it cannot be drawn."""
    import pypdfium2

    try:
        page = pypdfium2.PdfDocument(pdf)[number - 1]
        width, height = page.get_size()
        scale = dpi / 72
        pixels = width * height * scale**2
        if pixels > MAX_PIXELS:
            scale *= (MAX_PIXELS / pixels) ** 0.5
        picture = io.BytesIO()
        page.render(scale=scale).to_pil().save(picture, "PNG")
    except MemoryError:
        raise
    except Exception as error:  # nobody can list how foreign files fail
        raise UnreadableDocument(f"Page {number} cannot be drawn. Open the file itself.") from error
    return picture.getvalue()
