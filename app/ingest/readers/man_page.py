"""Manual pages as `man` prints them: sections at the margin, terms, and below each term, further in, what it means.

https://man7.org/linux/man-pages/man7/man-pages.7.html and groff_man(7) have the form.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from app.ingest.readers.assembly import BREAK, Assembly
from domain.text.blocks import find_item

_HEADER = re.compile(r"(\S+\([0-9]\w{0,4}\))[ \t].{0,200}[ \t](\S+\([0-9]\w{0,4}\))[ \t]*")
_HYPHEN = re.compile(r"(?<=\w)\u2010\n[ \t]*(?=\w)")
"""U+2010 at the end of a line: man has cut the word. A hyphen of the word itself is U+002D."""
_CUT = re.compile(r"(?<![^\W\d_])([^\W\d_]++)-\n[ \t]*(?=([^\W\d_]+))")
"""In ASCII, man cuts words with U+002D too. They are joined where the page also has the word in one."""
_COLUMNS = re.compile(r"(\S+(?: \S+)*)[ \t]{2,}(\S.*)")
"""A term and, in the same line, the beginning of its meaning."""
_SUBSECTION = 3
"""Indentation of subsections; that of text is 7."""
_SHORTEST = 12
"""Columns from a term to its meaning in the same line, at most, where nothing follows that shows it. Chosen: groff
indents by 7."""
_BULLETS = frozenset("•○◦●▪o+*-")
_SYNOPSIS = frozenset({"SYNOPSIS", "SYNTAX", "ÜBERSICHT"})
"""Sections whose lines are code (man-pages(7)), in English and German."""

_SLACK = 4
"""Columns by which text may end before the page's header does. Chosen by hand."""

_MOST_LINES = 500
"""Lines of a block; a longer one is read in parts, because each of its lines may begin something."""

_Line = tuple[int, str]
"""Indentation, and what follows it."""


def is_man_page(lines: Sequence[str]) -> bool:
    """Return True for a text whose first line names the page at both ends."""
    first = next((line for line in lines if line.strip()), "")
    header = _HEADER.fullmatch(first.strip())
    return header is not None and header[1].casefold() == header[2].casefold()


def add_man_page(assembly: Assembly, text: str) -> str:
    """Append a manual page, without the line above and below each page, and return its name, such as "rsync(1)"."""
    words = set(map(str.lower, re.findall(r"[^\W\d_]+", text)))
    text = _CUT.sub(lambda cut: cut[1] if (cut[1] + cut[2]).lower() in words else cut[0], _HYPHEN.sub("", text))
    lines = text.split("\n")
    header = next(line for line in lines if line.strip())
    name, width = header.split()[0], min(len(header.rstrip()), max(map(len, lines)))
    terms: list[int] = []
    section = ""
    for block in _find_blocks(lines, name):
        is_code = len(block) > 1 and block[1][0] < block[0][0]  # too long for the page, it goes on at its margin
        while block:
            while terms and block[0][0] <= terms[-1]:
                assembly.close_definition()
                terms.pop()
            section = block[0][1] if block[0][0] == 0 else section
            if (section in _SYNOPSIS and block[0][0]) or is_code:
                assembly.add_code("\n".join(" " * indent + text for indent, text in block), "")
                break
            block = _add(assembly, block, terms, width)
    for _ in terms:
        assembly.close_definition()
    return name


def _find_blocks(lines: Sequence[str], name: str) -> Iterator[list[_Line]]:
    block: list[_Line] = []
    for line in (*lines, ""):
        text = line.strip()
        is_end = text.casefold().endswith(name.casefold())
        is_around = is_end and (len(text) == len(name) or (text[:1] == line[:1] and "  " in text))
        if text and not is_around:
            block.append((len(line) - len(line.lstrip()), text))
        if block and (not text or is_around or len(block) >= _MOST_LINES):
            yield block
            block = []


def _add(assembly: Assembly, block: list[_Line], terms: list[int], width: int) -> list[_Line]:
    """Append what the block begins with, and return the rest of it. `terms` has the indentation of each term whose
    meaning is open."""
    indent, text = block[0]
    rest = block[1:]
    if indent == 0 or (indent <= _SUBSECTION and not terms and (not rest or rest[0][0] > indent)):
        assembly.add_heading(3 if indent else 2, text)
        return rest
    columns = _COLUMNS.fullmatch(text)
    start = indent + columns.start(2) if columns else 0
    is_row = start == _find_column(block[0]) and (
        start == _find_column(rest[0]) if rest else start <= indent + _SHORTEST
    )
    if columns and (is_row or (rest and rest[0][0] == start)):
        rest = [(start, columns[2]), *rest]
        text = columns[1]
    elif text in _BULLETS and not rest:
        return []
    elif not rest or rest[0][0] <= indent:
        return _add_text(assembly, block, width)
    if text in _BULLETS and len(rest) == 1 and rest[0][1].endswith(":"):  # it names what stands below, further in
        text, rest = rest[0][1].rstrip(":"), []
    if text in _BULLETS:
        return _add_item(assembly, rest, width)
    assembly.add_definition(text)
    assembly.open_definition()
    terms.append(indent)
    return rest


def _find_column(line: _Line) -> int:
    """Return the column in which the second of the line's two parts begins; -1 where it has not two. A line that is
    stretched to the margin has more."""
    columns = _COLUMNS.fullmatch(line[1])
    return line[0] + columns.start(2) if columns and "  " not in columns[2] else -1


def _add_item(assembly: Assembly, block: list[_Line], width: int) -> list[_Line]:
    assembly.open_item()
    rest = _add_text(assembly, block, width)
    assembly.close_item()
    return rest


def _add_text(assembly: Assembly, block: list[_Line], width: int) -> list[_Line]:
    """Append the lines of one indentation as a paragraph, joined where only the margin broke them; as code where it
    broke none, or no line ends like a sentence."""
    indent = block[0][0]
    count = next((place for place, (each, _) in enumerate(block) if each < indent), len(block))
    lines = [" " * (each - indent) + text for each, text in block[:count]]
    joined = [lines[0]]
    for before, line in pairwise(lines):
        if line[0] != " " and not find_item(line) and _is_full(before, line, width - indent):
            joined[-1] += f" {line}"
        else:
            joined.append(line)
    if len(joined) > 1 and (len(joined) == len(lines) or not any(line.endswith(".") for line in joined)):
        assembly.add_code("\n".join(lines), "")
    else:
        assembly.add_paragraph(BREAK.join(joined))
    return block[count:]


def _is_full(before: str, line: str, width: int) -> bool:
    """Return True where the line's first word would not have fitted on the one before: man fills lines."""
    return len(before.rstrip()) + 1 + len(line.split(maxsplit=1)[0]) > width - _SLACK
