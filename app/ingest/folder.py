"""The connector of a folder of this machine."""

import asyncio
from contextlib import suppress
from pathlib import Path

from app.ingest.files import describe_failure, load, look_through, show_name
from app.ingest.metadata.sidecars import SUFFIX, read_sidecar
from app.ingest.opening import resolve
from domain.errors import InputError
from domain.ports.connectors import Content, Entry, Listing


class Folder:
    """Implements `Connector`. Links that lead out of the folder are not followed."""

    def __init__(self, path: Path, max_bytes: int) -> None:
        self._path = resolve(path)
        self._max_bytes = max_bytes
        self.address = str(self._path)

    async def list(self) -> Listing:
        return await asyncio.to_thread(self._list)

    async def read(self, entry: Entry, known: str | None) -> Content:
        path = Path(entry.source)
        data = await asyncio.to_thread(load, path, self._max_bytes)
        return Content(data, metadata=await asyncio.to_thread(read_sidecar, path))

    def _list(self) -> Listing:
        try:
            if not self._path.is_dir():
                raise InputError(f"There is no folder {self._path}.")
        except OSError as error:
            raise InputError(f"{self._path}: {describe_failure(error)}") from error
        found = look_through(self._path)
        entries = []
        for file in dict.fromkeys(found.files):
            try:
                inside = [mount for mount in found.mounts if str(file).startswith(f"{mount}/")]
                entries.append(Entry(str(file), _stamp(file), max(inside, key=len, default=None)))
            except FileNotFoundError:
                continue
            except OSError as error:
                found.unread[show_name(str(file))] = describe_failure(error)
        return Listing(entries, len(found.passed_over), unread=found.unread, mounts=found.mounts, links=found.links)


def _stamp(file: Path) -> str:
    """Return size and time of the last change, of the sidecar too. Raises `OSError`."""
    parts = [file.stat()]
    with suppress(OSError):  # A name may leave no room for a sidecar's; one that cannot be read is told when it is.
        parts.append(file.with_name(file.name + SUFFIX).stat())
    return " ".join(f"{part.st_size}:{part.st_mtime_ns}" for part in parts)
