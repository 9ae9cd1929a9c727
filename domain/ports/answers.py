"""The answer cache: finished answers by key."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class AnswerKey:
    """The address of a finished answer."""

    workspace_id: str
    digest: str
    """A digest of everything that the answer depends on but the state of the documents."""
    corpus: str
    """The state of the documents, as `DocumentStore.corpus_fingerprint` returns it. One answer is kept per digest: that
    of the state stored last, because no state comes twice."""


@dataclass(frozen=True, slots=True)
class EncodedAnswer:
    """A finished answer. `app/answering/cached_answers.py` encodes and decodes it."""

    events: bytes
    """All events but the last, as a JSON array."""
    done: bytes
    """The data of the last event, a JSON object, without the fields that differ each time the question is asked."""


@dataclass(frozen=True, slots=True)
class AnswerCounts:
    """Counts of a workspace's questions that found a cached answer and that did not."""

    hits: int
    misses: int


class AnswerCache(Protocol):
    """Finished answers by key. Never raises: an unreachable cache is a miss, and is logged once."""

    async def put(self, key: AnswerKey, answer: EncodedAnswer) -> None:
        """Store an answer."""

    async def forget(self, workspace_id: str) -> None:
        """Drop every answer of the workspace."""

    async def find(self, key: AnswerKey) -> EncodedAnswer | None:
        """Return the stored answer. Counts as a hit or a miss of the workspace."""

    async def count(self, workspace_id: str) -> AnswerCounts: ...

    async def count_stored(self, workspace_id: str) -> int:
        """Return how many answers of the workspace are stored."""
