"""The formats that pandoc reads: it makes a tree of each, and one walk adds the tree's blocks.

pandoc is a program of its own, in the package `pypandoc-binary`. It runs as a process beside the worker that reads the
file, with limits of time and memory, and with `--sandbox`: it opens no other file and no address.
"""

import html
import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from signal import SIGKILL, SIGXCPU
from tempfile import TemporaryFile
from typing import Any, cast

import orjson

from app.ingest.decoding import decode
from app.ingest.metadata.dates import state_day
from app.ingest.parser_process import prepare_program
from app.ingest.readers.assembly import (
    BREAK,
    MARKS,
    MOST_HEADERS,
    Assembly,
    clean,
    describes,
    flatten,
    lower,
    raise_up,
    spell_code,
    spell_number,
    squeeze,
    strike,
    unlink,
)
from app.ingest.readers.grids import check_cells, has_header
from app.ingest.readers.plain import read_plain
from app.ingest.readers.spans import Rows
from domain.documents import ParsedDocument, Unread
from domain.errors import CostlyDocument, OversizedDocument, UnreadableDocument
from domain.library.metadata import Metadata, select_metadata

Node = dict[str, Any]
"""An element of the tree: its type in `t`, its content in `c` (pandoc-types, Text.Pandoc.Definition)."""

MEMORY_MB = 640
"""Memory that pandoc may take. 5 MB of reStructuredText take 500 MB."""
_LONGEST_LOG = 2**20
_MOST_NESTED = 5
MAX_TREE = 128 * 2**20
"""Largest tree in bytes of JSON, which is ten to twenty times as long as the text."""
_HEAP_IS_FULL = 251
"""Exit status of programs made with GHC."""
_STATED = {"author": "author", "lang": "language", "keywords": "keywords", "description": "description"}
"""What a file says about itself, with the name under which it is kept."""
_PUT_BEFORE = ("date", "thanks", "dedication", "abstract")
"""What a file states apart from its text, and a reader of it sees before that."""
_NOT_SHOWN = frozenset({"bibliography", "footer", "header", "header-includes", "section", "subtitle", "title"})
"""What else has a place of its own, or none on a page."""
_DECIMAL = frozenset({"DefaultStyle", "Decimal", "Example"})
_FILES = {
    dialect: re.compile(pattern, re.MULTILINE | re.IGNORECASE)
    for dialect, pattern in {
        "asciidoc": r"^include::([^\[\n]+)\[.*\]$",
        "docbook": r"<xi:include\b[^<>]*?\bhref=[\"']([^\"'<>]++)[^<>]*+>",
        "latex": r"\\(?:input|include)(?:[ \t]*\{([^{}\n]+)\}|[ \t]+([\w./-]+))",
        "man": r"^\.so[ \t]+(\S+)",
        "mediawiki": r"\{\{:([^{}|\n]++)[^{}]*+\}\}",
        "org": r"^#\+include:[ \t]*\"?([^\"\n]+)\"?.*",
        "rst": r"^[ \t]*\.\. (?:include|literalinclude)::[ \t]*(?=(\S+))|^[ \t]+:(?:file|url):[ \t]*(\S+)\n",
    }.items()
}
"""How each format includes another file. None is read."""
_TEMPLATE = re.compile(
    r"\{\{\{(?P<parameter>[^{}|]++)\|?+(?P<default>[^{}]*+)\}\}\}|\{\{(?P<name>[^{}|]++)\|?+(?P<given>[^{}]*+)\}\}"
)
_ARGUMENT = re.compile(r"\|(?![^\[\]|]{0,200}\]\])")
_ASCIIDOC_CONDITION = re.compile(r"(?:(ifn?def)::([^\[\n]*)\[(.*)\]|(ifeval|endif)::.*\[.*\])[ \t]*")
_ASCIIDOC_SET = frozenset({"asciidoctor", "backend-html5", "basebackend-html"})
"""Attributes that are set where a page is made of a text."""
_ASCIIDOC_ATTRIBUTE = re.compile(r":(!?)([\w-]+)(!?):[ \t]*(.*)")
_ASCIIDOC_REFERENCE = re.compile(r"(?<!\\)\{([\w-]+)\}")
_MOST_FILLED_IN, _MOST_OF_ONE = 1_000_000, 10_000
"""Characters that values add to a text, and to another value, against attributes that grow by one another."""
_ASCIIDOC_FENCE = re.compile(r"(-{4,}|\.{4,}|\+{4,}|/{4,}|```\w*)[ \t]*")
_ASCIIDOC_TABLE = re.compile(r"(?:^\[([^\n]*)\]\n)?^(\|={3,}\n)(.*?)^\2", re.MULTILINE | re.DOTALL)
_ASCIIDOC_INNER = re.compile(r"^!={3,}\n([^|]*?)\n!={3,}$", re.MULTILINE)
_ASCIIDOC_CELL = re.compile(
    r"(?:^|(?<=\s))(?:(\d{1,2})(\*)|(\d{1,2})?(?:\.(\d{1,3}))?\+)?([<^>.]{0,4}[a-z]?)(?<!\\)\|", re.MULTILINE
)
_ASCIIDOC_COLUMNS = re.compile(r"cols=\"?([^\"\]]+)")
_MOST_COLUMNS, _MOST_SPREAD = 100, 100_000
"""Limits of a table whose cells are spread, against files that were made to grow."""
_ORG_HEADING = re.compile(r"(\*{1,99}) (COMMENT\b)?")
_HEAD_ENDS = "\u2060"
"""Stands in the first row below a header of LaTeX, of which pandoc knows but one row. `clean` drops it."""
_MARKED_ROW = repr(_HEAD_ENDS)[1:-1]
_LATEX_REWRITTEN = tuple(
    (re.compile(pattern), written)
    for pattern, written in (
        (r"\\(begin|end)\{(?:mp)?supertabular\*?\}", r"\\\1{tabular}"),
        (r"\\begin\{(?:wrap|SC)(figure|table)\*?\}(?:\[[^\[\]\n]{0,50}\]|\{[^{}\n]{0,50}\}){0,4}", r"\\begin{\1}"),
        (r"\\end\{(?:wrap|SC)(figure|table)\*?\}", r"\\end{\1}\n\n"),
        (r"\\begin\{(multicols|thebibliography)\*?\}\{[^{}\n]{0,50}\}", r"\\begin{\1}"),
        (r"\\c(?:midrule|line)(?:\[[^\[\]\n]{0,50}\])?(?:\([^()\n]{0,50}\))?\{[^{}\n]{0,50}\}", ""),
        (r"\\midrule(?!\s{0,99}\\(?:mid|bottom|multi|hline|add|special|row|end))", rf"\\midrule {_HEAD_ENDS} "),
        (r"\\EUR\{([^{}\n]{0,50})\}", r"€\1"),
    )
)
"""What pandoc drops or takes for text, in a form that it reads."""
_LATEX_CELL = re.compile(r"(\\multicolumn\{\d{1,2}\})\{(?:[^{}]++|\{[^{}]*+\})*+\}(\{(?:[^{}]++|\{[^{}]*+\})*+\})")
_LATEX_STEPS = re.compile(r"\\begin\{(algorithm|algorithmic)\*?\}(?:(?!\\begin\{\1\*?\}).)*?\\end\{\1\*?\}", re.DOTALL)
_LATEX_STEP = re.compile(r"\\([A-Za-z]{2,20})(?![A-Za-z])")
_BLOCKS = ["if", "for", "while", "loop", "procedure", "function"]
_STEPS = {
    **{name: name for name in (*_BLOCKS, "else", "repeat", "until", "return")},
    **{f"end{name}": f"end {name}" for name in _BLOCKS},
    **dict.fromkeys(("state", "statex", "caption"), ""),
    "elsif": "else if", "forall": "for all", "require": "Require:", "ensure": "Ensure:",
}  # fmt: skip
"""What commands of algorithms print on a line of its own, before their argument."""
_LATEX_DEFINED = re.compile(r"\\ifdefined\s{0,9}\\([A-Za-z@]{1,50})")
_LATEX_COMMAND = re.compile(
    r"\\(?:New|Renew|Provide|Declare)DocumentCommand\s{0,9}\{?\s{0,9}(\\[A-Za-z@]{1,50})\s{0,9}\}?\s{0,9}"
    r"\{\s{0,9}(?:O\{([^{}]{0,200})\})?((?:\s{0,9}m){0,9})\s{0,9}\}"
)
"""A definition whose arguments pandoc reads in the older form: all are needed but the first."""
_MOST_UNKNOWN = 50
_LATEX_UNKNOWN = re.compile(r"\\\w{1,20}DocumentCommand\s*\{?(\\[A-Za-z@]+)")
_LATEX_TABS = re.compile(r"\\begin\{tabbing\}(?:(?!\\begin\{tabbing\}).)*?\\end\{tabbing\}", re.DOTALL)
_SKIPPED = re.compile(r"Skipped '(.{0,500}?)' at")
_ADMONITIONS = frozenset({"note", "tip", "important", "warning", "caution"})
_TAG_OF_XML = re.compile(r"<!--[\s\S]{0,5000}?-->|<[?!][^<>]*>|</?[A-Za-z][^<>]*>")
_TAGS_OF_XML = re.compile(rf"(?:(?:{_TAG_OF_XML.pattern})\s*+){{2,}}")
"""Where a block ends and another begins."""
_DOCBOOK_HEAD = re.compile(r"(?:\s*+<[?!][^<>]*+>)*+\s*+<\w[^<>]*+>\s*+<\w*info\b")
_DOCBOOK_INNER = re.compile(
    r"<abstract\b[^<>]*+>((?:(?!<abstract\b|</abstract>).)*+)</abstract>(.*?</\w*info>)", re.DOTALL
)
_TAG = re.compile(f"<(?P<end>/?)(?P<name>{'|'.join(MARKS)})>")
_QUOTES = {"SingleQuote": "‘{}’", "DoubleQuote": "“{}”"}


def read_text(source: str, data: bytes, dialect: str) -> ParsedDocument:
    """Read a text in a format that pandoc calls `dialect`. Raises what `parse` does."""
    walk = Walk()
    text = walk.leave_out_files(clean(decode(data)), dialect)
    match dialect:
        case "asciidoc":
            text = _ASCIIDOC_INNER.sub(_join_inner, walk.leave_out_branches(text))
            text = _ASCIIDOC_TABLE.sub(_spread_cells, text)
        case "latex":
            for pattern, written in _LATEX_REWRITTEN:
                text = pattern.sub(written, text)
            text = _LATEX_CELL.sub(lambda cell: f"{cell[1]}{{l}}" + cell[2].replace("\\\\", "\\newline "), text)
            text = _LATEX_STEPS.sub(lambda steps: _LATEX_STEP.sub(_spell_step, steps[0]), text)
            text = _LATEX_COMMAND.sub(_define, text)
            defined = {*re.findall(r"\\(?:def|let|newcommand\*?\s?\{?)\s?\\([A-Za-z@]{1,50})", text)}
            text = _LATEX_DEFINED.sub(lambda found: f"\\if{str(found[1] in defined).lower()} ", text)
            text = _LATEX_TABS.sub(lambda tabs: re.sub(r"\\[=>]", " ", tabs[0]), text)
        case "docbook":  # abstracts of chapters, which pandoc drops
            head = _DOCBOOK_HEAD.match(text)
            start = text.find("info>", head.end()) if head else 0
            text = text[:start] + _DOCBOOK_INNER.sub(r"\2\1", text[start:])
        case "org":
            walk.leave_out_trees(text)
            text = f"#+OPTIONS: p:t\n{text}"  # when tasks are planned
        case "mediawiki":  # shows a table that is not closed
            text = _close_tables(text)
    try:
        return walk.read(walk.parse(text.encode(), dialect), source)
    except UnreadableDocument as error:
        return read_as_plain(source, data, dialect, error)


def _spell_step(found: re.Match[str]) -> str:
    words = _STEPS.get(found[1].lower())
    return found[0] if words is None else f"\\par {words} "


def _define(found: re.Match[str]) -> str:
    count = (found[2] is not None) + found[3].count("m")
    return (
        f"\\newcommand{{{found[1]}}}"
        + (f"[{count}]" if count else "")
        + (f"[{found[2]}]" if found[2] is not None else "")
    )


class _Attributes(dict[str, str]):
    """The values of the attributes of an AsciiDoc text. One may double another, and the next one that."""

    def __init__(self) -> None:
        super().__init__()
        self.room = _MOST_FILLED_IN
        self.left = 0
        """Number of references for whose values there was no room."""

    def define(self, name: str, value: str) -> None:
        """Give the attribute this value, with those that it refers to, or as it is written where it would be long."""
        filled = self.fill_in(value)
        is_long = len(filled) > max(_MOST_OF_ONE, len(value))
        self.left += is_long
        self[name] = value if is_long else filled

    def fill_in(self, text: str) -> str:
        """Return the text with values in place of references."""
        return _ASCIIDOC_REFERENCE.sub(self._find, text)

    def _find(self, found: re.Match[str]) -> str:
        value = self.get(found[1], found[0])
        if len(value) > max(self.room, len(found[0])):
            self.left += 1
            return f"\\{found[0]}"
        self.room -= max(0, len(value) - len(found[0]))
        return value


def _close_tables(text: str) -> str:
    """Return a text of MediaWiki with tables closed that are open above a heading, or at the end."""
    lines: list[str] = []
    opened = 0
    for line in [*text.split("\n"), "=="]:
        start = line.lstrip(" \t:")[:2]
        lines += ["|}"] * opened if start == "==" else []
        opened = max(0, opened + (start == "{|") - (start == "|}")) if start != "==" else 0
        lines.append(line)
    return "\n".join(lines[:-1])


def _join_inner(table: re.Match[str]) -> str:
    """Return a table within a cell of AsciiDoc on one line, as `flatten` and readers of HTML join one."""
    rows = (", ".join(filter(None, map(str.strip, row.split("!")))) for row in table[1].split("\n"))
    return "; ".join(filter(None, rows))


def _spread_cells(table: re.Match[str]) -> str:
    """Return a table of AsciiDoc with what stands in cells that span rows, or are given once for several, repeated in
    each, which pandoc shifts. A table without such cells stays as it is."""
    found = [*_ASCIIDOC_CELL.finditer(table[3])]
    if not any(cell[2] or cell[4] for cell in found):
        return table[0]
    ends = [*(cell.start() for cell in found[1:]), len(table[3])]
    cells = [(cell, table[3][cell.end() : end]) for cell, end in zip(found, ends, strict=True)]
    first = next((at for at, (_, text) in enumerate(cells, 1) if "\n" in text), len(cells))
    stated = _ASCIIDOC_COLUMNS.search(table[1] or "")
    counts = [int(each[1] or 1) for each in re.finditer(r"(?:(\d{1,2})\*)[^,;]*|[^,;]+", stated[1] if stated else "")]
    columns = min(sum(counts) or sum(int(cell[1] or cell[3] or 1) for cell, _ in cells[:first]), _MOST_COLUMNS)
    if sum(int(cell[1] or 1) * int(cell[3] or 1) * int(cell[4] or 1) for cell in found) > _MOST_SPREAD:
        return table[0]
    rows: dict[tuple[int, int], str] = {}
    row = column = 0
    for cell, text in cells:
        for _ in range(int(cell[1] or 1) if cell[2] else 1):
            while (row, column) in rows:
                row, column = (row, column + 1) if column + 1 < columns else (row + 1, 0)
            for down in range(int(cell[4] or 1)):
                for across in range(int(cell[3] or 1)):
                    rows[row + down, column + across] = f"{cell[5]}|{text.strip()}"
    lines = [" ".join(rows.get((y, x), "|") for x in range(columns)) for y in range(max(rows)[0] + 1)]
    head = "\n\n" if "\n\n" in cells[first - 1][1] else "\n"
    written = head.join([lines[0], "\n".join(lines[1:])])
    return f"{table[0][: table.start(3) - table.start()]}{written}\n{table[2]}"


def read_as_plain(source: str, data: bytes, dialect: str, error: UnreadableDocument) -> ParsedDocument:
    """Read a text with a mistake in its markup as plain text, and say so. OPML is refused: it has nothing but marks."""
    if dialect == "opml":
        raise error
    reason = re.sub(r"^[^(]*\((.*)\)[^)]*$", r"\1", str(error), flags=re.DOTALL)
    if dialect == "docbook":
        data = html.unescape(_TAG_OF_XML.sub("", _TAGS_OF_XML.sub("\n\n", decode(data)))).encode()
    remark = f"It was read as plain text, because of a mistake in it: {reason}. Set it right and add it again."
    plain = read_plain(source, data)
    return replace(plain, unread=(*plain.unread, Unread(kind="remark", number=1, where=remark)))


def parse(data: bytes, dialect: str, skipped: list[str] | None = None) -> Node:
    """Return the tree that pandoc makes of a file. What it says to skip is added to `skipped`.

    Raises `CostlyDocument`, `OversizedDocument`, `UnreadableDocument`, and `RecursionError` for one that is too deep.
    """
    command = [find_program(), "+RTS", f"-M{MEMORY_MB}m", "-RTS", "--sandbox", "-f", dialect, "-t", "json"]
    command.append("--quiet" if skipped is None else "--verbose")
    with TemporaryFile() as file, TemporaryFile() as said:
        file.write(data)
        file.seek(0)
        with subprocess.Popen(
            command,
            stdin=file,
            stdout=subprocess.PIPE,
            stderr=said,
            env={"LC_ALL": "C.UTF-8"},
            preexec_fn=prepare_program(),
        ) as process:
            assert process.stdout is not None
            tree = process.stdout.read(MAX_TREE + 1)
            if len(tree) > MAX_TREE:
                process.kill()
                raise OversizedDocument("The file's text has more parts than this service reads. Split it.")
        said.seek(0)
        log = said.read(_LONGEST_LOG).decode(errors="replace")
    if process.returncode == _HEAP_IS_FULL:
        raise CostlyDocument(f"Reading the file took more than {MEMORY_MB} MB. Split it, or save it in a simpler form.")
    if process.returncode in (-SIGXCPU, -SIGKILL):
        raise CostlyDocument("Reading the file took too much time. Split it, or save it in a simpler form.")
    if process.returncode:
        reason = squeeze("\n".join(line for line in log.split("\n") if not line.startswith("[INFO]"))[:300])
        raise UnreadableDocument(f"The file cannot be read ({reason}). Save it again and retry.")
    try:
        found: Node = orjson.loads(tree)
    except orjson.JSONDecodeError as error:  # pandoc writes nothing that is not JSON
        raise RecursionError from error
    if skipped is not None:
        skipped += _SKIPPED.findall(log)
    return found


def find_program() -> str:
    """Return the path of pandoc."""
    package = find_spec("pypandoc")
    assert package is not None
    assert package.origin is not None
    return str(Path(package.origin).parent / "files" / "pandoc")


class Walk:
    """Walks a tree and adds its blocks. Formats whose trees need more than this have a class of their own."""

    quotes = True
    """False for formats that indent what is no quote."""

    def __init__(self) -> None:
        self.assembly = Assembly()
        self.edges: dict[str, list[str]] = {"header": [], "footer": []}
        """What page headers and footers say."""
        self._above = 0
        """Headings that stand above all of the text: title and subtitle."""

    def parse(self, data: bytes, dialect: str) -> Node:
        """Return the tree, and count what pandoc does not know. Raises what `parse` does."""
        skipped: list[str] = []
        tree = parse(data, dialect, skipped)
        unknown = {each: found[1] for each in skipped if (found := _LATEX_UNKNOWN.match(each))}
        for name in [*dict.fromkeys(unknown.values())][:_MOST_UNKNOWN]:
            self.assembly.skip("placeholder", f"{name}: define it by \\newcommand", data.decode().count(name) - 1)
        for each in (each for each in skipped if each not in unknown):
            words = "".join(part for part in re.findall(r"\{([^{}]*)\}", each) if describes(part))
            if re.match(r"\\begin\{(?:tikz|pspicture|picture)", each):
                self.assembly.skip("drawing")
            elif words:
                self.assembly.skip("character", "of the file's own text", sum(map(str.isalnum, words)))
        return tree

    def leave_out_files(self, text: str, dialect: str) -> str:
        """Return a text without what it includes from other files, and count these."""

        def count(found: re.Match[str]) -> str:
            path = found[1] or found[2]
            self.assembly.skip("file", squeeze(path))
            return found[0] if dialect == "rst" and found[1] else ""

        text = _FILES[dialect].sub(count, text) if dialect in _FILES else text
        for _ in range(_MOST_NESTED if dialect == "mediawiki" else 0):
            text = _TEMPLATE.sub(self._show_template, text)
        return text

    def _show_template(self, found: re.Match[str]) -> str:
        """Return what a template of MediaWiki is given. What it would make of this nobody knows who has not got it: in
        a line it stands in brackets with its name, unless it is given but one thing."""
        if parameter := found["parameter"]:
            return found["default"] or f"[{squeeze(parameter)}]"
        self.assembly.skip("placeholder", "templates")
        function, colon, first = map(squeeze, found["name"].partition(":"))
        parts = _ARGUMENT.split(found["given"]) if found["given"] else []
        if function == "#if":
            return next(iter(parts[not first :]), "").strip()
        pairs = [re.fullmatch(r"(?:([\w -]{1,60})=)?(.*)", squeeze(part)) for part in parts]
        named = [(pair[1] or "", pair[2]) for pair in pairs if pair]
        given = [first] * bool(first) + [words for name, words in named if not name.strip(" 0123456789")]
        stated = [f"{name.strip()}: {words.strip()}" for name, words in named if name.strip(" 0123456789")]
        text, line = found.string, found.string.rfind("\n", 0, found.start()) + 1
        is_block = line == found.start() and text[found.end() : found.end() + 1] in ("", "\n")
        if text.startswith("{|", line):  # looks of a table
            return ""
        if is_block and (not (given or stated) or (colon and function.isupper())):
            return "\u200b"  # behind a blank at the beginning of a line pandoc reads code
        if is_block and stated:
            return ", ".join([*given, *stated]) + "\n"
        if len(given) == 1 and not stated and function[:1] != "#":
            return given[0]
        words = ", ".join([(" " if all(len(each.split()) == 1 for each in given) else ", ").join(given), *stated])
        return f"[{function}: {words}]".replace(": , ", ": ").replace(": ]", "]")

    def leave_out_trees(self, text: str) -> None:
        """Count what stands under headings of Org that are archived or commented out, which pandoc drops."""
        left, level = list[str](), 0
        for line in text.split("\n"):
            if (heading := _ORG_HEADING.match(line)) and (not level or len(heading[1]) <= level):
                level = len(heading[1]) if heading[2] or ":ARCHIVE:" in line else 0
                left += [line[level:]] if heading[2] else []
            elif level:
                left.append(line)
        self.assembly.leave_out(" ".join(left), "in an archived or commented part")

    def leave_out_branches(self, text: str) -> str:
        """Return an AsciiDoc text without what its attributes rule out, with their values in place of references: those
        of the head alone pandoc knows. What is compared (`ifeval`) stays. A block of code that is open is closed."""
        lines: list[str] = []
        shown, stated = [True], {*_ASCIIDOC_SET}
        values = _Attributes()
        fence, pending, is_head = "", "", True
        for line in text.split("\n"):
            found = _ASCIIDOC_CONDITION.fullmatch(line)
            if found and found[1]:
                together = all if "+" in found[2] else any
                holds = together(name in stated for name in re.split("[+,]", found[2])) == (found[1] == "ifdef")
                if not found[3]:
                    shown.append(shown[-1] and holds)
                    continue
                line = found[3]
            elif found:
                shown = [*shown, shown[-1]] if found[4] == "ifeval" else shown[:-1] or shown
                continue
            else:
                holds = True
            if not (shown[-1] and holds):
                self.assembly.leave_out(line, "of an attribute that is not set")
                continue
            line, pending = f"{pending}{line.lstrip() if pending else line}", ""
            is_head &= bool(line.strip()) or not lines
            fenced = _ASCIIDOC_FENCE.fullmatch(line)
            if fence or fenced:
                is_comment = (fence or line).startswith("/")
                fence = fence if not fenced else "" if fence == line.rstrip() else fence or line.rstrip()
                if is_comment:
                    continue
            elif line.startswith(":") and (attribute := _ASCIIDOC_ATTRIBUTE.fullmatch(line)):
                if line.endswith(" \\"):
                    pending = line[:-1]
                    continue
                _, name, _, value = attribute.groups()
                is_unset = attribute[1] or attribute[3]
                values.pop(name, None)
                if is_unset:
                    stated.discard(name)
                else:
                    stated.add(name)
                    values.define(name, value.strip())
                if not is_head:
                    continue
            else:
                line = values.fill_in(line)
            lines.append(line)
        if values.left:
            self.assembly.skip("placeholder", "attributes that fill in too much", values.left)
        closing = "```" if fence.startswith("```") else fence
        return "\n".join(
            [*lines, *([pending] if pending else []), *([closing] if closing and closing[0] != "/" else [])]
        )

    def read(self, tree: Node, source: str, title: str | None = None) -> ParsedDocument:
        """Return the document that the tree is of. `title` names it where that stands outside the tree."""
        meta = tree["meta"]
        stated = self.name(meta)
        first = next((self.spell(each["c"][2]) for each in tree["blocks"][:1] if each["t"] == "Header"), "")
        for words in filter(None, (stated if stated != first else "", " ".join(self.state(meta.get("subtitle"))))):
            self._above += 1
            self.assembly.add_heading(self._above, words)
        self._add_front(meta, has_heading=self._above > 0 and bool(first))
        self.add(tree["blocks"])
        self.assembly.add_edges(self.edges)
        document = self.assembly.finish(title or stated, source)
        return replace(document, metadata=self._describe(meta))

    def _add_front(self, meta: Node, *, has_heading: bool) -> None:
        """Add what stands before the text and not in it, and count what else the file states in words and is dropped.
        `has_heading` says that the text begins with one, which ends the section of an abstract."""
        for name in _PUT_BEFORE:
            value = meta.get(name, {"t": ""})
            blocks = value["c"] if value["t"] == "MetaBlocks" else []
            words = "" if blocks or (name == "date" and state_day(*self.state(value))) else ", ".join(self.state(value))
            if blocks and has_heading:
                self.assembly.add_heading(self._above + 1, name.capitalize())
            elif blocks or words:
                self.assembly.label(name.capitalize())
            self.assembly.add_paragraph(words)
            self.add(blocks)
        for name in meta.keys() - {*_PUT_BEFORE, *_STATED, *_NOT_SHOWN}:
            if meta[name]["t"] in ("MetaBlocks", "MetaInlines"):
                letters = sum(map(str.isalnum, "".join(self.state(meta[name]))))
                self.assembly.skip("character", f"of its {name}", letters)

    def name(self, meta: Node) -> str:
        """Return the title that the file states; empty where it states none."""
        return " ".join(self.state(meta.get("title")))

    def add(self, blocks: Sequence[Node]) -> None:
        """Add blocks. A label that none of them takes becomes a paragraph."""
        for block in blocks:
            self._add(block)
        self.assembly.end_label()

    def add_div(self, classes: Sequence[str], blocks: Sequence[Node]) -> None:
        """Add blocks that the format puts together, such as a note with its title."""
        if "title" in classes:
            if blocks:
                self.assembly.label(self.spell_blocks(blocks))
        else:
            if _ADMONITIONS.intersection(classes) and not (blocks[:1] and _is_title(blocks[0])):
                self.assembly.label(classes[0].capitalize())
            self.add(blocks)

    def add_code(self, code: str, classes: Sequence[str], attributes: dict[str, str]) -> None:
        """Add lines of code."""
        self.assembly.label(attributes.get("caption", ""))
        self.assembly.add_code(code, next((name for name in classes if name not in ("code", "numberLines")), ""))

    def spell(self, inlines: Sequence[Node]) -> str:
        """Return the words of inline elements. In some formats raised and struck words stand between tags."""
        words: list[str] = []
        opened: list[tuple[str, int]] = []
        for inline in inlines:
            tag = _TAG.fullmatch(inline["c"][1]) if inline["t"] == "RawInline" else None
            if tag is None:
                words.append(self._spell(inline))
            elif not tag["end"]:
                opened.append((tag["name"], len(words)))
            elif opened and opened[-1][0] == tag["name"]:
                start = opened.pop()[1]
                words[start:] = [MARKS[tag["name"]]("".join(words[start:]))]
        return "".join(words)

    def spell_code(self, code: str, attributes: dict[str, str]) -> str:
        """Return inline code."""
        return spell_code(code)

    def spell_blocks(self, blocks: Sequence[Node], glue: str = " ") -> str:
        """Return the words of blocks on one line. Between paragraphs stands `glue`, or a sign for two line breaks."""
        if all(block["t"] in ("Plain", "Para") for block in blocks):
            return flatten(glue.join(self.spell(block["c"]) for block in blocks))
        inner = type(self)()
        inner.add(blocks)
        return flatten(inner.assembly.finish(None, "").text.replace("\n\n", glue))

    def _add(self, block: Node) -> None:
        assembly, content = self.assembly, cast("Any", block.get("c"))
        match block["t"], content:
            case "Header", (level, _, words):
                assembly.add_heading(level + self._above, self.spell(words))
            case (("Para" | "Plain"), words):
                assembly.add_paragraph(self.spell(words))
            case "LineBlock", lines:
                assembly.add_paragraph(BREAK.join(map(self.spell, lines)))
            case "CodeBlock", ((_, classes, attributes), code):
                self.add_code(code, classes, dict(attributes))
            case "BlockQuote", blocks if self.quotes:
                assembly.open_quote()
                self.add(blocks)
                assembly.close_quote()
            case "BlockQuote", blocks:
                self.add(blocks)
            case "BulletList", items:
                self._add_items(items, lambda _: None)
            case "OrderedList", ((start, style, _), items):
                is_decimal = style["t"] in _DECIMAL
                self._add_items(items, lambda place: start + place, "" if is_decimal else style["t"])
            case "DefinitionList", entries:
                for term, meanings in entries:
                    self.add_definition(self.spell(term), meanings)
            case "Table", (_, (_, caption), _, head, bodies, foot):
                self._add_table(self.spell_blocks(caption), head, bodies, foot)
            case "Figure", (_, (_, caption), blocks):
                self.add([*blocks, *caption])
            case "Div", ((_, classes, _), blocks):
                self.add_div(classes, blocks)
            case _:  # rules, and what is raw for one output
                pass

    def add_definition(self, term: str, meanings: Sequence[Sequence[Node]]) -> None:
        """Add a term with its meanings, unless it has none."""
        if not any(meanings):
            return
        self.assembly.add_definition(term)
        for meaning in meanings:
            self.assembly.open_definition()
            self.add(meaning)
            self.assembly.close_definition()

    def _add_items(self, items: Sequence[Sequence[Node]], count: Callable[[int], int | None], style: str = "") -> None:
        """Add items. Where their numbers are letters, these stand before their words."""
        for place, item in enumerate(items):
            number = count(place)
            self.assembly.open_item(None if style else number)
            if style and number is not None:
                spelled = spell_number(number, is_roman="Roman" in style, is_upper=style.startswith("Upper"))
                self.assembly.label(f"({spelled})")
            self.add(item)
            self.assembly.close_item()

    def _add_table(self, caption: str, head: list[Any], bodies: list[list[Any]], foot: list[Any]) -> None:
        table = Rows()
        count = 0
        listed = [*_list_rows(head, bodies, foot)]
        first = next((place for place, each in enumerate(listed[: MOST_HEADERS + 1]) if _MARKED_ROW in repr(each)), 0)
        for place, (row, is_header) in enumerate(listed):
            is_header |= place < first
            table.open_row(is_header=is_header)
            for _, _, rows, columns, blocks in row[1]:
                count += columns
                check_cells(count)
                text = self.spell_blocks(blocks, " " if is_header else BREAK * 2)
                table.add_cell(text, rows, columns, is_header=is_header)
            table.close_row()
        table.add_to(self.assembly, table.headers or int(has_header(table.rows)), caption)

    def _spell(self, inline: Node) -> str:
        content = cast("Any", inline.get("c"))
        match inline["t"], content:
            case "Str", text:
                return str(text)
            case (("Space" | "SoftBreak"), _):
                return " "
            case "LineBreak", _:
                return BREAK
            case (("Emph" | "Strong" | "Underline" | "SmallCaps"), inlines):
                return self.spell(inlines)
            case "Cite", (works, inlines):
                return self.spell(inlines) or f"[{', '.join(work['citationId'] for work in works)}]"
            case "Span", ((_, classes, _), inlines):
                return next((MARKS[name] for name in classes if name in MARKS), str)(self.spell(inlines))
            case "Quoted", (kind, inlines):
                return _QUOTES[kind["t"]].format(self.spell(inlines))
            case "Superscript", inlines:
                return raise_up(self.spell(inlines))
            case "Subscript", inlines:
                return lower(self.spell(inlines))
            case "Strikeout", inlines:
                return strike(self.spell(inlines))
            case "Code", ((_, _, attributes), code):
                return self.spell_code(code, dict(attributes))
            case "Math", (kind, tex):
                mark = "$$" if kind["t"] == "DisplayMath" else "$"
                return f"{mark}{squeeze(tex)}{mark}"
            case "Link", (_, inlines, (address, _)):
                return self.assembly.link(self.spell(inlines), "" if address.startswith("#") else address)
            case "Image", (_, inlines, _):
                words = self.spell(inlines)
                if describes(words):
                    return words
                self.assembly.skip("picture")
                return ""
            case "Note", blocks:
                return f" ({self.spell_blocks(blocks)})"
            case _:
                return ""

    def _describe(self, meta: Node) -> Metadata:
        found = {kept: [*self.state(meta.get(name))] for name, kept in _STATED.items()}
        stated = {name: values[0] if len(values) == 1 else values for name, values in found.items() if values}
        return select_metadata(stated) | state_day(*self.state(meta.get("date")))

    def state(self, value: Node | None) -> Iterator[str]:
        """Yield the texts of a value that a file states about itself."""
        match value:
            case {"t": "MetaList", "c": values}:
                for each in values:
                    yield from self.state(each)
            case {"t": "MetaInlines", "c": words}:
                yield squeeze(unlink(self.spell(words)))
            case {"t": "MetaBlocks", "c": blocks}:
                yield unlink(self.spell_blocks(blocks))
            case {"t": "MetaString", "c": text}:
                yield squeeze(text)


def _is_title(block: Node) -> bool:
    return block["t"] == "Div" and "title" in block["c"][0][1] and len(block["c"][1]) > 0


def _list_rows(head: list[Any], bodies: list[list[Any]], foot: list[Any]) -> Iterator[tuple[list[Any], bool]]:
    """Yield the rows of a table, and whether each is one of its header."""
    yield from ((row, True) for row in head[1])
    for _, _, headers, rows in bodies:
        yield from ((row, True) for row in headers)
        yield from ((row, False) for row in rows)
    yield from ((row, False) for row in foot[1])
