"""What a worker answers."""

from dataclasses import dataclass

from domain.ports.calculation import Value
from domain.text.blocks import Span


@dataclass(frozen=True, slots=True)
class Used:
    """Rows of a table of the document at `document`, as places in its text."""

    document: int
    lead: str
    spans: tuple[Span, ...]
    is_known: bool
    """False where they are merely all rows of a table that was read."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a query came to."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    is_cut: bool
    used: tuple[Used, ...]


@dataclass(frozen=True, slots=True)
class LookedUp:
    """What a table of the document at `document` holds for a question: lines below a head, as a table, and the places
    in the text of the rows that they are, or are computed from."""

    document: int
    lead: str
    head: str
    lines: tuple[str, ...]
    spans: tuple[Span, ...]
    certainty: float
    sql: str
    """The query, with `{table}` in the place of the table's name."""
