"""Draws a diagram in any of its formats."""

import json
from functools import lru_cache
from typing import Literal

from app.drawing.diagram import Diagram
from app.drawing.text import draw_ascii, draw_mermaid

Format = Literal["mermaid", "ascii", "png", "json"]


@lru_cache(maxsize=8)
def draw(diagram: Diagram, format: Format) -> bytes:
    """Return the drawing: a PNG image, or UTF-8 text; as JSON, a `diagram.Layout`. Every page asks for it."""
    if format == "png":
        # Pillow is needed for this format and the next alone.
        from app.drawing.picture import draw_picture

        return draw_picture(diagram)
    if format == "json":
        from app.drawing.layout import lay_out

        return json.dumps(lay_out(diagram)).encode()
    return (draw_mermaid(diagram) if format == "mermaid" else draw_ascii(diagram)).encode()
