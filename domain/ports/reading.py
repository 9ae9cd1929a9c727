"""A learned reader: a model that reads a question and a text together."""

from collections.abc import Sequence
from typing import Protocol


class Reader(Protocol):
    """Tells whether texts hold the answer to a question."""

    name: str

    async def read(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return for each text the probability, 0-1, that it holds the answer. Long texts are cut.

        Raises `EmbedderUnavailable`.
        """
        ...
