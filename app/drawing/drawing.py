"""Draws a diagram in any of its formats."""

import json
from typing import Literal

from app.drawing.diagram import Diagram
from app.drawing.text import draw_ascii, draw_mermaid

Format = Literal["mermaid", "ascii", "png", "json"]


def draw(diagram: Diagram, format: Format) -> bytes:
    """Return the drawing: a PNG image, or UTF-8 text; as JSON, a `diagram.Layout`."""
    if format == "png":
        # Pillow is needed for this format and the next alone.
        from app.drawing.picture import draw_picture

        return draw_picture(diagram)
    if format == "json":
        from app.drawing.layout import lay_out

        return json.dumps(lay_out(diagram)).encode()
    return (draw_mermaid(diagram) if format == "mermaid" else draw_ascii(diagram)).encode()
