"""Draws one page of a PDF as a PNG picture: `python page_picture.py PAGE DPI < FILE > PICTURE`.

A program of its own, so that a page that takes too long, too much memory or a bug of the renderer with it ends this
process and no other. `app/ingest/rendering.py` runs it.
"""

import io
import resource
import sys

MEMORY = 2 * 2**30
"""Limit of the process, in bytes."""
MAX_PIXELS = 6_000_000
"""Largest picture. A larger page is drawn smaller."""


def main() -> None:
    """Draw the page whose number, from 1, and resolution are the arguments."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    import pypdfium2

    number, dpi = int(sys.argv[1]), int(sys.argv[2])
    page = pypdfium2.PdfDocument(sys.stdin.buffer.read())[number - 1]
    width, height = page.get_size()
    scale = dpi / 72
    pixels = width * height * scale**2
    if pixels > MAX_PIXELS:
        scale *= (MAX_PIXELS / pixels) ** 0.5
    picture = io.BytesIO()
    page.render(scale=scale).to_pil().save(picture, "PNG")
    sys.stdout.buffer.write(picture.getvalue())


if __name__ == "__main__":
    main()
