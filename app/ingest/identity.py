"""Which document a new file was, where it has another name and maybe another text: that of a file that vanished."""

import asyncio
from collections.abc import Mapping
from functools import partial
from pathlib import PurePath

from app.ingest.parser_workers import ParserWorkers
from app.ingest.reading import read_document
from domain.documents import Document
from domain.errors import DocumentError
from domain.library.synced import SyncedFile
from domain.people.names import fold_name
from domain.ports.connectors import Content
from domain.ports.documents import DocumentCatalog
from domain.text.sentences import split_sentences

ALIKE = 0.5
"""Share of its text that a document keeps when it is changed and moved at once: with less it is another one. As in Git.
"""
LONGEST = 200_000
"""Characters of each text that are compared."""
MOST = 500
"""Texts that are compared. Files beyond them are known by their content or name alone."""


class Vanished:
    """The documents whose files are not where they were. Each becomes one new file at most."""

    def __init__(
        self,
        files: Mapping[str, SyncedFile],
        stored: Mapping[str, Document],
        documents: DocumentCatalog,
        parsers: ParserWorkers,
    ) -> None:
        """`files` by source; those whose document is not `stored` are left out."""
        self._left = {source: file for source, file in files.items() if file.document_id in stored}
        self._by_hash = {file.content_hash: source for source, file in self._left.items()}
        self._stored, self._documents, self._parsers = stored, documents, parsers
        self._sentences: dict[str, dict[str, int]] = {}

    def __bool__(self) -> bool:
        return bool(self._left)

    def take_same(self, content_hash: str) -> str | None:
        """Return where the file was that has this content."""
        source = self._by_hash.get(content_hash)
        return None if source is None or self._left.pop(source, None) is None else source

    async def take_alike(self, source: str, content: Content) -> str | None:
        """Return where the file was that has most of this one's text, else the only one of its name."""
        # Some systems write the same letters in another way, or change their case.
        name = fold_name(PurePath(source).name)
        names = [each for each in self._left if fold_name(PurePath(each).name) == name]
        try:
            job = partial(_read_sentences, source, content.data, content.media_type)
            mine = await self._parsers.run(job, len(content.data))
        except DocumentError:
            mine = {}
        shares = {each: _share(mine, await self._read(each)) for each in [*names, *self._left][:MOST] if mine}
        best = max(shares, key=shares.__getitem__, default=None)
        if best is None or shares[best] < ALIKE:
            best = names[0] if len(names) == 1 else None
        if best is not None:
            del self._left[best]
        return best

    async def _read(self, source: str) -> dict[str, int]:
        if source not in self._sentences:
            document = self._stored[self._left[source].document_id or ""]
            text = await self._documents.get_text(document.workspace_id, document.id) or ""
            self._sentences[source] = await asyncio.to_thread(_measure_sentences, text)
        return self._sentences[source]


def _read_sentences(source: str, data: bytes, media_type: str | None) -> dict[str, int]:
    return _measure_sentences(read_document(source, data, media_type=media_type, max_bytes=len(data)).text)


def _measure_sentences(text: str) -> dict[str, int]:
    """Return the length of each sentence."""
    text = text[:LONGEST]
    return {text[start:end]: end - start for start, end in split_sentences(text)}


def _share(one: Mapping[str, int], other: Mapping[str, int]) -> float:
    """Return the share of the longer text that the two have in common."""
    common = sum(one[sentence] for sentence in one.keys() & other.keys())
    return common / max(sum(one.values()), sum(other.values()), 1)
