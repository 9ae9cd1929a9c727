"""Rerankers: how well a passage answers a question."""

from collections.abc import Sequence
from typing import Protocol

from domain.documents import Passage
from domain.ports.models import UsageSink
from domain.scope import Scope


class Reranker(Protocol):
    """Scores how well each passage answers a question.

    Raises `EmbedderUnavailable`, `ModelUnavailable` or `ModelError`; the caller then keeps the fused order.
    """

    name: str

    async def score(self, scope: Scope, question: str, passages: Sequence[Passage], sink: UsageSink) -> list[float]:
        """One score per passage of the scope, in order, in 0-1 and comparable between questions. What a call costs, if
        anything, goes to `sink`."""
