"""Unit scorers for tests that have no library."""

from collections.abc import Sequence
from typing import Any

from app.adapters.rerankers.unit_scorer import LateInteractionUnitScorer
from domain.errors import EmbedderUnavailable
from domain.ports.library import TokenChunk
from domain.ports.unit_scoring import Closeness, Stretch
from domain.scope import Scope


class NoTokens:
    """A library without token vectors."""

    async def read_tokens(self, scope: Scope, chunk_ids: Sequence[str]) -> dict[str, bytes]:
        return {}

    async def read_token_chunks(self, scope: Scope, places: Sequence[tuple[str, int, int]]) -> list[TokenChunk]:
        return []


def make_unit_scorer(embedder: Any) -> LateInteractionUnitScorer:
    """A scorer that runs the model on the sources."""
    return LateInteractionUnitScorer(embedder, NoTokens())


class DownUnitScorer:
    async def score(self, scope: Scope, question: str, stretches: Sequence[Stretch]) -> list[list[Closeness | None]]:
        raise EmbedderUnavailable
