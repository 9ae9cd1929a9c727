"""Web pages."""

import html
import re
from collections.abc import Callable
from dataclasses import dataclass

from selectolax.lexbor import LexborHTMLParser, LexborNode

from app.ingest.decoding import decode
from app.ingest.readers.assembly import (
    BREAK,
    MARKS,
    Assembly,
    describes,
    flatten,
    spell_code,
    spell_number,
    squeeze,
    unlink,
    untag,
)
from app.ingest.readers.equations import read_mathml
from app.ingest.readers.grids import has_header, is_figure
from app.ingest.readers.man_page import add_man_page, is_man_page
from app.ingest.readers.spans import Rows
from app.ingest.readers.web.markup import parse_html
from app.ingest.readers.web.page import BLOCKS, CELLS, Page, Style, count_letters, is_permalink
from domain.documents import ParsedDocument
from domain.errors import UnreadableDocument

_Ends = tuple[Callable[[], object], ...]
"""What ends an element."""
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_PARTS = BLOCKS | CELLS | _HEADINGS.keys()
_GROUPS = frozenset({"thead", "tbody", "tfoot"})
_BOXES = frozenset({"address", "article", "aside", "div", "figure", "form", "header", "p", "section"})
_ROW, _CELL = "\ufdd3", "\ufdd4"
"""End rows and cells of a table within a cell."""
_SIGNS = f" \n\t{BREAK}{_ROW}{_CELL}"
_BORDERS = re.compile(rf"(?<![ \n\t{BREAK}])[ \n\t{BREAK}]*+[{_ROW}{_CELL}][{_SIGNS}]*+")
_LONGEST_NAME = 60
"""Characters of a cell that says what a table beside it is of. Chosen."""
_MOST_CONTAINERS = 12
"""Limit of lists and quotes within one another, whose indentation would otherwise be longer than the text."""
_MOST_MARKS = 50
"""Limit of struck words, links and the like within one another."""
_MOST_TITLES = 8
_LONGEST_EXCUSE = 300
"""Limit, in characters, of what a page says that a script has still to fill. Chosen: two sentences."""
_NOTES = frozenset({"note", "tip", "warning", "caution", "important"})
"""Classes in which DocBook puts a note; the heading within is its label."""
_LANGUAGE = re.compile(r"\b(?:language|lang|highlight(?:-source)?)-([\w+#.-]{1,30})")
_NUMERALS = {"lower-alpha": "a", "lower-latin": "a", "upper-alpha": "A", "upper-latin": "A", "lower-roman": "i"} | {
    "upper-roman": "I", "a": "a", "A": "A", "i": "i", "I": "I"
}  # fmt: skip
_FIELDS = frozenset({"text", "number", "date", "time", "datetime-local", "email", "tel", "url", "month", "week"})
_IN_DRAWING = ", ".join(f"{tag}:not(svg svg *, text *, foreignObject *)" for tag in ("text", "foreignObject"))
"""What has the words of a drawing, once: within one another they would grow with the square of their number."""
_SMALL = re.compile(r"(?:[12]?\d|3[012])(?:px)?")
"""Width or height of an icon."""


def read_html(source: str, data: bytes) -> ParsedDocument:
    """Read a web page as its readers see it: without scripts, styles, navigation and what nothing opens.

    Raises `UnreadableDocument` if it is nested so deeply that parsing would take hours, and where a script has still to
    fill it.
    """
    tree = parse_html(decode(data))
    assembly = Assembly()
    title = _find_title(tree)
    add_html(assembly, tree)
    document = assembly.finish(title, source)
    if _waits_for_script(tree, document.text):
        raise UnreadableDocument(
            "The page shows its text only with JavaScript. Open it in a browser, and save it from there as a complete"
            " page or as PDF."
        )
    return document


def add_html(assembly: Assembly, tree: LexborHTMLParser) -> None:
    """Append the visible content of `tree`: of its main part, where it names one."""
    page = Page(tree)
    if (root := page.find_root()) is not None:
        assembly.expect(root.text(separator=" "))
        _Walk(assembly, page, root).run(root)


def _find_title(tree: LexborHTMLParser) -> str:
    """Return the page's title, without what follows its heading there: " — Handbook" names the site."""
    title = squeeze(html.unescape(untag(node.text()))) if (node := tree.css_first("head > title")) else ""
    headings = [_read_heading(heading) for heading in tree.css("h1")[:_MOST_TITLES]]
    if not title:
        return next(filter(None, headings), "")
    named = [h for h in headings if h and re.match(rf"{re.escape(h)}\s+[|·•»–—-]\s", title)]
    return max(named, key=len, default=title)


def _read_heading(heading: LexborNode) -> str:
    signs = sum(len(link.text()) for link in heading.css("a") if is_permalink(link))
    text = heading.text()
    return squeeze(text[: len(text) - signs])


def _waits_for_script(tree: LexborHTMLParser, text: str) -> bool:
    """Return True where hardly anything but a script is in the page, or the excuse that there is none."""
    if len(text) > _LONGEST_EXCUSE or tree.css_first("script, noscript") is None:
        return False
    excuses = " ".join(each.text() for each in tree.css("noscript")).lower()
    is_bare = not any(each.text().strip() for each in tree.css(":is(p, h1, h2, h3, li, td, pre):not(noscript *)"))
    return "javascript" in text.lower() or (is_bare and ("javascript" in excuses or 0 < len(text.split()) <= 2))


@dataclass
class _Numbers:
    """How the items of a list are counted: from `following` on, with letters for a `numeral`; None for bullets."""

    following: int | None = None
    step: int = 1
    numeral: str = ""


class _Walk:
    """Walks the tree without recursion, because pages exist that are nested thousands of levels deep."""

    def __init__(self, assembly: Assembly, page: Page, root: LexborNode) -> None:
        self.assembly = assembly
        self.page = page
        self.inline: list[str] = []
        self.marks: list[tuple[int, Callable[[str], str]]] = []
        """What becomes of the words from a place among those of the block on."""
        self.lists: list[_Numbers] = []
        self.containers = 0
        self.is_code = self.has_lines = False
        """In `pre`; in another element whose lines are lines."""
        self.language = ""
        self.tables = 0
        self.icons: list[str] = []
        """What the icons of a cell say."""
        self.table = Rows()
        self.formulas = _read_formulas(assembly, root)
        self.boxes = _read_boxes(root)
        self.manual = _read_manual(root)
        """The parts of a manual page as `man` prints it, by their `mem_id`: the first has all of its text."""

    def run(self, root: LexborNode) -> None:
        """Add the blocks of an element."""
        pending: list[LexborNode | tuple[_Ends, int, bool, int]] = [root]
        while pending:
            node = pending.pop()
            if isinstance(node, tuple):
                ends, marks, self.has_lines, self.containers = node
                while len(self.marks) > marks:
                    self._convert(*self.marks.pop())
                for end in ends:
                    end()
            elif node.is_text_node:
                text = node.text_content or ""
                self.inline.append(text.replace("\n", BREAK) if self.has_lines and not self.is_code else text)
            elif node.is_element_node and not self._skip(node) and not self._replace(node):
                state = len(self.marks), self.has_lines, self.containers
                pending.append((self._enter(node, self.page.name(node), self.page.read_style(node)), *state))
                self.inline += [self.boxes[node.mem_id]] if node.mem_id in self.boxes else []
                child = node.last_child
                while child is not None:
                    pending.append(child)
                    child = child.prev
        self._flush()
        self.assembly.end_label()

    def _skip(self, node: LexborNode) -> bool:
        """Return True for what is left out, and say so."""
        if self.page.surrounds(node, is_outermost=not self.lists and not self.tables):
            self.assembly.pass_over(node.text())
            return True
        if self.page.hides(node):
            self.assembly.leave_out(node.text(), "in a hidden part of the page")
            return True
        return False

    def _replace(self, node: LexborNode) -> bool:
        """Return True for what has words of its own in place of its content, and add them."""
        tag, attributes, words = node.tag, node.attributes, None
        if tag == "br":
            words = "\n" if self.is_code else BREAK
        elif self.tables and (label := _read_icon(node)):
            words = " "
            self.icons.append(label)
        elif tag == "img":
            words = self._read_picture(node)
        elif tag in ("svg", "canvas"):
            lines = (squeeze(each.text(separator=" ")) for each in node.css(_IN_DRAWING))
            words = f" {BREAK}".join(("", *filter(None, lines), ""))
            self.assembly.skip("drawing", "", int(any(map(str.isalnum, node.text()))))
            self.assembly.skip("picture", "", len(node.css("image")))
        elif tag in ("iframe", "object", "embed", "video", "audio"):
            words = " "
            self.assembly.skip("attachment", "shown within the page")
        elif tag == "input":
            is_alone = node.parent is None or not count_letters(node.parent)
            words = "" if self.is_code else _read_field(attributes, is_alone=is_alone)
        elif tag == "select":
            words = ", ".join(option.text() for option in node.css("option[selected]"))
            self.assembly.skip("form field", "", int(not words))
        elif node.mem_id in self.boxes and not node.text().strip():
            words = self.boxes[node.mem_id]
        elif node.mem_id in self.formulas:
            words = self.formulas[node.mem_id]
        elif node.mem_id in self.page.notes:
            words = f" ({self.page.notes[node.mem_id]})"
        elif node.mem_id in self.manual:
            words = ""
            self._flush()
            if text := self.manual[node.mem_id]:
                add_man_page(self.assembly, text)
        if words is not None:
            self.inline.append(words)
            self.assembly.pass_over(node.text())
        return words is not None

    def _read_picture(self, picture: LexborNode) -> str:
        attributes = picture.attributes
        words = attributes.get("alt") or ""
        if words.startswith("{\\displaystyle"):  # MediaWiki
            return f"${words}$"
        if describes(words):
            return f" {words} "
        is_icon = any(_SMALL.fullmatch(attributes.get(name) or "") for name in ("width", "height"))
        is_alone = picture.css_matches("p > img") and not (picture.parent or picture).text().strip()
        is_content = is_alone or attributes.get("alt") != "" or picture.css_matches("figure *")
        self.assembly.skip("picture", "", int(is_content and not is_icon))
        return " "

    def _enter(self, node: LexborNode, name: str, style: Style) -> _Ends:
        """Begin an element, and return what ends it."""
        self._open_marks(node, name, style)
        self.has_lines |= style.get("white-space", "").startswith(("pre", "break"))
        if name == "table" and (self.tables or not _is_layout(node, self.page)):
            return self._open_table()
        if name not in _PARTS or (name in _BOXES and _stands_in_line(node, style)):
            return ()
        if self.tables:
            return self._enter_row(node, name, style)
        if self.is_code:
            self._end_line()
            return (self._end_line,)
        self._flush()
        if label := self.page.panels.get(node.mem_id, ""):
            self.assembly.label(label)
        ends: _Ends = (self.assembly.end_label,) if label or name == "details" else ()
        if name in ("ul", "ol"):
            self.lists.append(_count_from(node, style) if name == "ol" else _Numbers())
            ends = (self.lists.pop,)
        elif name == "li":
            ends = self._open_item(node)
        elif name == "blockquote":
            ends = self._nest(self.assembly.open_quote, self.assembly.close_quote)
        elif name == "dd":
            ends = self._nest(self.assembly.open_definition, self.assembly.close_definition)
        elif name == "pre":
            self.is_code, self.language = True, _read_language(node)
            return (self._close_code,)
        elif name == "dt":
            return (lambda: self.assembly.add_definition(self._take()),)
        elif name in ("th", "summary") or _is_label(node):
            return (lambda: self.assembly.label(self._take()),)
        elif name in _HEADINGS:
            return (lambda: self._add_heading(_HEADINGS[name]),)
        return (self._flush, *ends)

    def _open_marks(self, node: LexborNode, name: str, style: Style) -> None:
        looks = [name] if name in MARKS else []
        if style:
            lines = style.get("text-decoration", "") + style.get("text-decoration-line", "")
            looks += ["s"] * ("line-through" in lines)
            looks += [look for look in ("sup", "sub") if style.get("vertical-align", "").startswith(look)]
        found = [_cite if look == "sup" and node.css_first("a[href^='#']") else MARKS[look] for look in looks]
        if name == "a" and (address := node.attributes.get("href") or "#")[0] != "#":
            found.append(lambda words: self.assembly.link(words, address))
        elif name == "q":
            found.append("“{}”".format)
        elif name == "code":
            self.language = self.language or _read_language(node)
            if self.is_code and node.prev is not None and node.prev.tag == "code":  # another one, not a part of this
                self._end_line()
            if not self.is_code:
                found.append(lambda words: spell_code(unlink(words)))
        if found and len(self.marks) < _MOST_MARKS:
            self.marks += [(len(self.inline), convert) for convert in found]

    def _open_table(self) -> _Ends:
        if not self.tables:
            self._flush()
            self.table = Rows()
        self.tables += 1
        return (self._close_table,)

    def _close_table(self) -> None:
        self.tables -= 1
        if self.tables:
            return
        self.table.add_loose(self._take())
        self.table.add_to(self.assembly, self.table.headers or int(_has_header(self.table.rows)))

    def _enter_row(self, node: LexborNode, name: str, style: Style) -> _Ends:
        """Begin a row, a cell or what is in a cell. A block in a cell stays on the row's line, and so do the rows of a
        table in it."""
        if self.tables > 1 or name not in (*CELLS, "tr"):
            sign = {"tr": _ROW, "td": _CELL, "th": _CELL}.get(name, BREAK * 2)
            self.inline.append(sign)
            ends: _Ends = (lambda: self.inline.append(sign),)
            if name in ("ul", "ol"):
                self.lists.append(_count_from(node, style) if name == "ol" else _Numbers())
                ends = (*ends, self.lists.pop)
            elif name == "li" and (number := self._count_item(node)):
                self.inline.append(f"{number} ")
            return (*ends, self.table.end_group) if self.tables == 1 and name in _GROUPS else ends
        self.inline.append(" ")
        if name != "td" and name != "th":
            self._gather()
        if name == "caption":
            return (lambda: setattr(self.table, "caption", self._take()),)
        if name == "tr":
            self.table.open_row(is_header=node.parent is not None and node.parent.tag == "thead")
            return (lambda: self.table.add_loose(self._take()), self.table.close_row)
        rows, columns = (_read_whole(node.attributes.get(each), 1) for each in ("rowspan", "colspan"))
        # Only rows at the top are looked at: many tables mark their header by bold letters alone.
        is_header = name == "th" or (not self.table.rows and _is_bold(node))
        self.icons.clear()

        def close() -> None:
            words = _BORDERS.sub(lambda border: "; " if _ROW in border[0] else ", ", self._gather().strip(_SIGNS))
            text = squeeze(words) if is_header else flatten(words)
            self.table.add_cell(text or " ".join(self.icons), rows, columns, is_header=is_header)

        return (close,)

    def _count_item(self, node: LexborNode) -> str:
        """Return what stands before the next item: a number with a full stop, or a letter in brackets; empty for a
        bullet."""
        numbers = self.lists[-1] if self.lists else _Numbers()
        if numbers.following is None:
            return ""
        number = _read_whole(node.attributes.get("value"), numbers.following)
        numbers.following = number + numbers.step
        kind = numbers.numeral
        return f"({spell_number(number, is_roman=kind in 'iI', is_upper=kind in 'AI')})" if kind else f"{number}."

    def _open_item(self, node: LexborNode) -> _Ends:
        shown = self._count_item(node)
        number = int(shown[:-1]) if shown.endswith(".") else None
        ends = self._nest(lambda: self.assembly.open_item(number), self.assembly.close_item)
        if shown and number is None:
            self.assembly.label(shown)
        return ends

    def _nest(self, begin: Callable[[], object], end: Callable[[], object]) -> _Ends:
        """Open a container, and return what closes it. One that is nested too deeply to be read is not shown."""
        if self.containers >= _MOST_CONTAINERS:
            return ()
        self.containers += 1
        begin()
        return (end,)

    def _add_heading(self, level: int) -> None:
        self.assembly.add_heading(level, self._take())

    def _close_code(self) -> None:
        self.assembly.add_code(self._gather(), self.language)
        self.is_code, self.language = False, ""

    def _convert(self, start: int, convert: Callable[[str], str]) -> None:
        if start < len(self.inline):
            self.inline[start:] = [convert("".join(self.inline[start:]))]

    def _gather(self) -> str:
        """Return the inline text so far, and begin anew. The marks that are open go on."""
        for place, (start, convert) in reversed([*enumerate(self.marks)]):
            self._convert(start, convert)
            self.marks[place] = 0, convert
        text = "".join(self.inline)
        self.inline.clear()
        return text

    def _take(self) -> str:
        """Return the inline text so far on one line, and begin anew."""
        return squeeze(self._gather())

    def _end_line(self) -> None:
        if self.inline and not self.inline[-1].endswith("\n"):
            self.inline.append("\n")

    def _flush(self) -> None:
        self.assembly.add_paragraph(self._gather())


def _read_formulas(assembly: Assembly, root: LexborNode) -> dict[int, str]:
    """Return the TeX of formulas by their `mem_id`: what they were made from, else what pandoc makes of them."""
    found: dict[int, str] = {}
    others: list[LexborNode] = []
    for node in root.css("math:not(math *), script[type^='math/tex']"):
        source = node if node.tag == "script" else node.css_first('annotation[encoding="application/x-tex"]')
        tex = squeeze(node.attributes.get("alttext") or (source.text() if source is not None else ""))
        is_display = node.attributes.get("display") == "block" or "display" in (node.attributes.get("type") or "")
        mark = "$$" if is_display else "$"
        if tex and "$" not in tex:
            found[node.mem_id] = f"{mark}{tex}{mark}"
        elif node.text().strip():
            others.append(node)
    return found | read_mathml(assembly, others)


def _read_manual(root: LexborNode) -> dict[int, str]:
    """Return the parts of a manual page that stands in one `pre` or one a section, its text with the first."""
    parts = root.css("pre, h2, h3")
    first = next((each for each in parts if each.tag == "pre"), None)
    if first is None or not is_man_page(first.text().split("\n")):
        return {}
    parts = parts[[each.mem_id for each in parts].index(first.mem_id) :]
    # As `man` prints it: text stands further in than headings of sections, and so do those of subsections.
    margins = {"h2": "", "h3": "   "}
    texts = (
        each.text() if each.tag == "pre" else f"\n{margins[each.tag or '']}{_read_heading(each)}\n" for each in parts
    )
    return {each.mem_id: "" for each in parts} | {first.mem_id: "".join(texts).expandtabs()}


def _cite(words: str) -> str:
    """Return raised words that lead to a note: a number among them is none of the text."""
    return f"[{words.strip()}]" if words.strip().isalnum() else words


def _read_icon(node: LexborNode) -> str:
    """Return what an icon says; empty for anything else."""
    shown = squeeze(node.text()) if node.tag == "svg" else ""
    said = node.css_first("title") if shown else None
    if node.tag not in ("i", "img", "span", "svg") or (node.tag != "svg" and node.child is not None):
        return ""
    stated = (node.attributes.get(name) for name in ("aria-label", "title", "alt"))
    label = squeeze(next(filter(None, stated), shown))
    is_more = describes(label) if node.tag == "img" else shown and (said is None or squeeze(said.text()) != shown)
    return "" if is_more else label


def _read_boxes(root: LexborNode) -> dict[int, str]:
    """Return boxes of what programs show as ticked or not, by the `mem_id` of what stands behind them: controls (ARIA),
    tasks of TipTap, Notion and Confluence."""
    boxes: dict[int, str] = {}
    for node in root.css("[role=checkbox], [data-checked], .checkbox-on, .checkbox-off, ul[class*=task-list] > li"):
        names = (node.attributes.get("class") or "").split()
        stated = [node.attributes.get("aria-checked"), node.attributes.get("data-checked")]
        if all(each.mem_id == node.mem_id for each in node.css("input, [role=checkbox], [data-checked]")):
            boxes[node.mem_id] = "☒ " if "true" in stated or {"checked", "checkbox-on"} & {*names} else "☐ "
    return boxes


def _read_field(attributes: dict[str, str | None], *, is_alone: bool) -> str:
    """Return what stands in a field of a form, with a box for one that is ticked or not, unless it is for a script."""
    kind = (attributes.get("type") or "text").lower()
    if kind in ("checkbox", "radio") and not is_alone and "role" not in attributes:
        return "☒ " if "checked" in attributes else "☐ "
    return f" {attributes.get('value') or ''} " if kind in _FIELDS else " "


def _is_layout(table: LexborNode, page: Page) -> bool:
    """Return True for a table that only places what is in it: one that says so, one without two cells beside each other
    that hold text, and one without headers that holds tables, or headings, or in few rows several paragraphs."""
    if table.attributes.get("role") in ("presentation", "none"):
        return True
    has_headers = any(_find_table(cell) == table.mem_id for cell in table.css("th, caption"))
    has_tables = len(table.css("table")) > 1
    rows = [] if has_tables else table.css("tr")
    if rows and all(_count_filled(row, page) <= 1 for row in rows):
        return True
    holds_blocks = (has_tables and not _has_records(table)) or table.css_first("h1, h2, h3") is not None
    few = table.css("td") if 0 < len(rows) <= 2 else []
    return not has_headers and (holds_blocks or any(len(cell.css("p, ul, ol, dl, pre")) > 1 for cell in few))


def _has_records(table: LexborNode) -> bool:
    """Return True for a table with tables in it and rows that have short cells beside these."""
    records = 0
    for row in table.css("tr"):
        cells = [cell for cell in row.iter() if cell.tag in CELLS] if _find_table(row) == table.mem_id else []
        plain = [cell for cell in cells if cell.css_first("table, p, div, ul, img") is None]
        records += sum(0 < len(cell.text().strip()) <= _LONGEST_NAME for cell in plain) > 1
    return records > 1


def _stands_in_line(node: LexborNode, style: Style) -> bool:
    """Return True for a box that a style makes a part of a line: where text stands beside it, or always."""
    display = style.get("display", "")
    beside = (each.text_content for each in (node.prev, node.next) if each is not None and each.is_text_node)
    return display == "inline" or (display.startswith("inline") and any(text and text.strip() for text in beside))


def _find_table(cell: LexborNode) -> int:
    """Return the `mem_id` of the table that a cell or a caption is in."""
    around = cell.parent
    while around is not None and around.tag in ("tr", "thead", "tbody", "tfoot"):
        around = around.parent
    return around.mem_id if around is not None else 0


def _count_filled(row: LexborNode, page: Page) -> int:
    cells = (each for each in row.iter() if each.tag in CELLS and not page.is_around(each))
    return sum(bool(cell.text().strip()) for cell in cells)


def _has_header(rows: list[list[str]]) -> bool:
    """Return True where the first of unmarked rows names columns of figures. Two columns may be names and values."""
    return len(rows) > 2 and len(rows[0]) > 2 and has_header(rows) and any(map(is_figure, rows[1][1:]))


def _count_from(node: LexborNode, style: Style) -> _Numbers:
    step = -1 if "reversed" in node.attributes else 1
    first = sum(each.tag == "li" for each in node.iter()) if step < 0 else 1
    numeral = node.attributes.get("type") or style.get("list-style-type") or style.get("list-style") or ""
    return _Numbers(_read_whole(node.attributes.get("start"), first), step, _NUMERALS.get(numeral, ""))


def _read_whole(value: str | None, default: int) -> int:
    return int(value[:9]) if value and value[:9].isdecimal() else default


def _is_label(node: LexborNode) -> bool:
    """Return True for the label of a note, which is no heading: it ends with the note."""
    classes, around = (
        (each.attributes.get("class") or "").split() if each is not None else [] for each in (node, node.parent)
    )
    if "admonition-title" in classes or ("title" in classes and "confluence-information-macro" in around):
        return True
    return node.tag in _HEADINGS and not _NOTES.isdisjoint(around)


def _is_bold(cell: LexborNode) -> bool:
    """Return True where all words of the cell are bold."""
    bold = cell.css_first("b, strong")
    return bold is not None and bold.text().split() == cell.text().split() != []


def _read_language(node: LexborNode) -> str:
    found = _LANGUAGE.search(node.attributes.get("class") or "")
    return found[1] if found else ""
