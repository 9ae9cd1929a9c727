"""What nodes and the application need from the outside, as protocols.

Adapters in `app/adapters` implement them and translate their driver's errors into `domain.errors`. Contract suites in
`tests/contracts` hold what any adapter of a store, the library, the cache or the chat model must pass.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from domain.documents import Arrival, Chunk, Document, Match, ParsedDocument, Passage, Scope

Vector = NDArray[np.float32]
Schema = TypeVar("Schema", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class ModelUsage:
    """What calls to a model consumed."""

    model: str
    input_tokens: int
    output_tokens: int
    cost: float | None
    """US dollars; None where the model's price is not known."""
    full: bool = False
    """Whether what the model wrote ends where its limit of tokens was reached."""


class UsageSink(Protocol):
    """Where a model reports what it consumed."""

    def record(self, usage: ModelUsage) -> None: ...


class Embedder(Protocol):
    """Text to vectors of unit length. What a call costs, if anything, goes to `sink`.

    Raises `EmbedderUnavailable`.
    """

    name: str
    """Identifies the model; stored with the index, because vectors of two models cannot be compared."""
    dimension: int

    async def embed_query(self, text: str, sink: UsageSink | None = None) -> Vector:
        """Shape (dimension,). Repeats are cheap."""
        ...

    async def embed_passages(self, texts: Sequence[str], sink: UsageSink | None = None) -> Vector:
        """Shape (len(texts), dimension), in order. Text past the model's window is cut."""
        ...


class TokenEmbedder(Protocol):
    """Text to one vector per token, for late interaction (ColBERT: Khattab & Zaharia, SIGIR 2020).

    Raises `EmbedderUnavailable`.
    """

    async def embed_query_tokens(self, text: str) -> Vector:
        """Shape (tokens, dimension), unit rows."""
        ...


class Library(Protocol):
    """The searchable chunks. Every method sees only `scope`.

    Raises `DatabaseUnavailable`; `search_dense` also `EmbedderReplaced`.
    """

    async def search_dense(self, scope: Scope, embedding: Vector, limit: int) -> list[Match]:
        """The nearest chunks by cosine similarity, best first."""
        ...

    async def search_lexical(self, scope: Scope, query: str, limit: int) -> list[Match]:
        """The best chunks by BM25, best first; only chunks that share a term with the query."""
        ...

    async def search_titled(self, scope: Scope, names: Sequence[str], embedding: Vector) -> list[Match]:
        """For each of the names that is a document's title, in any case and without what the title says in brackets at
        its end, the chunk nearest to `embedding` in such documents. Nearest first. A title that many documents have
        names none."""
        ...

    async def suggest_words(self, scope: Scope, words: Sequence[str], unfinished: str | None) -> dict[str, str]:
        """What those of the words that nobody has written in the workspace probably mean: the nearest word that
        somebody has, or one that begins with `unfinished`, the last of the words. `words` are levelled, as
        `domain.terms.content_words` has them. Those that are right, or like nothing, are left out."""
        ...

    async def score_dense(self, scope: Scope, embedding: Vector, chunk_ids: Sequence[str]) -> list[Match]:
        """The cosine similarity of each of these chunks, in no particular order."""
        ...

    async def score_lexical(self, scope: Scope, query: str, chunk_ids: Sequence[str]) -> list[Match]:
        """BM25 of each of these chunks, in no particular order; 0 where a chunk shares no term with the query."""
        ...

    async def score_related(
        self, scope: Scope, query: str, examples: Mapping[str, float], chunk_ids: Sequence[str]
    ) -> list[Match]:
        """How much each of these chunks says what the `examples` say beyond the query, in no particular order: BM25 of
        the words that mark the examples, of which each has its share (chunk id to share), without the query's own."""
        ...

    async def read_passages(self, scope: Scope, chunk_ids: Sequence[str]) -> list[Passage]:
        """In the order asked for. Chunks that are gone, or outside the scope, are left out."""
        ...

    async def read_embeddings(self, scope: Scope, chunk_ids: Sequence[str]) -> dict[str, Vector]:
        """By chunk id, shape (dimension,), unit length. Chunks that are gone, or outside the scope, are left out."""
        ...

    async def read_around(self, scope: Scope, chunk_ids: Sequence[str], before: int, after: int) -> list[Passage]:
        """The chunks in scope that stand up to `before` places before, or `after` places after, one of these in its
        document, with these; in no particular order."""
        ...

    async def read_titles(self, scope: Scope, limit: int) -> list[str]:
        """Titles of the documents in scope, most recent first: what the library is about."""
        ...


class Reranker(Protocol):
    """Scores how well each passage answers a question.

    Raises `EmbedderUnavailable`, `ModelUnavailable` or `ModelError`; the caller then keeps the fused order.
    """

    name: str

    async def score(self, scope: Scope, question: str, passages: Sequence[Passage], sink: UsageSink) -> list[float]:
        """One score per passage of the scope, in order, in 0-1 and comparable between questions. What a call costs, if
        anything, goes to `sink`."""
        ...


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a prompt."""

    role: Literal["system", "user", "assistant"]
    content: str


class ChatModel(Protocol):
    """A language model.

    Raises `ModelUnavailable`, `ModelTimeout`, `ModelRefused`, `ModelRejectedKey`, `ContextTooLong`,
    `ModelReplyCut` or `ModelError`.
    """

    name: str

    async def judge(self, messages: Sequence[Message], schema: type[Schema], sink: UsageSink) -> Schema:
        """A reply that fits `schema`. `ModelError` where the reply does not, after one repair."""
        ...

    def stream(
        self,
        messages: Sequence[Message],
        sink: UsageSink,
        *,
        temperature: float,
        max_tokens: int,
        timeout: float | None = None,
    ) -> AsyncIterator[str]:
        """The reply's text as it comes. A stream that the provider did not finish raises `ModelReplyCut`; one that is
        silent for `timeout` seconds, or for as long as the model waits by itself, `ModelTimeout`. A reply that reaches
        `max_tokens` ends there; its usage says that it is `full`."""
        ...


class TokenCounter(Protocol):
    """Counts tokens as large models see them."""

    def count(self, text: str) -> int: ...


class DocumentStore(Protocol):
    """Documents and their chunks, written.

    Raises `DatabaseUnavailable`.
    """

    async def find(self, workspace_id: str, source: str) -> Document | None: ...

    async def find_by_hash(self, workspace_id: str, content_hash: str) -> Document | None: ...

    async def get(self, workspace_id: str, document_id: str) -> Document | None: ...

    async def get_text(self, workspace_id: str, document_id: str) -> str | None: ...

    async def list(self, workspace_id: str) -> Sequence[Document]: ...

    async def stored_hashes(self, workspace_id: str, document_id: str) -> frozenset[str]:
        """Content hashes of the chunks that the document has now."""
        ...

    async def number_arrival(self, workspace_id: str) -> Arrival:
        """That of a file that has just come: later than all before."""
        ...

    async def confirm(self, workspace_id: str, document: Document, arrival: Arrival) -> bool:
        """Note that what has come is what the document holds, so that nothing earlier replaces it. False where it
        holds something else by now."""
        ...

    async def replace(self, workspace_id: str, content: "DocumentContent") -> Document:
        """Make the document consist of exactly the content's chunks, in one transaction, and advance the corpus
        generation. Chunks whose hash is already stored keep their row and vectors (their position may change).

        Raises `Superseded` where what the document holds came later than the content, or the document was deleted
        later, or the content's arrival has lost its lease.
        """
        ...

    async def load(self, workspace_id: str, contents: Iterable["DocumentContent"]) -> Sequence[Document]:
        """The same as `replace` for each, many times faster for many; in batches, each of which is stored whole or not
        at all. Where one fails, those before it stay. The documents come in no particular order.

        `contents` is consumed as it is stored, and may come from a generator. Each source may come once.
        """
        ...

    async def delete(self, workspace_id: str, document_id: str) -> bool:
        """Whether there was such a document. Removes its chunks and advances the corpus generation."""
        ...

    async def clear(self, workspace_id: str) -> None:
        """Remove all documents of the workspace, and what is known of their words."""
        ...

    async def is_untouched(self, workspace_id: str) -> bool:
        """Whether the workspace has never held a document."""
        ...

    async def corpus_fingerprint(self, scope: Scope) -> str:
        """Changes whenever a document in scope changes, comes or goes. One cheap query.

        Raises `UnknownDocument` where the scope names a document that does not exist.
        """
        ...


@dataclass(frozen=True, slots=True)
class ChunkVectors:
    """What ingestion computes for one chunk: its embedding, and its token vectors for late interaction."""

    embedding: Vector
    tokens: bytes = b""
    """Encoded by `app/adapters/late_interaction.py`; empty where no local reranker is in use."""


@dataclass(frozen=True, slots=True)
class DocumentContent:
    """What a source is to hold, as `DocumentStore.replace` takes it."""

    source: str
    content_hash: str
    parsed: ParsedDocument
    chunks: Sequence[Chunk]
    embeddings: dict[str, ChunkVectors]
    """Vectors by content hash, of the chunks that are not stored yet."""
    arrival: Arrival | None = None
    """None: it comes as it is stored."""


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
