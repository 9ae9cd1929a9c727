"""What of a web page its readers see: not what surrounds the content, what decorates it, or what nothing opens."""

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from types import MappingProxyType

from selectolax.lexbor import LexborHTMLParser, LexborNode

from app.ingest.readers.assembly import squeeze

Style = Mapping[str, str]
"""What is said about looks, by property."""
_NO_STYLE: Style = MappingProxyType({})

_CONTROL = "[aria-expanded], [aria-controls], [role=tab], [data-toggle], [data-bs-toggle]"
_NAMING = f"{_CONTROL}, [data-target], [data-bs-target], [onclick], a[href^='#']"
_OPENING = f"{_NAMING}, button, summary, label, [role=button], .expand-control"
"""What opens a part of a page; the class is Confluence's."""
_MOST_CONTROLS = 2000
_BANNER = "[id*=cookie i], [class*=cookie i], [id*=consent i], [class*=consent i], [aria-label*=cookie i]"
_AROUND = (
    "script:not([type^='math/tex']), style, nav, template, noscript, datalist, xml, "
    # Roles of what surrounds the content of a page or covers it (WAI-ARIA 1.2, and DPUB-ARIA).
    "[role=navigation i], [role=search i], [role=banner i], [role=contentinfo i], [role=menu i], [role=menubar i], "
    "[role=toolbar i], [role=doc-toc i], [role=dialog i], [role=alertdialog i], "
    # What is on the screen alone: MediaWiki, Bootstrap, Tailwind.
    ".noprint, .no-print, .d-print-none, .print\\:hidden, .mw-editsection, .mw-jump-link, "
    # Links of DocBook to the pages before and after, and those that lead past the navigation.
    "div.navheader, div.navfooter, a[href^='#'][class*=skip i], "
    # The end of a page that says who made it; that of an article says who wrote this.
    "footer:not(:is(article, aside, main, section, blockquote) footer), div#footer, div.footer, "
    # A question to visitors outside of the content, with its buttons; and other buttons that open nothing.
    f":is(div, section, aside, form):is({_BANNER}):has(button, [role=button]):not(:has(h1, main, article), main *), "
    f"button:not({_CONTROL}, :is(h1, h2, h3, h4, h5, h6, summary, p, li, dt, td) > button), "
    # Numbers of lines, and formulas that are there as MathML or TeX, too.
    ".linenos, .lineno, .lnum, .linenodiv, .line-numbers-rows, td.gutter, .katex-html, .MathJax, .MathJax_Preview"
)
_FOLDED = (
    "[hidden], dialog:not([open]), .hidden:not([class*=':']), "
    ".d-none:not([class*='-block'], [class*='-flex'], [class*='-inline'], [class*='-table'], [class*='-grid'])"
)
"""What is not shown at first; the classes are Tailwind's and Bootstrap's, where they hold on all screens."""
_TURNING = frozenset({"prev", "previous", "next", "up", "home", "start", "top", "contents", "index"})
"""Types of links in the head of a page that lead to those around it."""
_TOPS = frozenset({"#top", "#top_of_page"})
"""Where links lead that take readers back to the beginning."""
_BAR = re.compile(
    r"sidebar|breadcrumb|pagination|\bnav(?:bar|igation)?\b|\bmenu\b|(?<![a-z])toc(?![a-z])", re.IGNORECASE
)
"""Names that classes and ids of links around the content have in pages without landmarks: those of the unlikely
candidates of Mozilla's Readability that only name navigation, and what DocBook and others call a table of contents."""
_BAR_LINKS = 0.7
"""Share of its letters that stand in links, from which an element of such a name is one: a side bar may hold a note."""
_MOST_LOOKS = 100
_MOST_AROUND = 50
"""Elements around another that are looked at."""
_MOST_BETWEEN = 5
"""Elements around tabs in which their panels are looked for."""
_MAIN_SHARE = 0.1
"""Share of a page's letters outside links that its main part has at least. Chosen."""
_MOST_MAINS = 8
"""Main parts of a page that are looked at: a page has one, or shows one of several."""
# fmt: off
BLOCKS = frozenset({
    "address", "article", "aside", "blockquote", "body", "caption", "dd", "details", "dialog", "div", "dl", "dt",
    "fieldset", "figcaption", "figure", "footer", "form", "header", "hgroup", "hr", "legend", "li", "main", "ol",
    "p", "pre", "search", "section", "summary", "table", "tbody", "tfoot", "thead", "tr", "ul",
})
# fmt: on
CELLS = frozenset({"td", "th", "caption"})
_LINKED = frozenset({"ul", "ol", "p", "table"})
"""Elements that may hold nothing but links around the content."""
_ROLES = {
    "table": "table", "grid": "table", "row": "tr", "cell": "td", "gridcell": "td", "columnheader": "th",
    "rowheader": "th", "list": "ul", "listitem": "li",
}  # fmt: skip

_SKIPPED_RULE = re.compile(r"/\*.*?(?:\*/|\Z)|@[^{};@]*+\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}", re.DOTALL)
"""Comments of a style sheet, and rules for some screens or for printers."""
_NAME = re.compile(r"\s*\w*[.#][\w-]+(?:\s*,\s*\w*[.#][\w-]+)*\s*")
_TOLD = frozenset({"display", "visibility", "text-decoration", "text-decoration-line", "vertical-align", "white-space"})
"""What style sheets are asked about."""
_MOST_RULES = 300
_LONGEST_SHEET = 200_000
_MOST_HIDDEN = 0.95
"""Share of the letters of a page from which what hides them is lifted by a script."""
_ZERO = re.compile(r"0(?:\.0*)?[a-z%]{0,4}")
_WHITE = frozenset({"white", "#fff", "#ffffff", "rgb(255,255,255)"})
_NOTED = "a:is([role=doc-noteref], [data-footnote-ref], [class^=footnote-ref]), [class^=footnote-ref] > a"
"""References to footnotes: DPUB-ARIA, and what GitHub, pandoc, Python-Markdown, docutils and mdBook write."""
_LONGEST_NOTE = 500


class Page:
    """A page, or a part of one. What it knows of elements it keeps by their `mem_id`."""

    def __init__(self, tree: LexborHTMLParser) -> None:
        self._tree = tree
        self._looks = 0
        self._ids = {node.attributes["id"] or "": node for node in tree.css("[id]")}
        links = tree.css("head > link[rel][href]")
        self._neighbours = {
            _read_page(each) for each in links if _TURNING & {*(each.attributes["rel"] or "").lower().split()}
        }
        self._around = {node.mem_id for node in tree.css(_AROUND)}
        self._around |= {node.mem_id for node in tree.css("a[href^='#']") if is_permalink(node)}
        self._styles: dict[int, dict[str, str]] = {}
        self._read_sheets()
        self._unseen = {node.mem_id for node in tree.css("[aria-hidden=true]") if node.tag not in BLOCKS | CELLS}
        for node in tree.css("[style]"):
            style = self._styles.setdefault(node.mem_id, {})
            style.update(_parse_style(node.attributes["style"] or ""))
            if _is_nowhere(style) or (style.get("color", "").replace(" ", "") in _WHITE and _is_on_nothing(node)):
                self._unseen.add(node.mem_id)
        self._folded = {node.mem_id for node in tree.css(_FOLDED)}
        self._folded |= {each for each, style in self._styles.items() if _is_folded(style)}
        controls = [each for each in tree.css(_NAMING)[:_MOST_CONTROLS] if each.mem_id not in self._folded]
        controls = [each for each in controls if each.text().strip()]
        self._opened = {name for each in controls for name in _list_named(each)}
        self.panels: dict[int, str] = {}
        """The names of tabs, and of buttons that are left out, by what they open."""
        self._name_panels()
        for control in controls:
            target = self._find_named(control) if control.mem_id in self._around else None
            if target is not None and target.mem_id in self._folded:
                self.panels.setdefault(target.mem_id, squeeze(control.text()))
        self.notes: dict[int, str] = {}
        """The words of footnotes by what refers to them. They stand there once, unless they are long."""
        for reference in tree.css(_NOTED):
            note = self._find_named(reference)
            if note is not None and note.mem_id not in self._around and len(text := note.text()) <= _LONGEST_NOTE:
                for sign in note.css("a[href^='#'], .label, .footnote-definition-label"):
                    text = text.replace(sign.text(), "", 1)
                self.notes[reference.mem_id] = squeeze(text)
                self._around.add(note.mem_id)
        self._names = {node.mem_id: _name_role(node) for node in tree.css("[role=heading], :is(div, span)[role]")}
        self._names |= {node.mem_id: "pre" for node in tree.css("code:has(br)")}

    def find_root(self) -> LexborNode | None:
        """Return the page's main part, or its body where it names none that is seen, or several, or one with hardly
        anything in it: a script was to fill that."""
        mains = self._tree.css("main, [role=main]")[:_MOST_MAINS]
        seen = [each for each in mains if not any(self.is_around(on) or self.hides(on) for on in _list_around(each))]
        body = self._tree.body
        is_full = len(seen) == 1 and body is not None and _count_prose(seen[0]) > _MAIN_SHARE * _count_prose(body)
        return seen[0] if is_full else body

    def name(self, node: LexborNode) -> str:
        """Return the name of the element, or of that which its role makes it."""
        return self._names.get(node.mem_id) or node.tag or "-"

    def read_style(self, node: LexborNode) -> Style:
        """Return what is said about the element's looks, by itself and by style sheets within the page."""
        return self._styles.get(node.mem_id, _NO_STYLE)

    def is_around(self, node: LexborNode) -> bool:
        """Return True for what is told at once to be none of the content."""
        return node.mem_id in self._around

    def surrounds(self, node: LexborNode, *, is_outermost: bool) -> bool:
        """Return True for what surrounds the content. Lists and tables are looked into where nothing is around them."""
        if self.is_around(node):
            return True
        is_looked_at = is_outermost and node.tag in _LINKED and (node.tag != "table" or self._may_look())
        if is_looked_at and (_is_contents(node) or self._turns_pages(node)):
            return True
        names = f"{node.attributes.get('class')} {node.attributes.get('id')}"
        is_named = node.tag in BLOCKS and node.tag != "body" and _BAR.search(names) is not None
        return is_named and self._may_look() and _is_bar(node)

    def hides(self, node: LexborNode) -> bool:
        """Return True for what nobody sees, unless something on the page opens it, and for decoration, which is hidden
        from screen readers."""
        if node.mem_id not in self._folded:
            return node.mem_id in self._unseen
        is_named = node.mem_id in self.panels or node.attributes.get("id") in self._opened
        return not (is_named or node.attributes.get("hidden") == "until-found" or self._is_below_control(node))

    def _may_look(self) -> bool:
        """Return False after so many looks at whole elements, which may stand within one another."""
        self._looks += 1
        return self._looks <= _MOST_LOOKS

    def _is_below_control(self, node: LexborNode) -> bool:
        """Return True where what stands above an element is nothing but something to open it with."""
        above = _find_beside(node, "prev")
        if above is None or above.mem_id in self._folded or not (letters := count_letters(above)):
            return False
        return any(count_letters(control) == letters for control in above.css(_OPENING)[:1])

    def _read_sheets(self) -> None:
        """Take in what style sheets in the page say about single classes and ids."""
        sheet = "".join(style.text() for style in self._tree.css("style"))[:_LONGEST_SHEET]
        rules = [each.partition("{")[::2] for each in _SKIPPED_RULE.sub("", sheet).split("}")]
        rules = [rule for rule in rules if any(name in rule[1] for name in _TOLD) and _NAME.fullmatch(rule[0])]
        hidden, most = 0, _MOST_HIDDEN * (count_letters(self._tree.body) if self._tree.body is not None else 0)
        for names, text in rules[:_MOST_RULES]:
            style = {name: value for name, value in _parse_style(text).items() if name in _TOLD}
            for node in self._tree.css(names):
                self._styles.setdefault(node.mem_id, {}).update(style)
                hidden += count_letters(node) if _is_folded(style) and hidden <= most else 0
        if hidden > most:
            self._styles.clear()

    def _name_panels(self) -> None:
        """Find the panels of tabs: by what either says of the other, else by their order."""
        radios = {node.attributes.get("id"): node.mem_id for node in self._tree.css("input[type=radio][id]")}
        bars: dict[int, list[LexborNode]] = {}
        for tab in self._tree.css("[role=tab], label[for]")[:_MOST_CONTROLS]:
            if tab.parent is not None and (tab.tag != "label" or tab.attributes["for"] in radios):
                bar = next((each for each in _list_around(tab) if each.attributes.get("role") == "tablist"), tab.parent)
                bars.setdefault(bar.mem_id, []).append(tab)
        labelled = {each.attributes["aria-labelledby"]: each for each in self._tree.css("[aria-labelledby]")}
        for tabs in bars.values():
            named = [labelled.get(tab.attributes.get("id") or "") or self._find_named(tab) for tab in tabs]
            panels = _find_panels(tabs) if None in named else [panel for panel in named if panel is not None]
            if len(panels) == len(tabs):
                self.panels |= {panel.mem_id: squeeze(tab.text()) for tab, panel in zip(tabs, panels, strict=True)}
                self._around |= {tab.mem_id for tab in tabs}
                self._around |= {radios[each] for tab in tabs if (each := tab.attributes.get("for")) in radios}

    def _find_named(self, control: LexborNode) -> LexborNode | None:
        return next((self._ids[name] for name in _list_named(control) if name in self._ids), None)

    def _turns_pages(self, node: LexborNode) -> bool:
        """Return True for a list or a table all of whose links, two or more, lead to pages that the head names as the
        next, the one before and the like, and for a table of nothing but links: a list of those may be content (link
        density: Kohlschütter et al., "Boilerplate Detection using Shallow Text Features", WSDM 2010)."""
        links = node.css("a[href]")
        if node.tag == "p" or len(links) < 2:
            return False
        pages = {*map(_read_page, links)} - {""}
        return (bool(pages) and pages <= self._neighbours) or (node.tag == "table" and _holds_links_only(node, links))


def is_permalink(node: LexborNode) -> bool:
    """Return True for a link within the page that is the sign beside a heading, such as "¶", or leads to the top."""
    address, sign = node.attributes.get("href") or "", node.text().strip()
    return bool(sign) and address[:1] == "#" and (address in _TOPS or not any(map(str.isalnum, sign)))


def _count_prose(node: LexborNode) -> int:
    return count_letters(node) - sum(map(count_letters, node.css("script, style, noscript, a:not(noscript *)")))


def count_letters(node: LexborNode) -> int:
    """Return the number of letters and digits in an element."""
    return sum(map(str.isalnum, node.text()))


def _list_around(node: LexborNode) -> Iterator[LexborNode]:
    around: LexborNode | None = node
    for _ in range(_MOST_AROUND):
        if around is None or not around.is_element_node:
            return
        yield around
        around = around.parent


def _find_beside(node: LexborNode, side: str) -> LexborNode | None:
    """Return the element before or after another."""
    beside: LexborNode | None = getattr(node, side)
    while beside is not None and not beside.is_element_node:
        beside = getattr(beside, side)
    return beside


def _name_role(node: LexborNode) -> str:
    role, level = node.attributes.get("role") or "", node.attributes.get("aria-level") or "2"
    return _ROLES.get(role, "") if role != "heading" else f"h{level}" if level in "123456" else "h6"


def _parse_style(text: str) -> dict[str, str]:
    pairs = (each.partition(":") for each in text.lower().split(";"))
    return {name.strip(): value.replace("!important", "").strip() for name, _, value in pairs if value}


def _is_folded(style: Style) -> bool:
    return style.get("display") == "none" or style.get("visibility") == "hidden"


def _is_nowhere(style: Style) -> bool:
    is_off = any(re.match(r"-\d{4}", style.get(name, "")) for name in ("left", "top", "text-indent"))
    return is_off or any(_ZERO.fullmatch(style.get(name, "")) for name in ("opacity", "font-size"))


def _list_named(control: LexborNode) -> list[str]:
    """Return the ids that may be named by what opens a part of the page."""
    names = ("aria-controls", "href", "data-target", "data-bs-target", "onclick")
    return re.findall(r"[\w-]+", " ".join((control.attributes.get(name) or "")[:300] for name in names))


def _find_panels(tabs: list[LexborNode]) -> list[LexborNode]:
    """Return what tabs open that name nothing: what follows each of them, else as many parts in the element after them,
    or the panels near them."""
    following = [each for tab in tabs if (each := _find_beside(tab, "next")) is not None and each.tag == "div"]
    if len(following) == len(tabs):
        return following
    for around in islice(_list_around(tabs[0]), _MOST_BETWEEN if len(tabs) > 1 else 0):
        after = _find_beside(around, "next")
        parts = [] if after is None else [each for each in after.iter() if each.tag == "div"]
        if len(parts) == len(tabs):
            return parts
        if panels := around.css("[role=tabpanel]"):
            return [each for each in panels if each.parent == panels[0].parent]
    return []


def _is_contents(node: LexborNode) -> bool:
    """Return True for links to places of the same page and nothing else: a table of contents, a way back to the top."""
    links = node.css("a")
    is_inside = all((link.attributes.get("href") or "").startswith("#") for link in links)
    return bool(links) and is_inside and _holds_links_only(node, links)


def _holds_links_only(node: LexborNode, links: list[LexborNode]) -> bool:
    return count_letters(node) == sum(map(count_letters, links))


def _read_page(link: LexborNode) -> str:
    return (link.attributes.get("href") or "").partition("#")[0]


def _is_bar(node: LexborNode) -> bool:
    """Return True where an element of such a name holds hardly anything but links. One that holds the heading of the
    page is a frame round all of it, which is named for the bar within."""
    in_links = sum(map(count_letters, node.css("a")))
    return in_links > 0 and in_links >= _BAR_LINKS * count_letters(node) and node.css_first("h1") is None


def _is_on_nothing(node: LexborNode) -> bool:
    """Return True if nothing around an element can lay a colour behind it: no style of a background, and no class, for
    which a style sheet may have one."""
    around = [each.attributes for each in _list_around(node)]
    return not any("class" in a or "bgcolor" in a or "background" in (a.get("style") or "").lower() for a in around)
