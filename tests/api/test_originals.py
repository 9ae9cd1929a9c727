"""Files, pages and blocks of documents over HTTP."""

import asyncio
import io
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx
import psycopg
import pypdfium2
import pytest
from PIL import Image

from app.ingest.rendering import PageRenderer
from app.samples import FOLDER
from app.serving.application import make_app
from app.settings import Settings
from app.wiring.services import Services, open_services
from domain.errors import ConfigurationError, RenderingBusy, UnreadableDocument
from tests.http_client import open_client
from tests.wire.s3 import BUCKET, Bucket
from tests.wire.serving import serve_app

MANUAL = (FOLDER / "ws-400-manual.pdf").read_bytes()
NOTES = b"# Notes\n\nBring these:\n\n- tent\n- map\n\n## Food\n\nWater is there.\n"


@pytest.fixture
async def client(services: Services) -> AsyncIterator[httpx.AsyncClient]:
    async with open_client(make_app(services)) as opened:
        yield opened


async def add(client: httpx.AsyncClient, name: str, data: bytes, workspace: str = "default") -> str:
    answer = await client.post("/api/documents", files={"files": (name, data)}, params={"workspace": workspace})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["documents"][0]["document_id"])


async def test_a_file_comes_back_as_it_was_added(client: httpx.AsyncClient) -> None:
    document = await add(client, "Übung; x.md", NOTES)
    response = await client.get(f"/api/documents/{document}/file")
    assert (response.status_code, response.content) == (200, NOTES)
    assert response.headers["content-type"] == "text/markdown"
    assert response.headers["content-length"] == str(len(NOTES))
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["content-disposition"] == (
        "attachment; filename=\"_bung_ x.md\"; filename*=UTF-8''%C3%9Cbung%3B%20x.md"
    )
    again = await client.get(f"/api/documents/{document}/file", headers={"If-None-Match": response.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


async def test_a_page_is_never_shown_as_a_page_of_this_service(client: httpx.AsyncClient) -> None:
    document = await add(client, "evil.html", b"<html><script>alert(1)</script><p>Hello</p></html>")
    headers = (await client.get(f"/api/documents/{document}/file")).headers
    assert headers["content-disposition"].startswith("attachment;")
    assert "sandbox" in headers["content-security-policy"]


async def test_a_pdf_page_is_drawn_at_the_resolution_asked_for(client: httpx.AsyncClient) -> None:
    document = await add(client, "manual.pdf", MANUAL)
    response = await client.get(f"/api/documents/{document}/pages/1.png", params={"dpi": 72})
    assert (response.status_code, response.headers["content-type"]) == (200, "image/png")
    small = Image.open(io.BytesIO(response.content))
    larger = Image.open(io.BytesIO((await client.get(f"/api/documents/{document}/pages/1.png?dpi=144")).content))
    assert small.size == (596, 842)
    assert abs(larger.width - 2 * small.width) <= 1
    tag = {"If-None-Match": response.headers["etag"]}
    assert (await client.get(f"/api/documents/{document}/pages/1.png?dpi=72", headers=tag)).status_code == 304
    assert (await client.get(f"/api/documents/{document}/pages/1.png?dpi=73", headers=tag)).status_code == 200
    compact = await client.get(f"/api/documents/{document}/pages/1.webp?dpi=72", headers=tag)
    assert (compact.status_code, compact.headers["content-type"]) == (200, "image/webp")
    assert Image.open(io.BytesIO(compact.content)).size == small.size
    assert (await client.get(f"/api/documents/{document}/pages/1.gif")).status_code == 422


async def test_a_picture_is_cited_and_shown_as_its_page(client: httpx.AsyncClient) -> None:
    picture = io.BytesIO()
    pypdfium2.PdfDocument(MANUAL)[0].render(scale=2).to_pil().save(picture, "PNG")
    document = await add(client, "manual.png", picture.getvalue())
    question = {"question": "What is in the box of the station?"}
    answer = (await client.post("/api/chat", json=question, headers={"Accept": "application/json"})).json()
    [box, *_] = answer["citations"][0]["boxes"]
    assert (box["page"], 0.5 < box["confidence"] <= 1) == (1, True)
    shown = (await client.get(f"/api/documents/{document}/pages/1.png?dpi=100")).content
    assert Image.open(io.BytesIO(shown)).size == pytest.approx((779, 1100), abs=1)


async def test_what_is_not_there_is_said(client: httpx.AsyncClient) -> None:
    manual, notes = await add(client, "manual.pdf", MANUAL), await add(client, "notes.md", NOTES)
    for document, path, status, says in (
        (manual, "pages/99.png", 404, "there is no page 99"),
        (manual, "pages/0.png", 422, "greater than or equal to 1"),
        (manual, "pages/1.png?dpi=9999", 422, "less than or equal to 220"),
        (notes, "pages/1.png", 404, "Only pages of PDF files"),
        (notes, "file?workspace=other", 404, "no document"),
        (notes, "text?workspace=other", 404, "no document"),
        (manual, "pages/1.png?workspace=other", 404, "no document"),
    ):
        response = await client.get(f"/api/documents/{document}/{path}")
        assert response.status_code == status, path
        assert says in response.json()["error"]["message"]


async def test_a_document_whose_file_is_missing_says_what_to_do(client: httpx.AsyncClient, database_url: str) -> None:
    document = await add(client, "notes.md", NOTES)
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("DELETE FROM originals")
    response = await client.get(f"/api/documents/{document}/file")
    assert (response.status_code, response.json()["error"]["code"]) == (404, "missing_original")
    assert "Add it again" in response.json()["error"]["message"]
    await add(client, "notes.md", NOTES)
    assert (await client.get(f"/api/documents/{document}/file")).content == NOTES


async def test_the_file_and_text_of_an_earlier_revision_stay(client: httpx.AsyncClient) -> None:
    document = await add(client, "notes.md", NOTES)
    await add(client, "notes.md", b"# Notes\n\nBring nothing.\n")
    assert (await client.get(f"/api/documents/{document}/file?revision=1")).content == NOTES
    assert (await client.get(f"/api/documents/{document}/file")).content.endswith(b"nothing.\n")
    blocks = (await client.get(f"/api/documents/{document}/text?revision=1")).json()["blocks"]
    assert any("tent" in block["text"] for block in blocks)
    assert (await client.get(f"/api/documents/{document}/file?revision=9")).status_code == 404


async def test_files_in_a_bucket_are_served_missed_and_erased(settings: Settings, bucket: Bucket) -> None:
    in_bucket = settings.model_copy(update={"originals": f"s3://{BUCKET}/team"})
    async with open_services(in_bucket) as services, open_client(make_app(services)) as client:
        document = await add(client, "manual.pdf", MANUAL)
        assert len(bucket.list_objects()) == 1
        assert (await client.get("/readyz")).json()["originals"] == "ok"
        assert (await client.get("/readyz")).json()["parts"]["originals"] == f"s3://{BUCKET}/team"
        assert (await client.get(f"/api/documents/{document}/file")).content == MANUAL
        assert (await client.get(f"/api/documents/{document}/pages/1.png")).status_code == 200
        await bucket.stop()
        health = (await client.get("/readyz")).json()
        assert health["status"] == "degraded"
        assert "did not answer" in health["originals"]
        for path in ("file", "pages/1.png?dpi=50"):
            response = await client.get(f"/api/documents/{document}/{path}")
            assert (response.status_code, response.json()["error"]["code"]) == (503, "storage_unavailable")
        forgotten = (await client.delete(f"/api/documents/{document}", params={"everywhere": True})).json()
        assert forgotten["found"] == {"files in S3-compatible storage": 1}
        assert len(bucket.list_objects()) == 1
        await bucket.start()
    async with open_services(in_bucket) as services:
        assert await services.library.originals.erase_dropped() == 0
    assert bucket.list_objects() == []


async def test_a_service_without_its_bucket_does_not_start(settings: Settings, bucket: Bucket) -> None:
    with pytest.raises(ConfigurationError, match="There is no bucket"):
        async with open_services(settings.model_copy(update={"originals": "s3://elsewhere"})):
            pass


async def test_the_text_comes_in_blocks_with_their_places(client: httpx.AsyncClient) -> None:
    document = await add(client, "notes.md", NOTES)
    text = (await client.get(f"/api/documents/{document}")).json()["text"]
    body = (await client.get(f"/api/documents/{document}/text")).json()
    assert body["characters"] == len(text)
    assert all(text[block["start"] : block["end"]] == block["text"] for block in body["blocks"])
    [items] = [block for block in body["blocks"] if block["kind"] == "list"]
    assert "tent" in items["text"]
    assert body["blocks"][-1]["heading_path"] == ["Notes", "Food"]
    assert items["page"] is None


async def test_the_words_that_nobody_sees_are_shown_on_request(client: httpx.AsyncClient) -> None:
    page = b"<p>Seen.</p><p hidden>secret <b>words</b></p>"
    answer = await client.post("/api/documents", files={"files": ("a.html", page)})
    [report] = answer.json()["documents"]
    document = report["document_id"]
    unread = [{"kind": "hidden word", "number": 2, "where": "in a hidden part of the page"}]
    assert report["note"].startswith("Not read: 2 hidden words (in a hidden part of the page). `askgraph documents ")
    assert report["unread"] == (await client.get(f"/api/documents/{document}")).json()["unread"] == unread
    response = await client.get(f"/api/documents/{document}/unseen")
    expected = {"words": 2, "unseen": [{"text": "secret words", "why": "in a hidden part of the page"}]}
    assert response.json() == expected
    await client.delete(f"/api/documents/{document}")
    assert (await client.get(f"/api/documents/{document}/unseen")).status_code == 404


async def test_blocks_of_a_pdf_have_pages(client: httpx.AsyncClient) -> None:
    document = await add(client, "manual.pdf", MANUAL)
    blocks = (await client.get(f"/api/documents/{document}/text")).json()["blocks"]
    pages = [block["page"] for block in blocks]
    # The first line of a page, whose mark stands before it.
    assert [block["page"] for block in blocks if block["text"] == "### 2.2 Communication"] == [2]
    assert pages[0] == 1
    assert pages == sorted(pages)


def give(pdf: bytes) -> Callable[[], Awaitable[bytes]]:
    async def read() -> bytes:
        return pdf

    return read


async def test_words_of_a_pdf_are_found_with_their_boxes(client: httpx.AsyncClient) -> None:
    document = await add(client, "manual.pdf", MANUAL)
    text = (await client.get(f"/api/documents/{document}/text")).json()
    block = next(each for each in text["blocks"] if each["kind"] == "paragraph" and len(each["text"]) > 150)
    # A phrase goes on across the end of a line, and has a box on each.
    phrase = block["text"][:150].rpartition(" ")[0]
    answer = await client.get(f"/api/documents/{document}/find", params={"words": phrase.upper().replace(" ", "\n")})
    (there,) = answer.json()["found"]
    assert (there["start"], there["page"]) == (block["start"], block["page"])
    assert phrase in there["text"]
    assert len({box["y"] for box in there["boxes"]}) > 1
    for words in ("zyzzyva", "?!"):
        answer = await client.get(f"/api/documents/{document}/find", params={"words": words})
        assert answer.json().get("found") == ([] if words == "zyzzyva" else None)
    assert answer.status_code == 422
    notes = await add(client, "notes.md", NOTES)
    (place,) = (await client.get(f"/api/documents/{notes}/find", params={"words": "tent, map"})).json()["found"]
    assert (place["page"], place["boxes"]) == (None, [])


async def test_a_page_that_cannot_be_drawn_ends_no_more_than_its_process() -> None:
    async with PageRenderer() as renderer:
        with pytest.raises(UnreadableDocument, match="cannot be drawn"):
            await renderer.render(1, 100, "png", give(b"no PDF"))


@pytest.mark.usefixtures("parser_processes")
async def test_a_page_that_takes_too_long_is_given_up() -> None:
    async with PageRenderer(seconds=0.0001) as renderer:
        with pytest.raises(UnreadableDocument, match="takes too much time"):
            await renderer.render(1, 100, "png", give(MANUAL))


async def test_pages_are_drawn_for_one_caller_after_the_other_and_only_so_many_of_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("app.ingest.rendering.MOST_OF_CALLER", 3)
    never = asyncio.Event()

    async def hang() -> bytes:
        await never.wait()
        return MANUAL

    async with PageRenderer() as renderer, asyncio.TaskGroup() as group:
        hanging = [group.create_task(renderer.render(n, 36, "png", hang, "greedy")) for n in (1, 2, 3)]
        await asyncio.sleep(0)
        with pytest.raises(RenderingBusy):
            await renderer.render(4, 36, "png", hang, "greedy")
        assert await renderer.render(1, 36, "png", give(MANUAL), "other")
        for task in hanging:
            task.cancel()


@pytest.mark.usefixtures("parser_processes")
async def test_a_client_that_leaves_stops_the_drawing_of_its_page(services: Services) -> None:
    app = make_app(services)
    async with app.router.lifespan_context(app) as state:

        async def with_state(scope: Any, receive: Any, send: Any) -> None:
            await app(scope | {"state": dict(state or {})}, receive, send)

        renderer = (state or {})["renderer"]
        async with serve_app(with_state) as address, httpx.AsyncClient(base_url=address) as client:
            document = await add(client, "manual.pdf", MANUAL)
            with pytest.raises(httpx.ReadTimeout):
                await client.get(f"/api/documents/{document}/pages/1.png?dpi=220", timeout=0.05)
            async with asyncio.timeout(10):
                while renderer._begun:  # noqa: ASYNC110 - it ends in the server
                    await asyncio.sleep(0.01)
            assert not renderer._workers._idle, "it was drawn to its end"
