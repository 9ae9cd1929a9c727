"""The connector of a folder of this machine."""

import asyncio
from pathlib import Path

from app.ingest.files import find_files, load
from app.ingest.metadata.sidecars import SUFFIX, read_sidecar
from domain.errors import InputError
from domain.ports.connectors import Content, Entry, Listing


class Folder:
    """Implements `Connector`. Links that lead out of the folder are not followed."""

    def __init__(self, path: Path, max_bytes: int) -> None:
        self._path = path.expanduser().resolve()
        self._max_bytes = max_bytes
        self.address = str(self._path)

    async def list(self) -> Listing:
        return await asyncio.to_thread(self._list)

    async def read(self, entry: Entry, known: str | None) -> Content:
        path = Path(entry.source)
        data = await asyncio.to_thread(load, path, self._max_bytes)
        return Content(data, metadata=await asyncio.to_thread(read_sidecar, path))

    def _list(self) -> Listing:
        if not self._path.is_dir():
            raise InputError(f"There is no folder {self._path}.")
        files, passed_over = find_files(self._path)
        stamps = {file: stamp for file in files if isinstance(file, Path) and (stamp := _stamp(file)) is not None}
        return Listing([Entry(str(file), stamp) for file, stamp in stamps.items()], len(passed_over))


def _stamp(file: Path) -> str | None:
    """Return size and time of the last change, of the sidecar too; None where the file is gone."""
    try:
        parts = [file.stat()]
        sidecar = file.with_name(file.name + SUFFIX)
        parts += [sidecar.stat()] if sidecar.is_file() else []
    except OSError:
        return None
    return " ".join(f"{part.st_size}:{part.st_mtime_ns}" for part in parts)
