"""Plain text."""

import re

from app.ingest.decoding import decode
from app.ingest.readers.assembly import Assembly, clean
from domain.documents import ParsedDocument
from domain.text.blocks import find_item, is_wrapped
from domain.text.tables import is_row

_UNDERLINE = re.compile(r"(={3,}|-{3,}|~{3,})\s*")
_LONGEST_HEADING = 120


def read_plain(source: str, data: bytes) -> ParsedDocument:
    """Read plain text.

    A short line underlined with ``===``, ``---`` or ``~~~`` is a heading. A short first line that does not end like a
    sentence is the title. Lines that only the margin broke are joined.
    """
    text = clean(decode(data))
    assembly = Assembly()
    add_plain(assembly, text)
    first = next((line.strip() for line in text.split("\n") if line.strip()), "")
    looks_like_title = 0 < len(first) <= _LONGEST_HEADING and not first.endswith((".", ",", ";", ":"))
    return assembly.finish(first if looks_like_title else None, source)


def add_plain(assembly: Assembly, text: str) -> None:
    """Append plain text, with its underlined headings."""
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


def _is_underlined(line: str, following: str) -> bool:
    text = line.strip()
    return (
        0 < len(text) <= _LONGEST_HEADING
        and any(map(str.isalpha, text))
        and _UNDERLINE.fullmatch(following) is not None
        and abs(len(following.rstrip()) - len(line.rstrip())) <= 3
    )
