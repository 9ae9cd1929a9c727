"""Manual pages as `man` prints them: sections at the margin, terms, and below each term, further in, what it means.

https://man7.org/linux/man-pages/man7/man-pages.7.html has the form.
"""

import re
import textwrap
from collections.abc import Sequence
from itertools import pairwise

from app.ingest.readers.assembly import BREAK, Assembly
from domain.text.blocks import find_item

_HEADER = re.compile(r"(\S+\([0-9]\w{0,4}\))[ \t].{0,200}[ \t](\S+\([0-9]\w{0,4}\))[ \t]*")
_HYPHEN = re.compile(r"(?<=\w)\u2010\n[ \t]*(?=\w)")
"""U+2010 at the end of a line: man has cut the word. A hyphen of the word itself is U+002D."""
_COLUMNS = re.compile(r"(\S+(?: \S+)*)( {2,})(?=\S)(?!.*\S {2,}\S)")
"""A term before, in the same line, its meaning. A line that is stretched to the margin has more gaps."""
_BULLET = re.compile(r"^ *[•○◦●▪o] {2,}(?=\S)")
_CODE = frozenset({"SYNOPSIS", "SYNTAX", "ÜBERSICHT"})
"""Sections whose lines are code (man-pages(7)), in English and German."""
_SUBSECTION = 3
"""Indentation of subsections; that of text is 7."""
_SLACK = 4
"""Columns by which text may end before the page's header does. Chosen by hand."""


def is_man_page(lines: Sequence[str]) -> bool:
    """Return True for a text whose first line names the page at both ends."""
    first = next((line for line in lines if line.strip()), "")
    header = _HEADER.fullmatch(first.strip())
    return header is not None and header[1].casefold() == header[2].casefold()


def add_man_page(assembly: Assembly, text: str) -> str:
    """Append a manual page, without the lines above and below each page, and return its name, such as "rsync(1)"."""
    header = next(filter(str.strip, text.split("\n"))).rstrip()
    name, width, section = header.split()[0], min(len(header), max(map(len, text.split("\n")))) - _SLACK, ""
    terms: list[int] = []
    block: list[str] = []
    for line in [*_HYPHEN.sub("", text).split("\n"), ""]:
        indent = _count_indent(line)
        if line.rstrip().casefold().endswith(name.casefold()) and (not indent or "  " in line.strip()):
            continue
        is_heading = line.strip() and (indent == 0 or (indent <= _SUBSECTION and not block))
        if block and (is_heading or not line.strip()):
            _add(assembly, block, terms, width, is_code=section in _CODE)
            block = []
        if is_heading:
            _close(assembly, terms, 0)
            assembly.add_heading(3 if indent else 2, line)
            section = section if indent else line.strip()
        elif line.strip():
            block.append(line.rstrip())
    _close(assembly, terms, 0)
    return name


def _add(assembly: Assembly, block: list[str], terms: list[int], width: int, *, is_code: bool) -> None:
    """Append a paragraph: lines of code, terms with their meanings, or text. `terms` has the indentation of each term
    whose meaning goes on."""
    indents = [*map(_count_indent, block)]
    columns = [_COLUMNS.match(line, indent) for line, indent in zip(block, indents, strict=True)]
    first = columns[0]
    _close(assembly, terms, indents[0])
    if is_code:
        assembly.add_code(textwrap.dedent("\n".join(block)))
    elif _BULLET.match(block[0]):
        assembly.open_item()
        assembly.add_paragraph(_join([_BULLET.sub("", block[0]), *block[1:]], width))
        assembly.close_item()
    elif first and len(block) > 1 and indents[1] == first.end():
        _define(
            assembly,
            terms,
            indents[0],
            first[1],
            _join([" " * first.end() + block[0][first.end() :], *block[1:]], width),
        )
    elif len(block) > 1 and indents[1] > indents[0]:
        _define(assembly, terms, indents[0], block[0], _join(block[1:], width))
    elif first and all(each and each.end() == first.end() for each in columns):
        for line in block:
            _close(assembly, terms, indents[0])
            _define(assembly, terms, indents[0], line[: first.end()], line[first.end() :])
    elif BREAK in (text := _join(block, width)) and not any(line.endswith(".") for line in block):
        assembly.add_code(textwrap.dedent("\n".join(block)))
    else:
        assembly.add_paragraph(text)


def _define(assembly: Assembly, terms: list[int], indent: int, term: str, meaning: str) -> None:
    assembly.add_definition(term)
    assembly.open_definition()
    assembly.add_paragraph(meaning)
    terms.append(indent)


def _close(assembly: Assembly, terms: list[int], indent: int) -> None:
    while terms and indent <= terms[-1]:
        assembly.close_definition()
        terms.pop()


def _count_indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _join(lines: Sequence[str], width: int) -> str:
    """Return lines, joined where the first word of the next had no room."""
    joined = lines[0]
    for before, line in pairwise(lines):
        is_full = len(before) + 1 + len(line.split(maxsplit=1)[0]) > width and not find_item(line.strip())
        joined += f"{' ' if is_full else BREAK}{line.strip()}"
    return joined
