"""Metadata from front matter, sidecars and the caller, as ingestion stores it."""

import asyncio
import os
from pathlib import Path
from typing import Any

import psycopg

from app.ingest.background import hand_over, into_queue
from app.wiring.services import Services
from domain.documents import Document
from domain.library.metadata import Metadata
from domain.library.where import Where
from tests.asking import refuse_run

GUIDE = b"---\ntitle: Field guide\nteam: hr\nyear: 2023\n---\n# Guide\n\nThe mast is oiled in March.\n"


async def find(services: Services, where: str) -> list[str]:
    return [document.source for document in await services.library.documents.list("w", Where.parse(where))]


async def read(services: Services, source: str) -> Document:
    document = await services.library.documents.find("w", source)
    assert document is not None
    return document


async def test_the_caller_outweighs_the_sidecar_and_that_front_matter(services: Services, tmp_path: Path) -> None:
    guide, plain = tmp_path / "guide.md", tmp_path / "plain.txt"
    guide.write_bytes(GUIDE)
    plain.write_bytes(b"The mast is painted in May.")
    (tmp_path / "guide.md.meta.json").write_text('{"year": 2024, "region": ["eu", "us"], "draft": true}')
    queue = services.library.ingestions
    both: list[Metadata | None] = [{"draft": False}, None]
    for given in both:
        take = into_queue(queue, services.library.parsers, "w", max_bytes=10_000, metadata=given)
        handed = await hand_over([tmp_path], take)
        assert (len(handed.ingestions), handed.passed_over) == (2, [])
    async with services.runs.queue.work(refuse_run), asyncio.timeout(20):
        while {status.state for status in await queue.list("w", 10)} != {"done"}:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    expected: Metadata = {"title": "Field guide", "team": "hr", "year": 2024, "region": ["eu", "us"], "draft": False}
    document = await read(services, str(guide))
    assert (document.title, document.metadata) == ("Field guide", expected)
    assert (await read(services, str(plain))).metadata == {"draft": False}
    text = await services.library.documents.get_text("w", document.id)
    assert text == "# Guide\n\nThe mast is oiled in March."
    assert await find(services, "region=us") == [str(guide)]
    assert await find(services, f'path="{plain}"') == [str(plain)]


async def test_a_wrong_sidecar_fails_its_file_alone(services: Services, tmp_path: Path) -> None:
    for name in ("a.md", "b.md"):
        (tmp_path / name).write_bytes(GUIDE + name.encode())
    for problem, said in (("{", "is not JSON"), ('{"team": null}', "'team' needs text"), ("x" * 70_000, "is larger")):
        (tmp_path / "a.md.meta.json").write_text(problem)
        failed, _ = await services.library.ingestion.add_path("w", tmp_path)
        assert (failed.source, failed.code) == (str(tmp_path / "a.md"), "metadata_error")
        assert "a.md.meta.json" in (failed.error or "")
        assert said in (failed.error or "")
    assert await find(services, "team=hr") == [str(tmp_path / "b.md")]
    (tmp_path / "a.md.meta.json").unlink()
    os.mkfifo(tmp_path / "a.md.meta.json")  # which waits for a writer
    failed, _ = await services.library.ingestion.add_path("w", tmp_path)
    assert "is no file" in (failed.error or "")


async def test_other_metadata_embeds_nothing_anew(services: Services) -> None:
    ingestion = services.library.ingestion
    first = await ingestion.add("w", "guide.md", GUIDE, metadata={"region": "eu"})
    same = await ingestion.add("w", "guide.md", GUIDE, metadata={"region": "eu"})
    other = await ingestion.add("w", "guide.md", GUIDE, metadata={"region": "us"})
    none = await ingestion.add("w", "guide.md", GUIDE, metadata={})
    assert [report.status for report in (first, same, other, none)] == ["added", "unchanged", "updated", "updated"]
    assert [report.embedded for report in (first, same, other, none)] == [1, 0, 0, 0]
    assert (await read(services, "guide.md")).metadata == {"title": "Field guide", "team": "hr", "year": 2023}


async def test_what_people_gave_stays_and_what_the_file_says_is_taken_anew(services: Services) -> None:
    ingestion = services.library.ingestion

    async def add(text: bytes, **given: Any) -> tuple[str, Metadata]:
        report = await ingestion.add("w", "guide.md", text, **given)
        return report.status, (await read(services, "guide.md")).metadata

    own: Metadata = {"title": "Field guide", "team": "hr", "year": 2023}
    given: Metadata = {"region": "eu", "team": "legal"}
    await add(GUIDE, metadata=given, sidecar={"shelf": 1, "region": "us"})
    assert await add(GUIDE, sidecar={"shelf": 2}) == ("updated", own | {"shelf": 2} | given)
    assert await add(GUIDE) == ("updated", own | given)
    assert await add(GUIDE) == ("unchanged", own | given)
    assert await add(b"---\nyear: 2024\n---\nAnew.") == ("updated", {"year": 2024} | given)
    await ingestion.delete("w", (await read(services, "guide.md")).id)
    assert await add(GUIDE) == ("added", own | given)
    assert await add(GUIDE, metadata={"region": "us"}) == ("updated", own | {"region": "us"})
    assert await add(GUIDE, metadata={}) == ("updated", own)
    assert await add(GUIDE) == ("unchanged", own)


async def test_of_a_document_of_an_older_version_stays_what_its_file_does_not_say(
    services: Services, database_url: str
) -> None:
    ingestion = services.library.ingestion
    await ingestion.add("w", "guide.md", GUIDE, metadata={"region": "eu"})
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        await connection.execute("UPDATE documents SET given = NULL, metadata = metadata || '{\"year\": 1}'")
    for text in (GUIDE, GUIDE + b"More."):
        await ingestion.add("w", "guide.md", text)
        found = (await read(services, "guide.md")).metadata
        assert found == {"title": "Field guide", "team": "hr", "year": 2023, "region": "eu"}
