"""Plain text."""

import re
from collections.abc import Mapping, Sequence
from email.parser import HeaderParser
from itertools import dropwhile, islice, takewhile
from types import MappingProxyType

from app.ingest.decoding import decode
from app.ingest.readers.assembly import Assembly, clean
from app.ingest.readers.man_page import add_man_page, is_man_page
from domain.documents import ParsedDocument
from domain.text.blocks import find_item, is_wrapped
from domain.text.tables import is_row

_UNDERLINE = re.compile(r"(?:([=~-])\1{2,}|([`^\"*+])\2{3,})\s*")
"""The second ones are reStructuredText's; three of them are other things, such as a fence of Markdown."""
_LONGEST_HEADING = 120
_COLUMNS = re.compile(r"\S(?:\t| {3,})\S")
"""The gap between two cells of a table."""
_MOST_LINES = 20
"""Lines at the beginning in which a title is looked for."""
_NUMBERED = re.compile(
    r"(?:[ \t]{1,8}(?=\d+\.\d))?(?P<number>\d{1,3}(?:\.\d{1,3})*)\.?[ \t]+(?=[^\W\d_]).*[^\s.,;:]\s*"
)
"""A numbered heading: "5. Project Leader", "5.1 Powers". Indented, only a number of several parts is one, because items
are numbered too."""


def read_plain(source: str, data: bytes) -> ParsedDocument:
    """Read plain text.

    A short line underlined with ``===``, ``---`` or the like is a heading, and so is a line of its own with a number,
    where some have numbers of several parts. A short first line that does not end like a sentence is the title. Lines
    that only the margin broke are joined. Manual pages as `man` prints them are read as such.
    """
    text = clean(decode(data))
    assembly = Assembly()
    lines = text.split("\n")
    if is_man_page(lines):
        # `col -b` writes eight spaces as a tab. Indents tell what belongs together.
        return assembly.finish(add_man_page(assembly, text.expandtabs()), source)
    add_plain(assembly, text, _find_numbered(lines))
    return assembly.finish(_find_title(lines), source)


def add_plain(assembly: Assembly, text: str, numbered: Mapping[int, int] = MappingProxyType({})) -> None:
    """Append plain text, with its underlined headings. `numbered` has the levels of further headings, by line."""
    lines = text.split("\n")
    block: list[str] = []
    marks: list[str] = []

    def flush() -> None:
        assembly.add_block("\n".join(join_lines(block)))
        block.clear()

    for number, line in enumerate(lines):
        following = lines[number + 1] if number + 1 < len(lines) else ""
        if _is_underlined(line, following):
            flush()
            mark = following[0]
            if mark not in marks:
                marks.append(mark)
            assembly.add_heading(marks.index(mark) + 1, line)
        elif number and _is_underlined(lines[number - 1], line):
            continue
        elif number in numbered:
            flush()
            assembly.add_heading(len(marks) + numbered[number], line)
        elif line.strip():
            block.append(line.rstrip())
        else:
            flush()
    flush()


def join_lines(block: list[str]) -> list[str]:
    """Return the lines of a paragraph or list, joined where only the margin broke them."""
    joined: list[str] = []
    width = max(map(len, block), default=0)
    last = ""
    for line in block:
        is_apart = not joined or find_item(line) or is_row(line) or is_row(last)
        if is_apart or not is_wrapped(last, line, width):
            joined.append(line)
        else:
            joined[-1] += f" {line.strip()}"
        last = line
    return joined


def _find_title(lines: Sequence[str]) -> str | None:
    """Return the first line if it is short, does not end like a sentence, goes on in the next only where that ends its
    paragraph, and is no row of a table. Of fields, as a mail begins with, the subject."""
    filled = dropwhile(lambda line: not line.strip(), lines)
    block = [
        *islice(takewhile(lambda line: line.strip() and not _UNDERLINE.fullmatch(line.strip()), filled), _MOST_LINES)
    ]
    fields = HeaderParser().parsestr("\n".join(block))
    if 1 < len(fields) == len(block):
        return fields["subject"] or fields["title"]
    first, *others = join_lines(block) or [""]
    goes_on = bool(others) and first != block[0].rstrip()
    is_short = len(first) <= _LONGEST_HEADING and not first.endswith((".", ",", ";", ":"))
    return first.strip().lstrip("# ") if is_short and not goes_on and not _COLUMNS.search(first) else None


def _find_numbered(lines: Sequence[str]) -> dict[int, int]:
    """Return the levels of numbered headings by their lines. Items are numbered, too, so there are none unless some
    have numbers of several parts. Of headings of the same number, the first stands in a table of contents."""
    found: dict[str, int] = {}
    for number, line in enumerate(lines):
        alone = not (number and lines[number - 1].strip()) and not (lines[number + 1 : number + 2] or [""])[0].strip()
        if alone and len(line) <= _LONGEST_HEADING and (heading := _NUMBERED.fullmatch(line)):
            found[heading["number"]] = number
    if not any("." in number for number in found):
        return {}
    return {line: number.count(".") + 1 for number, line in found.items()}


def _is_underlined(line: str, following: str) -> bool:
    text = line.strip()
    return (
        0 < len(text) <= _LONGEST_HEADING
        and any(map(str.isalpha, text))
        and _UNDERLINE.fullmatch(following) is not None
        and abs(len(following.rstrip()) - len(line.rstrip())) <= 3
    )
