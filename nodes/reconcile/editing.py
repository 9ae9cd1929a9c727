"""Takes statements out of an answer's Markdown, or puts others in their place, so that what is left can be read."""

import re
from collections.abc import Iterable, Mapping, Sequence

from domain.text.blocks import Span, find_item, read_blocks
from domain.text.claims import BOLD_LINE
from domain.text.tables import is_row, split_cells

_LEVEL = re.compile(r"\s*(#*)")


def replace(answer: str, texts: Mapping[Span, str]) -> tuple[str, dict[Span, Span]]:
    """Return the answer with each span replaced by its text, and where in it each text now stands."""
    pieces: list[str] = []
    places: dict[Span, Span] = {}
    position = length = 0
    for (start, end), text in sorted(texts.items()):
        pieces += [answer[position:start], text]
        length += start - position
        places[start, end] = (length, length + len(text))
        position, length = end, length + len(text)
    return "".join([*pieces, answer[position:]]), places


def withdraw(answer: str, spans: Sequence[Span], kept: Iterable[Span]) -> str:
    """Return the answer without the statements at `spans`, and without what then says nothing: the lead-in of a list
    that is gone, the header of a table, the heading of a section, an item's mark. A lead-in that is one of the
    statements to be `kept` stays."""
    gone = [*spans]
    lasting = [*kept]

    def is_gone(start: int, end: int) -> bool:
        inside = [span for span in gone if start <= span[0] < end]
        left, _ = replace(answer[start:end], {(a - start, b - start): "" for a, b in inside})
        return bool(inside) and not any(map(str.isalnum, left))

    heads: list[tuple[Span, int]] = []
    for block in read_blocks(answer):
        if block.kind == "heading":
            heads.append(((block.start, block.end), _measure(answer[block.start : block.end])))
        elif block.kind == "paragraph":
            # A line in bold heads what is below it.
            first = answer[block.start : block.end].split("\n", 1)[0]
            if BOLD_LINE.fullmatch(first.strip()):
                heads.append(((block.start, block.start + len(first)), 7))
        if block.lead and block.parts and all(is_gone(*part) for part in block.parts):
            start, end = block.lead
            if not any(span[0] < end and start < span[1] for span in lasting):
                gone = [*(span for span in gone if not start <= span[0] < end), block.lead]
    for number in reversed(range(len(heads))):
        head, level = heads[number]
        following = (start for (start, _), deep in heads[number + 1 :] if deep <= level)
        if is_gone(head[1], next(following, len(answer))):
            gone.append(head)
    for start, end in sorted(gone, reverse=True):
        answer = _cut(answer, start, end)
    return answer.strip()


def _measure(heading: str) -> int:
    found = _LEVEL.match(heading)
    return len(found[1]) if found else 0


def _cut(answer: str, start: int, end: int) -> str:
    """Return the answer without the span: with the line where nothing else stands on it, but not with what is nested
    below an item."""
    first = answer.rfind("\n", 0, start) + 1
    last = end + len(answer[end:].split("\n", 1)[0])
    before, after = answer[first:start], answer[end:last].strip()
    if not before.strip() and not after:
        below = _lift(answer[last + 1 :], len(before)) if find_item(answer[first:last]) else answer[last + 1 :]
        above = answer[:first]
        # What stood between two paragraphs leaves one empty line.
        return above.rstrip("\n") + "\n\n" + below.lstrip("\n") if above.endswith("\n\n") and below else above + below
    if not before.strip():
        mark = find_item(answer[first:last])
        return answer[: first + mark if mark else start] + after + answer[last:]
    return answer[:start].rstrip(" ") + (f" {after}" if after else "") + answer[last:]


def _lift(below: str, indent: int) -> str:
    """Return the lines with those that are nested below a line of this indentation moved out to it."""
    lines = below.split("\n")
    depth = len(lines[0]) - len(lines[0].lstrip(" \t")) - indent
    if depth <= 0:
        return below
    for number, line in enumerate(lines):
        if line.strip() and len(line) - len(line.lstrip(" \t")) < indent + depth:
            break
        lines[number] = line[depth:]
    return "\n".join(lines)


def fit(text: str, rewrite: str) -> str:
    """Return the rewrite in the place of `text`: an item stays one item, a table row a row with as many cells. Empty
    where it does not fit there."""
    line = " ".join(rewrite.split())
    if is_row(text) or is_row(line):
        return line if is_row(text) and len(split_cells(text)) == len(split_cells(line)) else ""
    words = line[find_item(line) :]
    return words and text[: find_item(text)] + words
