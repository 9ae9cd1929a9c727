"""Computing over the tables of documents."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from domain.documents import Passage
from domain.scope import Scope

Value = int | float | str | None
"""A cell of a result."""


@dataclass(frozen=True, slots=True)
class Calculation:
    """The result of a query."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    is_cut: bool = False
    """True where the query has more rows than these."""
    used: tuple[Passage, ...] = ()
    """The rows that it was computed from, word for word, each with the caption and header of its table as its `lead`.
    Rows that stand near each other are one passage. Empty where no table was read."""
    note: str = ""
    """What `used` leaves out, as a sentence."""


@dataclass(frozen=True, slots=True)
class LookUp:
    """What a table holds for a question: passages of its rows, each with what they say to the question, as a table.
    A figure stands with the first of the rows that it was computed from."""

    found: tuple[tuple[Passage, str], ...]
    certainty: float
    """How surely the table, its rows and its columns are meant, 0-1."""
    sql: str
    """The query that found it, of its table."""


class Calculator(Protocol):
    """Answers queries in SQL over the tables of documents, which are the relations `t1`, `t2` and so on, in the order
    of the documents. `tables` lists them.

    Raises `CalculationError` for a query that cannot be answered, and `DatabaseUnavailable`.
    """

    async def calculate(self, scope: Scope, sql: str, document_ids: Sequence[str]) -> Calculation:
        """Run a query that only reads. It sees the documents that are named, and in scope."""

    async def look_up(self, scope: Scope, question: str, document_ids: Sequence[str]) -> LookUp | None:
        """Return what a query finds in a table of the documents, for a question of which the table accounts for every
        word: names of rows and columns, conditions, the greatest, the least, the number, the sum or the mean; None
        where none does. Documents that are not in scope, or too long, are passed over. Raises
        `CalculationError` where looking takes too long."""
