"""The work on a file that can take any time and memory, which parser workers do: parsing and splitting it."""

from app.ingest.chunking import split
from app.ingest.reading import read_document
from domain.documents import Chunk, ParsedDocument
from domain.errors import OversizedDocument

MAX_CHUNKS = 100_000
"""Three times as many as the longest text has ordinarily."""


def prepare(source: str, data: bytes, *, media_type: str | None, max_bytes: int) -> tuple[ParsedDocument, list[Chunk]]:
    """Parse a file and split its text. Raises `DocumentError`."""
    parsed = read_document(source, data, media_type=media_type, max_bytes=max_bytes)
    chunks = split(parsed)
    if len(chunks) > MAX_CHUNKS:
        raise OversizedDocument(
            f"The text has {len(chunks):,} sections and passages; {MAX_CHUNKS:,} are the limit. Split it."
        )
    return parsed, chunks
