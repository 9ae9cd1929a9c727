"""A workspace is kept in step with a folder."""

import asyncio
import errno
import os
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from app.ingest.folder import Folder
from app.ingest.syncing import watch
from app.wiring.services import Services
from domain.errors import InputError
from domain.library.synced import SyncAction
from tests.ingest.synced_library import list_names, sync_into


@dataclass
class Team:
    """A folder that is synced."""

    path: Path
    services: Services

    def write(self, name: str, text: str) -> None:
        (self.path / name).parent.mkdir(exist_ok=True)
        (self.path / name).write_text(f"# {text}\n\nThe {text} is here.\n")

    @property
    def place(self) -> Folder:
        return Folder(self.path, max_bytes=10**6)

    async def sync(self, calls: int = 1000, **options: Any) -> list[tuple[SyncAction, str]]:
        return await sync_into(self.services, self.place, calls, **options)

    async def names(self) -> list[str]:
        return await list_names(self.services, self.place)


@pytest.fixture
def folder(tmp_path: Path, services: Services) -> Team:
    (tmp_path / "team").mkdir()
    made = Team(tmp_path / "team", services)
    made.write("a.md", "apple")
    made.write("b.md", "banana")
    return made


async def test_what_was_added_changed_moved_or_removed_is_brought_up_to_date(folder: Team) -> None:
    assert await folder.sync() == [("added", "a.md"), ("added", "b.md")]
    assert await folder.sync() == []
    folder.write("a.md", "apricot")
    folder.write("c.md", "cherry")
    assert await folder.sync(dry_run=True) == [("changed", "a.md"), ("added", "c.md")]
    assert await folder.sync() == [("changed", "a.md"), ("added", "c.md")]
    (folder.path / "b.md").rename(folder.path / "z.md")
    (folder.path / "c.md").unlink()
    assert await folder.sync() == [("moved", "z.md"), ("removed", "c.md")]
    assert await folder.names() == ["a.md", "z.md"]


async def test_documents_from_elsewhere_stay(folder: Team) -> None:
    await folder.services.library.ingestion.add("default", "elsewhere.md", b"# Elsewhere\n\nThe elderberry.")
    beside = str(folder.path / "was-never-synced.md")
    await folder.services.library.ingestion.add("default", beside, b"# Beside\n\nThe blueberry.")
    await folder.sync()
    (folder.path / "a.md").unlink()
    assert await folder.sync() == [("removed", "a.md")]
    assert await folder.names() == ["b.md", "was-never-synced.md", "elsewhere.md"]


async def test_a_copy_stays_when_the_other_file_is_removed(folder: Team) -> None:
    folder.write("copy.md", "apple")
    await folder.sync()
    assert await folder.names() == ["a.md", "b.md", "copy.md"]
    (folder.path / "a.md").unlink()
    assert await folder.sync() == [("removed", "a.md")]
    assert await folder.names() == ["b.md", "copy.md"]


async def test_it_goes_on_where_it_was_cut_off(folder: Team) -> None:
    with pytest.raises(KeyboardInterrupt):
        await folder.sync(calls=1)
    assert await folder.names() == ["a.md"]
    assert await folder.sync() == [("added", "b.md")]
    (folder.path / "a.md").rename(folder.path / "c.md")
    with pytest.raises(KeyboardInterrupt):
        await folder.sync(calls=1)
    await folder.sync()
    assert await folder.names() == ["b.md", "c.md"]


async def test_an_empty_folder_is_probably_not_mounted(folder: Team) -> None:
    await folder.sync()
    for file in folder.path.iterdir():
        file.unlink()
    with pytest.raises(InputError, match="--delete"):
        await folder.sync()
    assert await folder.sync(delete=False) == []
    assert await folder.names() == ["a.md", "b.md"]
    await folder.sync(delete=True)
    assert await folder.names() == []
    folder.path.rmdir()
    with pytest.raises(InputError, match="no folder"):
        await folder.sync()


async def test_a_file_that_cannot_be_read_is_reported_until_it_changes(folder: Team) -> None:
    (folder.path / "b.md").write_bytes(b"")
    assert await folder.sync() == [("added", "a.md"), ("failed", "b.md")]
    assert await folder.sync() == []
    folder.write("b.md", "banana")
    assert await folder.sync() == [("changed", "b.md")]
    (folder.path / "b.md").write_bytes(b"")
    assert await folder.sync() == [("failed", "b.md")]
    assert await folder.names() == ["a.md", "b.md"]
    (folder.path / "b.md").unlink()
    assert await folder.sync() == [("removed", "b.md")]
    assert await folder.names() == ["a.md"]


async def test_a_watched_folder_is_followed(folder: Team) -> None:
    seen: list[list[str]] = []

    async def work() -> None:
        await folder.sync()
        async with done:
            seen.append(await folder.names())
            done.notify()

    done = asyncio.Condition()
    watching = asyncio.create_task(watch(work, folder.place, 0.05))
    try:
        async with asyncio.timeout(20), done:
            await done.wait_for(lambda: seen == [["a.md", "b.md"]])
            (folder.path / "a.md").unlink()
            await done.wait_for(lambda: seen[-1] == ["b.md"])
    finally:
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching


async def test_a_restricted_document_stays_restricted_where_it_goes_and_when_it_returns(folder: Team) -> None:
    documents = folder.services.library.documents

    async def read_groups() -> dict[str, list[str]]:
        return {Path(each.source).name: sorted(each.groups or ()) for each in await documents.list("default")}

    await folder.sync()
    restricted = next(each for each in await documents.list("default") if each.source.endswith("a.md"))
    await documents.set_groups("default", restricted.id, ["board"])
    (folder.path / "a.md").rename(folder.path / "moved.md")
    assert await folder.sync() == [("moved", "moved.md")]
    assert await read_groups() == {"b.md": [], "moved.md": ["board"]}
    (folder.path / "moved.md").unlink()
    assert await folder.sync() == [("removed", "moved.md")]
    folder.write("moved.md", "apricot")
    assert await folder.sync() == [("added", "moved.md")]
    assert await read_groups() == {"b.md": [], "moved.md": ["board"]}


@pytest.mark.parametrize("number", [errno.EACCES, errno.EIO, errno.ESTALE, errno.EMFILE, errno.ENOTCONN])
async def test_a_folder_that_cannot_be_listed_loses_nothing(
    folder: Team, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    folder.write("sub/c.md", "cherry")
    await folder.sync()
    scan = os.scandir

    def fail(path: str) -> Any:
        if Path(path).name == "sub":
            raise OSError(number, os.strerror(number), path)
        return scan(path)

    monkeypatch.setattr(os, "scandir", fail)
    (folder.path / "b.md").unlink()
    folder.write("d.md", "date")
    assert await folder.sync(delete=True) == [("failed", "sub"), ("added", "d.md")]
    assert await folder.names() == ["a.md", "b.md", "d.md", "sub/c.md"]
    monkeypatch.undo()
    assert await folder.sync() == [("removed", "b.md")]


async def test_links_in_a_circle_hide_what_was_there_and_lose_nothing(folder: Team) -> None:
    folder.write("sub/c.md", "cherry")
    await folder.sync()
    shutil.move(folder.path / "sub", folder.path.parent)
    (folder.path / "sub").symlink_to("sub")
    assert await folder.sync(delete=True) == [("failed", "sub")]
    assert await folder.names() == ["a.md", "b.md", "sub/c.md"]
    with pytest.raises(InputError, match="no folder"):
        await Folder(folder.path / "sub", 10).list()


async def test_a_name_that_cannot_be_stored_is_told_and_the_rest_is_brought_in(folder: Team) -> None:
    longest = f"{'x' * 252}.md"
    folder.write(longest, "longest")
    folder.write("Pr\udcfcfung.md", "exam")
    await folder.sync()
    assert await folder.names() == ["a.md", "b.md", longest]
    assert [action for action, _ in await folder.sync()] == ["failed"]
    report = await folder.services.library.ingestion.add_paths("default", [folder.path])
    assert [each.status for each in report.documents] == ["failed", "unchanged", "unchanged", "unchanged"]
    [told] = report.failed
    assert "Rename the file or folder" in (told.error or "")
    assert "Pr\\udcfcfung" in told.source
