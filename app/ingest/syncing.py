"""Keeps a workspace in step with a folder.

Each file is brought in or removed by itself, and noted right after. So a sync may be cut off at any moment: the library
is whole, and the next one goes on where this one stopped. A document is deleted with its file only if a sync of the
same folder has noted it.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from app.ingest.files import find_files, load
from app.ingest.sidecars import SUFFIX
from domain.documents import DocumentReport
from domain.errors import DocumentError, InputError
from domain.library.synced import SyncAction, SyncedFile, SyncedFiles
from domain.ports.documents import DocumentCatalog


class Library(Protocol):
    """Brings files into the library and removes documents, here or on a server."""

    async def add(self, workspace_id: str, file: Path) -> DocumentReport: ...

    async def delete(self, workspace_id: str, document_id: str) -> None: ...


Report = Callable[[SyncAction, str, str], None]
"""Called with each action, the path, and a remark: where the file was before, or why it could not be read."""


@dataclass(slots=True)
class Synced:
    """The result of a sync."""

    counts: dict[SyncAction, int] = field(
        default_factory=lambda: {"added": 0, "changed": 0, "moved": 0, "removed": 0, "failed": 0}
    )
    unchanged: int = 0
    passed_over: int = 0
    """Files of formats that are not supported."""
    kept: int = 0
    """Documents whose file is gone, and which stay because they are not to be deleted."""


@dataclass(frozen=True, slots=True)
class _Plan:
    new: Mapping[Path, str]
    """Files to be read, with their stamps."""
    moved: Mapping[Path, str]
    """The earlier paths of those of them that have moved."""
    gone: Mapping[str, SyncedFile]
    """What is known of files that are not there any more, by path."""


async def sync(
    folder: Path,
    workspace_id: str,
    files: SyncedFiles,
    documents: DocumentCatalog,
    library: Library,
    *,
    max_bytes: int,
    delete: bool | None = None,
    dry_run: bool = False,
    report: Report = lambda *_: None,
) -> Synced:
    """Bring what was added, changed or moved in `folder`, and delete the documents of files that are gone.

    With `delete` False documents stay. With None they go unless the folder has no files left at all: then it is
    probably not mounted. With `dry_run` nothing changes.

    Raises `InputError` where there is no such folder, or it has no files left; `DatabaseUnavailable` and
    `EmbedderUnavailable`.
    """
    folder, found, passed_over = await asyncio.to_thread(_scan, folder)
    known = await files.list(workspace_id, str(folder))
    if known and not found and delete is None:
        raise InputError(f"{folder} holds no documents any more. To delete all that came from it, add --delete.")
    stored = {document.id for document in await documents.list(workspace_id)}
    plan = await asyncio.to_thread(_plan, found, known, stored, max_bytes)
    result = Synced(unchanged=len(found) - len(plan.new), passed_over=passed_over)

    def note(action: SyncAction, source: str, remark: str = "") -> None:
        result.counts[action] += 1
        report(action, source, remark)

    async def remove(file: SyncedFile) -> None:
        if file.document_id in stored:
            await library.delete(workspace_id, file.document_id)
        await files.drop(workspace_id, str(folder), file.source)

    moved = set(plan.moved.values())
    for source, file in plan.gone.items():
        if delete is False:
            result.kept += source not in moved
        elif not dry_run:
            await remove(file)
        if delete is not False and source not in moved:
            note("removed", source)
    for path, stamp in plan.new.items():
        source = str(path)
        before = plan.moved.get(path)
        action: SyncAction = "moved" if before else "changed" if source in known else "added"
        if dry_run:
            note(action, source, before or "")
            continue
        added = await library.add(workspace_id, path)
        if added.status == "failed":
            note("failed", source, added.error or "")
        else:
            note(action, source, before or "")
        content_hash = await asyncio.to_thread(_hash, path, max_bytes)
        noted = SyncedFile(source, content_hash, stamp, added.document_id)
        await files.put(workspace_id, str(folder), noted)
    return result


async def watch(work: Callable[[], Awaitable[None]], folder: Path, seconds: float) -> None:
    """Repeat `work` whenever something in the folder has changed, for ever. The folder is looked through every
    `seconds`, which also works for network drives."""
    before: Mapping[Path, str] | None = None
    while True:
        _, found, _ = await asyncio.to_thread(_scan, folder)
        if found != before:
            await work()
            before = found
        await asyncio.sleep(seconds)


def _scan(folder: Path) -> tuple[Path, dict[Path, str], int]:
    """Return the folder's whole path, its supported files with their stamps, and the number of others. Links that lead
    out of the folder are not followed. Raises `InputError` where there is no such folder."""
    folder = folder.expanduser().resolve()
    if not folder.is_dir():
        raise InputError(f"There is no folder {folder}.")
    files, passed_over = find_files(folder)
    stamps = {file: stamp for file in files if isinstance(file, Path) and (stamp := _stamp(file)) is not None}
    return folder, stamps, passed_over


def _stamp(file: Path) -> str | None:
    """Return size and time of the last change, of the sidecar too; None where the file is gone."""
    try:
        parts = [file.stat()]
        sidecar = file.with_name(file.name + SUFFIX)
        parts += [sidecar.stat()] if sidecar.is_file() else []
    except OSError:
        return None
    return " ".join(f"{part.st_size}:{part.st_mtime_ns}" for part in parts)


def _plan(found: Mapping[Path, str], known: Mapping[str, SyncedFile], stored: Collection[str], max_bytes: int) -> _Plan:
    def is_current(path: Path, stamp: str) -> bool:
        file = known.get(str(path))
        return file is not None and file.stamp == stamp and (file.document_id is None or file.document_id in stored)

    new = {path: stamp for path, stamp in found.items() if not is_current(path, stamp)}
    gone = {source: file for source, file in known.items() if Path(source) not in found}
    by_hash = {file.content_hash: source for source, file in gone.items() if file.content_hash}
    moved: dict[Path, str] = {}
    for path in new if by_hash else ():
        if str(path) not in known and (source := by_hash.pop(_hash(path, max_bytes), None)) is not None:
            moved[path] = source
    return _Plan(new, moved, gone)


def _hash(path: Path, max_bytes: int) -> str:
    """Return the hash of the file's content; empty where it cannot be read."""
    try:
        return hashlib.sha256(load(path, max_bytes)).hexdigest()
    except DocumentError:
        return ""
