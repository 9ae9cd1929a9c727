"""Who may read a run: those who may read all that its ports have returned to it, whatever became of it afterwards."""

import gzip
import io
import zipfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import httpx
import pytest
import zstandard

from app.access.authentication import Authenticator
from app.serving.application import make_app
from app.settings import Settings
from app.wiring.services import open_services
from domain.people.access import Caller
from tests.asking import serve_models
from tests.http_client import open_client

SECRET = ["990017", "Xenophon", "boardsecret.md", "Zirconia"]
"""Stand in a document of the group `board`: in its text, its title and its path."""
RESTRICTED = (
    b"# Merger with Xenophon\n\nZQX ZQX ZQX ZQX: the treasurer of the board leaves with 990017 crowns.\n\n"
    b"The Zirconia Quantum Exchange (ZQE) is closed by the board.\n"
)
POLICY = (
    "The {0} policy for canteen lunch number {1} says that lunch in the canteen under the {0} policy costs {1} euros."
)
QUESTIONS = {
    "What does the ZQX policy say about canteen lunch in the lunch policy of the canteen?": "standard",
    "Which exchange is closed, and with how many crowns does the treasurer leave?": "thorough",
    "Summarise canteen policy 3": "standard",
    "What is in canteen policy 3?": "fast",
    "Compare canteen policy 3 and canteen policy 4": "research",
    "Hello there!": "standard",
    "Write me a poem about cats": "standard",
    "Which documents mention lunch?": "standard",
    "How much does lunch number 31 cost?": "research",
}


@asynccontextmanager
async def open_library(settings: Settings, monkeypatch: pytest.MonkeyPatch, *, with_model: bool) -> AsyncIterator[Any]:
    """A client that asks as a member of the groups in the header `x-groups`, and a library of 14 documents for
    everybody and one for the board."""

    async def identify(self: Authenticator, credential: str | None) -> Caller:
        return Caller("tester", groups=frozenset((credential or "").split()))

    monkeypatch.setattr(Authenticator, "identify", identify)
    services_of = serve_models(settings, {}) if with_model else open_services(settings)
    async with services_of as opened:
        services = opened[0] if isinstance(opened, tuple) else opened
        for number in range(14):
            rules = (POLICY.format("ZQX", 10 * number + rule) for rule in range(8))
            text = "".join(f"## Rule {number}.{place}\n\n{rule}\n\n" for place, rule in enumerate(rules))
            text = f"# Canteen policy {number}\n\n{text}"
            await services.library.ingestion.add("default", f"policy{number}.md", text.encode())
        await services.library.ingestion.add("default", "boardsecret.md", RESTRICTED, groups=["board"])
        async with open_client(make_app(services)) as client:
            yield client


def as_member(*groups: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {' '.join(groups) or ' '}"}


def unpack(content: bytes) -> Iterator[bytes]:
    """The content, and all that is packed in it."""
    yield content
    with suppress(zstandard.ZstdError):
        yield zstandard.ZstdDecompressor().decompressobj().decompress(content)
    with suppress(OSError, EOFError):
        yield gzip.decompress(content)
    with suppress(zipfile.BadZipFile), zipfile.ZipFile(io.BytesIO(content)) as packed:
        for name in packed.namelist():
            yield from unpack(packed.read(name))


def find_secrets(response: httpx.Response) -> set[str]:
    return {each for part in unpack(response.content) for each in SECRET if each.encode() in part}


@pytest.mark.parametrize("with_model", [False, True])
async def test_what_a_run_read_is_for_those_who_may_read_it(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, *, with_model: bool
) -> None:
    told: set[str] = set()
    async with open_library(settings, monkeypatch, with_model=with_model) as client:
        for number, (question, mode) in enumerate(QUESTIONS.items()):
            body = {"question": question, "mode": mode}
            asked = await client.post("/api/chat?stream=false", json=body, headers=as_member("board", "sales"))
            assert asked.status_code == 200, asked.text
            run_id, thread_id = asked.json()["run_id"], asked.json()["thread_id"]
            run, thread, saved = f"/api/runs/{run_id}", f"/api/threads/{thread_id}", f"/langgraph/threads/{thread_id}"
            paths = [run, f"{run}/trace", f"{run}/bundle", f"{run}/why", f"{run}/events", thread, f"{thread}/history"]
            paths += ["/api/runs", "/api/threads", saved, f"{saved}/state", f"{saved}/history", f"{saved}/runs"]
            steps = [
                each["node"]
                for each in (await client.get(f"{thread}/history", headers=as_member("board"))).json()["steps"]
            ]
            paths += [f"{run}/states/{node}" for node in dict.fromkeys(steps) if node != "__start__"]
            for place, path in enumerate(paths, number):
                mine = await client.get(path, headers=as_member("board", "sales"))
                assert mine.status_code == 200, (path, mine.text)
                told |= find_secrets(mine)
                # In turn, so that each path is asked by both.
                theirs = await client.get(path, headers=as_member(*((), ("sales",))[place % 2]))
                assert not find_secrets(theirs), (question, path, find_secrets(theirs))
    assert told == set(SECRET)
