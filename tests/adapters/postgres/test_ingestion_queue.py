"""Files are ingested even if a worker dies, or the database or the embedding model does not answer."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import pytest_asyncio

from app.adapters.embeddings.onnx import OnnxEmbedder
from app.adapters.postgres.documents.store import PostgresDocumentStore
from app.adapters.postgres.pool import ALL_WORKSPACES, Pool, borrow
from app.adapters.postgres.queue import ingestions as ingestion_queue
from app.adapters.postgres.queue import leases
from app.adapters.postgres.queue.ingestions import PostgresIngestionQueue
from app.adapters.postgres.queue.runs import PostgresRunQueue
from app.adapters.redis.answers import RedisAnswerCache
from app.adapters.redis.connection import RedisServer
from app.adapters.rerankers.late_interaction import LateInteractionEncoder
from app.ingest.parser_workers import ParserWorkers
from app.ingest.pipeline import Ingestion
from domain.documents import DocumentReport
from domain.errors import EmbedderUnavailable, InputError
from domain.library.ingestions import IngestionProgress, IngestionStatus
from domain.ports.documents import ChunkVectors
from domain.ports.ingestions import Ingest
from tests.asking import refuse_run
from tests.conftest import HANDBOOK, MANUAL

CONTENT = bytes(range(256))


@pytest.fixture
def ingestions(pool: Pool) -> PostgresIngestionQueue:
    return PostgresIngestionQueue(pool)


@pytest_asyncio.fixture
async def start(pool: Pool, database_url: str) -> AsyncIterator[Callable[[Ingest], PostgresRunQueue]]:
    async with AsyncExitStack() as stack:

        def start(ingest: Ingest) -> PostgresRunQueue:
            queue = PostgresRunQueue(pool, database_url, [PostgresIngestionQueue(pool).task(ingest)])
            stack.push_async_callback(queue.close)
            return queue

        yield start


def work(queue: PostgresRunQueue) -> AbstractAsyncContextManager[None]:
    return queue.work(refuse_run, drain_seconds=0)


def fall_silent(queue: PostgresRunQueue) -> None:
    """Behave like a frozen process: take nothing and extend no claim."""
    queue.stop_taking()
    assert queue._pulse._beating is not None
    queue._pulse._beating.cancel()


async def ended(ingestions: PostgresIngestionQueue, ingestion_id: str) -> IngestionStatus:
    async with asyncio.timeout(20):
        while (status := await ingestions.get("a", ingestion_id)) is None or status.report is None:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    return status


async def read_contents(pool: Pool) -> list[bytes | None]:
    async with borrow(pool, ALL_WORKSPACES) as connection:
        cursor = await connection.execute("SELECT content FROM ingestions ORDER BY accepted_at", binary=True)
        return [row["content"] for row in await cursor.fetchall()]


Start = Callable[[Ingest], PostgresRunQueue]


async def test_a_file_is_tried_again_if_the_model_does_not_answer(
    start: Start, ingestions: PostgresIngestionQueue, pool: Pool
) -> None:
    tried: list[tuple[str, str, bytes, str | None]] = []

    async def ingest(workspace_id: str, source: str, data: bytes, **options: Any) -> DocumentReport:
        tried.append((workspace_id, source, data, options["media_type"]))
        if len(tried) == 1:
            raise EmbedderUnavailable
        return DocumentReport(source, "added", "4b7c", chunks=2, embedded=2)

    accepted = await ingestions.accept("a", "f.pdf", CONTENT, "application/pdf")
    assert await read_contents(pool) == [CONTENT]
    async with work(start(ingest)):
        status = await ended(ingestions, accepted.ingestion_id)
    assert tried == [("a", "f.pdf", CONTENT, "application/pdf")] * 2
    assert (status.state, status.report) == ("done", DocumentReport("f.pdf", "added", "4b7c", chunks=2, embedded=2))
    assert await read_contents(pool) == [None]


async def test_a_file_is_given_up_after_the_last_attempt(
    start: Start, ingestions: PostgresIngestionQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingestion_queue, "MAX_ATTEMPTS", 3)
    monkeypatch.setattr(ingestion_queue, "MAX_DELAY", 0.0)
    tried: list[str] = []

    async def ingest(workspace_id: str, source: str, data: bytes, **options: Any) -> DocumentReport:
        tried.append(source)
        raise EmbedderUnavailable

    accepted = await ingestions.accept("a", "f.md", CONTENT)
    async with work(start(ingest)):
        status = await ended(ingestions, accepted.ingestion_id)
    assert tried == ["f.md"] * 3
    assert status.state == "failed"
    assert status.report is not None
    assert "3 times" in (status.report.error or "")


@pytest.mark.parametrize(
    ("error", "code"), [(InputError("Not here."), "input_error"), (KeyError("bug"), "internal_error")]
)
async def test_a_permanent_error_ends_the_ingestion(
    start: Start, ingestions: PostgresIngestionQueue, pool: Pool, error: Exception, code: str
) -> None:
    async def ingest(workspace_id: str, source: str, data: bytes, **options: Any) -> DocumentReport:
        raise error

    accepted = await ingestions.accept("a", "f.md", CONTENT)
    async with work(start(ingest)):
        status = await ended(ingestions, accepted.ingestion_id)
    assert status.state == "failed"
    assert status.report is not None
    assert (status.report.status, status.report.code) == ("failed", code)
    assert await read_contents(pool) == [None]


@pytest.mark.parametrize("moment", ["queued", "running"])
async def test_a_cancelled_file_is_not_read_on(
    start: Start, ingestions: PostgresIngestionQueue, pool: Pool, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    monkeypatch.setattr(ingestion_queue, "WATCH_SECONDS", 0.05)
    begun, given_up = asyncio.Event(), asyncio.Event()

    async def ingest(workspace_id: str, source: str, data: bytes, **options: Any) -> DocumentReport:
        if source == "next.md":
            return DocumentReport(source, "added")
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            given_up.set()
        raise AssertionError

    accepted = await ingestions.accept("a", "f.md", CONTENT)
    following = await ingestions.accept("a", "next.md", CONTENT)
    assert await ingestions.cancel("b", accepted.ingestion_id) is None
    cancelled = await ingestions.cancel("a", accepted.ingestion_id) if moment == "queued" else None
    async with work(start(ingest)), asyncio.timeout(20):
        if moment == "running":
            await begun.wait()
            cancelled = await ingestions.cancel("a", accepted.ingestion_id)
            await given_up.wait()
        assert (await ended(ingestions, following.ingestion_id)).state == "done"
    assert begun.is_set() == (moment == "running")
    assert cancelled
    assert cancelled.report
    assert (cancelled.state, cancelled.report.status, cancelled.report.source) == ("cancelled", "cancelled", "f.md")
    assert await ingestions.get("a", accepted.ingestion_id) == cancelled
    assert await ingestions.cancel("a", accepted.ingestion_id) == cancelled
    assert (await ingestions.cancel("a", following.ingestion_id) or cancelled).state == "done"
    assert await read_contents(pool) == [None, None]


async def test_a_document_that_was_stored_before_its_ingestion_was_cancelled_is_reported(
    start: Start, ingestions: PostgresIngestionQueue
) -> None:
    async def ingest(workspace_id: str, source: str, data: bytes, **options: Any) -> DocumentReport:
        await ingestions.cancel("a", accepted.ingestion_id)
        return DocumentReport(source, "added")

    accepted = await ingestions.accept("a", "f.md", CONTENT)
    async with work(start(ingest)), asyncio.timeout(20):
        while (status := await ingestions.get("a", accepted.ingestion_id)) and status.state != "done":  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    assert status
    assert status.report == DocumentReport("f.md", "added")


async def test_how_far_a_file_is_can_be_seen_from_elsewhere(
    start: Start, ingestions: PostgresIngestionQueue, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingestion_queue, "WATCH_SECONDS", 0.02)
    go_on = asyncio.Event()

    async def ingest(workspace_id: str, source: str, data: bytes, **options: Any) -> DocumentReport:
        options["on_stage"](IngestionProgress("reading", 1, 83))
        options["on_stage"](IngestionProgress("reading", 21, 83))
        await go_on.wait()
        return DocumentReport(source, "added", chunks=4)

    accepted = await ingestions.accept("a", "f.pdf", CONTENT)
    assert accepted.progress == IngestionProgress("waiting")
    elsewhere = PostgresIngestionQueue(pool)
    async with work(start(ingest)), asyncio.timeout(20):
        while True:
            await asyncio.sleep(0.02)
            if (await elsewhere.list("a", 9))[0].progress == IngestionProgress("reading", 21, 83):
                break
        go_on.set()
        assert (await ended(elsewhere, accepted.ingestion_id)).progress == IngestionProgress("done", 4, 4)
    waiting = await ingestions.accept("a", "g.pdf", CONTENT)
    assert await ingestions.list("a", 9, since=datetime.now(UTC) + timedelta(seconds=1)) == [waiting]
    assert len(await ingestions.list("a", 9, since=datetime.now(UTC) - timedelta(seconds=60))) == 2


async def test_a_file_that_processes_die_of_is_given_up(
    start: Start, ingestions: PostgresIngestionQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "BEAT_SECONDS", 0.1)
    monkeypatch.setattr(leases, "LEASE", timedelta(seconds=0.6))
    begun: asyncio.Queue[None] = asyncio.Queue()

    async def hang(workspace_id: str, source: str, data: bytes, **options: Any) -> DocumentReport:
        begun.put_nowait(None)
        await asyncio.Event().wait()
        raise AssertionError

    accepted = await ingestions.accept("a", "f.md", CONTENT)
    async with AsyncExitStack() as stack:
        for _ in range(ingestion_queue.MAX_DEATHS):
            dying = start(hang)
            await stack.enter_async_context(work(dying))
            await begun.get()
            fall_silent(dying)
        await stack.enter_async_context(work(start(hang)))
        status = await ended(ingestions, accepted.ingestion_id)
    assert status.state == "failed"
    assert status.report
    assert status.report.code == "costly_document"


class HeldEncoder:
    """Computes vectors with another encoder, once the test allows it."""

    def __init__(self, encoder: LateInteractionEncoder) -> None:
        self._encoder = encoder
        self.begun, self.let_go = asyncio.Event(), asyncio.Event()

    async def encode(self, texts: Sequence[str]) -> list[ChunkVectors]:
        self.begun.set()
        await self.let_go.wait()
        return await self._encoder.encode(texts)


@pytest.mark.parametrize("what_came_next", ["a later version", "its deletion"])
async def test_a_worker_that_was_frozen_stores_nothing_of_a_file_that_another_has_ingested(
    start: Start,
    ingestions: PostgresIngestionQueue,
    pool: Pool,
    embedder: OnnxEmbedder,
    redis_server: RedisServer,
    parsers: ParserWorkers,
    monkeypatch: pytest.MonkeyPatch,
    what_came_next: str,
) -> None:
    monkeypatch.setattr(leases, "BEAT_SECONDS", 0.1)
    monkeypatch.setattr(leases, "LEASE", timedelta(seconds=0.6))
    documents, answers = PostgresDocumentStore(pool, embedder), RedisAnswerCache(redis_server)
    encoder = LateInteractionEncoder(embedder)
    held = HeldEncoder(encoder)
    outcome: asyncio.Future[DocumentReport] = asyncio.get_running_loop().create_future()

    async def ingest_late(workspace_id: str, source: str, data: bytes, **options: Any) -> DocumentReport:
        slow = Ingestion(documents, held, answers, parsers)
        outcome.set_result(await slow.add(workspace_id, source, data, **options))
        return outcome.result()

    first = await ingestions.accept("a", "f.md", HANDBOOK)
    frozen, living = start(ingest_late), start(Ingestion(documents, encoder, answers, parsers).add)
    async with work(frozen):
        await held.begun.wait()
        fall_silent(frozen)
        async with work(living):
            status = await ended(ingestions, first.ingestion_id)
            assert status.report
            assert status.report.status == "added"
            if what_came_next == "its deletion":
                assert await documents.delete("a", status.report.document_id or "")
            else:
                second = await ingestions.accept("a", "f.md", MANUAL)
                assert (await ended(ingestions, second.ingestion_id)).state == "done"
            stored = await documents.list("a")
            held.let_go.set()
            assert (await outcome).status == "superseded"
    assert await documents.list("a") == stored
    assert [document.title for document in stored] == ([] if what_came_next == "its deletion" else ["Amsel manual"])
    assert await ingestions.get("a", first.ingestion_id) == status


async def test_workspaces_take_turns_however_many_files_each_has(
    ingestions: PostgresIngestionQueue, start: Callable[[Ingest], PostgresRunQueue]
) -> None:
    async def accept(workspace: str, count: int) -> list[str]:
        accepted = [await ingestions.accept(workspace, f"{workspace}{n}.md", CONTENT) for n in range(count)]
        return [each.ingestion_id for each in accepted]

    taken: list[str] = []
    late: list[str] = []

    async def ingest(workspace_id: str, source: str, *args: Any, **options: Any) -> DocumentReport:
        taken.append(source)
        if len(taken) == 8:
            # Those of a workspace that comes later begin where the line is now, not behind it and not before it.
            late.extend(await accept("c", 6))
        return DocumentReport(source, "unchanged")

    await accept("a", 12)
    await accept("b", 2)
    async with work(start(ingest)):
        async with asyncio.timeout(20):
            while len(taken) < 20:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
    # Two are ingested at once, so that neighbours may change places.
    assert {"b0.md", "b1.md"} <= set(taken[:5])
    between = taken[8 : taken.index("c5.md") + 1]
    assert 3 <= sum(source.startswith("a") for source in between) <= 7
    for workspace in "abc":
        order = [int(source[1:-3]) for source in taken if source.startswith(workspace)]
        assert all(abs(place - number) <= 1 for place, number in enumerate(order)), order
