"""The searchable library: what retrieval and the local judgement read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from domain.documents import DocumentList, DocumentText, ListedDocument, Match, Passage, PassageList
from domain.ports.embedding import Vector
from domain.scope import Scope
from domain.text.blocks import Span
from domain.text.languages import Language


class Library(Protocol):
    """The searchable chunks. Every method sees only `scope`.

    Raises `DatabaseUnavailable`; `search_dense` also `EmbedderReplaced`.
    """

    async def search_dense(self, scope: Scope, embedding: Vector, limit: int) -> list[Match]:
        """The nearest chunks by cosine similarity, best first."""

    async def search_lexical(self, scope: Scope, query: str, limit: int) -> list[Match]:
        """The best chunks by BM25, best first; only chunks that share a term with the query."""

    async def search_titled(self, scope: Scope, names: Sequence[str], embedding: Vector) -> list[Match]:
        """For each of the names that is a document's title, in any case and without what the title says in brackets at
        its end, the chunk nearest to `embedding` in such documents. Nearest first. A title that many documents have
        names none."""

    async def suggest_words(
        self, scope: Scope, words: Sequence[str], unfinished: str | None, language: Language
    ) -> dict[str, str]:
        """Suggest corrections of words that neither a document of the workspace nor the dictionary of the language has:
        the nearest word that a document has, or one that begins with `unfinished`, the last of the words, or a function
        word. `words` are normalised as by `domain.text.terms.content_words`. Words that are right, or that resemble
        none, are left out."""

    async def score_dense(self, scope: Scope, embedding: Vector, chunk_ids: Sequence[str]) -> list[Match]:
        """The cosine similarity of each of these chunks, in no particular order."""

    async def score_lexical(self, scope: Scope, query: str, chunk_ids: Sequence[str]) -> list[Match]:
        """BM25 of each of these chunks, in no particular order; 0 where a chunk shares no term with the query."""

    async def score_related(
        self, scope: Scope, query: str, examples: Mapping[str, float], chunk_ids: Sequence[str]
    ) -> list[Match]:
        """Score these chunks by relevance feedback, in no particular order: BM25 of the terms that mark the `examples`
        (chunk id to weight) beyond the query's own terms."""

    async def read_passages(self, scope: Scope, chunk_ids: Sequence[str]) -> list[Passage]:
        """In the order asked for. Chunks that are gone, or outside the scope, are left out."""

    async def read_around(self, scope: Scope, chunk_ids: Sequence[str], before: int, after: int) -> list[Passage]:
        """The chunks in scope that stand up to `before` places before, or `after` places after, one of these in its
        document, with these; in no particular order."""

    async def count_unembedded(self, scope: Scope) -> int:
        """Count the documents in scope that have chunks without an embedding, which `search_dense` does not find."""

    async def list_recent(self, scope: Scope, limit: int) -> list[ListedDocument]:
        """The documents in scope, most recent first: what the library is about."""

    async def list_documents(self, scope: Scope, limit: int) -> DocumentList:
        """The first `limit` documents in scope by source, with the number of all."""

    async def read_outline(self, scope: Scope, document_id: str, limit: int, span: Span | None = None) -> list[Passage]:
        """The first `limit` chunks of a document, or of those that overlap a span of its text, in order: its headings,
        each with the text below it. Empty where the document is gone, or outside the scope."""

    async def find_text(self, scope: Scope, text: str, limit: int) -> PassageList:
        """The first `limit` passages, by document and place, in which this text stands letter by letter, in any case,
        with the number of all."""

    async def read_texts(self, scope: Scope, document_ids: Sequence[str]) -> list[DocumentText]:
        """The texts of documents, in the order asked for. Those that are gone, or outside the scope, are left out."""


@dataclass(frozen=True, slots=True)
class TokenChunk:
    """A chunk at `start` of its document, with its token vectors."""

    document_id: str
    start: int
    text: str
    title: str
    heading_path: tuple[str, ...]
    lead: str
    """With title and headings, what was embedded with the text; see `domain.documents.embedding_text`."""
    tokens: bytes
    places: bytes = b""
    """As in `ChunkVectors`; empty where they are not stored."""


class TokenVectors(Protocol):
    """The token vectors that ingestion stored (`ChunkVectors.tokens`).

    Raises `DatabaseUnavailable`.
    """

    async def read_tokens(self, scope: Scope, chunk_ids: Sequence[str]) -> dict[str, bytes]:
        """Return the stored bytes by chunk id, without the chunks that have none."""

    async def read_token_chunks(self, scope: Scope, places: Sequence[tuple[str, int, int]]) -> list[TokenChunk]:
        """Return the chunks with token vectors that overlap one of these places (document id, start, end), in no
        particular order."""
