"""The connector of everything that has a loader for LangChain: wikis, trackers, drives and others, from packages that
the operator installs. A file names them; a loader is code, which is trusted as this program is."""

import asyncio
import hashlib
import logging
import os
import sys
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

from langchain_core.document_loaders import BaseLoader
from langchain_core.documents import Document
from pydantic import BaseModel, ConfigDict, Field, ImportString, ValidationError

from app.ingest.files import check_size
from app.ingest.metadata.dates import state_day
from app.support.toml_files import list_problems, read_toml
from domain.errors import ConfigurationError, Unavailable
from domain.library.metadata import select_metadata
from domain.ports.connectors import Content, Entry, Listing, Opening

MOST_DOCUMENTS = 100_000
MOST_BYTES = 2 * 10**9
"""Limit of the text that is kept on the disk until it is read."""
LOAD_SECONDS = 3600
"""Limit of the time that loading takes."""
_DATES = ("last_modified", "lastmod", "updated_at", "modified", "date", "created_at")


@dataclass(frozen=True, slots=True)
class _Found:
    metadata: dict[str, Any]
    parts: list[tuple[int, int]] = field(default_factory=list)
    """Where its texts begin in the spool, and their sizes."""
    hash: Any = field(default_factory=hashlib.sha256)


class Source(BaseModel):
    """A place that documents come from, as the deployment's file describes it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    loader: ImportString[type[BaseLoader]]
    """Class of the loader, such as `langchain_community.document_loaders.GitLoader`."""
    arguments: dict[str, Any] = {}
    variables: dict[str, str] = {}
    """Further arguments, such as a token, by the environment variable that holds each."""
    workspace: str = "default"
    groups: list[str] = []
    """Who may read what comes from here; empty: whoever may enter the workspace."""
    id: str | None = None
    """Key of the metadata that tells documents apart; None: `source`, else `id`, else the document's own id."""
    media_type: str = "text/plain"
    """Of the text that the loader gives, where the name of a document does not show it."""
    seconds: float = Field(LOAD_SECONDS, gt=0)


def read_source(path: Path, name: str) -> Source | None:
    """Return the source of this name; None where the file has none. Raises `ConfigurationError`."""
    table = read_toml(path, "file of sources").get(name)
    if table is None:
        return None
    try:
        return Source.model_validate(table)
    except ValidationError as error:
        raise ConfigurationError(f"The file of sources {path}: [{name}] {list_problems(error)}.") from error


class Loader:
    """Implements `Connector`. What a loader gives under one id is one document, in its order."""

    def __init__(self, name: str, source: Source, secrets: Mapping[str, str], spool: IO[bytes], max_bytes: int) -> None:
        """`secrets` are further arguments. `spool` keeps the texts between listing and reading."""
        self.address = f"loader:{name}"
        self._name, self._source, self._secrets = name, source, secrets
        self._spool, self._max_bytes = spool, max_bytes
        self._found: dict[str, _Found] = {}
        self._gap: str | None = None

    async def list(self) -> Listing:
        """What a loader that fails or complains did not give is not taken as gone."""
        self._found, self._gap = {}, f"It takes more than {self._source.seconds:g} seconds."
        # A loader may wait for ever: its thread ends with this process.
        thread = threading.Thread(target=self._load, args=[self._found], daemon=True)
        thread.start()
        await asyncio.to_thread(thread.join, self._source.seconds)
        gap = self._gap
        for secret in filter(None, self._secrets.values()):
            gap = gap and gap.replace(secret, "…")
        self._found = self._found.copy()
        if gap and not self._found:
            raise Unavailable(f"{self._name}: {gap}")
        entries = [Entry(key, f"sha256 {found.hash.hexdigest()}") for key, found in self._found.items()]
        return Listing(entries, gap=gap, unread={self.address: gap} if gap else {})

    async def read(self, entry: Entry, known: str | None) -> Content:
        found = self._found[entry.source]
        check_size(sum(size for _, size in found.parts), self._max_bytes)
        texts = []
        for position, size in found.parts:
            self._spool.seek(position)
            texts.append(self._spool.read(size))
        day = state_day(*(str(found.metadata.get(key, "")) for key in _DATES))
        groups = None if known else self._source.groups or None
        metadata = select_metadata(found.metadata) | day
        return Content(b"\n\n".join(texts), media_type=self._source.media_type, metadata=metadata, groups=groups)

    def _load(self, found: dict[str, _Found]) -> None:
        position = 0
        try:
            with redirect_stdout(sys.stderr), _complaints(self._source.loader) as said:
                for document in self._source.loader(**self._source.arguments, **self._secrets).lazy_load():
                    text = document.page_content.encode(errors="replace")
                    if position + len(text) > MOST_BYTES or len(found) == MOST_DOCUMENTS or found is not self._found:
                        said.append(f"only {len(found):,} documents of {position / 1e6:,.0f} MB were looked at")
                        break
                    if (key := self._find_key(document)) is None:
                        said.append("a document has no id; name the key of the metadata that has one by id = …")
                        continue
                    self._spool.seek(position)
                    self._spool.write(text)
                    each = found.setdefault(key, _Found(document.metadata))
                    each.parts.append((position, len(text)))
                    each.hash.update(text + repr(document.metadata).encode())
                    position += len(text)
            self._gap = f"The loader said: {said[0][:500]}." if said else None
        except Exception as error:  # noqa: BLE001 - whatever a loader raises
            self._gap = f"The loader failed: {type(error).__name__}: {str(error)[:500]}"

    def _find_key(self, document: Document) -> str | None:
        """Return the name of the document: an address as it is, others below the name of the source."""
        metadata = document.metadata
        named = [self._source.id] if self._source.id else ["source", "id"]
        key = next((str(metadata[name]) for name in named if metadata.get(name) not in (None, "")), document.id)
        return key if not key or key.startswith(("http://", "https://")) else f"{self._name}/{key.lstrip('/')}"


@contextmanager
def _complaints(loader: type[BaseLoader]) -> Iterator[list[str]]:
    """Collect what the loader's package warns of meanwhile: many go on where a document cannot be read."""
    said: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    log = logging.getLogger(loader.__module__.partition(".")[0])
    log.addHandler(handler)
    try:
        yield said
    finally:
        log.removeHandler(handler)


@asynccontextmanager
async def open_loader(name: str, source: Source, opening: Opening) -> AsyncIterator[Loader]:
    """Open a source. Raises `ConfigurationError` where a variable of it is not set."""
    if missing := [each for each in source.variables.values() if each not in os.environ]:
        raise ConfigurationError(f"The source {name} needs the environment variables {', '.join(missing)}.")
    secrets = {argument: os.environ[variable] for argument, variable in source.variables.items()}
    with TemporaryFile() as spool:
        yield Loader(name, source, secrets, spool, opening.max_bytes)
