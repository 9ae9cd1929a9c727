"""A workspace is kept in step with a folder."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from app.ingest.pipeline import Ingestion
from app.ingest.syncing import sync, watch
from app.wiring.services import Services
from domain.documents import DocumentReport
from domain.errors import InputError
from domain.library.synced import SyncAction


@dataclass
class Library:
    """Brings files in by the real ingestion; may be cut off after some calls."""

    ingestion: Ingestion
    calls: int = 1000

    async def add(self, workspace_id: str, file: Path) -> DocumentReport:
        self._count()
        return (await self.ingestion.add_paths(workspace_id, [file])).documents[0]

    async def delete(self, workspace_id: str, document_id: str) -> None:
        self._count()
        await self.ingestion.delete(workspace_id, document_id)

    def _count(self) -> None:
        if not self.calls:
            raise KeyboardInterrupt
        self.calls -= 1


@dataclass
class Folder:
    path: Path
    services: Services
    said: list[tuple[SyncAction, str]] = field(default_factory=list)

    def write(self, name: str, text: str) -> None:
        (self.path / name).parent.mkdir(exist_ok=True)
        (self.path / name).write_text(f"# {text}\n\nThe {text} is here.\n")

    async def sync(self, calls: int = 1000, **options: Any) -> list[tuple[SyncAction, str]]:
        library = self.services.library
        said: list[tuple[SyncAction, str]] = []
        await sync(
            self.path,
            "default",
            library.synced,
            library.documents,
            Library(library.ingestion, calls),
            max_bytes=10**6,
            report=lambda action, source, _: said.append((action, Path(source).name)),
            **options,
        )
        return said

    async def names(self) -> list[str]:
        return [Path(document.source).name for document in await self.services.library.documents.list("default")]


@pytest.fixture
def folder(tmp_path: Path, services: Services) -> Folder:
    (tmp_path / "team").mkdir()
    made = Folder(tmp_path / "team", services)
    made.write("a.md", "apple")
    made.write("b.md", "banana")
    return made


async def test_what_was_added_changed_moved_or_removed_is_brought_up_to_date(folder: Folder) -> None:
    assert await folder.sync() == [("added", "a.md"), ("added", "b.md")]
    assert await folder.sync() == []
    folder.write("a.md", "apricot")
    folder.write("c.md", "cherry")
    assert await folder.sync(dry_run=True) == [("changed", "a.md"), ("added", "c.md")]
    assert await folder.sync() == [("changed", "a.md"), ("added", "c.md")]
    (folder.path / "b.md").rename(folder.path / "z.md")
    (folder.path / "c.md").unlink()
    assert await folder.sync() == [("removed", "c.md"), ("moved", "z.md")]
    assert await folder.names() == ["a.md", "z.md"]


async def test_documents_from_elsewhere_stay(folder: Folder) -> None:
    await folder.services.library.ingestion.add("default", "elsewhere.md", b"# Elsewhere\n\nThe elderberry.")
    beside = str(folder.path / "was-never-synced.md")
    await folder.services.library.ingestion.add("default", beside, b"# Beside\n\nThe blueberry.")
    await folder.sync()
    (folder.path / "a.md").unlink()
    assert await folder.sync() == [("removed", "a.md")]
    assert await folder.names() == ["b.md", "was-never-synced.md", "elsewhere.md"]


async def test_a_copy_stays_when_the_other_file_is_removed(folder: Folder) -> None:
    folder.write("copy.md", "apple")
    await folder.sync()
    assert await folder.names() == ["a.md", "b.md", "copy.md"]
    (folder.path / "a.md").unlink()
    assert await folder.sync() == [("removed", "a.md")]
    assert await folder.names() == ["b.md", "copy.md"]


async def test_it_goes_on_where_it_was_cut_off(folder: Folder) -> None:
    with pytest.raises(KeyboardInterrupt):
        await folder.sync(calls=1)
    assert await folder.names() == ["a.md"]
    assert await folder.sync() == [("added", "b.md")]
    (folder.path / "a.md").rename(folder.path / "c.md")
    with pytest.raises(KeyboardInterrupt):
        await folder.sync(calls=1)
    await folder.sync()
    assert await folder.names() == ["b.md", "c.md"]


async def test_an_empty_folder_is_probably_not_mounted(folder: Folder) -> None:
    await folder.sync()
    for file in folder.path.iterdir():
        file.unlink()
    with pytest.raises(InputError, match="--delete"):
        await folder.sync()
    assert await folder.sync(delete=False) == []
    assert await folder.names() == ["a.md", "b.md"]
    await folder.sync(delete=True)
    assert await folder.names() == []
    with pytest.raises(InputError, match="no folder"):
        await sync(
            folder.path / "x",
            "default",
            folder.services.library.synced,
            folder.services.library.documents,
            Library(folder.services.library.ingestion),
            max_bytes=1,
        )


async def test_a_file_that_cannot_be_read_is_reported_until_it_changes(folder: Folder) -> None:
    (folder.path / "b.md").write_bytes(b"")
    assert await folder.sync() == [("added", "a.md"), ("failed", "b.md")]
    assert await folder.sync() == []
    folder.write("b.md", "banana")
    assert await folder.sync() == [("changed", "b.md")]


async def test_a_watched_folder_is_followed(folder: Folder) -> None:
    seen: list[list[str]] = []

    async def work() -> None:
        await folder.sync()
        async with done:
            seen.append(await folder.names())
            done.notify()

    done = asyncio.Condition()
    watching = asyncio.create_task(watch(work, folder.path, 0.05))
    try:
        async with asyncio.timeout(20), done:
            await done.wait_for(lambda: seen == [["a.md", "b.md"]])
            (folder.path / "a.md").unlink()
            await done.wait_for(lambda: seen[-1] == ["b.md"])
    finally:
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
