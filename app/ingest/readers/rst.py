"""reStructuredText, also with the directives and roles of Sphinx."""

import ast
import re
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any, ClassVar

from docutils import nodes
from docutils.frontend import get_default_settings
from docutils.parsers.rst import Directive, Parser, directives, roles
from docutils.utils import new_document

from app.ingest.decoding import decode
from app.ingest.readers.assembly import BREAK, Assembly, clean, spell_code
from domain.documents import ParsedDocument

_REGISTRIES = threading.Lock()
"""docutils keeps directives and roles in tables that all threads share."""

_DEFAULTS = get_default_settings(Parser)

_DIRECTIVE = re.compile(r"^[ \t]*\.\.[ \t]{1,20}([\w.+:-]{1,60}?)[ \t]?::(?:\s|$)", re.MULTILINE)
_ROLE = re.compile(r":([\w.+:-]{1,60}?):`")
_CODE = frozenset(
    {"code-block", "sourcecode", "prompt", "ipython", "literalinclude", "testcode", "testoutput", "doctest"}
)
_UNSEEN = frozenset(
    {"toctree", "index", "currentmodule", "py:currentmodule", "module", "py:module", "highlight", "default-domain"}
    | {"tabularcolumns", "sectionauthor", "codeauthor", "include", "raw", "meta", "testsetup", "testcleanup"}
)
"""Directives that the published page does not show at their place."""
_VERSIONS = {
    "versionadded": "Added in version",
    "versionchanged": "Changed in version",
    "versionremoved": "Removed in version",
    "deprecated": "Deprecated since version",
}
_OBJECT = re.compile(
    r"(?:[a-z]+:)?(?:auto\w+|function|class|method|attribute|property|data|exception|decorator|option|confval|envvar"
    r"|describe|object|program|setting|command|rst:\w+)"
)
"""Directives that describe something by its name or signature."""
_WORDS = frozenset(
    {"ref", "doc", "term", "numref", "any", "std:ref", "std:doc", "std:term", "pypi", "issue", "pull", "pr", "user"}
    | {"abbr", "guilabel", "menuselection", "download"}
)
"""Roles whose text is words. That of all others is code, such as the name of a function or an option."""
_NAMES = frozenset({"class", "func", "meth", "data", "attr", "exc", "mod", "obj", "const"})
"""Roles of names in code. A dot in front says where to look for the name and is not shown."""
_TITLED = re.compile(r"(.+?)<([^<>]*)>", re.DOTALL)


def read_rst(source: str, data: bytes) -> ParsedDocument:
    """Read reStructuredText into canonical Markdown. Directives that neither docutils nor this reader knows keep their
    text. No other file is read, and raw HTML is left out."""
    text = clean(decode(data))
    document = _parse(text)
    assembly = Assembly()
    _Walk(assembly, document).add_all(document.children, 0)
    return assembly.finish(None, source)


def _parse(text: str) -> nodes.document:
    settings = copy(_DEFAULTS)
    settings.file_insertion_enabled = False
    settings.raw_enabled = False
    settings.syntax_highlight = "none"
    settings.report_level = settings.halt_level = 5
    settings.line_length_limit = len(text) + 1
    settings.warning_stream = ""
    document = new_document("", settings)
    with _know(text):
        Parser().parse(text, document)
    return document


@contextmanager
def _know(text: str) -> Iterator[None]:
    """Let docutils read the directives and roles of the text that it does not know."""
    with _REGISTRIES:
        known_directives, known_roles = directives._directives, roles._roles
        kept = dict(known_directives), dict(known_roles)
        for name in {found[1].lower() for found in _DIRECTIVE.finditer(text)}:
            if name not in directives._directive_registry or name in _CODE | _UNSEEN:
                known_directives[name] = _Unknown
        for name in {found[1].lower() for found in _ROLE.finditer(text)}:
            if name not in roles._role_registry:
                known_roles[name] = _read_role
        try:
            yield
        finally:
            for known, before in zip((known_directives, known_roles), kept, strict=True):
                known.clear()
                known.update(before)


class _AnyOption(dict[str, Any]):
    """Takes every option of a directive as it is written."""

    def __missing__(self, name: str) -> Any:
        return directives.unchanged


class _Unknown(Directive):  # type: ignore[misc]
    """A directive of Sphinx or of one of its extensions."""

    has_content = True
    optional_arguments = 100
    final_argument_whitespace = True
    option_spec: ClassVar[Any] = _AnyOption(name=directives.unchanged)

    def run(self) -> list[nodes.Node]:
        argument = " ".join(" ".join(self.arguments).split())
        if self.name in _UNSEEN:
            return []
        code = "\n".join(self.content)
        if self.name in _CODE:
            block = nodes.literal_block(code, code, classes=["code", *argument.split()[:1]])
            title = self.options.get("caption") or (argument if self.name == "literalinclude" else "")
            return [*([_Label(title)] if title else []), *([block] if code.strip() else [])]
        if not _OBJECT.fullmatch(self.name) and _is_python(code):
            return [nodes.literal_block(code, code, classes=["code", "python"])]
        inner = nodes.container()
        self.state.nested_parse(self.content, self.content_offset, inner)
        if self.name in _VERSIONS:
            version, _, what = argument.partition(" ")
            words, _ = self.state.inline_text(what, self.lineno)
            said = [*([nodes.paragraph("", "", *words)] if what else []), *inner.children]
            label = f"{_VERSIONS[self.name]} {version}"
            return [_Label(label), *said] if said else [nodes.paragraph("", f"{label}.")]
        if self.name == "seealso":
            words, _ = self.state.inline_text(argument, self.lineno)
            return [_Label("See also"), *([nodes.paragraph("", "", *words)] if words else []), *inner.children]
        if argument and _OBJECT.fullmatch(self.name):
            term = nodes.term("", "", nodes.literal(argument, argument))
            item = nodes.definition_list_item("", term, nodes.definition("", *inner.children))
            return [nodes.definition_list("", item)]
        return [*([_Label(argument)] if argument else []), *inner.children]


def _is_python(content: str) -> bool:
    """Return True where the content of a directive is a piece of a program, as of `click:example`, and no prose."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what it parses, such as an escape that no string knows
            said = ast.parse(content).body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return False
    return any(not isinstance(each, ast.Expr) or isinstance(each.value, ast.Call) for each in said)


class _Label(nodes.paragraph):  # type: ignore[misc]
    """Words that say what the next block is: a note's title, or that of a tab."""

    def __init__(self, text: str = "") -> None:
        super().__init__(text, text)


def _read_role(
    name: str, rawtext: str, text: str, lineno: int, inliner: Any, options: Any = None, content: Any = ()
) -> tuple[list[nodes.Node], list[nodes.system_message]]:
    """Read a role of Sphinx: the words that it shows, as a link or as code."""
    text = text.replace("\0", "").replace("\\", "")
    titled = _TITLED.fullmatch(text)
    if titled:
        return [nodes.inline(rawtext, titled[1].rstrip())], []
    if text.startswith("~"):
        text = text[1:].rpartition(".")[2]
    text = text.removeprefix("!")
    if name.rpartition(":")[2] in _NAMES:
        text = text.removeprefix(".")
    elif name.rpartition(":")[2] == "doc":
        text = text.rpartition("/")[2]
    if name in ("issue", "pull", "pr"):
        text = f"#{text}"
    elif name.endswith("ref"):
        text = re.sub(r"[-_]+", " ", text)
    return [nodes.inline(rawtext, text) if name in _WORDS else nodes.literal(rawtext, text)], []


class _Walk:
    """Walks the tree of a document and adds its blocks."""

    def __init__(self, assembly: Assembly, document: nodes.document) -> None:
        self._assembly = assembly
        self._label = ""
        self._addresses: dict[str, str] = {}
        for target in document.findall(nodes.target):
            for name in target["names"]:
                self._addresses[name] = target.get("refuri", "")

    def add_all(self, children: list[nodes.Node], level: int) -> None:
        """Add the blocks of some nodes. `level` is that of the section around them."""
        for child in children:
            self._add(child, level)
        self._end_label()

    def _add(self, node: nodes.Node, level: int) -> None:
        assembly = self._assembly
        match node:
            case nodes.section():
                self.add_all(node.children, level + 1)
            case nodes.title():
                self._end_label()
                if isinstance(node.parent, nodes.section):
                    assembly.add_heading(level, self._spell(node))
                else:
                    self._label = self._spell(node)
            case _Label():
                self._end_label()
                self._label = node.astext()
            case nodes.literal_block() | nodes.doctest_block():
                self._end_label()
                language = next((name for name in node["classes"] if name != "code"), "")
                assembly.add_code(node.astext(), "python" if isinstance(node, nodes.doctest_block) else language)
            case nodes.bullet_list() | nodes.enumerated_list():
                self._add_list(node, level)
            case nodes.definition_list_item() | nodes.option_list_item():
                self._add_definition(node, level)
            case nodes.field():
                name, body = self._spell(node.children[0]), node.children[-1]
                if body.children:
                    self._label = name
                    self.add_all(body.children, level)
            case nodes.table():
                self._add_table(node)
            case nodes.line_block():
                lines = (self._spell(line) for line in node.findall(nodes.line))
                assembly.add_paragraph(BREAK.join(lines))
            case nodes.footnote() | nodes.citation():
                self._label = f"[{node.children[0].astext()}]"
                self.add_all(node.children[1:], level)
            case nodes.Invisible() | nodes.system_message() | nodes.raw() | nodes.target() | nodes.meta():
                pass
            case nodes.Admonition():
                self._end_label()
                if not isinstance(node, nodes.admonition):
                    self._label = type(node).__name__.replace("_", " ").capitalize()
                self.add_all(node.children, level)
            case nodes.image():
                assembly.add_paragraph(node.get("alt", ""))
            case nodes.TextElement():
                text = self._spell(node)
                assembly.add_paragraph(f"{_end(self._label)} {text}" if self._label else text)
                self._label = ""
            case nodes.Element():
                self.add_all(node.children, level)

    def _add_list(self, node: nodes.Element, level: int) -> None:
        self._end_label()
        number = int(node.get("start", 1)) if isinstance(node, nodes.enumerated_list) else None
        for item in node.children:
            self._assembly.open_item(number)
            self.add_all(item.children, level)
            self._assembly.close_item()
            number = None if number is None else number + 1

    def _add_definition(self, node: nodes.Element, level: int) -> None:
        self._end_label()
        *terms, meaning = node.children
        names = [self._spell(term) for group in terms for term in (group.children if _is_group(group) else [group])]
        self._assembly.add_definition(", ".join(filter(None, names)))
        self._assembly.open_definition()
        self.add_all(meaning.children, level)
        self._assembly.close_definition()

    def _add_table(self, node: nodes.table) -> None:
        self._end_label()
        rows: list[list[str]] = []
        spanned: dict[int, tuple[int, str]] = {}
        headers = 0
        caption = next((self._spell(child) for child in node.children if isinstance(child, nodes.title)), "")
        for row in node.findall(nodes.row):
            cells: list[str] = []
            for entry in [*row.children, None]:
                while len(cells) in spanned:
                    left, text = spanned.pop(len(cells))
                    if left > 1:
                        spanned[len(cells)] = left - 1, text
                    cells.append(text)
                if isinstance(entry, nodes.entry):
                    text = " ".join(self._spell(child) for child in entry.children)
                    for column in range(1 + entry.get("morecols", 0)):
                        if entry.get("morerows"):
                            spanned[len(cells)] = entry["morerows"], "" if column else text
                        cells.append("" if column else text)
            headers += isinstance(row.parent, nodes.thead)
            rows.append(cells)
        self._assembly.add_table(rows, headers=headers, caption=caption)

    def _spell(self, node: nodes.Node) -> str:
        """Return the words of a node, with code between backticks."""
        match node:
            case nodes.Text():
                return str(node.astext())
            case nodes.literal() | nodes.option_string() | nodes.math():
                return spell_code(node.astext())
            case nodes.image():
                return str(node.get("alt", ""))
            case nodes.footnote_reference() | nodes.citation_reference():
                return f"[{node.astext()}]"
            case nodes.reference():
                address = node.get("refuri") or self._addresses.get(str(node.get("refname", "")), "")
                return self._assembly.link("".join(map(self._spell, node.children)), address)
            case nodes.Invisible() | nodes.system_message() | nodes.raw():
                return ""
            case nodes.Element() if node.children and not isinstance(node, nodes.TextElement):
                return " ".join(map(self._spell, node.children))
        return "".join(map(self._spell, node.children))

    def _end_label(self) -> None:
        """Add a label that no paragraph follows as a paragraph."""
        label, self._label = self._label, ""
        if label:
            self._assembly.add_paragraph(_end(label))


def _is_group(node: nodes.Node) -> bool:
    return isinstance(node, nodes.option_group)


def _end(label: str) -> str:
    return label if label.endswith((":", ".", "!", "?", "]")) else f"{label}:"
