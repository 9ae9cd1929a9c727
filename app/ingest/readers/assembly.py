"""Shared by all readers: cleaning characters for storage, and assembling blocks into text with sections."""

import re
import textwrap
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice, pairwise, zip_longest
from pathlib import PurePath

from domain.documents import Link, ParsedDocument, Section, Unread, UnreadKind, Unseen
from domain.text.tables import join_cells, write_rule

_FORMS = (
    (0xFB00, 0xFDCF), (0xFDF0, 0xFDFF), (0xFE70, 0xFEFC),  # ligatures, and Arabic letters as they stand in words
    (0xFF10, 0xFF19), (0xFF21, 0xFF3A), (0xFF41, 0xFF5A), (0xFF66, 0xFF9F),  # wide letters and digits, narrow kana
)  # fmt: skip
_REPLACED = str.maketrans(
    {
        **{chr(c): unicodedata.normalize("NFKC", chr(c)) for start, end in _FORMS for c in range(start, end + 1)},
        **{chr(code): None for code in (*range(0x20), *range(0x7F, 0xA0))},  # Postgres refuses NUL; none is text
        **{chr(code): "�" for code in range(0xD800, 0xE000)},  # lone surrogates cannot be encoded
        **dict.fromkeys("\u200b\u2060\ufeff\u00ad\ufffe\uffff"),  # invisible, and they break words for search
        **dict.fromkeys("\u00a0\u2007\u202f", " "),
        **dict.fromkeys("\n\u0085\u2028\u2029\v\f", "\n"),
        "\t": "\t",
    }
)
_ANY_REPLACED = re.compile("[" + re.escape("".join(chr(c) for c, new in _REPLACED.items() if new != chr(c))) + "]")
"""Finds whether there is anything to replace, ten times faster than replacing; most texts have nothing."""
MOST_HEADERS = 3
"""Rows of a header that are joined. Chosen, as for sheets: more are no header that people write."""
_TERMINAL = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]P^_X][^\x07\x1b]{0,2000}(?:\x07|\x1b\\)|[ -/]*[0-~]|$)")
"""What tells a terminal how to show what follows."""
_LONGEST_TERMS = 200
"""Limit, in characters, of terms that share a line. Chosen: longer ones are a list whose meanings are missing."""

_MOST_TRIED, _MOST_QUOTED = 100, 5
"""Words of a file that are looked for in its text, and those that are quoted as missing there."""

MOST_UNREAD = 50
"""Kinds and places of what is not read that are told apart."""
MOST_UNSEEN = 20_000
"""Characters that are kept of what nobody sees. Chosen: what a person may read through."""
UNSEEN_LETTERS = "in hidden, tiny or white letters"
_MAX_TITLE = 200
_TURNS = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""What turns the direction of text: a title with it shows other letters than it has."""
_PLACEHOLDER = re.compile(
    r"[\[<{(][^\[\]<>{}()]*[\]>})]"
    r"|(?:untitled|new|word|powerpoint)?[- ]?(?:untitled|document|page|presentation)[- ]?\d*",
    re.IGNORECASE,
)
"""A title of a template, such as "[Organization Name]", or of a program, such as "Untitled document"."""
_INLINE = re.compile(r"<(em|strong|i|b|code|sub|sup|span|small|tt)\b[^<>]*>([^<>]*)</\1>")
"""Markup in a title, which is text: site generators copy it there from the heading."""
_DEEPEST_HEADING = 6

_RAISED, _LOWERED = "0123456789+-=()n", "0123456789+-=()"
_RAISE = str.maketrans(_RAISED, "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿ")
_LOWER = str.maketrans(_LOWERED, "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎")

_WORD = re.compile(r"[^\W\d_]+")
FIELD = "\ufffc"
"""What a program fills in, such as the number of a page."""
BREAK = "\v"
"""A line break that is meant, within a paragraph."""


def clean(text: str) -> str:
    """Return the text in Unicode form NFC, with plain line ends, without characters that cannot be stored or seen."""
    if not text.isprintable() or not unicodedata.is_normalized("NFKC", text):  # else nothing is to be replaced
        text = text.replace("\r\n", "\n")
        if "\x1b" in text or "\b" in text:
            text = replay(text if "\n" in text else text.replace("\r", "\n"))
        text = text.replace("\r", "\n")
        text = text.translate(_REPLACED) if _ANY_REPLACED.search(text) else text
    return unicodedata.normalize("NFC", text)


def replay(text: str) -> str:
    """Return what a terminal shows in the end of what was written to it: without colours and titles, and of each line
    the last that was written over it."""
    shown: list[str] = []
    for each in _TERMINAL.sub("", text):
        if each == "\b":
            shown[-1:] = ["\n"] if shown[-1:] == ["\n"] else []
        else:
            shown.append(each)
    return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in "".join(shown).split("\n"))


def flatten(text: str) -> str:
    """Return the paragraphs and items of a cell, which two line breaks part, on one line."""
    flat = ""
    for part in filter(None, map(squeeze, re.split(rf"{BREAK}\s*{BREAK}", text))):
        flat += f"{' ' if unlink(flat)[-1] in '.,;:!?' else '; '}{part}" if flat else part
    return flat


def squeeze(text: str) -> str:
    """Return the cleaned text on one line with single spaces."""
    text = clean(text)
    is_squeezed = text.isprintable() and "  " not in text
    return text.strip() if is_squeezed else " ".join(text.split())


def name_title(source: str) -> str:
    """Derive a title from a path, file name or address: the last part without extension, underscores replaced by
    spaces."""
    last = re.split(r"[/\\]", re.sub(r"[?#].*", "", source) if "://" in source else source.rstrip("/\\"))[-1]
    return squeeze(PurePath(last).stem.replace("_", " ")) or squeeze(source) or "Untitled"


_OPEN, _NAMED, _CLOSE = "\ufdd0", "\ufdd1", "\ufdd2"
"""Mark a link within the words of a block until its offsets are known: opening, number of its address, words, end.
These are no characters of any text."""
_LINK = re.compile(f"{_OPEN}(\\d{{1,9}}){_NAMED}|[{_OPEN}{_NAMED}{_CLOSE}]")


_SITE = re.compile(r"https?://[^\s()|]{4,200}")
_ROOM, _SHARE = 2000, 20
"""Characters of addresses that a text may show, and one of so many more. Chosen: a text is not swamped with them."""
_MOST_SHOWN = 2
"""Links of a line whose addresses are shown. Chosen: a line with more is a list of references or of a page's own."""


@dataclass
class _Container:
    """Something that blocks stand in: an item, a quote or a definition. Its first line begins with `first`, all others
    with `rest`."""

    first: str
    rest: str
    is_begun: bool = False


class Assembly:
    """Assembles blocks in reading order into one text of canonical Markdown; headings open sections.

    The form is that of `domain/text/blocks.py`. Readers say what a block is, and never write Markdown themselves:

    - `add_heading`, `add_paragraph`, `add_code`, `add_table`, `add_definition` append a block.
    - What is added between `open_item` and `close_item` belongs to that item, and between `open_quote` and
      `close_quote` to that quote. Both may be nested. `add_item` is for formats that know only an item's depth.
    - `label` says what the next block is, such as "Note".
    - `link` marks words as a link. Its address is kept in `ParsedDocument.links`, apart from the text.
    - `add_block` and `open_section` append text as it is, for formats without structure, and return offsets.
    - `leave_out`, `skip` and `expect` say what of the file is not in the text.

    Texts may hold any white space: paragraphs and cells are squeezed to single blanks, and a line break that is meant
    is a vertical tab, `BREAK`.
    """

    def __init__(self) -> None:
        self._unread: Counter[tuple[UnreadKind, str]] = Counter()
        self._unseen: list[Unseen] = []
        self._missing: Counter[str] = Counter()
        """Letters of the file's own text, without those that are left out with a reason."""
        self._own, self._told = list[str](), list[str]()
        """The file's own text, and what of it is read or left out with a reason."""
        self._parts: list[str] = []
        self._length = 0
        self._headings: list[tuple[int, str]] = []
        self._sections: list[tuple[int, tuple[str, ...]]] = [(0, ())]
        self._containers: list[_Container] = []
        self._items: list[int] = []
        self._depths: list[int] = []
        """Of the open items that `add_item` began."""
        self._addresses: list[str] = []
        self._shown = 0
        """Characters of addresses in the text."""
        self._links: list[Link] = []
        self._ended_as = ""
        self._label = ""
        self._term = (0, 0)
        """The start of the last term, or of those that share its line, and the number of containers around it."""
        self._item = (0, False)
        """The depth of the last item, and whether it is a step."""

    def leave_out(self, text: str, why: str) -> None:
        """Count words that nobody sees, and keep the first `MOST_UNSEEN` characters of them. `why` goes on "words" in a
        sentence, such as "in a hidden row"."""
        self.pass_over(text)
        text = squeeze(text)
        self.skip("hidden word", why, len(text.split()))
        text = text[: max(0, MOST_UNSEEN - sum(len(each.text) for each in self._unseen))]
        if text and self._unseen and self._unseen[-1].why == why:
            text = f"{self._unseen.pop().text} {text}"
        if text:
            self._unseen.append(Unseen(text, why))

    def skip(self, kind: UnreadKind, where: str = "", number: int = 1) -> None:
        """Count something that is not read. `where` goes in brackets, such as "on slide 3"."""
        is_listed = (kind, where) in self._unread or len(self._unread) < MOST_UNREAD
        self._unread[kind, where if is_listed else ""] += number

    def expect(self, own: str) -> None:
        """Say that this is the file's own text, of which the letters that are not in the document's are counted at the
        end: nothing is to vanish that no rule names."""
        self._missing.update(_count_letters(own))
        self._own.append(own)

    def pass_over(self, text: str) -> None:
        """Say that these words of the file's own text are left out with a reason."""
        self._missing.subtract(_count_letters(text))
        self._told.append(text)

    def add_edges(self, edges: Mapping[str, Iterable[str]], text: str = "") -> None:
        """Append what page headers and footers say and nothing else does. `FIELD` stands for numbers of pages there."""
        said = {*_WORD.findall((text or "".join(self._parts)).lower())}
        for kind, texts in edges.items():
            new = [
                squeeze(text.replace(FIELD, " "))
                for text in dict.fromkeys(texts)
                if len({*_WORD.findall(text.lower())} - said) > 2 * (FIELD in text)  # "Page 1 of 2"
            ]
            if new:
                self.label(f"Page {kind}")
                self.add_paragraph(BREAK.join(new))

    def add_heading(self, level: int, text: str) -> None:
        """Append a heading and open its section. `level` counts from 1, the outermost; deeper sections end here. Within
        an item or a quote it is a paragraph."""
        self.end_label()
        if self._containers:
            self.add_paragraph(text)
        elif text := squeeze(text):
            start = self._add(f"{'#' * min(max(level, 1), _DEEPEST_HEADING)} {text}", "heading")
            self.open_section(level, unlink(text).replace("`", ""), start)

    def label(self, words: str) -> None:
        """Say what the next block is, such as a note or what is in a tab: a paragraph has the words before its own, and
        above any other block they are a paragraph."""
        self.end_label()
        self._label = squeeze(words)

    def end_label(self) -> None:
        """Append the label that waits for a block as a paragraph."""
        label, self._label = self._label, ""
        if label:
            self.add_paragraph(_end(label))

    def add_paragraph(self, text: str) -> None:
        """Append a paragraph. `BREAK` ends a line; all other white space is one blank. It replaces one whose words it
        ends with: the description of a picture above its caption."""
        text = "\n".join(filter(None, map(squeeze, text.split(BREAK))))
        if self._label and text:
            text, self._label = f"{_end(self._label)} {text}", ""
        last = self._parts[-1] if self._ended_as == "paragraph" and not self._containers else ""
        if " " in last and last[-1].isalnum() and f" {unlink(text)}".endswith(f" {last}"):
            self._length -= sum(map(len, self._parts[-2:]))
            del self._parts[-2:]
            while self._links and self._links[-1].end > self._length:
                self._links.pop()
        self._add(text, "paragraph")

    def add_code(self, code: str, language: str = "") -> None:
        """Append lines of code, fenced."""
        code = clean(unlink(code)).strip("\n").rstrip()
        if code.strip():
            fence = "`" * max(3, count_backticks(code) + 1)
            named = re.sub(r"[^\w+#.-]", "", language)
            self._add(f"{fence}{named}\n{textwrap.dedent(code)}\n{fence}", "code")

    def add_table(self, rows: Sequence[Sequence[str]], *, headers: int = 0, caption: str = "") -> None:
        """Append a table, of which the first `headers` rows are its header. `caption` says what it is about, its period
        or its unit. A table with one column is a list of paragraphs."""
        self.end_label()
        self.add_paragraph(caption)
        cells = [[squeeze(cell).replace("|", "\\|") for cell in row] for row in rows]
        if 1 < headers <= MOST_HEADERS:
            cells, headers = [join_headers(cells[:headers]), *cells[headers:]], 1
        lines = [join_cells(row) for row in cells]
        if headers and any(map(any, cells[:headers])):
            width = max(len(row) for row in cells)
            if width > 1:
                lines.insert(headers, write_rule(width))
        self._add("\n".join(line for line in lines if line.strip(" |")), "table")

    def add_definition(self, term: str) -> None:
        """Append a term. Each `open_definition` after it begins one of its meanings. Terms that follow each other, such
        as the short and the long name of an option, share them."""
        self.end_label()
        term = squeeze(term)
        start, depth = self._term
        is_next = self._ended_as == "term" and depth == len(self._containers)
        if is_next and self._length + len(term) - start <= _LONGEST_TERMS:
            self._append(term, ", ")
        else:
            self._term = self._add(term, "term"), len(self._containers)

    def open_definition(self) -> None:
        """Begin a meaning of the term that was added last. Ends with `close_definition`."""
        self._open(": ", "  ")

    def close_definition(self) -> None:
        """End the meaning that was begun last."""
        self.end_label()
        self._containers.pop()
        self._ended_as = "meaning" if self._ended_as == "item" else "definition"

    def open_item(self, number: int | None = None) -> None:
        """Begin an item: a step with this number, or one with a bullet. Ends with `close_item`."""
        marker = "- " if number is None else f"{number}. "
        self._items.append(len(self._containers))
        self._open(marker, " " * len(marker))

    def close_item(self) -> None:
        """End the item that was begun last."""
        self.end_label()
        del self._containers[self._items.pop() :]

    def add_item(self, text: str, depth: int = 0, number: int | None = None) -> None:
        """Append an item of one paragraph, within those that are less deep: `depth` counts from 0, the outermost, and
        may skip a level. The item stays open for what is deeper or belongs to it: call `close_items` before anything
        else."""
        outer = sum(other < depth for other in self._depths)
        self.close_items(outer)
        self._depths.append(depth)
        self.open_item(number)
        self.add_paragraph(text)

    def close_items(self, kept: int = 0) -> None:
        """End all items but the `kept` outermost."""
        while len(self._items) > kept:
            self.close_item()
        del self._depths[kept:]

    def open_quote(self) -> None:
        """Begin a quote. Ends with `close_quote`."""
        self._open("> ", "> ")

    def close_quote(self) -> None:
        """End the quote that was begun last."""
        self.end_label()
        self._containers.pop()
        self._ended_as = "quote"

    def link(self, words: str, address: str) -> str:
        """Return the words, marked as a link for the block that they are added with. A mail address that the words do
        not show follows them, because people look for it."""
        if not words.strip() or not address:
            return words
        mail = address[7:].partition("?")[0] if address.startswith("mailto:") else ""
        shown = f" ({mail})" if mail.lower() not in unlink(words).lower() else ""
        self._addresses.append(address)
        return f"{_OPEN}{len(self._addresses) - 1}{_NAMED}{words}{_CLOSE}{shown}"

    def open_section(self, level: int, text: str, start: int) -> None:
        """Open a section at `start` under a heading that is already in the text. A second call for the same `start`
        corrects the heading."""
        while self._headings and self._headings[-1][0] >= level:
            self._headings.pop()
        self._headings.append((level, text))
        path = tuple(heading for _, heading in self._headings)
        while self._sections and self._sections[-1][0] >= start:
            self._sections.pop()
        self._sections.append((start, path))

    def add_block(self, text: str, *, gap: str = "\n\n") -> int:
        """Append cleaned text as it is and return its start. `gap` separates it from the block before."""
        self.end_label()
        text = text.strip("\n").rstrip()
        self._ended_as = ""
        return self._append(text, gap) if text else self._length

    def finish(self, title: str | None, source: str) -> ParsedDocument:
        """Return the document, without its media type. Without a title it is named by its first heading under which
        anything stands, then by its source."""
        self.end_label()
        text = "".join(self._parts)
        if self._missing:
            self.pass_over(text)
            if missing := (+self._missing).total():
                self.skip("character", f"of the file's own text{self._quote_lost()}", missing)
        ends = [start for start, _ in self._sections[1:]] + [self._length]
        sections = [Section(start, end, path) for (start, path), end in zip(self._sections, ends, strict=True)]
        title = squeeze(untag(unlink(title or "")))
        if not title or _PLACEHOLDER.fullmatch(title):
            named = [section for section in sections if section.heading_path]
            empty = {
                section.start
                for section, after in pairwise(named)
                if len(section.heading_path) >= len(after.heading_path)
                and "\n" not in text[section.start : section.end].strip()
            }
            filled = (section.heading_path[-1] for section in named if section.start not in empty)
            title = next(filled, name_title(source))
        return ParsedDocument(
            title=_TURNS.sub("", title)[:_MAX_TITLE],
            text=text,
            media_type="",
            sections=tuple(sections),
            links=tuple(self._links),
            unread=tuple(Unread(kind=kind, number=n, where=where) for (kind, where), n in self._unread.items() if n),
            unseen=tuple(self._unseen),
        )

    def _quote_lost(self) -> str:
        """Return the first words of the file's own text that are missing, to be added to a sentence; empty where none
        is missing as a whole."""
        told = clean(" ".join(self._told))
        words = {*_WORD.findall(told)}
        other = islice((w for own in self._own for w in _WORD.findall(clean(own)) if w not in words), _MOST_TRIED)
        lost = " ".join(islice((word for word in other if word not in told), _MOST_QUOTED))
        return f", such as “{lost}”" if lost else ""

    def _open(self, first: str, rest: str) -> None:
        self.end_label()
        self._containers.append(_Container(first, rest))

    def _add(self, text: str, kind: str) -> int:
        """Append a block within the containers that are open, and return its start."""
        if not text.strip():
            return self._length
        self.end_label()
        fresh = [each for each in self._containers if not each.is_begun]
        kept = "".join(each.rest for each in self._containers if each.is_begun)
        first = "".join(each.rest if each.is_begun else each.first for each in self._containers)
        rest = "".join(each.rest for each in self._containers)
        is_item = bool(fresh) and fresh[0].first != fresh[0].rest
        # Items and meanings follow one another without an empty line, as long as none holds more than a paragraph.
        is_tight = is_item and self._ended_as in (("term", "meaning") if fresh[0].first == ": " else ("item",))
        place = len(self._containers) - len(fresh), len(fresh) > 0 and fresh[0].first[0].isdigit()
        if is_item and fresh[0].first != ": ":
            is_tight &= self._item[0] != place[0] or self._item[1] == place[1]
            self._item = place
        gap = "\n" if is_tight else f"\n{kept.rstrip()}\n"
        for each in fresh:
            each.is_begun = True
        self._ended_as = "item" if is_item and kind == "paragraph" else kind
        lines = text.split("\n")
        return self._append("\n".join([first + lines[0], *((rest + line).rstrip() for line in lines[1:])]), gap)

    def _append(self, text: str, gap: str) -> int:
        if self._parts:
            self._parts.append(gap)
            self._length += len(gap)
        start = self._length
        text = self._take_links(text) if _OPEN in text else text
        self._parts.append(text)
        self._length += len(text)
        return start

    def _take_links(self, text: str) -> str:
        """Return the text without the marks of links, and keep the links with their offsets. In lines with few of them,
        addresses of other sites follow the words, which do not show them: "the form is here" says where."""
        written, position = "", 0
        opened: list[tuple[int, str]] = []
        for mark in _LINK.finditer(text):
            written += text[position : mark.start()]
            position = mark.end()
            if mark[1] and int(mark[1]) < len(self._addresses):
                opened.append((self._length + len(written), self._addresses[int(mark[1])]))
            elif mark[0] == _CLOSE and opened:
                start, address = opened.pop()
                self._links.append(Link(start, self._length + len(written), address))
                line = text[text.rfind("\n", 0, position) + 1 :].partition("\n")[0]
                shown = show_address(written[start - self._length :], address)
                room = _ROOM + self._length // _SHARE - self._shown
                if line.count(_NAMED) <= _MOST_SHOWN and not line.startswith("#") and len(shown) <= room:
                    written += shown
                    self._shown += len(shown)
        return written + text[position:]


def show_address(words: str, address: str) -> str:
    """Return in brackets what follows words that lead to an address of another site and do not show it."""
    bare = re.sub(r"^https?://(?:www\.)?|/$", "", address)
    is_sign = re.search(r"[^\W\d_]{2}", words) is None
    is_shown = is_sign or _SITE.fullmatch(address) is None or bare.lower() in words.lower()
    return "" if is_shown else f" ({address})"


def _count_letters(text: str) -> Counter[str]:
    """Count letters and digits, those that signs such as ² and ﬁ stand for."""
    counts = Counter(unicodedata.normalize("NFKC", text))
    return Counter({character: number for character, number in counts.items() if character.isalnum()})


def _end(label: str) -> str:
    return f"{label}:" if label and label[-1] not in ":.!?)]" else label


def join_headers(rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the rows of a header as one: in each column what they say, once, the names of groups first."""
    return [" ".join(dict.fromkeys(filter(None, column))) for column in zip_longest(*rows, fillvalue="")]


def unlink(text: str) -> str:
    """Return the text without the marks that `Assembly.link` puts around words."""
    return _LINK.sub("", text)


def untag(title: str) -> str:
    """Return a title without the tags of inline elements."""
    return _INLINE.sub(r"\2", title)


def count_backticks(text: str) -> int:
    """Return the length of the longest run of backticks."""
    return max(map(len, re.findall("`+", text)), default=0)


def spell_code(code: str) -> str:
    """Return inline code between as many backticks as it takes."""
    code = squeeze(code)
    ticks = "`" * (count_backticks(code) + 1)
    blank = " " if "`" in code else ""
    return f"{ticks}{blank}{code}{blank}{ticks}" if code else ""


def raise_up(text: str) -> str:
    """Return raised words: digits as raised digits, because 45² is not 452, and formulas in brackets. Raised letters
    are as they are, as in "1st"."""
    shown = text.strip()
    if shown and all(character in _RAISED for character in shown):
        return text.translate(_RAISE)
    return text if not shown or unlink(shown).replace(".", "").isalpha() or _OPEN in shown else f"^({shown})"


def lower(text: str) -> str:
    """Return lowered words: digits as lowered digits."""
    return text.translate(_LOWER) if all(character in _LOWERED for character in text.strip()) else text


def strike(text: str) -> str:
    """Return words that are struck out, marked as such."""
    words = text.strip()
    return text.replace(words, f"~~{words}~~", 1) if words else text


MARKS: Mapping[str, Callable[[str], str]] = {
    "sup": raise_up, "sub": lower, "s": strike, "del": strike, "strike": strike, "line-through": strike,
}  # fmt: skip
"""Elements of HTML, and a class of AsciiDoc, whose looks have a meaning."""


_ROMAN = (
    (1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl"), (10, "x"),
    (9, "ix"), (5, "v"), (4, "iv"), (1, "i"),
)  # fmt: skip
_MOST_ROMAN = 3999
_MOST_LETTERS = 10


def spell_number(number: int, *, is_roman: bool, is_upper: bool) -> str:
    """Return the number of an item as Roman numeral, or as letter: after z come aa and bb."""
    shown = chr(ord("a") + (number - 1) % 26) * min((number - 1) // 26 + 1, _MOST_LETTERS)
    if is_roman:
        shown, number = "", min(number, _MOST_ROMAN)
        for value, numeral in _ROMAN:
            shown += numeral * (number // value)
            number %= value
    return shown.upper() if is_upper else shown


Looks = frozenset[str]
"""What of the looks of words has a meaning: names of `MARKS`, and `hidden` as long as they are not left out."""


def mark(runs: Iterable[tuple[Looks, str]]) -> str:
    """Return words that look so, with the marks that say it."""
    marked = ""
    for looks, parts in groupby(runs, lambda each: each[0]):
        text = "".join(part for _, part in parts)
        for look in sorted(looks, reverse=True):  # what is struck has the marks around all others
            text = MARKS[look](text)
        marked += text
    return marked


def describes(words: str) -> bool:
    """Return True where the words that stand for a picture say what it shows. The name of a file, such as "Screenshot
    2024-01-31" or "image", does not."""
    return len(re.findall(r"[^\W\d_]+", words[:_MAX_TITLE])) >= 2 and not re.search(r"\d{4}|\.\w{3,4}$|_\w", words)
