import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from mdit_py_plugins.admon import admon_plugin
from mdit_py_plugins.deflist import deflist_plugin
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.footnote import footnote_plugin
from selectolax.lexbor import LexborHTMLParser

from app.ingest.decoding import decode
from app.ingest.metadata.dates import state_day
from app.ingest.metadata.front_matter import MAX_CHARACTERS, split_front_matter
from app.ingest.readers.assembly import BREAK, MARKS, Assembly, clean, describes, spell_code, squeeze
from app.ingest.readers.dates import state_text_date
from app.ingest.readers.web.html import add_html
from domain.documents import ParsedDocument
from domain.library.metadata import Metadata
from domain.text.blocks import closes_fence, find_fence
from domain.text.tables import is_rule

_BRACKETS = re.compile(r"\\\(([^\n]{1,500}?)\\\)|\\\[([\s\S]{1,1000}?)\\\]")
_LATEX = re.compile(r"\\[A-Za-z]|(?<!\\)(?:[\^={}<>]|_[{\d])")
"""Signs of LaTeX. Without any, brackets behind backslashes are brackets that somebody has escaped."""
_VARIABLE = re.compile(r"\\\(\s*[^\W\d]{1,2}\s*\\")


def _read_brackets(state: StateInline, silent: bool) -> bool:
    """Read a formula in the brackets of LaTeX as one between dollars. A rule of markdown-it."""
    found = _BRACKETS.match(state.src, state.pos)
    if found is None or not (_LATEX.search(found[0][2:-2]) or _VARIABLE.match(found[0])):
        return False
    if not silent:
        token = state.push("math_inline" if found[1] else "math_inline_double", "math", 0)
        token.content = found[0][2:-2]
    state.pos = found.end()
    return True


_PARSER = (
    MarkdownIt("commonmark", {"maxNesting": 100})
    .enable(["table", "strikethrough"])
    .use(admon_plugin)
    .use(deflist_plugin)
    .use(footnote_plugin)
    .use(dollarmath_plugin, allow_labels=False, allow_space=False, allow_digits=False, double_inline=True)
)
_PARSER.inline.ruler.before("escape", "brackets", _read_brackets)
# Where a rule of ours may begin or end. At others, such as hyphens and colons, each rule would be tried in vain.
_PARSER.inline.terminator_re = re.compile(r"[\n!$&*<\[\\\]^_`~]")

_ATTRIBUTE = r"(?:[.#][A-Za-z][\w.:-]{0,100}|[A-Za-z][\w-]{0,50}=(?:\"[^\"{}\n]{0,200}\"|[^\s{}\"]{1,200}))"
_TEMPLATING = re.compile(
    r"^\[\[?_?TOC_?\]?\]$"
    # Liquid, Jinja, Hugo, handbook generators
    r"|(?P<filled>\{(?P<sign>[%*]|\{[%<]?)-?[ \t]*(?P<name>/?[\w.-]{0,80})(?P<rest>[^{}]{0,500})\}\}?"
    r"|!\[\[[^\[\]\n]{1,200}\]\]|<<<[ \t]*@?/\S{1,200}|\[!INCLUDE[^\n]{0,300}\]|-{1,2}8<-{1,2}[^\n]{0,200})"
    r"|\{/\*[^{}]{0,2000}\*/\}|(?<!\w)==(?=\w)|(?<=\w)==(?!\w)|\[\[(?:[^\[\]|\n]{1,200}\|)?(?P<page>[^\[\]_\n]{1,200})\]\]"
    rf"|(?<![ \t])[ \t]*+\{{:?[ \t]*{_ATTRIBUTE}(?:[ \t]{{1,9}}{_ATTRIBUTE}){{0,9}}[ \t]*\}}"  # kramdown, attr_list
    r"|(?<!\w)\*\*|\*\*(?!\w)",  # emphasis that is written wrongly and was not recognised
    re.IGNORECASE,
)
"""What site generators replace or drop, outside code."""
_CLOSING = re.compile(r"\{[{%][%<]?-?[ \t]*(?:/|end)[ \t]*([\w.-]{1,80})")
_STATEMENTS = frozenset({
    "assign", "break", "case", "continue", "cycle", "decrement", "else", "elif", "elsif", "extends", "from", "import",
    "increment", "liquid", "set", "when", "with",
})  # fmt: skip
"""Tags of Liquid and Jinja that show nothing and are not closed."""
_NAMED = re.compile(r"""\b(?:label|title|header|heading|name|tabName|summary)=\{?["']([^"'\n]{1,200})["']""")
_COMPONENT = re.compile(r"[ \t]*<([A-Z][\w.]{0,60}[a-z])\b([^<>]{0,500}?)(/?)>[ \t]*(.*)$")
"""What of a page is a program's part (MDX), in a line of its own or with what is in it."""
_MODULE = re.compile(
    r"import\s+(?:['\"{*]|[\w$]+\s*(?:,.*)?\sfrom\s+['\"])|export\s+(?:const|let|var|default|function|class|\{|\*)(?!\w)"
)
_TAGS = re.compile(r"\s*+(?:\{(?:%|\{[<%])[^{}]{0,500}[%>]\}\}?[ \t]*+)++")
_LINKED_BY_TAG = re.compile(r"(?<=\]\()\{[{%][^{}\n]{0,300}\}\}?[^()\s]{0,200}(?=\))")
_BAR = re.compile(r"(?<!\\)\|")
_CODE_SPAN = re.compile(r"(`{1,3})[^`\n]{1,500}\1(?!`)")
_VERBATIM = frozenset({"code_inline", "math_inline", "math_inline_double"})
_MARK = re.compile(r"[{*<\[=]")
"""What each part of `_TEMPLATING` holds at least one of."""
_TAB = re.compile(r"([ \t]*)===[+!]?[ \t]+(\"[^\"\n]*\")[ \t]*$")
_COLONS = re.compile(r"[ \t]*:{3,}[ \t]*(?:\{?([\w-]+)\}?)?[ \t]*(?:\[([^\]\n]{1,200})\]|([^\n{]{1,200}))?.*$")
_ALERT = re.compile(r"\[!(\w{1,20})\][+-]?[ \t]*")
_CODE_TITLE = re.compile(r"\b(?:tab|title|filename)=\"([^\"]{1,200})\"")
_CHANGED = ("lastmod", "last_modified_at", "last_update.date", "updated", "modified", "publishDate", "created")
_TAG = re.compile(rf"<(/?)({'|'.join(MARKS)})>", re.IGNORECASE)
_REMARK = re.compile(
    r"(^[ \t]*(`{3,}+|~{3,}+)[\s\S]*?^[ \t]*\2|`[^`\n]+`)|(?<![\w%])%%(?!%)((?:(?!%%)[\s\S]){1,5000})%%", re.MULTILINE
)
"""Code, or a comment of Obsidian's."""
_LONGEST_TEMPLATE = 100
_MOST_BETWEEN = 4
"""Limit of blocks between two steps of one list."""
_LABEL_END = (":", ".", "!", "?")


def read_markdown(source: str, data: bytes) -> ParsedDocument:
    """Read Markdown into its canonical form, and leave out what readers of the published page do not see: templating,
    attributes and anchors, comments, definitions of links.

    Notes, tabs and titles of code become labels: "Note: …". Front matter is metadata and no part of the text; its
    ``title`` names the document.
    """
    metadata, text = split_front_matter(clean(decode(data)))
    assembly = Assembly()
    if "%%" in text:
        for comment in filter(None, (found[3] for found in _REMARK.finditer(text))):
            assembly.leave_out(comment, "in a comment")
        text = _REMARK.sub(r"\1", text)
    _Walk(assembly, frozenset(_CLOSING.findall(text))).add(_mend_steps(_PARSER.parse(_convert(text))))
    title = metadata.get("title")
    return assembly.finish(title if isinstance(title, str) else None, source)


def read_front_matter(data: bytes) -> Metadata:
    """Return the metadata of a Markdown file without reading its text. Where it has no `date`, that is when the page
    was changed last, as site generators call it, else what stands below it."""
    metadata, text = split_front_matter(clean(decode(data).lstrip()[: 4 * MAX_CHARACTERS]))
    changed = state_day(*(str(metadata.get(name, "")) for name in _CHANGED))
    return (changed or state_text_date(text)) | metadata


def _convert(text: str) -> str:
    """Return the text with tabs (`=== "Title"`), containers (`::: note`) and the parts of MDX written as the parser
    knows them, and without what is no text in MDX."""
    lines: list[str] = []
    fence, width, is_program = "", 0, False
    for line in text.split("\n"):
        width = width if "|" in line else 0
        is_program = bool(line.strip()) and (
            is_program or (not fence and not (lines and lines[-1].strip()) and _is_module(line))
        )
        if is_program:
            continue
        if fence:
            fence = "" if closes_fence(line, fence) else fence
        elif opened := find_fence(line):
            fence = opened
        elif _TAGS.fullmatch(line):
            line = f"\n{line}\n"  # what stands above and below is no part of its paragraph
        elif is_rule(line):
            width = len(_BAR.findall(line.strip().strip("|")))
        elif len(_BAR.findall(line.strip().strip("|"))) > width > 0:
            # A bar in code is no border of a cell to most programs, and else the last cell would be lost.
            line = _CODE_SPAN.sub(lambda span: re.sub(r"(?<!\\)\|", r"\|", span[0]), line)
        elif "<" in line and (component := _COMPONENT.match(line)):
            named = _NAMED.search(component[2]) or re.search(r"\bvalue=[\"']([^\"'\n]{1,200})", component[2])
            if component[3] and not named:
                line = f"{{{{< {component[1]}{component[2]}>}}}} {component[4]}"
            elif named:
                label = f"{named[1]}{'' if named[1].endswith(_LABEL_END) else ':'}"
                line = f"\n{label}{' ' if component[4] else chr(10)}{component[4]}"
        elif tab := _TAB.match(line):
            line = f"{tab[1]}!!! tab {tab[2]}"
        elif line.lstrip().startswith(":::") and (colons := _COLONS.match(line)):
            label = (colons[2] or colons[3] or colons[1] or "").strip()
            label = label.capitalize() if label == colons[1] else label
            line = f"\n{label}{'' if label.endswith(_LABEL_END) else ':'}\n" if label else ""
        lines.append(_LINKED_BY_TAG.sub("", line) if "]({" in line and not fence else line)
    return "\n".join(lines)


def _is_module(line: str) -> bool:
    return line[:1] in ("i", "e") and _MODULE.match(line) is not None


def _mend_steps(tokens: Sequence[Token]) -> list[Token]:
    """Return the tokens with steps joined that code, a paragraph or a picture without indentation keeps apart: what
    stands between step 2 and a list that begins with 3 belongs to step 2."""
    mended: list[list[Token]] = []
    steps: int | None = None
    awaited = 0
    for group in _group(tokens):
        kind = group[0].type
        if all(each[0].type == "heading_open" for each in mended) and _is_contents(group):
            continue
        if kind == "ordered_list_open":
            start = int(group[0].attrGet("start") or 1)
            items = sum(token.type == "list_item_open" and token.level == 1 for token in group)
            if steps is not None and start == awaited:
                between = [token for each in mended[steps + 1 :] for token in each]
                mended[steps] = [*mended[steps][:-2], *between, mended[steps][-2], *group[1:]]
                del mended[steps + 1 :]
            else:
                steps = len(mended)
                mended.append(group)
            awaited = start + items
            continue
        mended.append(group)
        if kind not in ("paragraph_open", "fence", "code_block") or len(mended) - (steps or 0) > _MOST_BETWEEN:
            steps = None
    return [token for group in mended for token in group]


def _group(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """Yield the tokens of one block after the other."""
    group: list[Token] = []
    for token in tokens:
        group.append(token)
        if token.level == 0 and token.nesting <= 0:
            yield group
            group = []


def _is_contents(group: Sequence[Token]) -> bool:
    """Return True for a list of links to places of the same page and nothing else: a table of contents."""
    links, in_link = 0, False
    for token in (token for span in group for token in span.children or ()):
        if token.type == "link_open" and not str(token.attrGet("href")).startswith("#"):
            return False
        in_link = token.type == "link_open" or (in_link and token.type != "link_close")
        links += token.type == "link_open"
        if not in_link and any(map(str.isalnum, token.content)):
            return False
    return links > 0 and group[0].type in ("bullet_list_open", "ordered_list_open")


_BORDERS = {
    "list_item_close": Assembly.close_item, "admonition_close": Assembly.end_label,
    "blockquote_open": Assembly.open_quote, "blockquote_close": Assembly.close_quote,
    "dd_open": Assembly.open_definition, "dd_close": Assembly.close_definition,
}  # fmt: skip


class _Walk:
    """Walks the tokens of a file and adds its blocks."""

    def __init__(self, assembly: Assembly, closed: frozenset[str]) -> None:
        self._assembly = assembly
        self._closed = closed
        """Names of templates that enclose something."""
        self._notes: dict[int, list[Token]] = {}
        self._numbers: list[int | None] = []
        self._rows: list[list[str]] = []
        self._headers = 0

    def add(self, tokens: Sequence[Token]) -> None:
        """Add the blocks that the tokens stand for."""
        inside = ""
        for token in self._take_notes(tokens):
            match token.type:
                case "inline":
                    self._add_text(self._spell(token.children or ()), inside)
                case "fence" | "code_block":
                    title = _CODE_TITLE.search(token.info)
                    self._assembly.label(title[1] if title else "")
                    self._assembly.add_code(token.content, re.split(r"[\s{,:]", token.info.strip(), maxsplit=1)[0])
                case "math_block":
                    self._assembly.add_paragraph(f"$${token.content}$$")
                case "html_block":
                    add_html(self._assembly, LexborHTMLParser(token.content))
                case "heading_open" | "dt_open" | "admonition_title_open":
                    inside = token.tag if token.type == "heading_open" else token.type
                case "heading_close" | "dt_close" | "admonition_title_close":
                    inside = ""
                case name if name in _BORDERS:
                    _BORDERS[name](self._assembly)
                case _:
                    self._enter_or_leave(token)

    def _enter_or_leave(self, token: Token) -> None:
        assembly = self._assembly
        match token.type:
            case "bullet_list_open":
                self._numbers.append(None)
            case "ordered_list_open":
                self._numbers.append(int(token.attrGet("start") or 1))
            case "bullet_list_close" | "ordered_list_close":
                self._numbers.pop()
            case "list_item_open":
                number = self._numbers[-1]
                assembly.open_item(number)
                self._numbers[-1] = None if number is None else number + 1
            case "table_open":
                self._rows, self._headers = [], 0
            case "thead_close":
                self._headers = len(self._rows)
            case "tr_open":
                self._rows.append([])
            case "table_close":
                assembly.add_table(self._rows, headers=self._headers)
                self._rows = []

    def _add_text(self, text: str, inside: str) -> None:
        if self._rows:
            self._rows[-1].append(text.replace(BREAK, " "))
        elif inside == "dt_open":
            self._assembly.add_definition(text)
        elif inside == "admonition_title_open":
            self._assembly.label(text)
        elif inside:
            self._assembly.add_heading(int(inside[1]), text)
        else:
            if alert := _ALERT.match(text):
                text = f"{alert[1].capitalize()}: {text[alert.end() :].lstrip(BREAK)}"
            self._assembly.add_paragraph(text)

    def _take_notes(self, tokens: Sequence[Token]) -> Iterator[Token]:
        """Yield the tokens without those of footnotes, and keep these by their numbers."""
        rest: list[Token] = []
        kept = rest
        for token in tokens:
            if token.type == "footnote_open":
                kept = self._notes.setdefault(token.meta["id"], [])
            elif token.type == "footnote_block_close":
                kept = rest
            kept.append(token)
        yield from rest

    def _spell_note(self, number: int) -> str:
        """Return a footnote in brackets, for its place."""
        words = [
            self._spell(token.children) if token.children else token.content
            for token in self._notes.pop(number, [])  # popped, because a note may refer to itself
        ]
        return f" ({squeeze(' '.join(words))})" if any(words) else ""

    def _spell(self, tokens: Sequence[Token]) -> str:
        """Return the words of inline tokens; raw tags are markup and go, except those that mean something."""
        written = ""
        pieces = [
            (key, "".join(text for _, text in pieces))
            for key, pieces in groupby(self._spell_marked(tokens), itemgetter(0))
        ]
        for is_verbatim, text in pieces:
            if is_verbatim or not _MARK.search(text):  # many times faster than the expression on text that has none
                written += text
                continue
            is_alone = len(pieces) == 1 and _TEMPLATING.fullmatch(text.strip()) is not None
            written += _TEMPLATING.sub(lambda found: self._fill(found, is_alone=is_alone), text)  # noqa: B023
        return written

    def _fill(self, found: re.Match[str], *, is_alone: bool) -> str:
        """Return what stands for a template. What a generator puts there is not known: in a sentence the template
        stays, and what stands alone is left out and counted."""
        if found["page"]:
            return found["page"]
        written, name = found["filled"], (found["name"] or "").lower()
        if not written or name.startswith(("/", "end")) or name in _STATEMENTS:
            return ""
        if name in self._closed:
            if named := _NAMED.search(found["rest"]):
                self._assembly.label(named[1])
            return ""
        if not name and found["sign"] and not found["rest"].strip(" %<>-*"):
            return ""
        is_alone &= found["sign"] != "{"  # a value is one also in a cell
        self._assembly.skip("file" if is_alone else "placeholder", squeeze(written)[:_LONGEST_TEMPLATE])
        return "" if is_alone else written

    def _spell_marked(self, tokens: Sequence[Token]) -> Iterator[tuple[bool, str]]:
        """Yield pieces, and for each whether it is code or a formula."""
        pieces: list[tuple[bool, str]] = []
        opened: list[tuple[str, str, int]] = []
        for token in tokens:
            piece, tag = "", _TAG.fullmatch(token.content) if token.type == "html_inline" else None
            match token.type:
                case "text":
                    piece = token.content
                case "code_inline":
                    piece = spell_code(token.content)
                case "math_inline":
                    piece = f"${token.content.strip()}$"
                case "math_inline_double":
                    piece = f"$${token.content}$$"
                case "softbreak":
                    piece = "\n"
                case "hardbreak":
                    piece = BREAK
                case "html_inline" if re.match(r"<br\b", token.content, re.IGNORECASE):
                    piece = BREAK
                case "footnote_ref":
                    piece = self._spell_note(token.meta["id"])
                case "image":
                    piece = self._spell(token.children or ())
                    if not describes(piece):
                        self._assembly.skip("picture")
                        piece = ""
                case "link_open":
                    opened.append(("a", str(token.attrGet("href") or ""), len(pieces)))
                case "s_open":
                    opened.append(("s", "", len(pieces)))
                case "html_inline" if tag and not tag[1]:
                    opened.append((tag[2].lower(), "", len(pieces)))
                case "link_close" | "s_close" | "html_inline" if opened and (tag or token.type != "html_inline"):
                    name = "a" if token.type == "link_close" else tag[2].lower() if tag else "s"
                    if opened[-1][0] == name:
                        _, address, start = opened.pop()
                        words = "".join(text for _, text in pieces[start:])
                        is_code = len(pieces) == start + 1 and pieces[start][0]
                        marked = self._assembly.link(words, address) if name == "a" else MARKS[name](words)
                        pieces[start:] = [(is_code, marked)]
                case _:
                    pass
            pieces.append((token.type in _VERBATIM, piece))
        yield from pieces
