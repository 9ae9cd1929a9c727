"""Who may read a document: given with an upload, kept, and changed."""

from collections.abc import AsyncIterator, Collection
from typing import Any

import httpx
import pytest
import pytest_asyncio
from fastapi import Request

from app.api import dependencies
from app.serving.application import make_app
from app.wiring.services import Services
from domain.documents import check_groups
from domain.errors import InputError
from domain.people.access import Caller
from tests.http_client import open_client


class Callers:
    """The caller of the next request."""

    def __init__(self) -> None:
        self.groups: frozenset[str] | None = None

    def get(self, request: Request) -> Caller:
        return Caller("tester", groups=self.groups)


@pytest.fixture
def callers(monkeypatch: pytest.MonkeyPatch) -> Callers:
    callers = Callers()
    monkeypatch.setattr(dependencies, "get_caller", callers.get)
    return callers


@pytest_asyncio.fixture
async def client(services: Services, callers: Callers) -> AsyncIterator[httpx.AsyncClient]:
    async with open_client(make_app(services)) as opened:
        yield opened


async def upload(client: httpx.AsyncClient, text: str, *groups: str, name: str = "plans.md") -> dict[str, Any]:
    """Upload a document and return its report, or the error."""
    data = {"groups": list(groups)} if groups else {}
    response = await client.post("/api/documents", files={"files": (name, text.encode())}, data=data)
    body = response.json()
    report: dict[str, Any] = body["documents"][0] if "documents" in body else body["error"]
    return report


async def read_groups(client: httpx.AsyncClient, document_id: str) -> list[str]:
    groups: list[str] = (await client.get(f"/api/documents/{document_id}")).json()["groups"]
    return groups


async def test_groups_are_given_kept_and_changed(client: httpx.AsyncClient, callers: Callers) -> None:
    added = await upload(client, "# Plans\n\nThe canteen closes.", "press", "board")
    document_id = added["document_id"]
    assert await read_groups(client, document_id) == ["board", "press"]
    # A new text keeps them, and so does the same text without groups.
    assert (await upload(client, "# Plans\n\nThe canteen moves."))["status"] == "updated"
    assert (await upload(client, "# Plans\n\nThe canteen moves."))["status"] == "unchanged"
    assert await read_groups(client, document_id) == ["board", "press"]
    assert (await upload(client, "# Plans\n\nThe canteen moves.", "board"))["status"] == "updated"
    assert await read_groups(client, document_id) == ["board"]
    changed = await client.patch(f"/api/documents/{document_id}", json={"groups": []})
    assert changed.json()["groups"] == []
    callers.groups = frozenset({"staff"})
    assert (await client.get(f"/api/documents/{document_id}")).status_code == 200


async def test_a_caller_gives_only_groups_of_their_own(client: httpx.AsyncClient, callers: Callers) -> None:
    callers.groups = frozenset({"staff"})
    assert "'board' is none of them" in (await upload(client, "Mine.", "board"))["message"]
    document_id = (await upload(client, "Mine.", "staff"))["document_id"]
    refused = await client.patch(f"/api/documents/{document_id}", json={"groups": ["staff", "board"]})
    assert refused.status_code == 422
    assert await read_groups(client, document_id) == ["staff"]


async def test_a_document_is_not_replaced_by_those_who_may_not_read_it(
    client: httpx.AsyncClient, callers: Callers
) -> None:
    document_id = (await upload(client, "The canteen closes.", "board"))["document_id"]
    callers.groups = frozenset({"staff"})
    assert (await upload(client, "The canteen stays."))["status"] == "failed"
    # The same content under another name is a document of its own, and does not say that another one has it.
    other = await upload(client, "The canteen closes.", name="rumour.md")
    assert (other["status"], other["note"]) == ("added", None)
    callers.groups = None
    assert "closes" in (await client.get(f"/api/documents/{document_id}")).json()["text"]


@pytest.mark.parametrize("name", ["", "a\nb", 'a"b', "x" * 101])
def test_names_of_groups_are_checked(name: str) -> None:
    with pytest.raises(InputError, match="is no name of a group"):
        check_groups([name])


async def test_files_that_would_replace_a_hidden_document_are_hidden_too(
    client: httpx.AsyncClient, callers: Callers, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    await upload(client, "Secret.", "board", name="secret.md")
    await upload(client, "Known.", name="known.md")
    for name in ("secret.md", "known.md", "new.md"):
        await services.library.ingestions.accept("default", name, b"Another text.")
    asked = []
    find_groups = services.library.documents.find_groups

    async def count(workspace_id: str, sources: Collection[str]) -> Any:
        asked.append(sources)
        return await find_groups(workspace_id, sources)

    monkeypatch.setattr(services.library.documents, "find_groups", count)
    for groups, names in ((None, {"secret.md", "known.md", "new.md"}), ({"staff"}, {"known.md", "new.md"})):
        callers.groups = None if groups is None else frozenset(groups)
        listed = (await client.get("/api/ingestions")).json()["ingestions"]
        assert {each["source"] for each in listed} == names
    # One statement, however many files there are.
    assert len(asked) == 1
