"""Renders quoted passages as Markdown."""

from collections.abc import Iterator

from domain.ports.judgement import Quote
from domain.text.blocks import read_blocks
from domain.text.hyperlinks import strip_links
from domain.text.markers import strip_markers


def render_quote(quote: Quote, marker: str) -> str:
    """Return a passage as it stands in its document, below its lead-in, with a marker at the end of each paragraph,
    list, table and block of code."""
    text = f"{quote.lead}\n{quote.text}" if quote.lead else quote.text
    # A document's own footnote numbers would read as citations of ours.
    clean = strip_links(strip_markers(text), [text]).strip()
    return "\n\n".join(_mark_blocks(clean, marker))


def _mark_blocks(text: str, marker: str) -> Iterator[str]:
    for block in read_blocks(text):
        said = text[block.start : block.end]
        if block.kind == "heading" or said.endswith(":"):
            yield said
        elif block.kind in ("table", "code") or said.endswith("```"):
            yield f"{said}\n\n{marker}"
        else:
            yield f"{said} {marker}"
