"""A workspace is kept in step with a folder."""

import asyncio
import errno
import json
import logging
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from langchain_core.document_loaders import BaseLoader
from langchain_core.documents import Document

from app.ingest.folder import Folder
from app.ingest.syncing import watch
from app.settings import read_settings
from app.wiring.connectors import find_source, open_connector
from app.wiring.services import Services
from domain.errors import ConfigurationError, InputError
from domain.library.synced import SyncAction
from domain.library.where import Where
from domain.scope import Scope
from tests.ingest.synced_library import list_names, name_within, sync_into


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


async def test_names_that_look_the_same_are_one_name(folder: Team) -> None:
    decomposed = "U\u0308bersicht.md"
    folder.write(decomposed, "overview")
    assert await folder.sync() == [("added", "Übersicht.md"), ("added", "a.md"), ("added", "b.md")]
    (folder.path / decomposed).rename(folder.path / "Übersicht.md")
    assert await folder.sync() == []
    folder.write(decomposed, "other")
    assert await folder.sync() == [("failed", decomposed)]
    await folder.services.library.ingestion.add("w", decomposed, b"# One")
    await folder.services.library.ingestion.add("w", "Übersicht.md", b"# Two")
    where = Where.parse(f'path="{decomposed}"')
    assert [each.title for each in await folder.services.library.documents.list("w", where)] == ["Two"]


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


async def test_it_goes_on_where_it_was_cut_off(folder: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    async def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await folder.sync(calls=1)
    assert await folder.names() == ["a.md"]
    assert await folder.sync() == [("added", "b.md")]
    (folder.path / "a.md").rename(folder.path / "c.md")
    monkeypatch.setattr(folder.services.library.synced, "put", interrupt)
    with pytest.raises(KeyboardInterrupt):
        await folder.sync()
    monkeypatch.undo()
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


LONG = "The board met in May. It raised the salary of the chair. It also bought a boat. Nobody spoke against it."


async def test_a_document_stays_itself_wherever_its_file_goes(folder: Team, database_url: str) -> None:
    folder.write("pay/salaries.md", f"salaries\n\n{LONG}")
    folder.write("pay/other.md", "pear")
    folder.write("pay/third.md", "plum")
    await folder.sync()
    library = folder.services.library
    [document] = [each for each in await library.documents.list("default") if each.title == "salaries"]
    await library.documents.set_groups("default", document.id, ["board"])
    salaries = await asyncio.to_thread(Path(document.source).read_bytes)
    await library.ingestion.add("default", document.source, salaries, metadata={"year": 2025})
    revision = document.revision

    async def check(name: str, revision: int) -> None:
        now = await library.documents.find("default", str(folder.path / name))
        assert now is not None
        assert (now.id, now.revision, now.groups, now.metadata["year"]) == (document.id, revision, ("board",), 2025)
        async with await psycopg.AsyncConnection.connect(database_url) as connection:
            chunks = await connection.execute(
                "SELECT DISTINCT metadata ->> 'source' FROM chunks WHERE document_id = %s", [document.id]
            )
            assert await chunks.fetchall() == [(now.source,)]

    where = folder.path / "pay" / "salaries.md"

    async def move(name: str, text: str | None = None) -> list[tuple[SyncAction, str]]:
        nonlocal where
        where = where.rename(folder.path / name)
        if text is not None:
            where.write_text(text)
        return await folder.sync()

    assert await move("moved.md") == [("moved", "moved.md")]
    await check("moved.md", revision)
    # Changed as well: most of its text is left, and then only its name.
    assert await move("renamed.md", f"# salaries\n\n{LONG} It ended at ten.") == [("moved", "renamed.md")]
    await check("renamed.md", revision + 1)
    assert await move("pay/Renamed.MD", "# Anew\n\nNothing of it is left.") == [("moved", "pay/Renamed.MD")]
    await check("pay/Renamed.MD", revision + 2)
    history = await library.documents.list_revisions(Scope("default"), document.id)
    assert [each.title for each in history] == ["Anew", "salaries", "salaries"]
    # What vanishes returns, at its place or at another one.
    text = where.read_text()
    for name in ("pay/Renamed.MD", "back.md"):
        where.unlink()
        assert await folder.sync() == [("removed", name_within(folder.place, str(where)))]
        where = folder.path / name
        where.write_text(text)
        assert await folder.sync() == [("added", name)]
    await check("back.md", revision + 4)
    where.unlink()
    await folder.sync()
    folder.write("back.md", "anew")
    await folder.sync()
    await check("back.md", revision + 5)


async def test_what_is_restricted_never_becomes_public_by_a_move_or_copy(folder: Team) -> None:
    documents = folder.services.library.documents

    async def read_groups() -> dict[str, list[str]]:
        found = await documents.list("default")
        return {name_within(folder.place, each.source): sorted(each.groups or ()) for each in found}

    folder.write("c.md", "cherry")
    await folder.sync()
    [restricted] = [each for each in await documents.list("default") if each.source.endswith("a.md")]
    await documents.set_groups("default", restricted.id, ["board"])
    a, b = folder.path / "a.md", folder.path / "b.md"
    # A copy; then a file that is kept under another name, with a new one in its place, as logs are.
    shutil.copy(a, folder.path / "copy.md")
    await folder.sync()
    a.rename(folder.path / "old.md")
    folder.write("a.md", "apricot")
    await folder.sync()
    groups = {"a.md": ["board"], "b.md": [], "c.md": [], "copy.md": ["board"], "old.md": ["board"]}
    assert await read_groups() == groups
    # A name that a restricted document has left, and a public file that one is moved over.
    a.rename(folder.path / "new.md")
    await folder.sync()
    folder.write("a.md", "avocado")
    (folder.path / "old.md").rename(b)
    assert sorted(await folder.sync()) == [("added", "a.md"), ("changed", "b.md"), ("removed", "old.md")]
    del groups["old.md"]
    assert await read_groups() == groups | {"b.md": ["board"], "new.md": ["board"]}


PAY = (
    "# Salaries\n\n"
    "The chair of the board earns nine hundred thousand crowns a year, and the treasurer half of that.\n\n"
    "Whoever runs the mill at Barrowmere is paid by the sack, as the contract of March last year has it.\n\n"
    "The two clerks of the harbour office have not had a rise since the flood, which nobody outside knows.\n"
)
EDITED = PAY.replace("nine", "ten").replace("two clerks", "three clerks")
FIRST, SECOND, THIRD = PAY.split("\n\n")[1:]
OWN = "The canteen opens at eleven, and on Fridays there is fish with potatoes for whoever comes before one o'clock."


@pytest.fixture
async def restricted(folder: Team) -> Team:
    """`pay.md` is the board's, `public.md` and `c.md` are everybody's."""
    (folder.path / "pay.md").write_text(PAY)
    (folder.path / "sub").mkdir()
    folder.write("c.md", "cherry")
    await folder.sync()
    [pay] = [each for each in await folder.services.library.documents.list("default") if each.title == "Salaries"]
    await folder.services.library.documents.set_groups("default", pay.id, ["board"])
    return folder


@pytest.mark.parametrize(
    "files",
    [
        {"copy.md": EDITED},
        {"half.md": f"# One\n\n{FIRST}\n", "rest.md": f"# Two\n\n{SECOND}\n\n{THIRD}"},
        {"PAY.HTML": "<h1>Wages</h1>" + "".join(f"<p>{each.upper()}</p>" for each in (FIRST, SECOND, THIRD))},
        {
            "pay.csv": "who,what\n"
            + "\n".join(f'{number},"{each.strip()}"' for number, each in enumerate((FIRST, THIRD)))
        },
        {"longer.md": f"{OWN}\n\n{EDITED}\n\n" + "\n\n".join(OWN.replace("eleven", str(n)) for n in range(40))},
        {"a.md": EDITED},
        {"pay.md": "# Salaries\n\nThey are elsewhere.", "old.md": EDITED},
        {"pay.md": None, "sub/pay-2.md": EDITED},
    ],
    ids=["copied", "split", "converted", "sheet", "longer", "over a public file", "rotated", "moved"],
)
async def test_what_repeats_a_restricted_document_is_for_its_readers(
    restricted: Team, files: dict[str, str | None]
) -> None:
    for name, text in files.items():
        where = restricted.path / name
        where.unlink() if text is None else where.write_text(text)
    await restricted.sync()
    found = {
        name_within(restricted.place, each.source): each.groups
        for each in await restricted.services.library.documents.list("default")
    }
    assert {name for name, groups in found.items() if groups == ("board",)} == {"pay.md", *files} - {
        name for name, text in files.items() if text is None
    }


async def test_it_is_known_from_another_place_and_after_it_was_deleted(
    restricted: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = restricted.services.library.documents

    async def read_groups(place: Folder, name: str) -> tuple[str, ...] | None:
        found = await documents.find("default", str(Path(place.address) / name))
        assert found is not None
        return found.groups

    other = Team(restricted.path.parent / "other", restricted.services)
    other.path.mkdir()
    (other.path / "first.md").write_text(EDITED)
    await other.sync()
    assert await read_groups(other.place, "first.md") == ("board",)
    for team in (restricted, other):
        for file in team.path.glob("*.md"):
            file.unlink()
        await team.sync(delete=True)
    (other.path / "later.md").write_text(EDITED.replace("Barrowmere", "Barrowmoor"))
    assert await other.sync() == [("added", "later.md")]
    assert await read_groups(other.place, "later.md") == ("board",)
    # Who opens it has decided: what is public now restricts nothing, here or in a copy.
    [later] = await documents.list("default")
    await documents.set_groups("default", later.id, [])
    (other.path / "later.md").write_text(f"{EDITED}\n\n{OWN}")
    (other.path / "copy.md").write_text(f"# Copy\n\n{FIRST}\n\n{OWN}")
    await other.sync()
    assert [await read_groups(other.place, name) for name in ("later.md", "copy.md")] == [(), ()]
    # But not on what it said before.
    (other.path / "pay.md").write_text(f"{THIRD}\n\n{SECOND}")
    await other.sync()
    [pay] = [each for each in await documents.list("default") if each.source.endswith("pay.md")]
    await documents.set_groups("default", pay.id, ["board"])
    (other.path / "pay.md").write_text(
        "# Pay\n\nIt is public now that everybody is paid by the hour, as the law has it."
    )
    await other.sync()
    await documents.set_groups("default", pay.id, [])
    await documents.set_groups("default", later.id, ["board"])
    (other.path / "old.md").write_text(f"{THIRD.replace('flood', 'storm')}")
    await other.sync()
    assert await read_groups(other.place, "old.md") == ("board",)


async def test_what_no_group_may_read_whole_is_held_back_until_somebody_says_who_may(restricted: Team) -> None:
    library = restricted.services.library
    report = await library.ingestion.add("default", "sales.md", f"# Sales\n\n{OWN}".encode(), groups=["sales"])
    assert report.status == "added"
    both = restricted.path / "both.md"
    both.write_text(f"{EDITED}\n\n{OWN}")
    for _ in range(2):
        assert await restricted.sync() == [("failed", "both.md")]
    report = await library.ingestion.add("default", str(both), both.read_bytes(), groups=["board"])
    assert report.status == "added"
    both.write_text(f"{EDITED}\n\n{OWN} It is closed in May.")
    assert await restricted.sync() == [("added", "both.md")]
    # Of a long text, a paragraph is less than half; and what a caller of the API brings is for whom they say.
    rest = "\n\n".join(f"Hall {n} is heated from {n + 5} o'clock by {n} stoves of the kind {n}." for n in range(30))
    quoting = await library.ingestion.add("default", "quoting.md", f"{FIRST}\n\n{rest}".encode())
    brought = await library.ingestion.add("default", "brought.md", EDITED.encode(), brought_by="key:1")
    for each in (quoting, brought):
        found = await library.documents.get("default", each.document_id or "")
        assert found is not None
        assert not found.groups


async def test_files_of_one_name_are_not_mistaken_for_each_other(folder: Team) -> None:
    for name in ("x", "y"):
        folder.write(f"{name}/README.md", f"{name}\n\n{LONG.replace('board', name)} This is {name}.")
    await folder.sync()
    ids = {each.title: each.id for each in await folder.services.library.documents.list("default")}
    shutil.rmtree(folder.path / "x")
    (folder.path / "y").rename(folder.path / "z")
    (folder.path / "z" / "README.md").write_text(f"# y\n\n{LONG.replace('board', 'y')} This was y.")
    assert sorted(await folder.sync()) == [("moved", "z/README.md"), ("removed", "x/README.md")]
    [moved] = [each for each in await folder.services.library.documents.list("default") if each.title == "y"]
    assert moved.id == ids["y"]


async def test_places_that_overlap_leave_each_others_documents(folder: Team) -> None:
    folder.write("sub/c.md", "cherry")
    (folder.path.parent / "link").symlink_to(folder.path / "sub")
    inner = Team(folder.path.parent / "link", folder.services)
    await folder.sync()
    assert await inner.sync(calls=0) == []
    inner.write("d.md", "date")
    inner.write("f.md", "fig")
    assert await inner.sync() == [("added", "d.md"), ("added", "f.md")]
    assert await folder.sync(calls=0) == []
    [cherry] = [each for each in await folder.services.library.documents.list("default") if each.title == "cherry"]
    (folder.path / "sub" / "c.md").rename(folder.path / "c.md")
    assert await inner.sync() == []
    assert await folder.sync() == [("moved", "c.md")]
    assert await inner.sync() == []
    assert await folder.names() == ["a.md", "b.md", "c.md", "sub/d.md", "sub/f.md"]
    assert (await folder.services.library.documents.get("default", cherry.id)) is not None
    # Whoever saw a file last deletes its document.
    (folder.path / "sub" / "d.md").unlink()
    assert await folder.sync() == []
    inner.write("e.md", "elderberry")
    assert await inner.sync() == [("added", "e.md"), ("removed", "d.md")]
    assert await folder.sync(calls=0) == []
    (folder.path / "sub" / "e.md").unlink()
    assert await inner.sync() == []
    assert await folder.sync() == [("removed", "sub/e.md")]


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


async def test_a_drive_that_is_not_mounted_loses_nothing(folder: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    drive = folder.path / "drive"
    folder.write("drive/c.md", "cherry")
    folder.write("drive/d.md", "date")
    monkeypatch.setattr(os.path, "ismount", lambda path: path == str(drive))
    await folder.sync()
    (drive / "d.md").unlink()
    assert await folder.sync() == [("removed", "drive/d.md")]
    monkeypatch.undo()
    shutil.move(drive / "c.md", folder.path.parent)
    assert await folder.sync() == [("failed", "drive")]
    assert await folder.names() == ["a.md", "b.md", "drive/c.md"]
    assert await folder.sync(delete=True) == [("removed", "drive/c.md")]


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
    told, *others = await folder.services.library.ingestion.add_path("default", folder.path)
    assert [each.status for each in (told, *others)] == ["failed", "unchanged", "unchanged", "unchanged"]
    assert "Rename the file or folder" in (told.error or "")
    assert "Pr\\udcfcfung" in told.source


async def test_a_file_that_gets_a_bad_name_and_a_folder_that_becomes_a_link_lose_nothing(folder: Team) -> None:
    folder.write("sub/c.md", "cherry")
    await folder.sync()
    (folder.path / "a.md").rename(folder.path / "a\udcff.md")
    (folder.path / "b.md").rename(folder.path / "b\n.md")
    assert [action for action, _ in await folder.sync()] == ["failed", "failed"]
    shutil.move(folder.path / "sub", folder.path.parent / "elsewhere")
    (folder.path / "sub").symlink_to(folder.path.parent / "elsewhere")
    assert ("failed", "sub") in await folder.sync()
    assert await folder.names() == ["a.md", "b.md", "sub/c.md"]
    assert ("removed", "sub/c.md") in await folder.sync(delete=True)


class WikiLoader(BaseLoader):
    """Gives the pages in a file. It fails where the file says so."""

    def __init__(self, file: str, token: str = "") -> None:
        self._file, self._token = file, token

    def lazy_load(self) -> Iterator[Document]:
        print("Loading")
        for page in json.loads(Path(self._file).read_text()):
            match page:
                case str():
                    raise ConnectionError(f"{page} {self._token}")
                case {"warn": words}:
                    logging.getLogger(f"{__name__}.pages").warning(words)
                case {"wait": seconds}:
                    time.sleep(seconds)
                case {"text": text, **metadata}:
                    yield Document(text, metadata=metadata)


@dataclass
class Wiki:
    """A source that is synced."""

    folder: Path
    services: Services

    async def sync(self, *pages: Any, more: str = "") -> tuple[list[tuple[SyncAction, str]], str | None]:
        (self.folder / "pages.json").write_text(json.dumps(pages))
        (self.folder / "sources.toml").write_text(f"""
            [wiki]
            loader = "tests.ingest.test_syncing.WikiLoader"
            arguments.file = "{self.folder / "pages.json"}"
            variables.token = "WIKI_TOKEN"
            {more}
        """)
        source = find_source("wiki", read_settings(sources=self.folder / "sources.toml"))
        assert source is not None
        async with open_connector("wiki", read_settings(), max_pages=1, source=source) as place:
            gap = (await place.list()).gap
            return await sync_into(self.services, place), gap


@pytest.fixture
def wiki(tmp_path: Path, services: Services, monkeypatch: pytest.MonkeyPatch) -> Wiki:
    monkeypatch.setenv("WIKI_TOKEN", "s3cret")
    return Wiki(tmp_path, services)


APPLES = {"text": "The apples are red.", "source": "https://wiki.example/apples.html", "lastmod": "2024-05-01"}
BEANS = [{"text": f"Beans, page {page}.", "source": "beans.pdf", "page": page} for page in (1, 2)]
CORN = {"text": "# Corn\n\nCorn is *yellow*.", "id": 7, "tags": ["crop"]}


async def test_what_a_loader_gives_is_brought_in_changed_and_removed_by_its_ids(wiki: Wiki) -> None:
    place = "https://wiki.example/apples.html"
    done, gap = await wiki.sync(APPLES, *BEANS, CORN, more='groups = ["farm"]')
    assert (done, gap) == ([("added", place), ("added", "wiki/beans.pdf"), ("added", "wiki/7")], None)
    assert await wiki.sync(APPLES, *BEANS, CORN) == ([], None)
    stored = {each.source: each for each in await wiki.services.library.documents.list("default")}
    assert {each.groups for each in stored.values()} == {("farm",)}
    assert stored[place].metadata["date"] == "2024-05-01"
    assert stored["wiki/7"].metadata["tags"] == ["crop"]
    done, _ = await wiki.sync(APPLES | {"text": "They are green."}, *BEANS)
    assert done == [("changed", place), ("removed", "wiki/7")]


@pytest.mark.parametrize(
    ("end", "says"),
    [
        ("The server hung up", "ConnectionError: The server hung up …"),
        ({"warn": "Page 7 skipped"}, "The loader said: Page 7 skipped."),
        ({"text": "nameless"}, "no id"),
        ({"wait": 30}, "more than 0.5 seconds"),
    ],
)
async def test_what_a_loader_did_not_give_is_not_gone(wiki: Wiki, end: Any, says: str) -> None:
    await wiki.sync(APPLES, *BEANS, CORN)
    done, gap = await wiki.sync(APPLES, *BEANS, end, more="seconds = 0.5")
    assert done == [("failed", "")]
    assert says in (gap or "")
    assert len(await wiki.services.library.documents.list("default")) == 3


async def test_the_text_of_a_loader_is_of_the_type_that_is_stated_or_shown(wiki: Wiki) -> None:
    page = "<html><body><h1>Dill</h1></body></html>"
    await wiki.sync(CORN, *BEANS, {"text": page, "source": "dill.html"}, more='media_type = "text/markdown"')
    types = {each.source: each.media_type for each in await wiki.services.library.documents.list("default")}
    assert types == {"wiki/7": "text/markdown", "wiki/beans.pdf": "text/markdown", "wiki/dill.html": "text/html"}


async def test_a_wrong_source_is_said(wiki: Wiki) -> None:
    cases: list[tuple[str, str | None]] = [
        ('loaders = "x"', "loaders: "),
        ("[other]\nloader = 'json.loads'", None),
        ('variables.key = "NOT_SET"', "NOT_SET"),
    ]
    for more, says in cases:
        if says is None:
            await wiki.sync(CORN, more=more)
            with pytest.raises(ConfigurationError, match=r"\[other\] loader: "):
                find_source("other", read_settings(sources=wiki.folder / "sources.toml"))
        else:
            with pytest.raises(ConfigurationError, match=says):
                await wiki.sync(CORN, more=more)
