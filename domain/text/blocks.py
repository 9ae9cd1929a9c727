"""Reads a document's text as blocks: headings, paragraphs, lists, steps, tables, code, quotes and definitions.

A document's text is Markdown in one canonical form, which all readers write (`app/ingest/readers/assembly.py`):

- A heading is `## Title`, a paragraph one line in which a line break is meant as one.
- Items are `- x` or `1. x`. What belongs to an item, nested items among it, is indented by two blanks or more.
- A table row is `a | b`; below a header stands `--- | ---`. Caption, period and unit are the paragraph above it.
- Code is fenced. A quote's lines begin with `> `. A definition is a term on a line and `: text` on the next.
- An empty line separates blocks. `~~x~~` is struck out in the file: it no longer holds.

Blocks are read from the text whenever they are needed, at ingestion and at question time alike, so they are not stored.
Text that is not canonical can be read too: wrapped paragraphs, tables in outer pipes, PDF lines, a model's answer.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeVar

from domain.text.tables import find_header, is_label, is_row, is_rule

Kind = Literal["heading", "paragraph", "list", "steps", "table", "code", "quote", "definition"]

Span = tuple[int, int]

Named = TypeVar("Named")

LONGEST_LEAD = 300
"""Limit, in characters, of a lead-in or caption. Of a longer paragraph only the last sentence is one."""

_RECALLED = 5000
"""Limit, in characters, of a text whose blocks are kept: sources are shorter, documents longer."""
NARROWEST = 40
"""Length, in characters, below which no line was broken by a margin."""
_MOST_LABELS = 3
"""Limit of lines without cells between two rows of a table."""
_MOST_CAPTIONS = 3
"""Limit of short lines above a table that count as its caption, its period and its unit."""
_SHORT = 80
"""Limit, in characters, of a line that counts as the caption of the table below although nothing marks it as one."""

_LINE = re.compile(r"[^\n]+")
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})[ \t]*([^\s`]*)[^`]*")
_HEADING = re.compile(r"[ \t]{0,3}#{1,6}[ \t]+\S")
_QUOTE = re.compile(r"[ \t]{0,3}>")
_DEFINITION = re.compile(r"[ \t]{0,3}:[ \t]+\S")
_ITEM = re.compile(
    r"([ \t]*)(?:(?P<bullet>[-*+•▪◦‣●○–—])|\d{1,3}\.|(?P<odd>\(?\d{1,3}\)|\(?[a-z][.)]|\([ivx]{1,4}\)))"
    r"[ \t]+(?=\S)(?![-*_ \t]+$)"
)
"""The beginning of an item, with its indentation. An odd one is not canonical."""

_MARK_OF_CODE = re.compile(r"[ \t]*(?:[-*+•▪◦‣●○–—:]|\(?\w{1,4}[.)])[ \t]+(?=`{3}|~{3})")
"""The mark of an item or a definition that begins with code."""

_MARKERS = re.compile(r"(?:\[(?:cite:[^\[\]\n]{1,80}|[^\[\]\n]{0,80}\d)\](?!\()[ \t]*)+")
_STRUCK = re.compile(r"(?<!~)~~(?!~)[^~\n]+~~(?!~)")
_MARKS = re.compile(
    r"^(?:[ \t]*(?:`{3,}|~{3,})[^`\n]*(?:\n|\Z)"  # a fence, with the language that it names
    r"|[ \t]*+(?:\|[ \t]*+)?(?::?-{3,}+:?[ \t]*+\|[ \t]*+)+[ \t:|-]*(?:\n|\Z)"
    r"|[ \t]{0,3}(?:#{1,6}|>|:)[ \t]+)|`|\\(?=\|)",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Block:
    """A block at `text[start:end]`, without surrounding white space. Offsets count characters in the whole text."""

    kind: Kind
    start: int
    end: int
    lead: Span | None = None
    """The lead-in of a list, caption and header of a table with the row that rules it off, the term of a definition."""
    parts: tuple[Span, ...] = ()
    """The items of a list, each with all that is nested in it; the rows of a table below its header; the definitions of
    a term. Empty for other kinds."""
    language: str = ""
    """The language of code, as its fence names it."""

    def move(self, by: int) -> "Block":
        """Return the block with all offsets increased by `by`, as it stands in a text that this one is a part of."""
        lead = (self.lead[0] + by, self.lead[1] + by) if self.lead else None
        parts = tuple((start + by, end + by) for start, end in self.parts)
        return Block(self.kind, self.start + by, self.end + by, lead, parts, self.language)


@dataclass(frozen=True, slots=True)
class _Line:
    start: int
    end: int
    text: str
    blank_above: bool

    @property
    def indent(self) -> int:
        return len(self.text) - len(self.text.lstrip())


def read_blocks(text: str) -> list[Block]:
    """Return the blocks of a text in order, without overlap. Only white space lies outside them. Takes linear time."""
    return list(_recall_blocks(text)) if len(text) <= _RECALLED else _find_blocks(text)


@lru_cache(maxsize=256)
def _recall_blocks(text: str) -> tuple[Block, ...]:
    """Return the blocks of a short text. Cached, because the steps of a turn read the same sources."""
    return tuple(_find_blocks(text))


def _find_blocks(text: str) -> list[Block]:
    lines = list(_read_lines(text))
    blocks: list[Block] = []
    position = 0
    while position < len(lines):
        block, position = _read_block(text, lines, position)
        if block.kind in ("list", "steps", "table"):
            block = _take_lead(text, blocks, block)
        blocks.append(block)
    return blocks


def open_section(path: Sequence[tuple[int, Named]], heading: str, named: Named) -> list[tuple[int, Named]]:
    """Return the headings under which stands what follows a heading, given those above it, each with its level: 1 is
    the outermost. `heading` is as it stands in the text, `named` what stands for it in the path."""
    level = len(heading) - len(heading.lstrip("#"))
    return [*(above for above in path if above[0] < level), (level, named)]


def blank_struck(text: str) -> str:
    """Return the text with blanks in place of what is struck out."""
    return _STRUCK.sub(lambda struck: " " * len(struck[0]), text) if "~~" in text else text


def plain_text(text: str) -> str:
    """Return the text without the marks that say nothing by themselves: fences, hashes of headings, rows that rule off
    a header, marks of quotes and definitions, backticks."""
    return "".join(text[start:end] for start, end in find_plain(text))


def find_plain(text: str) -> list[Span]:
    """Return the spans of `text` that `plain_text` keeps, in order."""
    kept: list[Span] = []
    position = 0
    for mark in _MARKS.finditer(text):
        if mark.start() > position:
            kept.append((position, mark.start()))
        position = mark.end()
    if position < len(text):
        kept.append((position, len(text)))
    return _strip_breaks(text, kept)


def _strip_breaks(text: str, kept: list[Span]) -> list[Span]:
    """Return the spans without line breaks at the beginning of the first and the end of the last."""
    while kept:
        start, end = kept[0]
        stripped = text[start:end].lstrip("\n")
        if stripped:
            kept[0] = (end - len(stripped), end)
            break
        kept.pop(0)
    while kept:
        start, end = kept[-1]
        stripped = text[start:end].rstrip("\n")
        if stripped:
            kept[-1] = (start, start + len(stripped))
            break
        kept.pop()
    return kept


def find_item(line: str) -> int:
    """Return the length of the marker with which an item begins, indentation included; 0 where none begins."""
    item = _ITEM.match(line)
    return item.end() if item else 0


def find_fence(line: str) -> str:
    """Return the fence with which a line opens code, such as three backticks; empty where it opens none."""
    fence = _FENCE.fullmatch(line)
    return fence[1] if fence else ""


def find_unclosed(code: str) -> str:
    """Return the fence that a block of code lacks at its end; empty where it has it, or opens with none."""
    first, *others = code.split("\n")
    fence = find_fence(first)
    return "" if fence and others and closes_fence(others[-1], fence) else fence


def closes_fence(line: str, fence: str) -> bool:
    """Return True where the line closes the code that `fence` opened."""
    bare = line.strip()
    return len(bare) >= len(fence) and set(bare) == {fence[0]}


def is_wrapped(before: str, line: str, width: int) -> bool:
    """Return True where only the margin broke the line: it goes on in lower case, or its first word would not have
    fitted on the line before. `width` is the length of the longest line around."""
    first = line.split(maxsplit=1)[0]
    if not any(map(str.isalnum, before)):
        return False
    return first[0].islower() or (width >= NARROWEST and len(before.rstrip()) + 1 + len(first) > width)


def _read_lines(text: str) -> Iterator[_Line]:
    """Yield the lines that are not blank."""
    after = 0
    for found in _LINE.finditer(text):
        if not found[0].isspace():
            yield _Line(*found.span(), found[0], not after or text.count("\n", after, found.start()) > 1)
            after = found.end()


def _read_block(text: str, lines: Sequence[_Line], position: int) -> tuple[Block, int]:
    """Read the block that begins at a line. Return it with the position of the line after it."""
    line = lines[position]
    if fence := _FENCE.fullmatch(line.text):
        after = _skip_code(lines, position)
        return _make_block("code", lines[position:after], language=fence[2].strip("{}.").lower()), after
    if _HEADING.match(line.text):
        return _make_block("heading", [line]), position + 1
    if _QUOTE.match(line.text):
        after = position + 1
        while after < len(lines) and _QUOTE.match(lines[after].text):
            after += 1
        return _make_block("quote", lines[position:after]), after
    if item := _match_item(lines, position):
        return _read_list(lines, position, item)
    if is_row(line.text) and (after := _skip_rows(lines, position)) > position + 1:
        return _read_table(text, lines[position:after]), after
    if position + 1 < len(lines) and _defines(lines[position + 1]):
        return _read_definition(lines, position)
    after = position + 1
    while after < len(lines) and not _interrupts(lines, after):
        after += 1
    return _make_block("paragraph", lines[position:after]), after


def _match_item(lines: Sequence[_Line], position: int) -> re.Match[str] | None:
    """Match the beginning of an item. A paragraph that stands alone is only numbered, as those of laws: "(1) It …"."""
    line = lines[position]
    item = _ITEM.match(line.text)
    is_alone = line.blank_above and (position + 1 == len(lines) or lines[position + 1].blank_above)
    return None if item and item["odd"] and is_alone else item


def _make_block(kind: Kind, lines: Sequence[_Line], *, language: str = "") -> Block:
    return Block(kind, *_enclose(lines), language=language)


def _enclose(lines: Sequence[_Line]) -> Span:
    first, last = lines[0], lines[-1]
    return first.start + first.indent, last.start + len(last.text.rstrip())


def _skip_code(lines: Sequence[_Line], position: int, fence: str = "") -> int:
    """Return the position after the code whose fence opens at `position`; code that is never closed goes to the end."""
    fence = fence or find_fence(lines[position].text)
    after = position + 1
    while after < len(lines) and not closes_fence(lines[after].text, fence):
        after += 1
    return min(after + 1, len(lines))


def _skip_mark(lines: Sequence[_Line], position: int) -> int:
    """Return the position after the line that begins an item or a definition, or after the code that begins in it."""
    text = lines[position].text
    mark = _MARK_OF_CODE.match(text)
    fence = find_fence(text[mark.end() :]) if mark else ""
    return _skip_code(lines, position, fence) if fence else position + 1


def _interrupts(lines: Sequence[_Line], position: int) -> bool:
    """Return True where the line does not go on with the paragraph above it."""
    line = lines[position]
    return (
        line.blank_above
        or _HEADING.match(line.text) is not None
        or _match_item(lines, position) is not None
        or _QUOTE.match(line.text) is not None
        or _FENCE.fullmatch(line.text) is not None
        or (is_row(line.text) and _skip_rows(lines[position : position + _MOST_LABELS + 2], 0) > 1)
        or (position + 1 < len(lines) and _defines(lines[position + 1]))
    )


def _read_list(lines: Sequence[_Line], position: int, item: re.Match[str]) -> tuple[Block, int]:
    """Read a list. Its items are those that are indented no deeper than the first."""
    first, outer, is_bullet = position, len(item[1]), item["bullet"] is not None
    starts = [first]
    position = _skip_mark(lines, position)
    while position < len(lines):
        line = lines[position]
        nested = line.indent >= outer + 2
        begins = None if nested else _match_item(lines, position)
        if begins and (begins["bullet"] is not None) == is_bullet:
            starts.append(position)
            position = _skip_mark(lines, position)
            continue
        if nested and _FENCE.fullmatch(line.text):
            position = _skip_code(lines, position)
            continue
        if begins or (not nested and (line.blank_above or not _goes_on(lines, position))):
            break
        position += 1
    ends = [*starts[1:], position]
    parts = tuple(_enclose(lines[start:end]) for start, end in zip(starts, ends, strict=True))
    return Block("list" if is_bullet else "steps", parts[0][0], parts[-1][1], parts=parts), position


def _goes_on(lines: Sequence[_Line], position: int) -> bool:
    """Return True where a line without indentation goes on with the item above it."""
    before, line = lines[position - 1], lines[position]
    return not _interrupts(lines, position) and is_wrapped(
        before.text, line.text, max(len(before.text), len(line.text))
    )


def _skip_rows(lines: Sequence[_Line], position: int) -> int:
    """Return the position after the last row of a table. A few short lines without cells may stand between rows."""
    after = position + 1
    for ahead in range(position + 1, len(lines)):
        line = lines[ahead]
        if line.blank_above and is_rule(lines[ahead + 1].text if ahead + 1 < len(lines) else ""):
            break
        if is_row(line.text):
            after = ahead + 1
        elif (
            not is_label(line.text)
            or ahead - after >= _MOST_LABELS
            or _FENCE.fullmatch(line.text)
            or _HEADING.match(line.text)
            or _ITEM.match(line.text)
        ):
            break
    return after


def _read_table(text: str, lines: Sequence[_Line]) -> Block:
    spans = [_enclose([line]) for line in lines]
    headers = find_header(text, spans)
    start, end = _enclose(lines)
    lead = (start, spans[headers - 1][1]) if headers else None
    return Block("table", start, end, lead=lead, parts=tuple(spans[headers:]))


def _defines(line: _Line) -> bool:
    return not line.blank_above and _DEFINITION.match(line.text) is not None


def _read_definition(lines: Sequence[_Line], position: int) -> tuple[Block, int]:
    """Read a term with its definitions; what is indented below one belongs to it."""
    term = position
    starts: list[int] = []
    position += 1
    while position < len(lines):
        line = lines[position]
        if _DEFINITION.match(line.text):
            starts.append(position)
            position = _skip_mark(lines, position)
            continue
        if line.indent >= 2 and _FENCE.fullmatch(line.text):
            position = _skip_code(lines, position)
            continue
        if line.indent < 2 and (line.blank_above or not _goes_on(lines, position)):
            break
        position += 1
    ends = [*starts[1:], position]
    parts = tuple(_enclose(lines[start:end]) for start, end in zip(starts, ends, strict=True))
    lead = _enclose(lines[term : term + 1])
    return Block("definition", lead[0], parts[-1][1], lead=lead, parts=parts), position


def _take_lead(text: str, blocks: list[Block], block: Block) -> Block:
    """Return the list or table together with the paragraph above that introduces it, which is taken off `blocks`."""
    before = blocks[-1] if blocks else None
    if before is None or before.kind != "paragraph":
        return block
    start = _find_lead(text, before, block.kind)
    if start is None:
        return block
    blocks.pop()
    if start > before.start:
        blocks.append(Block("paragraph", before.start, before.start + len(text[before.start : start].rstrip())))
    end = block.lead[1] if block.lead else before.end
    return Block(block.kind, start, block.end, lead=(start, end), parts=block.parts)


def _skip_markers(text: str, position: int, end: int) -> int | None:
    """Return the position behind citation markers, which belong to the sentence before them; None where that is the
    end."""
    found = _MARKERS.match(text, position)
    begin = found.end() if found else position
    return begin if begin < end else None


def _find_lead(text: str, paragraph: Block, kind: Kind) -> int | None:
    """Return where the lead-in begins that ends the paragraph above a list or table; None where it has none."""
    start, end = paragraph.start, paragraph.end
    if text[end - 1] in ":;":
        if end - start <= LONGEST_LEAD:
            return start
        cut = max(text.rfind(stop, start, end - 1) for stop in (". ", "! ", "? ", "\n"))
        return (
            _skip_markers(text, cut + 2 - (text[cut] == "\n"), end) if cut >= 0 and end - cut <= LONGEST_LEAD else None
        )
    if text[end - 1] in ".!?,":
        return None
    if kind != "table" and end - start > _SHORT:
        # Its last sentence goes on in the items: "… This is done for", without a colon.
        cut = max(text.rfind(stop, start, end - 1) for stop in (". ", "! ", "? "))
        if cut >= 0 and end - cut <= LONGEST_LEAD and "\n" not in text[cut:end]:
            return _skip_markers(text, cut + 2, end)
    begins = end
    for _ in range(_MOST_CAPTIONS if kind == "table" else 1):
        line = max(text.rfind("\n", start, begins - 1) + 1, start) if begins > start else start
        if begins == start or begins - line > _SHORT:
            break
        begins = line
    return end - len(text[begins:end].lstrip()) if begins < end else None
