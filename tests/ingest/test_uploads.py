"""Room for uploads, which all callers share."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from app.access.keys import make_key
from app.ingest.uploads import SMALL, UploadRoom
from app.serving.application import make_app
from app.settings import Settings
from app.wiring.services import Services, open_services
from domain.errors import TooManyUploads
from domain.people.access import ApiKey
from tests.http_client import open_client


def test_a_caller_gets_half_and_all_together_no_more_than_there_is() -> None:
    room = UploadRoom(100)
    with room.hold("a", 30):
        with pytest.raises(TooManyUploads), room.hold("a", 21):
            pass
        with room.hold("a", 20), room.hold("b", 50):
            for caller in ("a", "b", "c"):
                with pytest.raises(TooManyUploads), room.hold(caller, 1):
                    pass
    with room.hold("a", 100):
        pass
    with room.hold("a", 0) as grow, room.hold("b", 40):
        grow(60)
        with pytest.raises(TooManyUploads):
            grow(1)
    assert not room._held


async def test_large_files_are_loaded_a_few_at_a_time_and_small_ones_at_once() -> None:
    room, loaded = UploadRoom(10**9), list[str]()
    stored = asyncio.Event()

    async def load(owner: str, size: int) -> None:
        async with room.take_turn(owner, size):
            loaded.append(owner)
            await stored.wait()

    async with asyncio.TaskGroup() as group:
        for owner, size in (*[("a", SMALL + 1)] * 5, ("b", SMALL + 1), ("a", SMALL), ("b", 0)):
            group.create_task(load(owner, size))
            await asyncio.sleep(0)
        assert loaded == ["a", "a", "b", "a", "b"]
        stored.set()


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return settings.model_copy(update={"max_document_mb": 1})


async def test_an_upload_without_room_is_refused_before_its_body_is_read(services: Services) -> None:
    async def never() -> AsyncIterator[bytes]:
        raise AssertionError("the body was read")
        yield b""

    async def send_slowly() -> AsyncIterator[bytes]:
        yield b'--x\r\nContent-Disposition: form-data; name="files"; filename="a.md"\r\n\r\n# A\n\n'
        sent.set()
        await go_on.wait()
        yield b"Text.\r\n--x--\r\n"

    sent, go_on = asyncio.Event(), asyncio.Event()
    form = {"Content-Type": "multipart/form-data; boundary=x"}
    limit = services.settings.max_upload_bytes
    keys = [
        {"X-API-Key": (await make_key(services.keys, ApiKey("", name, frozenset({"ask", "ingest"}))))[1]}
        for name in ("a", "b")
    ]
    async with open_client(make_app(services)) as client:
        declared = form | keys[0] | {"Content-Length": str(limit // 2)}
        slow = asyncio.create_task(client.post("/api/documents", content=send_slowly(), headers=declared))
        await sent.wait()
        for key, size in ((keys[0], 1), (keys[1], limit // 2 + 1)):
            body = form | key | {"Content-Length": str(size)}
            refused = await client.post("/api/documents", content=never(), headers=body)
            error = refused.json()["error"]
            assert (refused.status_code, error["code"], error["retryable"]) == (503, "too_many_uploads", True)
            assert int(refused.headers["Retry-After"]) >= 1
        # Without a length it is counted as it comes.
        chunks = [b'--x\r\nContent-Disposition: form-data; name="files"; filename="b.md"\r\n\r\n', *[b"x" * 10**6] * 6]

        async def send_chunks() -> AsyncIterator[bytes]:
            for chunk in chunks:
                yield chunk

        refused = await client.post("/api/documents", content=send_chunks(), headers=form | keys[1])
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "too_many_uploads")
        go_on.set()
        assert (await slow).json()["documents"][0]["status"] == "added"
        added = await client.post("/api/documents", files={"files": ("c.md", b"# C\n\nText.")}, headers=keys[0])
        assert added.status_code == 200


async def test_a_large_file_is_embedded_once_it_is_stored(settings: Settings) -> None:
    settings = settings.model_copy(update={"max_document_mb": 3})
    text = b"# Falke\n\nThe Falke has a warranty of 36 months.\n\n<!-- " + b"x" * 2 * SMALL + b" -->\n"
    async with open_services(settings) as services, open_client(make_app(services)) as client:
        [report] = (await client.post("/api/documents", files={"files": ("falke.md", text)})).json()["documents"]
        assert (report["status"], report["embedded"]) == ("added", 1)
        assert await services.library.backlog.count("default") == 0
        later = await client.post("/api/documents?wait=false", files={"files": ("other.md", text + b"More.")})
        assert later.status_code == 202
