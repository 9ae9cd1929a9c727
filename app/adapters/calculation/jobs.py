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


def run_query(sql: str, sources: Sequence[str], texts: Sequence[str], seconds: float) -> Result:
    """Answer a query over the tables of documents, within some seconds. Raises `CalculationError`."""
    # This takes half a second, and 25 MB.
    from app.adapters.calculation.queries import answer

    return answer(sql, sources, texts, seconds)


def run_look_up(question: str, names: Sequence[str], texts: Sequence[str]) -> LookedUp | None:
    """Look up what a question names in the tables of documents."""
    from app.adapters.calculation.naming import look_up

    return look_up(question, names, texts)
