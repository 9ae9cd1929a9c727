"""What connectors of servers that keep files by names like paths have in common."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote, unquote

from app.ingest.formats import is_read_from_folders
from app.ingest.metadata.sidecars import MAX_BYTES, SUFFIX, is_sidecar, read_metadata
from domain.errors import Unavailable
from domain.library.metadata import Metadata
from domain.people.names import spell_name
from domain.ports.connectors import Content, Entry, Listing

MOST_FILES = 100_000
"""Limit of the files that are looked at."""
LIST_SECONDS = 3600
"""Limit of the time that looking takes."""


@dataclass(frozen=True, slots=True)
class File:
    """What a server says of a file."""

    changed: datetime | None
    size: int
    e_tag: str | None


class RemoteFolder(ABC):
    """Implements `Connector` for the files under a prefix. Hidden ones are left out, as in folders."""

    quotes = False
    """True where names are quoted in addresses."""

    def __init__(self, root: str, prefix: str, max_bytes: int) -> None:
        """A file's address is `root`/NAME, and its name begins with the prefix."""
        self._root, self._prefix, self._max_bytes = root, prefix, max_bytes
        self._found: dict[str, File] = {}
        """The latest listing, by name."""
        self._written: dict[str, str] = {}
        """The names as the server writes them."""
        self.address = self._address_of(prefix)

    async def list(self) -> Listing:
        self._found.clear()
        gap, unread = None, dict[str, str]()
        try:
            async with asyncio.timeout(LIST_SECONDS):
                async for name, file in self._walk(unread):
                    if len(self._found) == MOST_FILES:
                        gap = f"Only {MOST_FILES:,} files were looked at."
                        break
                    self._written[spell_name(name)] = name
                    self._found[spell_name(name)] = file
        except (Unavailable, TimeoutError) as error:
            why = error.message if isinstance(error, Unavailable) else "Listing takes more than an hour."
            if not self._found:
                raise Unavailable(why) from error
            unread[self.address] = why
        inside = len(self._prefix) + 1 if self._prefix else 0
        names = [name for name in self._found if not is_sidecar(name) and "/." not in f"/{name[inside:]}"]
        entries = [
            Entry(self._address_of(name), self._stamp(name)) for name in names if is_read_from_folders(f"/{name}")
        ]
        return Listing(entries, len(names) - len(entries), gap, unread)

    async def read(self, entry: Entry, known: str | None) -> Content:
        name = self._name_of(entry.source)
        metadata: Metadata = {}
        if (sidecar := name + SUFFIX) in self._found:
            metadata = read_metadata(await self._load(self._written[sidecar], MAX_BYTES), sidecar)
        return Content(await self._load(self._written[name], self._max_bytes), metadata=metadata)

    def _stamp(self, name: str) -> str:
        """Return the version of a file, with its sidecar's."""
        files = [self._found[each] for each in (name, name + SUFFIX) if each in self._found]
        return " ".join(f"{file.e_tag or (file.changed and file.changed.isoformat())}:{file.size}" for file in files)

    def _address_of(self, name: str) -> str:
        return f"{self._root}/{quote(name) if self.quotes else name}"

    def _name_of(self, address: str) -> str:
        name = address.removeprefix(f"{self._root}/")
        return unquote(name) if self.quotes else name

    @abstractmethod
    def _walk(self, unread: dict[str, str]) -> AsyncIterator[tuple[str, File]]:
        """Yield all files by name. Folders that cannot be listed become `unread`."""

    @abstractmethod
    async def _load(self, name: str, max_bytes: int) -> bytes: ...
