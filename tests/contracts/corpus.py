"""Documents for the storage contracts: real chunks, with vectors that identify them."""

import hashlib
from collections.abc import Sequence

import numpy as np

from domain.documents import Chunk, Document, Line, ParsedDocument
from domain.library.metadata import Metadata
from domain.ports.documents import ChunkVectors, DocumentContent, DocumentStore
from domain.ports.embedding import Vector

DIMENSION = 384


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def vector_of(text: str) -> Vector:
    """Return a unit vector that depends on the text alone. Vectors of two texts are nearly orthogonal."""
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])
    vector = np.random.default_rng(seed).standard_normal(DIMENSION).astype(np.float32)
    return vector / np.float32(np.linalg.norm(vector))


def split(title: str, paragraphs: Sequence[str]) -> tuple[ParsedDocument, list[Chunk]]:
    """Return a document of one page with a chunk for each paragraph."""
    text = "\n\n".join(paragraphs)
    chunks, start = [], 0
    for index, paragraph in enumerate(paragraphs):
        end = start + len(paragraph)
        line = Line(start, end, 1, {"x": 10.5, "y": 2.0 * index, "width": 80.0, "height": 1.5})
        chunks.append(Chunk(index, paragraph, start, end, (title,), digest(f"{title}\n{paragraph}"), (line,)))
        start = end + 2
    return ParsedDocument(title, text, "text/plain", (), pages=1), chunks


def content_of(source: str, paragraphs: Sequence[str], title: str = "Handbook") -> DocumentContent:
    """Return the content of `source`, with the vectors of all chunks."""
    parsed, chunks = split(title, paragraphs)
    vectors = {chunk.content_hash: ChunkVectors(vector_of(chunk.text), chunk.text.encode()) for chunk in chunks}
    return DocumentContent(source, digest(parsed.text), parsed, chunks, vectors)


async def store(
    documents: DocumentStore,
    workspace_id: str,
    source: str,
    paragraphs: Sequence[str],
    title: str = "Handbook",
    metadata: Metadata | None = None,
    original: bytes | None = None,
    groups: tuple[str, ...] | None = None,
) -> Document:
    """Store a document as `app/ingest` does: only new chunks bring their vectors."""
    parsed, chunks = split(title, paragraphs)
    known = await documents.find(workspace_id, source)
    stored = await documents.stored_hashes(workspace_id, known.id) if known else frozenset[str]()
    vectors = {
        chunk.content_hash: ChunkVectors(vector_of(chunk.text), chunk.text.encode())
        for chunk in chunks
        if chunk.content_hash not in stored
    }
    content = DocumentContent(
        source,
        digest(parsed.text),
        parsed,
        chunks,
        vectors,
        metadata=metadata or {},
        original=original,
        groups=groups,
    )
    document, _ = await documents.replace(workspace_id, content)
    return document
