"""The answer cache: finished answers by key."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from domain.scope import Scope


@dataclass(frozen=True, slots=True)
class AnswerKey:
    """Where a finished answer is kept."""

    workspace_id: str
    digest: str
    """Of everything that the answer depends on, but the documents' state."""
    corpus: str
    """The documents' state, as `DocumentStore.corpus_fingerprint` has it. One answer is kept for a digest: that of the
    state that was stored last, because no state comes twice."""


@dataclass(frozen=True, slots=True)
class EncodedAnswer:
    """A finished answer as it is sent, but for what is another each time it is asked for. See `app/runs/cache.py`."""

    opening: bytes
    """Server-sent events: all but the last, and that one's beginning up to its data."""
    last_id: str
    """The last event's."""
    done: bytes
    """The last event's data, a JSON object."""
    sources: bytes
    """What the answer was written from, a JSON array."""


@dataclass(frozen=True, slots=True)
class NotedHit:
    """An answer that was given before the graph, and is not on record yet."""

    note_id: str
    hit: bytes
    """As `AnswerCache.recall` was given it."""
    done: bytes
    """The answer's last event, and its id in `last_id`; see `EncodedAnswer`."""
    last_id: str
    at: float
    """When the answer was found; seconds since 1970."""


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """What an answer was stored under."""

    components: dict[str, Any]
    """All that its key is made of, by name."""
    corpus: str
    stored_at: datetime


@dataclass(frozen=True, slots=True)
class AnswerCounts:
    """How often a workspace's questions found their answer stored."""

    hits: int
    misses: int
    shared: int
    """Those of the misses that were answered by a run that somebody else had begun."""


class AnswerCache(Protocol):
    """Finished answers by key. Never raises: a cache that is gone is a miss, warned about once."""

    async def get(self, key: AnswerKey) -> EncodedAnswer | None:
        """The stored answer. Counts as a hit or a miss of the workspace."""
        ...

    async def recall(
        self, scope: Scope, digest: str, hit: bytes, read_corpus: Callable[[Scope], Awaitable[str]]
    ) -> EncodedAnswer | None:
        """The answer that is stored under `digest` and the present state of the documents in scope, in one round trip;
        where that state is not known, in two, between which `read_corpus` reads it. In the same step `hit` is noted,
        for `read_hits`. Counts as a hit of the workspace; what is not found is not counted yet, since it is asked for
        again with `get`.

        Raises what `read_corpus` raises.
        """
        ...

    async def read_hits(self, limit: int) -> list[NotedHit]:
        """The oldest of those that were noted and not dropped."""
        ...

    async def drop_hits(self, hits: Sequence[NotedHit]) -> None:
        """They are on record."""
        ...

    async def put(self, key: AnswerKey, components: Mapping[str, Any], answer: EncodedAnswer) -> None:
        """Keep an answer, with what its key is made of, for `list_stored`."""
        ...

    async def forget(self, workspace_id: str) -> None:
        """Drop every answer of the workspace."""
        ...

    async def lead(self, key: AnswerKey, run_id: str) -> str:
        """The run that answers this key now, in whatever process: the one that led first, else `run_id`, which leads
        from here on until it is released, or for some minutes. Where the cache is gone, every run leads."""
        ...

    async def release(self, key: AnswerKey, run_id: str) -> None:
        """The run does not answer this key any more: it has ended. Nothing happens where it does not lead."""
        ...

    def changing(self, workspace_id: str | None) -> AbstractAsyncContextManager[None]:
        """Around a change of the workspace's documents, or of those of all workspaces (None), and its commit: what is
        known of their state is not used meanwhile, and forgotten at the end."""
        ...

    async def count(self, workspace_id: str) -> AnswerCounts: ...

    async def list_stored(self, workspace_id: str, limit: int) -> list[StoredAnswer]:
        """The latest first."""
        ...

    async def is_up(self) -> bool:
        """Whether the cache answers now."""
        ...
