"""Reads a source as units: the smallest pieces that may be quoted."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from domain.documents import Source, name_place
from domain.library.citations import find_section
from domain.text.blocks import Block, Kind, Span, blank_struck, open_section, read_blocks
from domain.text.languages import Language, detect_language
from domain.text.sentences import split_block
from domain.text.tables import is_row

_LONGEST_QUESTION = 300
"""Limit, in characters, of a paragraph that asks what the one below it answers. Chosen: a longer one has
more to say than a question."""

_LONGEST_ITEM = 80
"""Limit, in words, of an item that is one unit; of a longer one each sentence is. Chosen: as long as a short answer."""


@dataclass(frozen=True, slots=True)
class Unit:
    """A sentence, item, row, definition or block of code at `source["text"][start:end]`."""

    source: Source
    block: int
    """Position of its block in the source."""
    kind: Kind
    start: int
    end: int
    lead: Span | None = None
    """The lead-in or header without which an item or row cannot be read."""
    above: tuple[Span, ...] = ()
    """The headings over it and the sentence before it, as far as the source has them."""
    heading: Span | None = None
    """The innermost of these headings."""

    @property
    def text(self) -> str:
        return self.source["text"][self.start : self.end]

    @property
    def introduction(self) -> str:
        """The lead-in or header. That of a long list or table stands further up in the document than its source."""
        if self.lead:
            return self.source["text"][slice(*self.lead)]
        is_rest = self.block == 0 and self.kind in ("table", "list", "steps", "code")
        return self.source.get("lead", "") if is_rest else ""

    @property
    def section(self) -> str:
        """The name of its section; empty where that is the document's, or there is none."""
        source = self.source
        path = find_section(source, source["start"] + self.start)
        heading = source["text"][slice(*self.heading)].lstrip("# ") if self.heading else ""
        name = heading or (path[-1] if path else "")
        return "" if name == source["title"] else name

    @property
    def follows_lead(self) -> bool:
        """True where it stands right below its lead-in or header."""
        return self.lead is not None and self.source["text"][self.lead[1] : self.start].isspace()

    @property
    def whole(self) -> str:
        """Its text below its lead-in or header."""
        return f"{self.introduction}\n{self.text}" if self.introduction else self.text

    @property
    def spans(self) -> tuple[Span, ...]:
        """Its own span, its lead-in and its heading, as they are compared with a question."""
        return ((self.start, self.end), *(span for span in (self.lead, self.heading) if span))

    @property
    def context(self) -> list[str]:
        """The title, the headings, the lead-in and the sentence before."""
        near = (self.source["text"][slice(*span)] for span in self.above)
        place = name_place(self.source["title"], self.source["heading_path"])
        return [text for text in (place, *near, self.introduction) if text]


def split_units(source: Source) -> list[Unit]:
    """Return the units of a source in order. Headings and lead-ins are none: they belong to what follows. Nor is what
    is struck out as a whole: it no longer holds."""
    return [Unit(source, *parts) for parts in _split_units(source["text"], source.get("lead", ""))]


_Parts = tuple[int, Kind, int, int, Span | None, tuple[Span, ...], Span | None]
"""The fields of a unit but its source."""


@lru_cache(maxsize=256)
def _split_units(text: str, lead_in: str) -> Sequence[_Parts]:
    """Return the units of a source's text. Cached, because several steps read the same sources."""
    language = detect_language(text) or "en"
    units: list[_Parts] = []
    headings: list[tuple[int, Span]] = []
    before: Span | None = None
    asked: Span | None = None
    valid = blank_struck(text)
    blocks = _read_blocks(text, lead_in)
    for position, block in enumerate(blocks):
        said = text[block.start : block.end]
        if block.kind == "heading":
            headings = open_section(headings, said, (block.start, block.end))
            before = asked = None
            continue
        if said.endswith("?") and len(said) <= _LONGEST_QUESTION and position + 1 < len(blocks):
            # Of questions and answers, the answer is quoted, under its question.
            before, asked = None, (block.start, block.end)
            continue
        above = tuple(span for _, span in headings)
        lead = block.lead or asked
        for start, end in _split(text, block, language):
            if not any(map(str.isalnum, (text if block.kind == "code" else valid)[start:end])):
                continue
            near = (*above, before) if before and block.kind in ("paragraph", "code", "quote") else above
            heading = headings[-1][1] if headings else None
            units.append((position, block.kind, start, end, lead, near, heading))
            before = (start, end)
        asked = None
    return units


def _read_blocks(text: str, lead: str) -> list[Block]:
    """Return the blocks of a source's text. One that begins within a list, a table or code is read below the lead-in,
    header or fence that stands further up."""
    if not lead:
        return read_blocks(text)
    moved = (block.move(-len(lead) - 1) for block in read_blocks(f"{lead}\n{text}"))
    return [_cut_above(block) for block in moved if block.end > 0]


def _cut_above(block: Block) -> Block:
    """Return the block without what stands above the source."""
    if block.start >= 0:
        return block
    return replace(block, start=0, lead=None, parts=tuple(part for part in block.parts if part[0] >= 0))


def _split(text: str, block: Block, language: Language) -> Iterator[Span]:
    if block.kind == "table":
        yield from (part for part in block.parts if is_row(text[slice(*part)]))
    elif block.parts:
        for start, end in block.parts:
            if len(text[start:end].split()) <= _LONGEST_ITEM:
                yield start, end
            else:
                yield from split_block(text, replace(block, start=start, end=end), language)
    else:
        yield from split_block(text, block, language)
