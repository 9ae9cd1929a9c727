"""Who may read a document: given with an upload, kept, and changed."""

import asyncio
import re
from collections.abc import AsyncIterator, Collection, Sequence
from typing import Any

import httpx
import pytest
import pytest_asyncio

from app.access.authentication import Authenticator
from app.adapters.postgres.documents.store import document_id_of
from app.serving.application import make_app
from app.wiring.services import Services
from domain.documents import check_groups
from domain.errors import InputError
from domain.people.access import Caller
from tests.asking import refuse_run
from tests.http_client import open_client

UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"


class Callers:
    """The caller of the next request."""

    def __init__(self) -> None:
        self.groups: frozenset[str] | None = None

    async def identify(self, authenticator: Authenticator, credential: str | None) -> Caller:
        return Caller("tester", groups=self.groups)


@pytest.fixture
def callers(monkeypatch: pytest.MonkeyPatch) -> Callers:
    callers = Callers()
    monkeypatch.setattr(Authenticator, "identify", lambda *given: callers.identify(*given))
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
    # Nobody would see that `Board` is not `board`.
    await upload(client, "# Plans\n\nThe canteen moves.", "board")
    for name in ("Board", "BOARD", "b0ard"):
        refused = await client.patch(f"/api/documents/{document_id}", json={"groups": [name]})
        assert refused.status_code == 422, refused.text
    assert (await upload(client, "# Plans\n\nThe canteen stays.", "B0ARD"))["status"] == "failed"
    assert (await upload(client, "# Plans\n\nThe canteen moves.", "B0ARD"))["status"] == "failed"
    await client.patch(f"/api/documents/{document_id}", json={"groups": []})
    callers.groups = frozenset({"staff"})
    assert (await client.get(f"/api/documents/{document_id}")).status_code == 200


async def test_a_caller_gives_only_groups_of_their_own(client: httpx.AsyncClient, callers: Callers) -> None:
    callers.groups = frozenset({"staff"})
    assert "'board' is none of them" in (await upload(client, "Mine.", "board"))["message"]
    document_id = (await upload(client, "Mine.", "staff"))["document_id"]
    refused = await client.patch(f"/api/documents/{document_id}", json={"groups": ["staff", "board"]})
    assert refused.status_code == 422
    assert await read_groups(client, document_id) == ["staff"]


async def test_an_assistant_of_others_has_no_name(client: httpx.AsyncClient, callers: Callers) -> None:
    made = await client.post("/api/assistants", json={"name": "merger", "groups": ["board"]})
    assert made.status_code == 201
    for mode in ("merger", "fast"):
        asked = await client.post("/api/chat?stream=false", json={"question": "Who merges?", "mode": mode})
        assert asked.status_code == 200
    for groups, names in ((None, {"merger@1", "fast"}), ({"board"}, {"merger@1", "fast"}), ({"staff"}, {None, "fast"})):
        callers.groups = None if groups is None else frozenset(groups)
        costs = (await client.get("/api/costs")).json()["costs"]
        assert {each["name"] for each in costs} == names
    for name in ("merger", "Merger", "merg3r"):
        refused = await client.post("/api/assistants", json={"name": name, "groups": ["staff"]})
        assert (refused.status_code, "'merger'" in refused.text) == (409, name == "merger"), refused.text


async def try_name(client: httpx.AsyncClient, name: str) -> list[Sequence[Any]]:
    """Do whatever an ordinary key can do with a name, and return all that comes back, without what is made by chance:
    ids become numbers in their order, and times and the name go."""
    said: list[Sequence[Any]] = []
    ids = dict[str, str]()

    def note(response: httpx.Response) -> Any:
        text = re.sub(UUID, lambda found: ids.setdefault(found[0], f"id {len(ids)}"), response.text)
        text = re.sub(r'"[\dT:.+-]{19,}Z?"|"seconds": ?[\d.]+', "", text.replace(name.removesuffix(".md"), "NAME"))
        # Whether an answer is compressed follows from its length, and so from the name's.
        of_length = {"location", "content-length", "content-encoding", "vary"}
        said.append((response.status_code, text, sorted(set(response.headers) - of_length)))
        return response.json() if response.content else None

    async def send(text: str, **options: Any) -> Any:
        return note(await client.post("/api/documents", files={"files": (name, text.encode())}, **options))

    derived = document_id_of("default", name)
    for path in (f"/api/documents/{derived}", f"/api/documents/{derived}/revisions"):
        note(await client.get(path))
    asked = {"question": "Does the canteen close?", "document_ids": [str(derived)]}
    note(await client.post("/api/chat?stream=false", json=asked))
    note(await client.delete(f"/api/documents/{name}"))
    queued = await send("The canteen stays.", params={"wait": "false"})
    address = f"/api/ingestions/{queued['ingestions'][0]['ingestion_id']}"
    async with asyncio.timeout(20):
        while (await client.get(address)).json()["progress"]["stage"] != "done":  # noqa: ASYNC110 - elsewhere
            await asyncio.sleep(0.05)
    note(await client.get(address))
    listed = (await client.get("/api/ingestions")).json()["ingestions"]
    said.append([each["state"] for each in listed if each["source"] == name])
    for text in ("The canteen stays.", "The canteen closes.", "The canteen closes.", "It moves."):
        report = (await send(text))["documents"][0]
    await send("It moves.", data={"groups": ["staff"]})
    await send("It moves.", data={"groups": ["board"]})
    note(await client.get(f"/api/documents/{report['document_id']}"))
    note(await client.get(f"/api/documents/{report['document_id']}/revisions"))
    note(await client.delete(f"/api/documents/{report['document_id']}"))
    again = (await send("The canteen closes."))["documents"][0]
    note(await client.get(f"/api/documents/{again['document_id']}"))
    note(await client.delete(address))
    note(await client.delete(f"/api/documents/{again['document_id']}"))
    return said


async def test_a_name_that_a_hidden_document_has_is_like_a_free_one(
    client: httpx.AsyncClient, callers: Callers, services: Services
) -> None:
    """Whatever is done with it, every answer is the same, and the hidden document stays what it is."""
    hidden = (await upload(client, "The canteen closes.", "board", name="hidden.md"))["document_id"]
    gone = (await upload(client, "The canteen closes.", "board", name="gone.md"))["document_id"]
    await client.delete(f"/api/documents/{gone}")
    before = (await client.get(f"/api/documents/{hidden}")).json()
    callers.groups = frozenset({"staff"})
    async with services.runs.queue.work(refuse_run):
        free = await try_name(client, "free.md")
        assert [each[0] for each in free if isinstance(each[0], int) and each[0] >= 500] == []
        assert await try_name(client, "hidden.md") == free
        assert await try_name(client, "gone.md") == free
    callers.groups = None
    assert (await client.get(f"/api/documents/{hidden}")).json() == before


async def test_documents_of_one_name_are_told_apart_by_groups(client: httpx.AsyncClient, callers: Callers) -> None:
    ids = {}
    for group, text in (("board", "The canteen closes."), ("staff", "The canteen stays.")):
        callers.groups = frozenset({group})
        added = await upload(client, text, group)
        assert added["status"] == "added"
        ids[group] = added["document_id"]
        assert (await upload(client, text))["status"] == "unchanged"
    # Whoever may read both is told of both, and has to say which one.
    callers.groups = None
    listed = (await client.get("/api/documents")).json()["documents"]
    assert {(each["source"], each["id"]) for each in listed} == {("plans.md", each) for each in ids.values()}
    refused = await upload(client, "The canteen moves.")
    assert refused["code"] == "ambiguous_name"
    assert set(re.findall(UUID, refused["error"])) == set(ids.values())
    unknown = (await client.delete("/api/documents/plans.md")).json()["error"]["message"]
    assert set(re.findall(UUID, unknown)) == set(ids.values())
    changed = await upload(client, "The canteen moves.", "staff")
    assert (changed["status"], changed["document_id"]) == ("updated", ids["staff"])
    assert "closes" in (await client.get(f"/api/documents/{ids['board']}")).json()["text"]


async def test_of_equal_uploads_at_once_one_is_added_though_a_hidden_document_has_the_name(
    client: httpx.AsyncClient, callers: Callers
) -> None:
    await upload(client, "The canteen closes.", "board")
    callers.groups = frozenset({"staff"})
    reports = await asyncio.gather(*(upload(client, "The canteen stays.") for _ in range(20)))
    assert sorted(each["status"] for each in reports) == ["added"] + ["unchanged"] * 19
    assert len({each["document_id"] for each in reports}) == 1


async def test_what_a_caller_deleted_does_not_come_back_with_what_they_sent_before(
    client: httpx.AsyncClient, callers: Callers, services: Services
) -> None:
    callers.groups = frozenset({"staff"})
    store = services.library.documents
    stored = await upload(client, "The canteen stays.")
    earlier = await store.number_arrival("default")
    await store.delete("default", stored["document_id"])
    for asking, status in ((callers.groups, "superseded"), (frozenset({"press"}), "superseded")):
        late = await services.library.ingestion.add("default", "plans.md", b"It moves.", arrival=earlier, asking=asking)
        assert late.status == status
    # Of one that they could not read they are not told that it was there.
    hidden = await upload(client, "The canteen stays.", "staff")
    earlier = await store.number_arrival("default")
    await store.delete("default", hidden["document_id"])
    late = await services.library.ingestion.add(
        "default", "plans.md", b"It moves.", arrival=earlier, asking=frozenset({"press"})
    )
    assert late.status == "added"


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


async def test_starters_are_of_what_the_caller_may_read(client: httpx.AsyncClient, callers: Callers) -> None:
    await upload(client, "# Plans\n\nThe move to the new office takes four weeks.", "board")
    await upload(client, "# Bridge\n\nThe paint of the bridge must be renewed every 12 years.", name="bridge.md")
    asked = {}
    for group in ("board", "staff"):
        callers.groups = frozenset({group})
        asked[group] = set((await client.get("/api/starters")).json()["questions"])
    assert asked["staff"] == {"How often must the paint of the bridge be renewed?"}
    assert asked["board"] == asked["staff"] | {"How long does the move to the new office take?"}
