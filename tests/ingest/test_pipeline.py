"""Ingestion into a real database with the real model: what is written, what is left alone, what fails alone."""

import asyncio
import os
import re
from pathlib import Path

import pytest
import pytest_asyncio

from app.adapters.embeddings.onnx import OnnxEmbedder
from app.adapters.postgres.documents.store import PostgresDocumentStore
from app.adapters.postgres.library.library import PostgresLibrary
from app.adapters.postgres.pool import ALL_WORKSPACES, Pool, borrow, open_pool
from app.adapters.postgres.queue.ingestions import PostgresIngestionQueue
from app.adapters.redis.answers import RedisAnswerCache
from app.adapters.redis.connection import RedisServer
from app.adapters.rerankers.late_interaction import LateInteractionEncoder
from app.ingest.parser_workers import ParserWorkers
from app.ingest.pipeline import Ingestion
from app.samples import FOLDER
from domain.documents import DocumentReport, Source
from domain.errors import DatabaseUnavailable
from domain.library.storage import StorageLimit
from domain.ports.answers import AnswerKey
from domain.scope import Scope
from nodes.sources.neighbours import widen_sources
from tests.contracts.answer_cache import ANSWER

TEAM = "team"

GUIDE = """\
# Guide

## Rain

Rain is measured with a tipping bucket gauge that has to be rinsed every month, because leaves block it.

## Snow

Snow depth is measured with ultrasound; the sensor hangs three metres above the ground and looks straight down.

## Wind

Wind is measured ten metres above the ground, far away from houses and trees, and averaged over ten minutes.
"""


@pytest_asyncio.fixture
async def cache(redis_server: RedisServer) -> RedisAnswerCache:
    return RedisAnswerCache(redis_server)


@pytest.fixture
def ingestion(
    store: PostgresDocumentStore, embedder: OnnxEmbedder, cache: RedisAnswerCache, parsers: ParserWorkers
) -> Ingestion:
    return Ingestion(store, LateInteractionEncoder(embedder), cache, parsers)


async def read_chunks(pool: Pool, document_id: str | None) -> dict[str, tuple[str, int, int]]:
    """Text, start and end by chunk id."""
    async with borrow(pool, ALL_WORKSPACES) as connection:
        rows = await connection.execute(
            "SELECT c.id::text, c.content, p.start_offset, p.end_offset FROM chunks c JOIN chunk_places p ON p.chunk_id = c.id"
            " WHERE c.document_id = %s",
            [document_id],
        )
        return {row["id"]: (row["content"], row["start_offset"], row["end_offset"]) for row in await rows.fetchall()}


async def test_a_document_is_added_and_found(
    ingestion: Ingestion, pool: Pool, embedder: OnnxEmbedder, store: PostgresDocumentStore
) -> None:
    report = await ingestion.add(TEAM, "guide.md", GUIDE.encode())
    assert report == DocumentReport("guide.md", "added", report.document_id, "Guide", None, chunks=3, embedded=3)
    library = PostgresLibrary(pool)
    vector = await embedder.embed_query("How often must the gauge be cleaned?")
    best = (await library.search_dense(Scope(TEAM), vector, 1))[0]
    [passage] = await library.read_passages(Scope(TEAM), [best.chunk_id])
    assert "rinsed every month" in passage.text
    assert passage.heading_path == ("Guide", "Rain")
    assert await library.search_lexical(Scope(TEAM), "ultrasound", 5)
    assert report.document_id is not None
    assert (await store.get_text(TEAM, report.document_id) or "")[passage.start : passage.end] == passage.text


async def test_the_same_content_twice_changes_nothing(ingestion: Ingestion, store: PostgresDocumentStore) -> None:
    first = await ingestion.add(TEAM, "guide.md", GUIDE.encode())
    before = await store.corpus_fingerprint(Scope(TEAM))
    again = await ingestion.add(TEAM, "guide.md", GUIDE.encode())
    assert (again.status, again.document_id, again.chunks, again.embedded) == ("unchanged", first.document_id, 3, 0)
    assert again.note is None
    assert await store.corpus_fingerprint(Scope(TEAM)) == before
    assert len(await store.list(TEAM)) == 1


async def test_a_content_is_shared_and_a_name_is_not(ingestion: Ingestion, store: PostgresDocumentStore) -> None:
    mine = await ingestion.add(TEAM, "mine.md", GUIDE.encode())
    yours = await ingestion.add(TEAM, "yours.md", GUIDE.encode())
    assert (mine.status, yours.status) == ("added", "added")
    changed = await ingestion.add(TEAM, "mine.md", b"# Guide\n\nNothing is measured any more.\n")
    assert changed.status == "updated"
    assert "tipping bucket" in (await store.get_text(TEAM, str(yours.document_id)) or "")
    assert "tipping bucket" not in (await store.get_text(TEAM, str(mine.document_id)) or "")


async def test_a_change_writes_only_what_changed(ingestion: Ingestion, pool: Pool) -> None:
    first = await ingestion.add(TEAM, "guide.md", GUIDE.encode())
    before = await read_chunks(pool, first.document_id)
    changed = GUIDE.replace("every month", "every second month, and more often in autumn")
    second = await ingestion.add(TEAM, "guide.md", changed.encode())
    after = await read_chunks(pool, second.document_id)
    assert (second.status, second.document_id, second.chunks, second.embedded) == ("updated", first.document_id, 3, 1)
    kept = before.keys() & after.keys()
    assert {before[chunk][0][:7] for chunk in kept} == {"## Snow", "## Wind"}
    assert all(after[chunk][1] == before[chunk][1] + len(changed) - len(GUIDE) for chunk in kept)
    assert sum("every second month" in text for text, _, _ in after.values()) == 1
    assert not any("every month" in text for text, _, _ in after.values())


async def test_repeated_text_is_embedded_once_and_stored_each_time(ingestion: Ingestion, pool: Pool) -> None:
    notice = "This page is confidential and must not be passed on to anybody outside of the company. " * 5
    pages = [f"{notice}\n\n" for _ in range(3)]
    report = await ingestion.add(TEAM, "notice.txt", "".join(pages).encode())
    assert (report.chunks, report.embedded) == (3, 1)
    more = await ingestion.add(TEAM, "notice.txt", "".join([*pages, *pages]).encode())
    assert (more.status, more.chunks, more.embedded) == ("updated", 6, 0)
    assert len(await read_chunks(pool, more.document_id)) == 6


async def test_a_source_that_comes_to_say_what_another_says_loses_its_old_text(
    ingestion: Ingestion, pool: Pool, store: PostgresDocumentStore
) -> None:
    await ingestion.add(TEAM, "guide.md", GUIDE.encode())
    await ingestion.add(TEAM, "draft.md", b"# Draft\n\nOld words.")
    report = await ingestion.add(TEAM, "draft.md", GUIDE.encode())
    assert report.status == "updated"
    assert "Old words." not in {text for text, _, _ in (await read_chunks(pool, report.document_id)).values()}
    assert [document.title for document in await store.list(TEAM)] == ["Guide", "Guide"]


async def test_of_two_files_of_one_source_the_later_one_is_kept(
    ingestion: Ingestion, store: PostgresDocumentStore
) -> None:
    earlier = await store.number_arrival(TEAM)
    later = await ingestion.add(TEAM, "guide.md", GUIDE.encode())
    fingerprint = await store.corpus_fingerprint(Scope(TEAM))
    report = await ingestion.add(TEAM, "guide.md", b"# Draft\n\nOld words.", arrival=earlier)
    assert report == DocumentReport(
        "guide.md", "superseded", note="A later version of this document is stored already, and was kept."
    )
    assert await store.corpus_fingerprint(Scope(TEAM)) == fingerprint

    # A later file counts as later even if it changes nothing.
    earlier = await store.number_arrival(TEAM)
    assert (await ingestion.add(TEAM, "guide.md", GUIDE.encode())).status == "unchanged"
    assert (await ingestion.add(TEAM, "guide.md", b"Old words.", arrival=earlier)).status == "superseded"
    # Unless it could not be read.
    earlier = await store.number_arrival(TEAM)
    assert (await ingestion.add(TEAM, "guide.md", b"\x89PNG\r\n\x1a\n\0\0\0")).status == "failed"
    assert (await ingestion.add(TEAM, "guide.md", b"New words.", arrival=earlier)).status == "updated"
    assert later.document_id
    assert await store.get_text(TEAM, later.document_id) == "New words."


async def test_a_deleted_document_does_not_come_back_with_what_came_before(
    ingestion: Ingestion, store: PostgresDocumentStore
) -> None:
    stored = await ingestion.add(TEAM, "guide.md", GUIDE.encode())
    assert stored.document_id
    for _ in range(2):
        earlier = await store.number_arrival(TEAM)
        assert await store.delete(TEAM, stored.document_id)
        late = await ingestion.add(TEAM, "guide.md", b"Old words.", arrival=earlier)
        assert late == DocumentReport(
            "guide.md",
            "superseded",
            note="This document was deleted after the file came. Add it again to have it back.",
        )
        assert await store.list(TEAM) == []
        assert (await ingestion.add(TEAM, "guide.md", GUIDE.encode())).status == "added"


async def test_a_deletion_that_an_earlier_file_waits_for_comes_before_it(
    ingestion: Ingestion, store: PostgresDocumentStore, pool: Pool
) -> None:
    stored = await ingestion.add(TEAM, "guide.md", GUIDE.encode())
    assert stored.document_id
    earlier = await store.number_arrival(TEAM)
    async with (
        borrow(pool, ALL_WORKSPACES) as holding,
        borrow(pool, ALL_WORKSPACES) as connection,
        holding.transaction(),
    ):
        await holding.execute("SELECT FROM documents WHERE document_id = %s FOR UPDATE", (stored.document_id,))
        # Asked outside the transaction that holds it, within which the answer would be the same each time.
        waiting = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        deleting = asyncio.create_task(store.delete(TEAM, stored.document_id))
        while (await connection.execute(waiting)).rowcount < 1:  # noqa: ASYNC110 - the waiting is Postgres'
            await asyncio.sleep(0.01)
        adding = asyncio.create_task(ingestion.add(TEAM, "guide.md", b"Old words.", arrival=earlier))
        while (await connection.execute(waiting)).rowcount < 2:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert await deleting
    assert (await adding).status == "superseded"
    assert await store.list(TEAM) == []


async def test_a_bad_file_leaves_what_was_stored(ingestion: Ingestion, store: PostgresDocumentStore) -> None:
    first = await ingestion.add(TEAM, "guide.md", GUIDE.encode())
    report = await ingestion.add(TEAM, "guide.md", b"\x89PNG\r\n\x1a\n\0\0\0")
    assert (report.status, report.code) == ("failed", "mistyped_document")
    assert "PNG" in (report.error or "")
    assert report.document_id is None
    assert [document.id for document in await store.list(TEAM)] == [first.document_id]


async def test_deleting_and_updating_forget_cached_answers(ingestion: Ingestion, cache: RedisAnswerCache) -> None:
    key = AnswerKey(TEAM, "digest", "corpus")
    report = await ingestion.add(TEAM, "guide.md", GUIDE.encode())
    await cache.put(key, ANSWER)
    await ingestion.add(TEAM, "new.md", b"Something else.")
    assert await cache.find(key)
    await ingestion.add(TEAM, "guide.md", GUIDE.encode() + b"More.")
    assert await cache.find(key) is None
    await cache.put(key, ANSWER)
    assert report.document_id is not None
    assert not await ingestion.delete("other", report.document_id)
    assert await cache.find(key)
    assert await ingestion.delete(TEAM, report.document_id)
    assert await cache.find(key) is None
    assert not await ingestion.delete(TEAM, report.document_id)


async def test_a_cut_table_is_found_by_its_caption_and_shown_with_its_header(
    ingestion: Ingestion, pool: Pool, store: PostgresDocumentStore
) -> None:
    rows = "\n".join(f"| Part {n} | {n * 3} | {n * 4} |" for n in range(60))
    text = f"# Stock\n\nThe warehouse held, in pieces:\n\n| Item | 2023 | 2022 |\n| --- | --- | --- |\n{rows}\n"
    report = await ingestion.add(TEAM, "stock.md", text.encode())
    library = PostgresLibrary(pool)
    found = await library.search_lexical(Scope(TEAM), "warehouse pieces 2023", 20)
    assert len(found) == report.chunks > 2
    passages = await library.read_passages(Scope(TEAM), [match.chunk_id for match in found])
    [last] = [passage for passage in passages if "Part 59" in passage.text]
    assert "2023" not in last.text
    source = Source(
        number=1, chunk_id=last.chunk_id, chunk_index=last.chunk_index, document_id=last.document_id, title=last.title,
        heading_path=list(last.heading_path), text=last.text, start=last.start, end=last.end, page=None, lines=[],
        score=0.5, dense=None, lexical=None,
    )  # fmt: skip
    [shown] = await widen_sources([source], 1, Scope(TEAM), library)
    assert "The warehouse held, in pieces:" in shown["text"]
    assert report.document_id is not None
    assert (await store.get_text(TEAM, report.document_id) or "")[shown["start"] : shown["end"]] == shown["text"]


async def test_folders_are_read_and_one_bad_file_stops_nothing(ingestion: Ingestion, tmp_path: Path) -> None:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    (tmp_path / "a.md").write_text("# A\n\nText of a.")
    (tmp_path / "b.pdf").write_bytes(b"%PDF-1.7 broken")
    (tmp_path / "deep" / "er" / "c.TXT").write_text("Text of c.")
    (tmp_path / "deep" / "table.xyz").write_bytes(b"\0\1\2")
    (tmp_path / ".hidden.md").write_text("hidden")
    (tmp_path / ".git" / "d.md").write_text("hidden")
    os.mkfifo(tmp_path / "pipe.txt")
    (tmp_path / "huge.txt").touch()
    os.truncate(tmp_path / "huge.txt", 2**40)  # a file of holes that no memory would hold
    reports = await ingestion.add_path(TEAM, tmp_path)
    assert [(Path(report.source).name, report.status, report.code) for report in reports] == [
        ("a.md", "added", None),
        ("b.pdf", "failed", "unreadable_document"),
        ("huge.txt", "failed", "oversized_document"),
        ("c.TXT", "added", None),
    ]
    [missing] = await ingestion.add_path(TEAM, tmp_path / "missing.md")
    assert missing.error == "There is no such file or folder. Check the path."


async def test_a_dead_database_is_not_the_files_fault(
    database_url: str, embedder: OnnxEmbedder, cache: RedisAnswerCache, parsers: ParserWorkers
) -> None:
    async with open_pool(database_url, max_size=2) as pool:
        ingestion = Ingestion(PostgresDocumentStore(pool), LateInteractionEncoder(embedder), cache, parsers)
    with pytest.raises(DatabaseUnavailable):
        await ingestion.add(TEAM, "guide.md", GUIDE.encode())


QUESTIONS = [
    ("How many days of paid holiday do employees have?", "30 days of paid holiday", None),
    ("How much may a hotel night in Oslo cost?", "up to 180 euros", None),
    ("What caused the barometer drift?", "coefficients of the individual sensor", None),
    ("How long does the battery run the station without sun?", "21 days without sun", 1),
    ("What does a red light that blinks twice mean?", "Battery below 11.6 V", 3),
    ("How often is the rain gauge calibrated?", "Rain gauge (TBRG) | 12 months", None),
    ("What is new in firmware 4.2.0?", "Lightning counter", None),
    ("How long are access logs kept?", "180 days", None),
    ("What does the satellite modem cost?", "SAT-1 | Satellite modem | 1,150", None),
    ("How often must the anemometer bearings be replaced?", "must be replaced every 4 years", 3),
    ("What does TBRG stand for?", "tipping bucket rain gauge", None),
]


async def test_the_sample_library_holds_the_answers_where_they_are_looked_for(
    ingestion: Ingestion, pool: Pool, embedder: OnnxEmbedder
) -> None:
    assert [report.status for report in await ingestion.add_path(TEAM, FOLDER)] == ["added"] * 8
    library = PostgresLibrary(pool)
    missed = []
    for question, answer, page in QUESTIONS:
        dense = await library.search_dense(Scope(TEAM), await embedder.embed_query(question), 3)
        lexical = await library.search_lexical(Scope(TEAM), question, 3)
        passages = await library.read_passages(Scope(TEAM), [match.chunk_id for match in (*dense, *lexical)])
        pages = {passage.page for passage in passages if answer in passage.text.replace("\n", " ")}
        if page not in pages:
            missed.append((question, [passage.text[:60] for passage in passages]))
    assert not missed


UNCOMMON = "".join(chr(0x4E00 + number * 7919 % 20_000) for number in range(1000))
"""Three bytes each, which no index can compress."""


async def test_only_a_file_with_a_bad_name_fails(ingestion: Ingestion) -> None:
    for name, says in (
        ("b\0.txt", r"control character U\+0000"),
        ("two\nlines.txt", r"control character U\+000A"),
        ("two\u2028lines.txt", r"control character U\+2028"),
        ("invoice\u202etxt.pdf", r"control character U\+202E"),
        ("caf\udce9.txt", "not valid UTF-8"),
        ("x" * 2000 + ".txt", "2,004 characters; 1,024 are the limit"),
        (UNCOMMON[:833] + "/a.txt", "2,505 bytes; 2,500 are the limit"),
    ):
        report = await ingestion.add(TEAM, name, b"Some text.")
        assert (report.status, report.code) == ("failed", "unreadable_document")
        assert re.search(says, report.error or "")
        report.source.encode()
    for name in ("good.txt", UNCOMMON[:831] + "/a.txt"):
        assert (await ingestion.add("w" * 64, name, b"Some text.")).status == "added"


async def test_names_with_unusual_spaces_and_invisible_characters_are_stored(
    ingestion: Ingestion, tmp_path: Path
) -> None:
    names = ("Screenshot at 9.41\u202fAM", "no\u00a0break", "soft\u00adhyphen", "family👩\u200d👩", "می\u200cخواهم")
    for name in names:
        (tmp_path / f"{name}.txt").write_text(f"Some text of {name}.")
    assert {(each.status, each.source) for each in await ingestion.add_path(TEAM, tmp_path)} == {
        ("added", str(tmp_path / f"{name}.txt")) for name in names
    }


async def test_a_workspace_holds_no_more_than_it_may(
    pool: Pool,
    store: PostgresDocumentStore,
    embedder: OnnxEmbedder,
    cache: RedisAnswerCache,
    parsers: ParserWorkers,
) -> None:
    limit = StorageLimit(documents=2, megabytes=1)
    ingestion = Ingestion(store, LateInteractionEncoder(embedder), cache, parsers, limit=limit)
    first = await ingestion.add("full", "a.md", b"# A\n\nFirst.")
    assert (first.status, first.note) == ("added", None)
    second = await ingestion.add("full", "b.md", b"# B\n\nSecond.")
    assert second.note == "This workspace holds 2 of the 2 documents that it may."
    third = await ingestion.add("full", "c.md", b"# C\n\nThird.")
    assert (third.status, third.code) == ("failed", "storage_full")
    assert third.error == "This workspace may hold 2 documents, and has 2. Delete some first."
    assert await store.find("full", "c.md") is None
    # A new version is no new document, but has a size.
    assert (await ingestion.add("full", "a.md", b"# A\n\nChanged.")).status == "updated"
    large = await ingestion.add("full", "a.md", b"# A\n\n" + b"word " * 200_000)
    assert large.error is not None
    assert "may hold 1,000,000 bytes of files" in large.error
    assert (await ingestion.add("other", "c.md", b"# C\n\nThird.")).status == "added"
    assert first.document_id is not None
    await ingestion.delete("full", first.document_id)
    assert (await ingestion.add("full", "c.md", b"# C\n\nThird.")).status == "added"
    # What waits in the queue counts too, but as no document where it is a version of one.
    queue = PostgresIngestionQueue(pool)
    await queue.accept("other", "c.md", b"# C\n\nChanged.")
    assert (await ingestion.add("other", "d.md", b"# D\n\nFourth.")).status == "added"
    await ingestion.delete("other", (await ingestion.add("other", "d.md", b"# D\n\nFourth.")).document_id or "")
    waiting = await queue.accept("other", "e.md", b"# E\n\nFifth.")
    assert (await ingestion.add("other", "d.md", b"# D\n\nFourth.")).code == "storage_full"
    await queue.cancel("other", waiting.ingestion_id)
    assert (await ingestion.add("other", "d.md", b"# D\n\nFourth.")).status == "added"
