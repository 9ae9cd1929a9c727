"""Draws a diagram in any of its formats."""

from typing import Literal

from app.drawing.diagram import Diagram
from app.drawing.text import draw_ascii, draw_mermaid

Format = Literal["mermaid", "ascii", "png"]


def draw(diagram: Diagram, format: Format) -> bytes:
    """Return the drawing: a PNG image, or UTF-8 text."""
    if format == "png":
        # Only this format needs Pillow.
        from app.drawing.picture import draw_picture

        return draw_picture(diagram)
    return (draw_mermaid(diagram) if format == "mermaid" else draw_ascii(diagram)).encode()
