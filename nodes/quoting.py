"""Renders quoted passages as Markdown."""

from collections.abc import Iterator, Mapping, Sequence

from domain.documents import Source
from domain.ports.judgement import Quote
from domain.text.blocks import read_blocks
from domain.text.hyperlinks import strip_links
from domain.text.markers import strip_markers
from nodes.wording import Wording

SHORT_ANSWER, LONG_ANSWER = 80, 200
"""Words from which people call an answer too long, to a question for one thing and for several."""


def render_quote(quote: Quote, marker: str) -> str:
    """Return a passage as it stands in its document, below its lead-in, with a marker at the end of each paragraph,
    list, table and block of code."""
    text = f"{quote.lead}\n{quote.text}" if quote.lead else quote.text
    # A document's own footnote numbers would read as citations of ours.
    clean = strip_links(strip_markers(text), [text]).strip()
    return "\n\n".join(_mark_blocks(clean, marker))


def name_origins(quotes: Sequence[Quote], sources: Mapping[int, Source], wording: Wording, words: int = 0) -> list[str]:
    """Return what is written before each quote: where they are of several documents, which may disagree, a heading
    with the document and its date; nothing where the answer, which has `words` already, would be too long with it."""
    blank = [""] * len(quotes)
    quoted = [sources[quote.number] for quote in quotes]
    if len({source["document_id"] for source in quoted}) < 2:
        return blank
    named = [wording.name_origin(strip_links(strip_markers(s["title"]), []), s.get("updated_at")) for s in quoted]
    headings = [
        f"#### {name}\n\n" if position == 0 or quoted[position - 1]["document_id"] != source["document_id"] else ""
        for position, (source, name) in enumerate(zip(quoted, named, strict=True))
    ]
    said = words + sum(len(f"{quote.lead} {quote.text}".split()) + 1 for quote in quotes)
    named_words = sum(len(heading.split()) for heading in headings)
    return headings if said + named_words <= (SHORT_ANSWER if said <= SHORT_ANSWER else LONG_ANSWER) else blank


def _mark_blocks(text: str, marker: str) -> Iterator[str]:
    for block in read_blocks(text):
        said = text[block.start : block.end]
        if block.kind == "heading" or said.endswith(":"):
            yield said
        elif block.kind in ("table", "code") or said.endswith("```"):
            yield f"{said}\n\n{marker}"
        else:
            yield f"{said} {marker}"
