"""A report as one HTML page, which needs nothing else and runs no script."""

from collections.abc import Iterable, Sequence
from html import escape
from importlib import resources
from string import Template


def draw_page(title: str, *parts: str) -> str:
    """Return the page with this title, escaped, and parts that are HTML."""
    template = Template((resources.files("app.evaluation") / "report_page.html").read_text("utf-8"))
    return template.substitute(title=escape(title), body="\n".join(parts))


def draw_row(cells: Iterable[str]) -> str:
    """Return a row of cells that hold text, escaped."""
    return f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"


def draw_table(heads: Iterable[str], rows: Sequence[str], kind: str) -> str:
    """Return a table of the class `kind` with these headings, escaped, and rows that are HTML."""
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    body = "\n".join(rows)
    return f"<table class='{kind}'><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
