"""Files that are taken in at once and read later, over HTTP."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any

import httpx
import psycopg
import pytest

from app.access.authentication import Authenticator
from app.access.keys import make_key
from app.serving.application import make_app
from app.wiring.services import Services
from domain.people.access import ApiKey
from domain.people.limits import Limits
from tests.asking import refuse_run
from tests.conftest import HANDBOOK, MANUAL


@pytest.fixture
async def client(services: Services) -> AsyncIterator[httpx.AsyncClient]:
    app = make_app(services)

    async def with_state(scope: Any, receive: Any, send: Any) -> None:
        state = {"services": services, "authenticator": Authenticator(services.keys)}
        await app(scope | {"state": state}, receive, send)

    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=with_state), base_url="http://localhost") as opened:
        yield opened


def work(services: Services) -> AbstractAsyncContextManager[None]:
    return services.runs.queue.work(refuse_run)


async def upload(client: httpx.AsyncClient, *files: tuple[str, bytes], **data: str) -> httpx.Response:
    params = {"wait": "false"} | {key: data.pop(key) for key in ("workspace",) if key in data}
    return await client.post("/api/documents", params=params, files=[("files", file) for file in files], data=data)


async def follow(client: httpx.AsyncClient, address: str) -> dict[str, Any]:
    async with asyncio.timeout(20):
        while True:
            status: dict[str, Any] = (await client.get(address)).json()
            if status["ended_at"]:
                return status
            await asyncio.sleep(0.05)


async def test_a_file_is_kept_and_read_later(client: httpx.AsyncClient, services: Services) -> None:
    response = await upload(client, ("handbook.md", HANDBOOK), workspace="station")
    assert response.status_code == 202
    [accepted] = response.json()["ingestions"]
    address = response.headers["location"]
    assert address == f"/api/ingestions/{accepted['ingestion_id']}?workspace=station"
    assert (await client.get(address)).json() == accepted
    assert accepted["progress"] == {"stage": "waiting", "done": 0, "total": None}
    assert (await client.get("/api/ingestions?workspace=station")).json() == {"ingestions": [accepted]}
    assert (accepted["source"], accepted["state"], accepted["report"]) == ("handbook.md", "queued", None)
    assert await services.library.documents.list("station") == []

    async with work(services):
        status = await follow(client, address)
    [document] = await services.library.documents.list("station")
    assert status["state"] == "done"
    assert status["ended_at"] >= status["accepted_at"]
    again = await client.post(
        "/api/documents", files={"files": ("handbook.md", HANDBOOK)}, params={"workspace": "station"}
    )
    [report] = again.json()["documents"]
    assert status["report"] == report | {"status": "added", "embedded": document.chunks}


async def test_two_files_of_one_source_keep_their_order(client: httpx.AsyncClient, services: Services) -> None:
    first = await upload(client, ("guide.md", HANDBOOK))
    second = await upload(client, ("guide.md", MANUAL))
    async with work(services):
        later = await follow(client, second.headers["location"])
        earlier = await follow(client, first.headers["location"])
    assert (earlier["report"]["status"], later["report"]["status"]) == ("added", "updated")
    [document] = await services.library.documents.list("default")
    assert "Amsel" in (await services.library.documents.get_text("default", document.id) or "")


async def test_a_file_that_waited_while_a_later_one_was_added_says_so(
    client: httpx.AsyncClient, services: Services
) -> None:
    waiting = await upload(client, ("guide.md", HANDBOOK))
    later = await client.post("/api/documents", files={"files": ("guide.md", MANUAL)})
    assert later.json()["documents"][0]["status"] == "added"
    async with work(services):
        status = await follow(client, waiting.headers["location"])
    assert (status["state"], status["report"]["status"], status["report"]["error"]) == ("superseded",) * 2 + (None,)
    assert "later version" in status["report"]["note"]
    [document] = await services.library.documents.list("default")
    assert document.title == "Amsel manual"


async def test_the_second_file_of_a_request_does_not_replace_what_came_while_the_first_was_read(
    client: httpx.AsyncClient, services: Services, database_url: str
) -> None:
    [slow] = (await client.post("/api/documents", files={"files": ("slow.md", b"Old words.")})).json()["documents"]
    async with await psycopg.AsyncConnection.connect(database_url) as blocker:
        await blocker.execute("SELECT FROM documents WHERE document_id = %s FOR UPDATE", [slow["document_id"]])
        both = [("files", ("slow.md", b"New words.")), ("files", ("guide.md", HANDBOOK))]
        request = asyncio.create_task(client.post("/api/documents", files=both))
        waiting = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        while (await blocker.execute(waiting)).rowcount == 0:
            await blocker.execute("SELECT pg_sleep(0.01), pg_stat_clear_snapshot()")
        later = await client.post("/api/documents", files={"files": ("guide.md", MANUAL)})
        assert later.json()["documents"][0]["status"] == "added"
    reports = (await request).json()["documents"]
    assert [report["status"] for report in reports] == ["updated", "superseded"]
    assert "Amsel manual" in [document.title for document in await services.library.documents.list("default")]


async def test_what_cannot_become_a_document_is_refused_at_once(client: httpx.AsyncClient, services: Services) -> None:
    limit = services.settings.max_document_mb * 1_000_000
    files = [
        ("large.md", b"a" * (limit + 1)),
        ("picture.gif", b"GIF89a" + bytes(64)),
        ("empty.md", b" "),
        ("named.pdf", b"plain text"),
    ]
    response = await upload(client, *files)
    assert response.status_code == 422
    codes = [report["code"] for report in response.json()["documents"]]
    assert codes == ["oversized_document", "unsupported_document", "empty_document", "mistyped_document"]

    response = await upload(client, *files[1:], ("manual.md", MANUAL), ("handbook.md", HANDBOOK))
    assert response.status_code == 202
    assert "location" not in response.headers
    body = response.json()
    assert body["failed"] == 3
    assert [accepted["source"] for accepted in body["ingestions"]] == ["manual.md", "handbook.md"]


async def test_a_file_that_cannot_be_read_fails_with_its_reason(client: httpx.AsyncClient, services: Services) -> None:
    response = await upload(client, ("damaged.pdf", b"%PDF-1.7\nno more of it\nstartxref"))
    assert response.status_code == 202
    async with work(services):
        status = await follow(client, response.headers["location"])
    assert status["state"] == "failed"
    assert (status["report"]["status"], status["report"]["code"]) == ("failed", "unreadable_document")


async def test_an_ingestion_is_cancelled(client: httpx.AsyncClient, services: Services) -> None:
    address = (await upload(client, ("handbook.md", HANDBOOK))).headers["location"]
    cancelled = await client.delete(address)
    assert (cancelled.status_code, cancelled.json()["state"]) == (200, "cancelled")
    assert (await client.get(address)).json() == cancelled.json()
    async with work(services):
        assert (await follow(client, (await upload(client, ("manual.md", MANUAL))).headers["location"]))["ended_at"]
    assert [document.source for document in await services.library.documents.list("default")] == ["manual.md"]
    assert (await client.delete("/api/ingestions/17")).status_code == 404


async def test_files_that_wait_count_for_the_key_that_sent_them(client: httpx.AsyncClient, services: Services) -> None:
    async def make(limits: Limits) -> tuple[ApiKey, dict[str, str]]:
        key, token = await make_key(services.keys, ApiKey("", "one", frozenset({"ingest"}), limits=limits))
        return key, {"Authorization": f"Bearer {token}"}

    (made, one), (_, other) = await make(Limits(max_documents=2, max_stored_mb=1)), await make(Limits(max_documents=1))

    async def send(key: dict[str, str], name: str, text: str = "Text.") -> str:
        """Return the address of the file's ingestion, or why it was refused."""
        client.headers.update(key)
        response = await upload(client, (name, f"# {name}\n\n{text}".encode()))
        return response.headers.get("location") or str(response.json()["documents"][0]["error"])

    first, second = await send(one, "a.md"), await send(one, "b.md", "word " * 100_000)
    assert await send(one, "c.md") == "Your key may hold 2 documents, and has 2. Delete some first."
    again = await send(one, "a.md", "Changed.")
    assert (await send(one, "a.md", "word " * 100_000)).startswith("Your key may hold 1,000,000 bytes of files")
    mine = await send(other, "mine.md")
    # What is read is counted with what came before it alone, and by the limits that hold now.
    await services.keys.change(replace(made, limits=Limits(max_documents=1)))
    async with work(services):
        reports = [(await follow(client, address))["report"] for address in (first, second, again, mine)]
    assert [each["status"] for each in reports] == ["added", "failed", "updated", "added"]
    full = "Your key holds 1 of the 1 documents that it may."
    assert [reports[0]["note"], reports[1]["code"], reports[3]["note"]] == [full, "storage_full", full]
