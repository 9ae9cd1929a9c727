"""reStructuredText, also with the directives and roles of Sphinx."""

import re
import textwrap
from collections.abc import Sequence

from app.ingest.decoding import decode
from app.ingest.readers.assembly import clean, spell_code
from app.ingest.readers.pandoc import Node, Walk, parse, read_as_plain
from domain.documents import ParsedDocument
from domain.errors import UnreadableDocument

_DIRECTIVE = re.compile(r"^([ \t]*\.\.[ \t]{1,20})([\w.+:-]{1,60}?)[ \t]?::(?:[ \t]+(\S.*))?$", re.MULTILINE)
_DOCTEST = re.compile(r"(?:(?<=\n\n)|\A)([ \t]*)>>> .*(?:\n\1[ \t]*\S.*)*")
_MARK = "ː"
"""Stands in names that pandoc does not know in the place of a colon, which it does not take, and before what was put in
front of them: so what stands in a block of code can be given back as it was."""
_INDENTED = re.compile(rf"^([ ]*+)\.\. code-block:: {_MARK}python{_MARK}\n\n((?:\1 {{3}}.*(?:\n|\Z))+)", re.MULTILINE)
_PYTHON = f"{_MARK}python{_MARK}"
_MARKED = re.compile(
    rf"(?P<code>code-block:: ){_MARK}(?P<name>\S+){_MARK}(?P<more>.*)|{_MARK}``(?P<signature>.*)``|{_MARK}"
)
# fmt: off
_KNOWN = frozenset({
    "admonition", "attention", "caution", "class", "code", "code-block", "compound", "container", "contents",
    "csv-table", "danger", "date", "default-role", "epigraph", "error", "figure", "header", "highlights", "hint",
    "image", "important", "include", "line-block", "list-table", "math", "meta", "note",
    "pull-quote", "raw", "replace", "role", "rubric", "sidebar", "sourcecode", "table", "tip", "title", "topic",
    "unicode", "warning",
})
"""Directives that pandoc knows."""
_CODE = frozenset({
    "click:example", "click:run", "code-tab", "doctest", "ipython", "literalinclude", "parsed-literal",
    "program-output", "prompt", "testcode", "testoutput",
})
_UNSEEN = frozenset({
    "codeauthor", "contents", "currentmodule", "default-domain", "highlight", "include", "index", "meta", "module",
    "py:currentmodule", "py:module", "raw", "sectionauthor", "tabularcolumns", "testcleanup", "testsetup", "toctree",
})
"""Directives that the published page does not show at their place."""
# fmt: on
_VERSIONS = {
    "versionadded": "Added in version",
    "versionchanged": "Changed in version",
    "versionremoved": "Removed in version",
    "deprecated": "Deprecated since version",
}
_CONDITIONS = frozenset({"only", "ifconfig"})
"""Directives whose argument is not shown."""
_OBJECT = re.compile(
    r"(?:[a-z]+:)?(?:auto\w+|function|class|method|attribute|property|data|exception|decorator|option|confval|envvar"
    r"|describe|object|program|setting|command|rst:\w+)"
)
"""Directives that describe something by its name or signature."""
_WORDS = frozenset({
    "ref", "doc", "term", "numref", "any", "std:ref", "std:doc", "std:term", "pypi", "issue", "pull", "pr", "user",
    "abbr", "guilabel", "menuselection", "download",
})  # fmt: skip
"""Roles whose text is words. That of all others is code, such as the name of a function or an option."""
_NAMES = frozenset({"class", "func", "meth", "data", "attr", "exc", "mod", "obj", "const"})
"""Roles of names in code. A dot in front says where to look for the name and is not shown."""
_TITLED = re.compile(r"(.+?)<([^<>]*)>", re.DOTALL)


def read_rst(source: str, data: bytes) -> ParsedDocument:
    """Read reStructuredText. Directives that neither pandoc nor this reader knows keep their text. No other file is
    read, and raw HTML is left out. Raises what `parse` does."""
    walk = _Walk()
    text = walk.leave_out_files(clean(decode(data)).expandtabs(), "rst")
    text = _DIRECTIVE.sub(_mark, text)
    text = _DOCTEST.sub(
        lambda found: f"{found[1]}.. code-block:: {_PYTHON}\n\n{textwrap.indent(found[0], '   ')}", text
    )
    try:
        return walk.read(parse(text.encode(), "rst"), source)
    except UnreadableDocument as error:
        return read_as_plain(source, data, "rst", error)


def _mark(found: re.Match[str]) -> str:
    """Write a directive in a form from which pandoc keeps what it says."""
    start, name, argument = found.groups()
    if name in _CODE:
        return f"{start}code-block:: {_MARK}{name}{_MARK}{argument or ''}"
    if name in _KNOWN or name in _UNSEEN:
        return found[0]
    written = f" {_MARK}{f'``{argument}``' if _OBJECT.fullmatch(name) else argument}" if argument else ""
    return f"{start}{name.replace(':', _MARK)}::{written}"


def _unmark(found: re.Match[str]) -> str:
    if found["name"]:
        return f"{found['name']}:: {found['more']}".rstrip()
    return found["signature"] or ("" if found.string[: found.start()].endswith(":: ") else ":")


class _Walk(Walk):
    quotes = False

    def add_div(self, classes: Sequence[str], blocks: Sequence[Node]) -> None:
        name = next(iter(classes), "").replace(_MARK, ":")
        if name in _UNSEEN:
            return
        first = self.spell(blocks[0]["c"]) if blocks and blocks[0]["t"] in ("Para", "Plain") else ""
        if not first.startswith((_MARK, f"`{_MARK}")):
            if name == "seealso":
                self.assembly.label("See also")
            super().add_div(classes, blocks)
            return
        argument = first.replace(_MARK, "", 1)
        if name in _VERSIONS:
            version, _, what = argument.partition(" ")
            label = f"{_VERSIONS[name]} {version}"
            self.assembly.label(label if what or blocks[1:] else f"{label}.")
            self.assembly.add_paragraph(what)
        elif name == "seealso":
            self.assembly.label("See also")
            self.assembly.add_paragraph(argument)
        elif _OBJECT.fullmatch(name):
            if not blocks[1:]:
                self.assembly.add_paragraph(argument)
            self.add_definition(argument, [blocks[1:]])
            return
        elif name not in _CONDITIONS:
            self.assembly.label(argument)
        self.add(blocks[1:])

    def add_code(self, code: str, classes: Sequence[str], attributes: dict[str, str]) -> None:
        kept = [name for name in classes if _MARK not in name or name == _PYTHON]
        code = _INDENTED.sub(lambda found: re.sub(rf"^{found[1]} {{3}}", found[1], found[2], flags=re.MULTILINE), code)
        super().add_code(_MARKED.sub(_unmark, code), [name.strip(_MARK) for name in kept], attributes)

    def spell_code(self, code: str, attributes: dict[str, str]) -> str:
        """Return the words that a role shows, as words or as code."""
        name = attributes.get("role", "")
        if not name:
            return spell_code(code)
        if titled := _TITLED.fullmatch(code):
            return titled[1].rstrip()
        if code.startswith("~"):
            code = code[1:].rpartition(".")[2]
        code = code.removeprefix("!")
        if name.rpartition(":")[2] in _NAMES:
            code = code.removeprefix(".")
        elif name.rpartition(":")[2] == "doc":
            code = code.rpartition("/")[2]
        if name in ("issue", "pull", "pr"):
            code = f"#{code}"
        elif name.endswith("ref"):
            code = re.sub(r"[-_]+", " ", code)
        return code if name in _WORDS else spell_code(code)
