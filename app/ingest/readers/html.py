import re
from collections.abc import Callable, Container, Iterable, Sequence

from selectolax.lexbor import LexborHTMLParser, LexborNode

from app.ingest.decoding import decode
from app.ingest.readers.assembly import (
    BREAK,
    MARKS,
    Assembly,
    describes,
    spell_code,
    squeeze,
    unlink,
    untag,
)
from app.ingest.readers.man_page import add_man_page, is_man_page
from app.ingest.readers.spans import Rows
from domain.documents import ParsedDocument
from domain.errors import UnreadableDocument

_DROPPED = frozenset(
    {"script", "style", "nav", "template", "noscript", "svg", "iframe", "object", "embed", "select", "datalist"}
)
# fmt: off
_NAVIGATION = frozenset({
    "navigation", "search", "banner", "contentinfo", "menu", "menubar", "toolbar", "doc-toc", "dialog", "alertdialog",
})
# fmt: on
"""Roles of what surrounds the content of a page or covers it (WAI-ARIA 1.2, and DPUB-ARIA)."""
_SECTION = 2
"""Level of the sections of a manual page; deeper headings are subsections."""
_UNPRINTED = re.compile(r"(?<![\w-])(?:no-?print|d-print-none|print:hidden)(?![\w-])")
"""Classes of what is on the screen alone (MediaWiki, Bootstrap, Tailwind)."""
_DOCBOOK_NAVIGATION = frozenset({"navheader", "navfooter"})
"""Classes of DocBook's links to the pages before and after, which have no role."""
_TURNING = frozenset({"prev", "previous", "next", "up", "home", "start", "top", "contents", "index"})
"""Types of links in the head of a page that lead to those around it."""
_SECTIONS = frozenset({"article", "aside", "main", "section", "blockquote"})
"""Elements whose footers are their own (HTML-AAM)."""
_BAR = re.compile(
    r"sidebar|breadcrumb|pagination|\bnav(?:bar|igation)?\b|\bmenu\b|(?<![a-z])toc(?![a-z])", re.IGNORECASE
)
"""Names that classes and ids of links around the content have in pages without landmarks: those of the unlikely
candidates of Mozilla's Readability that only name navigation, and what DocBook and others call a table of contents."""
_BAR_LINKS = 0.7
"""Share of its letters that stand in links, from which an element of such a name is one: a side bar may hold a note."""
_MOST_BARS = 50
"""Elements of such a name in a page that are looked into."""
_HIDING_STYLE = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*hidden|(?:opacity|font-size)\s*:\s*0(?:\.0*)?(?:[a-z%]{1,4})?\s*(?:;|!|$)"
    r"|(?:left|top|text-indent)\s*:\s*-\d{4,}",
    re.IGNORECASE,
)
_WHITE = re.compile(
    r"(?:^|[;\s])color\s*:\s*(?:white|#fff(?:fff)?|rgb\(255,\s?255,\s?255\))\s*(?:;|!|$)", re.IGNORECASE
)
_MOST_ANCESTORS = 50
"""Elements that are looked at around white words, for a colour behind them, and around a footer."""
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
# fmt: off
_BLOCKS = frozenset({
    "address", "article", "aside", "blockquote", "body", "caption", "dd", "details", "dialog", "div", "dl", "dt",
    "fieldset", "figcaption", "figure", "footer", "form", "header", "hgroup", "hr", "legend", "li", "main", "ol",
    "p", "pre", "search", "section", "summary", "table", "tbody", "tfoot", "thead", "tr", "ul",
})
# fmt: on
_LISTS = frozenset({"ul", "ol"})
_LINKED = _LISTS | {"p", "table"}
"""Elements that may hold nothing but links around the content."""
_CELLS = frozenset({"td", "th", "caption"})
_MOST_CONTAINERS = 12
"""Limit of lists and quotes within one another, whose indentation would otherwise be longer than the text."""
_MOST_MAINS = 8
"""Main parts of a page that are looked at: a page has one, or shows one of several."""
_LONGEST_BANNER = 300
"""Limit, in characters, of what stands above the title of a page and names its site. Chosen: two sentences."""
_TOPS = frozenset({"#top", "#top_of_page"})
"""Where links lead that take readers back to the beginning."""
_NOTES = frozenset({"note", "tip", "warning", "caution", "important"})
"""Classes in which DocBook puts a note; the heading within is its label."""
_NOTE_TITLE = "admonition-title"
"""Class of the label of a note in pages of docutils, Sphinx and MkDocs."""
_LANGUAGE = re.compile(r"\b(?:language|lang|highlight(?:-source)?)-([\w+#.-]{1,30})")


_NESTING = re.compile(r"<(/?)(?:div|section|article|span|blockquote|ul|ol|dl|table|font|center)\b", re.IGNORECASE)
_DEEPEST = 3000
"""Deepest nesting that is read. The parser scans all open elements at each new one, so its time grows with the
square."""


def read_html(source: str, data: bytes) -> ParsedDocument:
    """Read a web page as a visitor sees it: without scripts, styles, navigation or hidden parts.

    Raises `UnreadableDocument` if it is nested so deeply that parsing would take hours.
    """
    page = decode(data)
    check_nesting(page)
    tree = LexborHTMLParser(page)
    assembly = Assembly()
    title = _find_title(tree)
    add_html(assembly, tree, title or "")
    return assembly.finish(title, source)


def add_html(assembly: Assembly, tree: LexborHTMLParser, title: str = "") -> None:
    """Append the visible content of `tree`: of its main part, where it names one, from the heading that is the title on
    where hardly anything stands above it."""
    if tree.body is not None:
        _Walk(assembly, title, _find_neighbours(tree)).run(tree.body, _find_main(tree))


def _find_title(tree: LexborHTMLParser) -> str | None:
    """Return the page's title, without what follows its heading there: " — Handbook" names the site."""
    title = squeeze(untag(node.text())) if (node := tree.css_first("head > title")) else ""
    headings = [_read_heading(heading) for heading in tree.css("h1")[:_MOST_MAINS]]
    if not title:
        return next(filter(None, headings), None)
    named = [h for h in headings if h and re.match(rf"{re.escape(h)}\s+[|·•»–—-]\s", title)]
    return max(named, key=len, default=title)


def _read_heading(heading: LexborNode) -> str:
    signs = sum(len(link.text()) for link in heading.css("a") if _is_permalink(link))
    text = heading.text()
    return squeeze(text[: len(text) - signs])


def check_nesting(page: str) -> None:
    """Raise `UnreadableDocument` if the page is nested so deeply that parsing would take hours."""
    depth = 0
    for tag in _NESTING.finditer(page):
        depth = max(0, depth - 1) if tag[1] else depth + 1
        if depth > _DEEPEST:
            raise UnreadableDocument(
                f"The HTML is nested more than {_DEEPEST:,} levels deep. Save it as text and retry."
            )


def _find_main(tree: LexborHTMLParser) -> list[int]:
    """Return the ids of the page's main part and of the elements around it, from within. Empty where it names none that
    is seen, or several."""
    mains = [_list_around(main) for main in tree.css("main, [role=main]")[:_MOST_MAINS]]
    seen = [path for path in mains if not any(map(_is_hidden, path))]
    return [node.mem_id for node in seen[0]] if len(seen) == 1 else []


def _list_around(node: LexborNode) -> list[LexborNode]:
    path: list[LexborNode] = []
    around: LexborNode | None = node
    while around is not None and around.is_element_node:
        path.append(around)
        around = around.parent
    return path


def _is_hidden(node: LexborNode) -> bool:
    if _is_navigation(node):
        return True
    attributes = node.attributes
    if "hidden" in attributes or (node.tag == "dialog" and "open" not in attributes):
        return True
    style = attributes.get("style") or ""
    return bool(_HIDING_STYLE.search(style)) or (_WHITE.search(style) is not None and _is_on_nothing(node))


def _is_navigation(node: LexborNode) -> bool:
    if node.tag in _DROPPED or (node.attributes.get("role") or "").strip().lower() in _NAVIGATION:
        return True
    if _UNPRINTED.search(node.attributes.get("class") or ""):
        return True
    return node.tag == "div" and not _DOCBOOK_NAVIGATION.isdisjoint(_list_classes(node))


def _is_contents(node: LexborNode) -> bool:
    """Return True for links to places of the same page and nothing else: a table of contents, a way back to the top."""
    links = node.css("a")
    is_inside = all((link.attributes.get("href") or "").startswith("#") for link in links)
    return bool(links) and is_inside and _holds_links_only(node, links)


def _turns_pages(node: LexborNode, neighbours: Container[str]) -> bool:
    """Return True for a list or a table all of whose links, two or more, lead to pages that the head names as the next,
    the one before and the like, and for a table of nothing but links: a list of those may be content (link density:
    Kohlschütter et al., "Boilerplate Detection using Shallow Text Features", WSDM 2010)."""
    if node.tag == "p":
        return False
    links = node.css("a[href]")
    if len(links) < 2:
        return False
    pages = {*map(_read_page, links)} - {""}
    is_turning = bool(pages) and all(page in neighbours for page in pages)
    return is_turning or (node.tag == "table" and _holds_links_only(node, links))


def _holds_links_only(node: LexborNode, links: Iterable[LexborNode]) -> bool:
    return _count_letters(node) == sum(map(_count_letters, links))


def _read_page(link: LexborNode) -> str:
    return (link.attributes.get("href") or "").partition("#")[0]


def _find_neighbours(tree: LexborHTMLParser) -> frozenset[str]:
    """Return the addresses of the pages around this one, as its head names them (HTML, link types)."""
    links = tree.css("head > link[rel][href]")
    return frozenset(
        _read_page(link)
        for link in links
        if not _TURNING.isdisjoint((link.attributes.get("rel") or "").lower().split())
    )


def _is_footer(node: LexborNode) -> bool:
    """Return True for the end of a page that says who made it: a footer of the whole page, not of an article in it."""
    if node.tag != "footer":
        return node.tag == "div" and (node.attributes.get("id") == "footer" or "footer" in _list_classes(node))
    around = node.parent
    for _ in range(_MOST_ANCESTORS):
        if around is None or not around.is_element_node:
            return True
        if around.tag in _SECTIONS:
            return False
        around = around.parent
    return False


def _is_named_bar(node: LexborNode) -> bool:
    """Return True for an element that is named like links around the content."""
    if node.tag not in _BLOCKS or node.tag == "body":
        return False
    return any(_BAR.search(node.attributes.get(key) or "") for key in ("class", "id"))


def _is_bar(node: LexborNode) -> bool:
    """Return True where an element of such a name holds hardly anything but links. One that holds the heading of the
    page is a frame round all of it, which is named for the bar within."""
    in_links = sum(map(_count_letters, node.css("a")))
    return in_links > 0 and in_links >= _BAR_LINKS * _count_letters(node) and node.css_first("h1") is None


def _count_letters(node: LexborNode) -> int:
    return sum(map(str.isalnum, node.text()))


def _is_label(node: LexborNode) -> bool:
    """Return True for the label of a note, which is no heading: it ends with the note."""
    if _NOTE_TITLE in _list_classes(node):
        return True
    return node.tag in _HEADINGS and node.parent is not None and not _NOTES.isdisjoint(_list_classes(node.parent))


def _list_classes(node: LexborNode) -> list[str]:
    return (node.attributes.get("class") or "").split()


def _is_layout(table: LexborNode) -> bool:
    """Return True for a table without two cells beside each other that hold text: it only places what is in it. One
    that holds tables is not looked into."""
    if table.css_first("table table") is not None:
        return False
    rows = table.css("tr")
    return bool(rows) and all(_count_filled(row) <= 1 for row in rows)


def _count_filled(row: LexborNode) -> int:
    count, cell = 0, row.child
    while cell is not None:
        count += cell.tag in _CELLS and bool(cell.text().strip())
        cell = cell.next
    return count


def _is_permalink(node: LexborNode) -> bool:
    """Return True for the sign beside a heading that links to it, such as "¶", or the word that leads to the top."""
    address = node.attributes.get("href") or ""
    if node.tag != "a" or not address.startswith("#"):
        return False
    sign = node.text().strip()
    return bool(sign) and (address in _TOPS or not any(character.isalnum() for character in sign))


def _is_on_nothing(node: LexborNode) -> bool:
    """Return True if nothing around an element can lay a colour behind it: no style of a background, and no class, for
    which a style sheet may have one."""
    around: LexborNode | None = node
    for _ in range(_MOST_ANCESTORS):
        if around is None or not around.is_element_node:
            return True
        attributes = around.attributes
        if "class" in attributes or "bgcolor" in attributes or "background" in (attributes.get("style") or "").lower():
            return False
        around = around.parent
    return False


class _Walk:
    """Walks the tree without recursion, because pages exist that are nested thousands of levels deep."""

    def __init__(self, assembly: Assembly, title: str, neighbours: Container[str]) -> None:
        self.assembly = assembly
        self.title = title
        self.neighbours = neighbours
        self.inline: list[str] = []
        self.lists: list[int | None] = []
        self.anchors: list[int] = []
        self.preformatted = 0
        self.language = ""
        self.tables = 0
        self.bars = 0
        self.table = Rows()
        self.opened: list[str] = []
        self.manual: list[str] = []
        """The text of a manual page as `man` prints it, in one `pre` or one a section, so far."""

    def run(self, root: LexborNode, path: Sequence[int] = ()) -> None:
        """Walk `root`, or, of it, what the first of `path` holds: the ids of an element and of those around it."""
        around = frozenset(path[1:])
        pending: list[tuple[LexborNode, bool]] = [(root, False)]
        while pending:
            node, leaving = pending.pop()
            if leaving:
                self._leave(node)
                continue
            if node.is_text_node:
                self.inline.append(node.text_content or "")
                continue
            if not node.is_element_node:
                continue
            if _is_hidden(node):
                if not _is_navigation(node):
                    self.assembly.leave_out(node.text(), "in a hidden part of the page")
                continue
            is_outermost = node.tag in _LINKED and not self.lists and not self.tables
            if is_outermost and (_is_contents(node) or _turns_pages(node, self.neighbours)):
                continue
            if _is_permalink(node) or _is_footer(node):
                continue
            if node.tag == "math" and (formula := _read_formula(node)):
                self.inline.append(formula)
                continue
            # KaTeX writes a formula twice: as MathML, and as what browsers are to show.
            if node.tag == "span" and "katex-html" in _list_classes(node):
                continue
            if self.bars < _MOST_BARS and _is_named_bar(node):
                self.bars += 1
                if _is_bar(node):
                    continue
            only = path if node.mem_id in around else None
            self._enter(node)
            pending.append((node, True))
            child = node.last_child
            while child is not None:
                if only is None or child.mem_id in only:
                    pending.append((child, False))
                child = child.prev
        self._flush()
        self._add_manual()

    def _enter(self, node: LexborNode) -> None:
        tag = node.tag or ""
        if tag in _LISTS or tag in ("dl", "table"):
            self._add_manual()
        if tag == "br":
            self.inline.append("\n" if self.preformatted else BREAK)
        elif tag == "img":
            words = node.attributes.get("alt") or ""
            self.inline.append(f" {words} " if describes(words) else " ")
        elif tag == "a" or tag in MARKS:
            self.anchors.append(len(self.inline))
        elif tag == "code":
            self.language = self.language or _read_language(node)
            self.anchors.append(len(self.inline))
        elif self.tables and tag in _CELLS:
            self.inline.append(" ")
            if self.tables == 1 and tag == "caption":
                self.inline.clear()
        elif tag == "table" and (self.tables or not _is_layout(node)):
            self.tables += 1
            if self.tables == 1:
                self._flush()
                self.table = Rows()
        elif self.tables:
            if self.tables == 1 and tag == "tr":
                self.inline.clear()
                self.table.open_row(is_header=node.parent is not None and node.parent.tag == "thead")
            elif tag in _BLOCKS or tag in _HEADINGS:
                self.inline.append(" ")  # a block inside a cell stays on the row's line
        elif tag in _HEADINGS or tag in _BLOCKS or tag in _CELLS:
            self._flush()
            self._open(node, tag)

    def _open(self, node: LexborNode, tag: str) -> None:
        if tag in ("ul", "ol"):
            start = node.attributes.get("start") or "1"
            self.lists.append(None if tag == "ul" else int(start[:9]) if start.isdecimal() else 1)
        elif tag == "li":
            number = self.lists[-1] if self.lists else None
            self._nest(tag, number)
            if number is not None:
                self.lists[-1] = number + 1
        elif tag in ("blockquote", "dd"):
            self._nest(tag)
        elif tag == "pre":
            self.preformatted += 1
            self.language = _read_language(node)

    def _nest(self, tag: str, number: int | None = None) -> None:
        """Open a container; one that is nested too deeply to be read by anybody is not shown."""
        shown = tag if len(self.opened) < _MOST_CONTAINERS else ""
        self.opened.append(shown)
        if shown == "li":
            self.assembly.open_item(number)
        elif shown == "blockquote":
            self.assembly.open_quote()
        elif shown == "dd":
            self.assembly.open_definition()

    def _leave(self, node: LexborNode) -> None:
        tag = node.tag or ""
        if tag == "a":
            self._leave_inline(lambda words: self.assembly.link(words, node.attributes.get("href") or ""))
        elif tag in MARKS:
            self._leave_inline(MARKS[tag])
        elif tag == "code":
            self._leave_inline(lambda words: words if self.preformatted else spell_code(unlink(words)))
        elif self.tables and tag in _CELLS:
            if self.tables > 1:
                self.inline.append(" ")
            elif tag == "caption":
                self.table.caption = self._take()
            else:
                # Only rows at the top are looked at: many tables mark their header by bold letters alone.
                is_header = tag == "th" or (not self.table.rows and _is_bold(node))
                rows, columns = (_read_number(node.attributes.get(name)) for name in ("rowspan", "colspan"))
                self.table.add_cell(self._take(), rows, columns, is_header=is_header)
        elif tag == "table" and self.tables:
            self.tables -= 1
            if not self.tables:
                self.table.add_loose(self._take())
                self.assembly.add_table(self.table.rows, headers=self.table.headers, caption=self.table.caption)
        elif self.tables:
            if self.tables == 1 and tag == "tr":
                self.table.add_loose(self._take())
                self.table.close_row()
            elif tag in _BLOCKS or tag in _HEADINGS:
                self.inline.append(" ")
        elif tag == "th" or _is_label(node):
            self.assembly.label(self._take())
        elif tag in _HEADINGS:
            heading = self._take()
            if self.manual:
                # As `man` prints it: text stands further in, and so do subsections.
                self.manual.append(f"\n{'   ' if _HEADINGS[tag] > _SECTION else ''}{unlink(heading)}\n")
                return
            if heading and unlink(heading) == self.title:
                self.assembly.begin_anew(_LONGEST_BANNER)
            self.assembly.add_heading(_HEADINGS[tag], heading)
        elif tag == "dt":
            self.assembly.add_definition(self._take())
        elif tag in _BLOCKS or tag in _CELLS:
            self._flush()
            self._close(tag)

    def _close(self, tag: str) -> None:
        if tag in ("ul", "ol"):
            self.lists.pop()
        elif tag == "pre":
            self.preformatted -= 1
            self.language = ""
        elif tag in ("li", "blockquote", "dd"):
            shown = self.opened.pop()
            if shown == "li":
                self.assembly.close_item()
            elif shown == "blockquote":
                self.assembly.close_quote()
            elif shown == "dd":
                self.assembly.close_definition()

    def _leave_inline(self, convert: Callable[[str], str]) -> None:
        """Convert the words of an inline element, unless a block within it has ended them already."""
        start = self.anchors.pop()
        if start < len(self.inline):
            self.inline[start:] = [convert("".join(self.inline[start:]))]

    def _take(self) -> str:
        """Return the inline text so far on one line, and begin anew."""
        text = squeeze("".join(self.inline))
        self.inline.clear()
        return text

    def _flush(self) -> None:
        raw = "".join(self.inline)
        self.inline.clear()
        if self.preformatted and (self.manual or is_man_page(unlink(raw).split("\n"))):
            self.manual.append(unlink(raw))
        elif self.preformatted:
            self.assembly.add_code(raw, self.language)
        elif raw.strip():
            self._add_manual()
            self.assembly.add_paragraph(raw)

    def _add_manual(self) -> None:
        if self.manual:
            add_man_page(self.assembly, "".join(self.manual).expandtabs())
            self.manual.clear()


def _is_bold(cell: LexborNode) -> bool:
    """Return True where all words of the cell are bold."""
    bold = cell.css_first("b, strong")
    return bold is not None and bold.text().split() == cell.text().split() != []


def _read_number(value: str | None) -> int:
    """Return the number of rows or columns that a cell spans."""
    return int(value[:4]) if value and value[:4].isdecimal() else 1


def _read_formula(node: LexborNode) -> str:
    """Return the LaTeX that MathML was made from, between dollars; empty where it does not say."""
    source = node.css_first('annotation[encoding="application/x-tex"]')
    tex = squeeze(node.attributes.get("alttext") or (source.text() if source else ""))
    mark = "$$" if node.attributes.get("display") == "block" else "$"
    return f"{mark}{tex}{mark}" if tex and "$" not in tex else ""


def _read_language(node: LexborNode) -> str:
    found = _LANGUAGE.search(node.attributes.get("class") or "")
    return found[1] if found else ""
