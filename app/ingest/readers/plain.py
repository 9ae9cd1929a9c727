"""Plain text."""

import re

from app.ingest.decoding import decode
from app.ingest.readers.assembly import Assembly, clean
from domain.documents import ParsedDocument

_UNDERLINE = re.compile(r"(={3,}|-{3,}|~{3,})\s*")
_LONGEST_HEADING = 120


def read_plain(source: str, data: bytes) -> ParsedDocument:
    """Read plain text.

    A short line underlined with ``===``, ``---`` or ``~~~`` is a heading. A short first line that does not end like a
    sentence is the title.
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
    gap, block = "\n\n", list[str]()
    marks: list[str] = []

    def flush() -> None:
        assembly.add_block("\n".join(block), gap=gap)
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
        else:
            block.append(line.rstrip())
    flush()


def _is_underlined(line: str, following: str) -> bool:
    text = line.strip()
    return (
        0 < len(text) <= _LONGEST_HEADING
        and any(map(str.isalpha, text))
        and _UNDERLINE.fullmatch(following) is not None
        and abs(len(following.rstrip()) - len(line.rstrip())) <= 3
    )
