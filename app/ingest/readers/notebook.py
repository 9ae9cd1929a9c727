"""Jupyter notebooks."""

from collections.abc import Sequence

import orjson
from selectolax.lexbor import LexborHTMLParser

from app.ingest.decoding import decode
from app.ingest.readers.assembly import clean, replay
from app.ingest.readers.pandoc import Node, Walk
from app.ingest.readers.web.html import add_html
from domain.documents import ParsedDocument


def read_notebook(source: str, data: bytes) -> ParsedDocument:
    """Read the cells of a notebook and what they have put out. Raises what `parse` does."""
    walk = _Notebook()
    return walk.read(walk.parse(clean(decode(data)).encode(), "ipynb"), source)


class _Notebook(Walk):
    def parse(self, data: bytes, dialect: str) -> Node:
        """Return the tree of a notebook, of which the bytes of pictures are left out. What outputs have as Markdown or
        TeX is a cell of its own, and tables are read as HTML."""
        try:
            notebook = orjson.loads(data)
            cells = notebook["cells"] if isinstance(notebook["cells"][0]["metadata"], dict) else []
        except (orjson.JSONDecodeError, LookupError, TypeError):
            return super().parse(data, dialect)  # it says what is wrong
        notebook["cells"] = []
        for cell in cells:
            notebook["cells"].append(cell)
            outputs = [output.get("data", {}) for output in cell.get("outputs", ())]
            for output in cell.get("outputs", ()):
                if output.get("text"):
                    output["text"] = replay("".join(output["text"]).replace("\r\n", "\n"))
            for each in (*outputs, *cell.get("attachments", {}).values()):
                each |= dict.fromkeys((kind for kind in each if kind.startswith(("image/", "audio/", "video/"))), "")
                if written := each.get("text/markdown") or each.get("text/latex"):
                    each.clear()
                    notebook["cells"].append({"cell_type": "markdown", "metadata": {}, "source": written})
                elif "<table" in str(each.get("text/html")):
                    each.pop("text/plain", None)
        return super().parse(orjson.dumps(notebook), dialect)

    def add_div(self, classes: Sequence[str], blocks: Sequence[Node]) -> None:
        """Add a cell or its output."""
        for block in blocks:
            kind, content = block["t"], block.get("c", ())
            if kind == "RawBlock" and content[0] == "html":
                if "output" in classes:
                    add_html(self.assembly, LexborHTMLParser(content[1]))
            elif kind == "RawBlock":
                self.assembly.add_code(content[1])
            elif kind != "CodeBlock" or not content[1].startswith('{"model_id":'):  # a widget
                super().add_div((), [block])
