import re

from selectolax.lexbor import LexborHTMLParser, LexborNode

from app.ingest.decoding import decode
from app.ingest.readers.assembly import Assembly, clean, squeeze
from domain.documents import ParsedDocument
from domain.errors import UnreadableDocument

_DROPPED = frozenset(
    {"script", "style", "nav", "template", "noscript", "svg", "iframe", "object", "embed", "select", "datalist"}
)
_HIDING_STYLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
# fmt: off
_BLOCKS = frozenset({
    "address", "article", "aside", "blockquote", "body", "caption", "dd", "details", "dialog", "div", "dl", "dt",
    "fieldset", "figcaption", "figure", "footer", "form", "header", "hgroup", "hr", "legend", "li", "main", "ol",
    "p", "pre", "search", "section", "summary", "table", "tbody", "tfoot", "thead", "tr", "ul",
})
# fmt: on
_CHARSET = re.compile(rb"""<meta[^>]{0,200}charset\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE)


_NESTING = re.compile(r"<(/?)(?:div|section|article|span|blockquote|ul|ol|dl|table|font|center)\b", re.IGNORECASE)
_DEEPEST = 3000
"""Deepest nesting that is read. The parser scans all open elements at each new one, so its time grows with the
square."""


def read_html(source: str, data: bytes) -> ParsedDocument:
    """Read a web page as a visitor sees it: without scripts, styles, navigation or hidden parts; a table row takes one
    line.

    Raises `UnreadableDocument` if it is nested so deeply that parsing would take hours.
    """
    declared = _CHARSET.search(data[:4096])
    page = decode(data, declared=declared[1].decode("ascii") if declared else None)
    check_nesting(page)
    tree = LexborHTMLParser(page)
    title = tree.css_first("head > title")
    heading = tree.css_first("h1")
    assembly = Assembly()
    add_html(assembly, tree)
    return assembly.finish((title and squeeze(title.text())) or (heading and squeeze(heading.text())) or None, source)


def add_html(assembly: Assembly, tree: LexborHTMLParser) -> None:
    """Append the visible content of `tree`."""
    if tree.body is not None:
        _Walk(assembly).run(tree.body)


def check_nesting(page: str) -> None:
    """Raise `UnreadableDocument` if the page is nested so deeply that parsing would take hours."""
    depth = 0
    for tag in _NESTING.finditer(page):
        depth = max(0, depth - 1) if tag[1] else depth + 1
        if depth > _DEEPEST:
            raise UnreadableDocument(
                f"The HTML is nested more than {_DEEPEST:,} levels deep. Save it as text and retry."
            )


def _is_hidden(node: LexborNode) -> bool:
    if node.tag in _DROPPED:
        return True
    attributes = node.attributes
    if "hidden" in attributes or (node.tag == "dialog" and "open" not in attributes):
        return True
    return bool(_HIDING_STYLE.search(attributes.get("style") or ""))


class _Walk:
    """Walks the tree without recursion, because pages exist that are nested thousands of levels deep."""

    def __init__(self, assembly: Assembly) -> None:
        self.assembly = assembly
        self.inline: list[str] = []
        self.cells: list[str] | None = None
        self.lists: list[int | None] = []
        self.marker = ""
        self.preformatted = 0
        self.gap = "\n\n"

    def run(self, root: LexborNode) -> None:
        pending: list[tuple[LexborNode, bool]] = [(root, False)]
        while pending:
            node, leaving = pending.pop()
            if leaving:
                self._leave(node.tag or "")
                continue
            if node.is_text_node:
                self.inline.append(node.text_content or "")
                continue
            if not node.is_element_node or _is_hidden(node):
                continue
            self._enter(node)
            pending.append((node, True))
            child = node.last_child
            while child is not None:
                pending.append((child, False))
                child = child.prev
        self._flush()

    def _enter(self, node: LexborNode) -> None:
        tag = node.tag or ""
        if tag == "br":
            self.inline.append("\n" if self.preformatted else "\v")
        elif tag == "img":
            self.inline.append(f" {node.attributes.get('alt') or ''} ")
        elif tag in ("td", "th"):
            self.inline.append(" ")
        elif tag == "tr" and self.cells is None:
            self._flush()
            self.cells = []
        elif self.cells is not None and (tag in _BLOCKS or tag in _HEADINGS):
            self.inline.append(" ")  # a block inside a cell stays on the row's line
        elif tag in _HEADINGS:
            self._flush()
        elif tag in _BLOCKS:
            self._flush()
            if tag in ("ul", "ol"):
                start = node.attributes.get("start") or "1"
                self.lists.append(None if tag == "ul" else int(start) if start.isdecimal() else 1)
            elif tag == "li":
                self._mark_item()
            elif tag == "pre":
                self.preformatted += 1

    def _mark_item(self) -> None:
        indent = "  " * (len(self.lists) - 1)
        number = self.lists[-1] if self.lists else None
        if number is None:
            self.marker = f"{indent}- "
        else:
            self.marker = f"{indent}{number}. "
            self.lists[-1] = number + 1

    def _leave(self, tag: str) -> None:
        if tag in ("td", "th") and self.cells is not None:
            self.cells.append(squeeze("".join(self.inline)))
            self.inline.clear()
        elif tag == "tr" and self.cells is not None:
            if loose := squeeze("".join(self.inline)):
                self.cells.append(loose)
            row, self.cells = self.cells, None
            self.inline.clear()
            if any(row):
                self._add(" | ".join(row), tight=True)
        elif self.cells is not None and (tag in _BLOCKS or tag in _HEADINGS):
            self.inline.append(" ")
        elif tag in _HEADINGS:
            self.assembly.add_heading(_HEADINGS[tag], "".join(self.inline))
            self.inline.clear()
            self.gap = "\n\n"
        elif tag in _BLOCKS:
            self._flush()
            if tag in ("ul", "ol") and self.lists:
                self.lists.pop()
            elif tag == "li":
                self.marker = ""
            elif tag == "pre":
                self.preformatted -= 1
            if tag == "table" or (tag in ("ul", "ol") and not self.lists):
                self.gap = "\n\n"

    def _flush(self) -> None:
        raw = "".join(self.inline)
        self.inline.clear()
        lines = [clean(raw).strip("\n")] if self.preformatted else filter(None, map(squeeze, raw.split("\v")))
        text = "\n".join(lines)
        if text.strip():
            marker, self.marker = self.marker, ""
            self._add(marker + text, tight=bool(marker))

    def _add(self, text: str, *, tight: bool) -> None:
        """Add a block. `tight` rows and items follow one another without an empty line."""
        self.assembly.add_block(text, gap=self.gap if tight else "\n\n")
        self.gap = "\n" if tight else "\n\n"
