"""The document store: documents and their chunks, written by ingestion."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from domain.documents import Arrival, Chunk, Document, ParsedDocument, Place, Revision
from domain.library.browsing import Browsed, View
from domain.library.metadata import Metadata
from domain.library.storage import Held, Incoming
from domain.library.where import EVERYTHING, Where
from domain.ports.embedding import Vector
from domain.scope import Scope

StoredAs = Literal["added", "updated", "unchanged"]
"""What became of a content: its source was new, or held something else, or the same already."""


class DocumentCatalog(Protocol):
    """Reads documents.

    Raises `DatabaseUnavailable`.
    """

    async def find(
        self,
        workspace_id: str,
        source: str,
        *,
        asking: frozenset[str] | None = None,
        groups: Collection[str] | None = None,
    ) -> Document | None:
        """Return the document that a file of this name and these groups replaces, brought by somebody with the groups
        `asking` (`pick_named`). Raises `AmbiguousName`."""

    async def find_groups(self, workspace_id: str, sources: Collection[str]) -> Mapping[str, Sequence[Sequence[str]]]:
        """Return the groups of each of the documents with these sources, by source."""

    async def get(self, workspace_id: str, document_id: str) -> Document | None: ...

    async def find_deleted(self, workspace_id: str, content_hash: str) -> str | None:
        """Return the id of the document that had this content when it was deleted; of several the last."""

    async def read_hashes(self, asker: Scope) -> Mapping[str, str]:
        """Return the content hashes of those of the scope's documents that are there and that the asker may read, by
        id."""

    async def get_text(self, workspace_id: str, document_id: str, revision: int | None = None) -> str | None:
        """The document's text, or that of an earlier revision. None where there is none, or it is not kept."""

    async def list_revisions(self, asker: Scope, document_id: str) -> Sequence[Revision]:
        """The revisions that are kept of a document which the asker may read, newest first: those that had no groups of
        others."""

    async def get_places(self, workspace_id: str, document_id: str) -> Sequence[Place]:
        """Headings and lines of the document's text, a chunk at a time, in order."""

    async def list(self, workspace_id: str, where: Where = EVERYTHING) -> Sequence[Document]:
        """The documents whose metadata passes the filter, by source."""


class DocumentStore(DocumentCatalog, Protocol):
    """Documents and their chunks, listed a page at a time and written.

    Raises `DatabaseUnavailable`.
    """

    async def browse(self, asker: Scope, view: View) -> Browsed:
        """A page of the documents that the asker may read and that pass the filter of their scope."""

    async def stored_hashes(self, workspace_id: str, document_id: str) -> frozenset[str]:
        """Content hashes of the chunks that the document has now."""

    async def measure(self, workspace_id: str, file: Incoming, caller: str = "") -> Held:
        """How much the workspace holds, or what this caller brought to all workspaces, of what came before the file."""

    async def keep_original(self, workspace_id: str, content_hash: str, original: bytes) -> None:
        """Keep the file that documents of this content were read from, where it is lost."""

    async def number_arrival(self, workspace_id: str) -> Arrival:
        """That of a file that has just come: later than all before."""

    async def confirm(
        self,
        workspace_id: str,
        document: Document,
        arrival: Arrival,
        metadata: Metadata,
        given: Metadata | None = None,
        groups: Sequence[str] | None = None,
    ) -> bool:
        """Note that what has come is what the document holds, so that nothing earlier replaces it. Returns False where
        it holds something else by now, or has other metadata or groups. `metadata` is the file's, and `given` goes on
        top. None: what was given before, and whatever groups it has."""

    async def set_metadata(
        self,
        workspace_id: str,
        document: Document,
        arrival: Arrival,
        metadata: Metadata,
        given: Metadata | None = None,
        groups: Sequence[str] | None = None,
    ) -> Document | None:
        """Replace the metadata of a document whose content has not changed, as `confirm` has it, and its groups unless
        None, and advance the corpus generation: its chunks stay as they are. Returns None where something that arrived
        later is stored.

        Raises `Superseded` where the arrival has lost its lease.
        """

    async def set_groups(self, workspace_id: str, document_id: str, groups: Sequence[str]) -> Document | None:
        """Replace the groups of a document, and advance the corpus generation. Returns None if there is no such
        document."""

    async def replace(self, workspace_id: str, content: "DocumentContent") -> tuple[Document, StoredAs]:
        """Make the document of the content's name (`pick_named`) consist of exactly the content's chunks, in one
        transaction, and advance the corpus generation. Chunks whose hash is already stored keep their row and vectors
        (their position may change). Those without vectors in the content are found by their words at once, and by
        meaning once they are embedded. The content's file is kept, and that of what the document held before is dropped
        unless another document needs it.

        Raises `Superseded` where what the document holds came later than the content, or the document was deleted
        later, or the content's arrival has lost its lease; and `AmbiguousName`.
        """

    async def delete(self, workspace_id: str, document_id: str) -> bool:
        """Delete a document, its chunks, and its file unless another document needs it, and advance the corpus
        generation.

        Returns False if there is no such document.
        """

    async def clear(self, workspace_id: str) -> None:
        """Remove all documents of the workspace with their files, and what is known of their words."""

    async def is_untouched(self, workspace_id: str) -> bool:
        """Return True if the workspace has never held a document."""

    async def corpus_fingerprint(self, scope: Scope) -> str:
        """Changes whenever a document in scope changes, comes or goes. One cheap query.

        Raises `UnknownDocument` where the scope names a document that does not exist.
        """


@dataclass(frozen=True, slots=True)
class ChunkVectors:
    """The vectors of one chunk: its embedding, and its token vectors for late interaction."""

    embedding: Vector
    tokens: bytes = b""
    """Encoded by `app/adapters/rerankers/late_interaction.py`; empty where no local reranker is in use."""
    places: bytes = b""
    """Where in the embedded text each token begins, two bytes each; empty where one begins too far on for that."""


class EmbeddingBacklog(Protocol):
    """The chunks of all workspaces that are stored and are still to be embedded. Any number of workers share it.

    Raises `DatabaseUnavailable`, `EmbedderUnavailable` and `EmbedderReplaced`.
    """

    async def embed_some(self, encoder: "PassageEncoder") -> int:
        """Embed and store some chunks of those that no other worker has, of short documents first. Returns how many."""

    async def embed_some_of(self, workspace_id: str, document_id: str, encoder: "PassageEncoder") -> int:
        """The same for the chunks of one document."""

    async def count(self, workspace_id: str, document_id: str | None = None) -> int:
        """Count the chunks of the workspace, or of one document, that are still to be embedded."""

    async def count_all(self) -> int:
        """Count the same in all workspaces."""

    async def is_empty(self) -> bool:
        """Return True where nothing is left in any workspace. Unlike counting, it takes no longer the more is left."""


class PassageEncoder(Protocol):
    """Computes the vectors that are stored for a chunk, in one run of the model.

    Raises `EmbedderUnavailable`.
    """

    async def encode(self, texts: Sequence[str]) -> list[ChunkVectors]:
        """Return the embedding and token vectors of each text, in order."""


@dataclass(frozen=True, slots=True)
class DocumentContent:
    """The new content of a source, for `DocumentStore.replace`."""

    source: str
    content_hash: str
    parsed: ParsedDocument
    chunks: Sequence[Chunk]
    embeddings: dict[str, ChunkVectors]
    """Vectors by content hash, of the chunks that are not stored yet."""
    arrival: Arrival | None = None
    """None: it comes as it is stored."""
    metadata: Metadata = field(default_factory=dict)
    """What the file says of itself, or what stands beside it."""
    given: Metadata | None = None
    """What people give the document, on top; None: what they gave before."""
    original: bytes | None = None
    """The file, whose hash is `content_hash`; None where it is not to be kept."""
    groups: tuple[str, ...] | None = None
    """None: those that the document has."""
    asking: frozenset[str] | None = None
    """The groups of whoever brings it; None: all. It replaces no document that they may not read."""
    moved_from: str | None = None
    """The id of the document that it is where there is none of its name: this gets the name, or is there again."""
    brought_by: str | None = None
    """The caller; None: a command."""
