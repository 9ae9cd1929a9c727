"""Plain text."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from email.parser import HeaderParser
from itertools import dropwhile, islice, pairwise, takewhile, zip_longest
from types import MappingProxyType

from app.ingest.decoding import decode
from app.ingest.readers.assembly import Assembly, clean
from app.ingest.readers.man_page import add_man_page, is_man_page
from domain.documents import ParsedDocument
from domain.text.blocks import NARROWEST, find_item, is_wrapped
from domain.text.tables import is_row, split_cells

_UNDERLINE = re.compile(r"(?:([=~-])\1{2,}|([`^\"*+])\2{3,})\s*")
"""The second ones are reStructuredText's; three of them are other things, such as a fence of Markdown."""
_LONGEST_HEADING = 120
_COLUMNS = re.compile(r"\S(?:\t| {3,})\S")
"""The gap between two cells of a table."""
_MOST_LINES = 20
"""Lines at the beginning in which a title is looked for."""
_NUMBERED = re.compile(
    r"(?:[ \t]{1,8}(?=\w+\.\d))?(?P<number>(?:[A-Z]\.(?=\d))?\d{1,3}(?:\.\d{1,3})*)\.?[ \t]+(?=[^\W\d_]).*[^\s.,;:]\s*"
)
"""A numbered heading: "5. Project Leader", "5.1 Powers", "A.1. Scope". Indented, only a number of several parts is one,
because items are numbered too."""
_OTHER = re.compile(
    r"\w[ \t]*+=|(?<=[^\s.!?:])(?:\t| {2})\s*+\S|(?<=\S) {3}\s*+\S|\A\W{0,3}\d{4}-\d\d-\d\d|\A.{0,20}\d\d:\d\d:\d\d"
)
_OTHER_SIGNS = ("=", "\t", "  ", "-", ":")
"""What each part of `_OTHER` holds one of."""
_OTHER_STARTS = frozenset("#$%;<>@[{|}/\\")
_COMMENT = re.compile(r"[ \t]*+#(?!#*+[ \t]*+$)")
_SETTING = re.compile(r"\s*+(?:[$>\[{}<]\s*+\S|[\w.-]++[ \t]*+=)")
_SETTING_ENDS = (";", "{", "}", "\\")
_GRID_RULE = re.compile(r"(?=.*?(?:--|==))[-=+|: \t]+")
_BOX = str.maketrans(dict.fromkeys("│║┃", " | ") | dict.fromkeys("─═━", "-") | dict.fromkeys("┌┬┐├┼┤└┴┘╔╦╗╠╬╣╚╩╝", "+"))
"""Lines of boxes, as consoles draw them, by those of tables drawn with ASCII."""
_RULE = re.compile(r"[ \t]*([-=_*~+])\1{9,}[ \t]*")
"""What sets a block off from the text around it."""
_NUMBER = re.compile(r"\d{1,9}")
_APART = re.compile(r"\S {3}|^ {3}|^[\W\d_]+$")
"""Lines at the edge of a page with a number of the page: it stands alone, or is set at a margin."""


def read_plain(source: str, data: bytes) -> ParsedDocument:
    """Read plain text.

    A short line underlined with ``===``, ``---`` or the like is a heading, and so is a line of its own with a number,
    where some have numbers of several parts. A short first line that does not end like a sentence is the title. Lines
    that only the margin broke are joined, and configuration and code are fenced, because lines beginning with # are no
    headings there. Manual pages as `man` prints them are read as such.
    """
    assembly = Assembly()
    text = clean(_join_pages(assembly, decode(data)))
    lines = text.split("\n")
    if is_man_page(lines):
        # `col -b` writes eight spaces as a tab. Indents tell what belongs together.
        return assembly.finish(add_man_page(assembly, text.expandtabs()), source)
    add_plain(assembly, text, _find_numbered(lines))
    return assembly.finish(_find_title(lines), source)


def add_plain(assembly: Assembly, text: str, numbered: Mapping[int, int] = MappingProxyType({})) -> None:
    """Append plain text, with its underlined headings. `numbered` has the levels of further headings, by line."""
    lines = text.split("\n")
    filled = [line.rstrip() for line in lines if line.strip()] or [""]
    margin = sorted(map(len, filled))[len(filled) * 9 // 10]
    indent = Counter(map(_count_indent, filled)).most_common(1)[0][0]
    block: list[str] = []
    marks: list[str] = []

    def flush() -> None:
        settings = sum(line.endswith(_SETTING_ENDS) or _SETTING.match(line) is not None for line in block)
        comments = sum(_COMMENT.match(line) is not None for line in block)
        if comments > 1 or (comments and settings) or 2 * settings > max(len(block), 2):
            assembly.add_code("\n".join(block))
        elif grid := _read_grid(block):
            assembly.add_table(grid, headers=1)
        else:
            assembly.add_block("\n".join(_join_lines(block, margin, indent)) if block else "")
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
        elif _RULE.fullmatch(line) and not (block and _COLUMNS.search(block[-1])):
            flush()
        elif line.strip():
            block.append(line.rstrip())
        else:
            flush()
    flush()


def _join_lines(block: Sequence[str], margin: int, indent: int) -> list[str]:
    """Return the lines of a paragraph or list. Those of prose are joined if the margin may have broken each of them.
    Lines of the text end at `margin` and begin at `indent`: what is further in is often typed as it stands."""
    joined: list[str] = []
    margin = max(margin, *map(len, block))
    starts = [place for place, line in enumerate(block) if not place or _is_apart(block, place)]
    for start, end in pairwise([*starts, len(block)]):
        lines = block[start:end]
        is_inner = _count_indent(lines[0]) > indent and not find_item(lines[0])
        is_prose = all(_goes_on(last, line, margin, is_inner=is_inner) for last, line in pairwise(lines))
        is_prose = is_prose and not any(map(_is_other, map(str.strip, lines)))
        joined += [" ".join([lines[0], *map(str.strip, lines[1:])])] if is_prose else lines
    return joined


def _is_other(line: str) -> bool:
    """Return True for a line that is no prose: of configuration, code, a table, a log, or typed at a prompt."""
    if line[0] in _OTHER_STARTS or line.endswith(_SETTING_ENDS):
        return True
    return any(sign in line for sign in _OTHER_SIGNS) and _OTHER.search(line) is not None


def _goes_on(line: str, following: str, margin: int, *, is_inner: bool) -> bool:
    """Return True if the margin may have broken the line: the first word of the next had no room or, broken by hand, is
    in lower case. Settings begin with the same word."""
    word = following.split(maxsplit=1)[0]
    if margin < NARROWEST or word == line.split(maxsplit=1)[0]:
        return False
    return len(line) + 1 + len(word) > margin or (word[0].islower() and 2 * len(line) > margin and not is_inner)


def _count_indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _is_apart(block: Sequence[str], place: int) -> bool:
    """Return True for a line that goes on with none."""
    return bool(find_item(block[place])) or is_row(block[place]) or is_row(block[place - 1])


def _read_grid(block: Sequence[str]) -> list[list[str]]:
    """Return the rows of a table that is drawn with characters, the first of which is its header; none for a block that
    is no such table. Where each row is ruled off, it may have several lines."""
    block = [line.translate(_BOX).strip() for line in block]
    rules = [place for place, line in enumerate(block) if _GRID_RULE.fullmatch(line)]
    if not any("+" in block[place] for place in rules) or not all(
        "|" in line or place in rules for place, line in enumerate(block)
    ):
        return []
    parts = [block[start + 1 : end] for start, end in pairwise([-1, *rules, len(block)]) if end > start + 1]
    rows = [[split_cells(line) for line in part] for part in parts]
    if len(rows) > 2:
        return [[" ".join(cells).strip() for cells in zip_longest(*lines, fillvalue="")] for lines in rows]
    return [cells for lines in rows for cells in lines] if len(rows) == 2 else []


def _join_pages(assembly: Assembly, text: str) -> str:
    """Return the text of pages, which form feeds part, without their numbers and what is set beside these. Other lines
    that begin or end most of the pages are said once. What is left out is counted."""
    pages = [page.strip("\r\n").split("\n") for page in text.split("\f")]
    letters = 0
    for edge in (0, -1):
        alike: dict[str, list[int]] = {}
        for place, page in enumerate(pages):
            alike.setdefault(_NUMBER.sub("", page[edge]).strip(), []).append(place)
        places = max(alike.values(), key=len)
        lines = [pages[place][edge] for place in places]
        columns = [*zip(*(map(int, _NUMBER.findall(line)) for line in lines), strict=True)]
        changing = [column for column in columns if len({*column}) > 1]
        if len(places) > 2 and 2 * len(places) > len(pages) and any(map(str.strip, lines)):
            if changing and not (_counts_pages(changing, places) and all(map(_APART.search, lines))):
                continue
            for place in places if changing else places[1:]:
                letters += sum(map(str.isalnum, pages[place].pop(edge))) if len(pages[place]) > 1 else 0
    assembly.skip("character", "at the edges of pages, which repeat them", letters)
    return "\n\n".join("\n".join(page).strip("\r\n") for page in pages) if len(pages) > 1 else text


def _counts_pages(columns: Sequence[Sequence[int]], places: Sequence[int]) -> bool:
    """Return True for numbers that go up with the pages, and that so few pages can have."""
    return all(
        column[0] <= places[0] + 1 and len({number - place for number, place in zip(column, places, strict=True)}) == 1
        for column in columns
    )


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
    first, *others = block or [""]
    if others and is_wrapped(first, others[0], max(map(len, block))):
        first = f"{first.rstrip()} {others[0].strip()}" if len(others) == 1 else ""
    elif others and first[0].isdigit() and others[0][0].isdigit():  # entries of a list or log
        return None
    first = first.strip().lstrip("# ")
    is_short = len(first) <= _LONGEST_HEADING and not first.endswith((".", ",", ";", ":"))
    return first if is_short and first and not _is_other(first) else None


def _find_numbered(lines: Sequence[str]) -> dict[int, int]:
    """Return the levels of numbered headings by their lines. Items are numbered, too, so there are none unless some
    have numbers of several parts. Of headings of the same number, the first stands in a table of contents."""
    found: dict[str, int] = {}
    for number, line in enumerate(lines):
        heading = _NUMBERED.fullmatch(line) if len(line) <= _LONGEST_HEADING else None
        if heading is None or (number and lines[number - 1].strip()):
            continue
        below = (lines[number + 1 : number + 2] or [""])[0]
        if not below.strip() or (
            "." in heading["number"] and not is_wrapped(line, below, len(below)) and not find_item(below)
        ):
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
        and not _COLUMNS.search(text)
    )
