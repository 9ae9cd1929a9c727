"""Files that are pictures: PNG, JPEG and TIFF. Each picture is read and shown as a PDF of one page."""

import io

from PIL import Image, ImageOps, ImageSequence

from app.ingest.recognition import PICTURES
from domain.errors import OversizedDocument

MAX_PIXELS = 40_000_000
"""Largest picture: A4 at 600 dpi has 35 million."""
_SIDE_INCHES = 11.0
"""Longest side of the page: what a picture says about its resolution is often a screen's."""
_KINDS = tuple(PICTURES)


def count_pictures(data: bytes) -> int:
    """Return the number of pictures in a file, which is one but for TIFF."""
    with Image.open(io.BytesIO(data), formats=_KINDS) as image:
        return sum(1 for _ in ImageSequence.Iterator(image)) if image.format == "TIFF" else 1


def wrap_picture(data: bytes, number: int) -> bytes:
    """Return a picture of a file, counted from 1, as a PDF of one page, the way up that its EXIF data says. Raises
    `OversizedDocument`, `EOFError` where there are not so many, and whatever Pillow raises for damaged files."""
    with Image.open(io.BytesIO(data), formats=_KINDS) as image:
        image.seek(number - 1)
        if image.width * image.height > MAX_PIXELS:
            raise OversizedDocument(
                f"Picture {number} has {image.width * image.height / 1e6:.0f} million pixels; "
                f"{MAX_PIXELS / 1e6:.0f} million are the limit. Make it smaller."
            )
        upright = ImageOps.exif_transpose(image)
        if upright.has_transparency_data:
            paper = Image.new("RGBA", upright.size, "white")
            upright = Image.alpha_composite(paper, upright.convert("RGBA"))
        flat = upright.convert("L" if upright.mode in ("1", "L") else "RGB")
    page = io.BytesIO()
    flat.save(page, "PDF", resolution=max(flat.size) / _SIDE_INCHES, quality=90)
    return page.getvalue()
