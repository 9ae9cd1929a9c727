"""Manual pages as their authors write them, with roff's macros man or mdoc."""

import re
from collections.abc import Sequence

from app.ingest.decoding import decode
from app.ingest.readers.assembly import clean
from app.ingest.readers.pandoc import Node, Walk, parse
from domain.documents import ParsedDocument

_GOES_ON = re.compile(r"(?<![\\{])\\\n")
"""A line that goes on in the next; in a table, pandoc refuses it. What opens a condition looks alike, and stays."""
_SYSTEM = re.compile(r"^\.Os[ \t].*", re.MULTILINE)
"""The name of a system, which pandoc refuses."""
_MDOC = re.compile(r"^\.Dd[ \t]", re.MULTILINE)


def read_manual(source: str, data: bytes) -> ParsedDocument:
    """Read the source of a manual page; each option is a term with its meaning. Raises what `parse` does."""
    walk = _Walk()
    text = walk.leave_out_files(clean(decode(data)), "man")
    text = _GOES_ON.sub("", text)
    if _MDOC.search(text):
        return walk.read(parse(_SYSTEM.sub(".Os", text).encode(), "mdoc"), source)
    return walk.read(parse(text.encode(), "man"), source)


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
