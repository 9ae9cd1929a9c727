"""Draws a diagram in any of its formats."""

import json
from functools import lru_cache
from typing import Literal

from app.drawing.diagram import Diagram
from app.drawing.text import draw_ascii, draw_mermaid

Format = Literal["mermaid", "ascii", "json"]


@lru_cache(maxsize=8)
def draw(diagram: Diagram, format: Format) -> bytes:
    """Return the drawing: UTF-8 text; as JSON, a `diagram.Layout`. Every page asks for it."""
    if format == "json":
        # Pillow is needed for this format alone.
        from app.drawing.layout import lay_out

        return json.dumps(lay_out(diagram)).encode()
    return (draw_mermaid(diagram) if format == "mermaid" else draw_ascii(diagram)).encode()
