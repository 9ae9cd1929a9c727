"""The words of a document's file that nobody sees, and that its text leaves out: found by reading the file anew."""

from dataclasses import asdict
from functools import partial
from typing import Any

from app.ingest.parser_workers import ParserWorkers
from app.ingest.reading import read_document
from domain.documents import Document, Unseen
from domain.ports.originals import OriginalStore, read_whole


async def describe_unseen(document: Document, originals: OriginalStore, workers: ParserWorkers) -> dict[str, Any]:
    """Describe these words as an `UnseenBody`. Raises `MissingOriginal`, `DocumentError` and `Draining`."""
    workspace = document.workspace_id
    data = await read_whole(originals, workspace, document.content_hash)
    job = partial(_find_unseen, document.source, data, document.media_type)
    words, unseen = await workers.run(job, len(data), owner=workspace)
    return {"words": words, "unseen": [asdict(each) for each in unseen]}


def _find_unseen(source: str, data: bytes, media_type: str) -> tuple[int, tuple[Unseen, ...]]:
    parsed = read_document(source, data, media_type=media_type, max_bytes=len(data))
    return parsed.unseen_words, parsed.unseen
