"""Unit scorers: how close a question is to the units of sources, the smallest pieces that may be quoted."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from domain.scope import Scope
from domain.text.blocks import Span


@dataclass(frozen=True, slots=True)
class Stretch:
    """A stretch of a document, and the units in it that are compared with a question."""

    document_id: str
    start: int
    """Offset of `text` in the document's text."""
    text: str
    place: str
    """Title and headings on one line."""
    units: tuple[tuple[Span, ...], ...]
    """The spans of `text` that make up each unit: its own, and those that it cannot be read without."""


@dataclass(frozen=True, slots=True)
class Closeness:
    """How close a question is to a unit."""

    tokens: float
    """Mean, over the question's tokens, of the highest cosine with a token of the unit: 0-1."""
    whole: float
    """Cosine of the mean token vectors of question and unit: -1 to 1."""


class UnitScorer(Protocol):
    """Compares questions with units.

    Raises `EmbedderUnavailable` and `DatabaseUnavailable`.
    """

    async def score(self, scope: Scope, question: str, stretches: Sequence[Stretch]) -> list[list[Closeness | None]]:
        """Return one list per stretch, in order, with the closeness of each of its units; None where it is not known.
        Repeats are cheap."""
