"""Tables of HTML, for pages that are written to files."""

from collections.abc import Iterable, Sequence
from html import escape


def draw_row(cells: Iterable[str]) -> str:
    """Return a row of cells that hold text, escaped."""
    return f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"


def draw_table(heads: Iterable[str], rows: Sequence[str], kind: str) -> str:
    """Return a table of the class `kind` with these headings, escaped, and rows that are HTML."""
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    body = "\n".join(rows)
    return f"<table class='{kind}'><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
