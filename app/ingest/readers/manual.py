"""Manual pages as their authors write them, with roff's macros man or mdoc."""

import re
from collections.abc import Sequence

from app.ingest.decoding import decode
from app.ingest.readers.assembly import clean
from app.ingest.readers.pandoc import Node, Walk, parse
from domain.documents import ParsedDocument
from domain.errors import UnreadableDocument

_GOES_ON = re.compile(r"(?<![\\{])\\\n")
"""A line that goes on in the next; in a table, pandoc refuses it. What opens a condition looks alike, and stays."""
_SYSTEM = re.compile(r"^\.Os[ \t].*", re.MULTILINE)
"""The name of a system, which pandoc refuses."""
_CLOSES = re.compile(r"^\.[ \t]*\\\}[ \t]*$", re.MULTILINE)
"""The end of a condition. Behind one that closes nothing pandoc reads nothing more, and says nothing."""
_LEAST_READ = 0.5
"""Share of the letters of a page's lines of text that has to be read. Of 250 pages of Debian each has .8 or more."""
_MDOC = re.compile(r"^\.Dd[ \t]", re.MULTILINE)


def read_manual(source: str, data: bytes) -> ParsedDocument:
    """Read the source of a manual page; each option is a term with its meaning. Raises what `parse` does."""
    walk = _Walk()
    text = walk.leave_out_files(clean(decode(data)), "man")
    text = _GOES_ON.sub("", text)
    if text.count("\\}") > text.count("\\{"):
        text = _CLOSES.sub("", text)
    is_mdoc = _MDOC.search(text) is not None
    document = walk.read(parse(_SYSTEM.sub(".Os", text).encode(), "mdoc" if is_mdoc else "man"), source)
    own = "".join(line for line in text.split("\n") if not line.startswith((".", "'")))
    if sum(map(str.isalnum, document.text)) < sum(map(str.isalnum, own)) * _LEAST_READ:
        raise UnreadableDocument(
            "Most of the manual page was not understood. Print it with `man ./PAGE > PAGE.txt`, and add that."
        )
    return document


class _Walk(Walk):
    quotes = False

    def add(self, blocks: Sequence[Node]) -> None:
        """Add blocks. What DocBook has made of a term is a line in bold or italics, or an option, above an
        indented part."""
        rest = [*reversed(blocks)]
        while rest:
            block = rest.pop()
            words = self.spell(block["c"]) if block["t"] == "Para" else ""
            is_marked = words.startswith("-") or (words and block["c"][0]["t"] in ("Strong", "Emph"))
            if is_marked and rest and rest[-1]["t"] == "BlockQuote":
                self.add_definition(words, [rest.pop()["c"]])
            else:
                super().add([block])

    def name(self, meta: Node) -> str:
        """Return the page's name with its section, such as "rsync(1)"."""
        sections = "".join(f"({section})" for section in self.state(meta.get("section")) if section)
        return f"{super().name(meta)}{sections}"
