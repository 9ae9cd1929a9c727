"""Files of this machine that are handed to the workers."""

import asyncio
from pathlib import Path

import pytest

from app.adapters.postgres.queue.ingestions import PostgresIngestionQueue
from app.ingest import pipeline
from app.ingest.background import hand_over, into_queue
from app.wiring.services import Services, open_services
from domain.library.ingestions import IngestionStatus
from tests.asking import refuse_run
from tests.conftest import HANDBOOK, MANUAL
from tests.ingest import stuck_parser

pytestmark = pytest.mark.usefixtures("parser_processes")


async def test_files_are_handed_over_and_read_by_a_worker(services: Services, tmp_path: Path) -> None:
    folder = tmp_path / "handbook"
    folder.mkdir()
    for name, content in (("a.md", HANDBOOK), ("b.md", b" "), ("c.pdf", MANUAL), ("d.zip", b"PK"), ("\x07.md", MANUAL)):
        (folder / name).write_bytes(content)
    missing = str(tmp_path / "missing.md")
    take = into_queue(services.library.ingestions, services.library.parsers, "default", max_bytes=10_000)
    handed = await hand_over([folder, folder / "a.md", missing], take)
    source = str(folder / "a.md")
    assert [(status.source, status.state) for status in handed.ingestions] == [(source, "queued")]
    assert sorted(report.code or "" for report in handed.refused) == [
        "empty_document",
        "mistyped_document",
        "unreadable_document",
        "unreadable_document",
    ]
    assert all(report.source.isprintable() for report in handed.refused)
    assert len(handed.passed_over) == 1
    # The queue holds copies.
    (folder / "a.md").unlink()
    second = await services.library.ingestions.accept("default", "later.md", MANUAL)
    await services.library.ingestions.accept("other", "of another workspace.md", MANUAL)
    async with services.runs.queue.work(refuse_run), asyncio.timeout(20):
        while {status.state for status in await services.library.ingestions.list("default", 10)} != {"done"}:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    listed = await services.library.ingestions.list("default", 10)
    assert [status.ingestion_id for status in listed] == [second.ingestion_id, handed.ingestions[0].ingestion_id]
    assert list(await services.library.ingestions.list("default", 1)) == listed[:1]
    assert [document.source for document in await services.library.documents.list("default")] == [source, "later.md"]


async def test_a_process_that_ends_hands_back_the_file_it_reads(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue, parsers = services.library.ingestions, services.library.parsers
    accepted = await queue.accept("default", "notes.md", HANDBOOK)
    with monkeypatch.context() as patch:
        patch.setattr(pipeline, "prepare", stuck_parser.prepare)
        async with asyncio.timeout(20), services.runs.queue.work(refuse_run):
            while (await _get(queue, accepted)).state != "running":  # noqa: ASYNC110
                await asyncio.sleep(0.05)
            await parsers.close()
    assert (await _get(queue, accepted)).state == "queued", "it is not the file's fault"
    async with open_services(services.settings) as other, other.runs.queue.work(refuse_run), asyncio.timeout(20):
        while (await _get(queue, accepted)).state != "done":  # noqa: ASYNC110
            await asyncio.sleep(0.05)


async def _get(queue: PostgresIngestionQueue, accepted: IngestionStatus) -> IngestionStatus:
    status = await queue.get("default", accepted.ingestion_id)
    assert status
    return status
