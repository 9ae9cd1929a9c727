"""Renders quoted passages as Markdown."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from domain.documents import Source
from domain.ports.judgement import Quote
from domain.profile import LONG_ANSWER, SHORT_ANSWER
from domain.text.blocks import find_unclosed, read_blocks
from domain.text.hyperlinks import strip_images, strip_links
from domain.text.markers import strip_markers
from domain.text.tables import is_row, is_rule, split_cells, write_rule
from nodes.wording.notices import Wording

_WORD = re.compile(r"[^\s*_`#|>~]+")


def count_words(text: str) -> int:
    """Return how many words people read in a text. A name such as `max_retries` reads as several."""
    return len(_WORD.findall(text))


def render_quote(quote: Quote, marker: str) -> str:
    """Return a passage as it stands in its document, below its lead-in, with a marker at the end of each paragraph,
    list, table and block of code. A list that breaks off would look like a whole one."""
    text = f"{quote.lead}\n{quote.text}" if quote.lead else quote.text
    # A document's own footnote numbers would read as citations of ours.
    clean = strip_images(strip_markers(text)).strip()
    return "\n\n".join(_mark_blocks(clean, marker)) + " …" * quote.goes_on


def head_quotes(quotes: Sequence[Quote], sources: Mapping[int, Source], wording: Wording, words: int = 0) -> list[str]:
    """Return the heading of each quote: where they are of several documents, which may disagree, the document and its
    date, if they came on several days; and what the quote is about there. An answer, which has `words` already, that
    would be too long with them goes without the latter, or without both."""
    origins = _name_origins([sources[quote.number] for quote in quotes], wording)
    sections = _once([_clean(quote.heading) for quote in quotes])
    said = words + sum(count_words(render_quote(quote, "[1]")) for quote in quotes)
    limit = SHORT_ANSWER if said <= SHORT_ANSWER else LONG_ANSWER
    for places in (list(zip(origins, sections, strict=True)), [(origin,) for origin in origins]):
        headings = [f"#### {' › '.join(filter(None, place))}\n\n" if any(place) else "" for place in places]
        if said + sum(map(count_words, headings)) <= limit:
            return headings
    return [""] * len(quotes)


def _name_origins(quoted: Sequence[Source], wording: Wording) -> list[str]:
    if len({source["document_id"] for source in quoted}) < 2:
        return [""] * len(quoted)
    # A day on which all of them came says nothing about which of them is newer.
    days = {source.get("updated_at", "")[:10] for source in quoted}
    named = [wording.name_origin(_clean(s["title"]), s.get("updated_at") if len(days) > 1 else None) for s in quoted]
    same = [one["document_id"] == other["document_id"] for one, other in pairwise(quoted)]
    return [named[0], *("" if again else name for name, again in zip(named[1:], same, strict=True))]


def _once(names: Sequence[str]) -> list[str]:
    """Return the names, each only where it is another than the one before."""
    return [*names[:1], *("" if one == other else other for one, other in pairwise(names))]


def _clean(heading: str) -> str:
    return strip_links(strip_markers(heading), [])


def _mark_blocks(text: str, marker: str) -> Iterator[str]:
    for block in read_blocks(text):
        said = text[block.start : block.end]
        if block.kind == "code" and (fence := find_unclosed(said)):
            said += f"\n{fence}"
        if block.kind == "heading" or said.endswith(":"):
            yield said
        elif block.kind == "table":
            yield f"{_rule_off(said)}\n\n{marker}"
        elif block.kind == "code" or said.endswith("```"):
            yield f"{said}\n\n{marker}"
        else:
            yield f"{said} {marker}"


def _rule_off(table: str) -> str:
    """Return the table with a row that rules its first row off, where it has none, as those of PDFs: without one,
    Markdown shows no table."""
    lines = table.split("\n")
    first = next((place for place, line in enumerate(lines) if is_row(line)), None)
    if first is None or any(map(is_rule, lines)):
        return table
    columns = len(split_cells(lines[first]))
    return "\n".join([*lines[: first + 1], write_rule(columns), *lines[first + 1 :]])
