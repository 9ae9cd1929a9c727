"""What a worker is asked to do, and what it answers. Light to import: the service never loads the SQL parser."""

from collections.abc import Sequence
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


def run_query(sql: str, sources: Sequence[str], texts: Sequence[str], seconds: float) -> Result:
    """Answer a query over the tables of documents, within some seconds. Raises `CalculationError`."""
    # This takes half a second, and 25 MB.
    from app.adapters.calculation.queries import answer

    return answer(sql, sources, texts, seconds)
