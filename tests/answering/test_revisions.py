"""What a document said before stays readable from the answers that quote it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

import pytest

from app.adapters.postgres.pool import open_session
from app.api.schema.descriptions import describe
from app.history.retention import prune
from app.serving.application import make_app
from app.settings import Settings
from app.wiring.services import Services
from domain.history.retention import Policy
from domain.scope import Scope
from nodes.wording.notices import read_catalogue
from tests.asking import ask, ask_for_events, serve_models
from tests.http_client import open_client

OLD = b"# Prices\n\nA day ticket costs nine euros.\n"
NEW = b"# Prices\n\nA day ticket costs eleven euros.\n"
QUESTION = "What does a day ticket cost?"


async def add(services: Services, content: bytes) -> str:
    report = await services.library.ingestion.add("default", "prices.md", content)
    assert report.document_id is not None
    return report.document_id


async def test_an_answer_names_the_revision_that_it_quotes(services: Services) -> None:
    document_id = await add(services, OLD)
    before = (await ask(services, QUESTION))["citations"][0]
    await add(services, NEW)
    after = (await ask(services, QUESTION))["citations"][0]
    assert (before["revision"], after["revision"]) == (1, 2)
    assert before["content_hash"] == sha256(OLD).hexdigest()
    assert before["updated_at"] <= after["updated_at"]
    documents = services.library.documents
    old, new = [await documents.get_text("default", document_id, number) or "" for number in (1, 2)]
    assert old[before["start"] : before["end"]] == before["text"] == "A day ticket costs nine euros."
    assert new == await documents.get_text("default", document_id)
    assert await documents.get_text("default", document_id, 3) is None
    assert await documents.get_text("other", document_id, 1) is None

    revisions = await documents.list_revisions(Scope("default"), document_id)
    assert [(each.revision, each.superseded_at is None) for each in revisions] == [(2, True), (1, False)]
    stored = await documents.get("default", document_id)
    assert stored is not None
    assert (stored.revision, stored.content_hash) == (2, revisions[0].content_hash)


async def test_the_api_serves_earlier_revisions(services: Services) -> None:
    document_id = await add(services, OLD)
    await add(services, NEW)
    async with open_client(make_app(services)) as client:
        address = f"/api/documents/{document_id}"
        assert "nine" in (await client.get(address, params={"revision": 1})).json()["text"]
        assert "eleven" in (await client.get(address)).json()["text"]
        assert (await client.get(address, params={"revision": 7})).status_code == 404
        assert (await client.get(address, params={"revision": 0})).status_code == 422
        listed = (await client.get(f"{address}/revisions")).json()["revisions"]
        assert (await client.get(f"/api/documents/{'0' * 8}/revisions")).status_code == 404
    found = await services.library.documents.list_revisions(Scope("default"), document_id)
    assert listed == [describe(revision) for revision in found]


async def test_the_same_content_and_new_metadata_make_no_revision(services: Services) -> None:
    document_id = await add(services, OLD)
    await add(services, OLD)
    await services.library.ingestion.add("default", "prices.md", OLD, metadata={"team": "sales"})
    [revision] = await services.library.documents.list_revisions(Scope("default"), document_id)
    assert revision.revision == 1


async def test_only_revisions_that_a_kept_answer_cites_are_kept(services: Services) -> None:
    document_id = await add(services, OLD)
    await ask(services, QUESTION)
    await add(services, NEW)
    await add(services, NEW.replace(b"eleven", b"twelve"))
    retention, keep = services.runs.retention, Policy()
    assert (await prune(retention, keep)).revisions == 0, "a run that goes on may quote them"
    async with open_session(services.runs.retention._pool, "default") as session:  # type: ignore[attr-defined]
        long_ago = datetime.now(UTC) - timedelta(hours=2)
        await session.execute("UPDATE document_revisions SET superseded_at = %(at)s", at=long_ago)
    assert (await prune(retention, keep, dry_run=True)).revisions == 1
    assert (await prune(retention, keep)).revisions == 1
    documents = services.library.documents
    kept = [each.revision for each in await documents.list_revisions(Scope("default"), document_id)]
    assert kept == [3, 1]
    assert (await prune(retention, replace(keep, older_than=timedelta(0)))).revisions == 1
    await services.library.ingestion.delete("default", document_id)
    assert await documents.list_revisions(Scope("default"), document_id) == []


async def test_a_number_of_a_revision_is_never_used_again(services: Services) -> None:
    document_id = await add(services, OLD)
    cited = (await ask(services, QUESTION))["citations"][0]
    await services.library.ingestion.delete("default", document_id)
    assert await add(services, NEW) == document_id
    documents = services.library.documents
    [revision] = await documents.list_revisions(Scope("default"), document_id)
    assert (cited["revision"], revision.revision) == (1, 2)
    assert await documents.get_text("default", document_id, cited["revision"]) is None
    await services.make_forgetting().forget_document("default", document_id)
    await add(services, OLD)
    [revision] = await documents.list_revisions(Scope("default"), document_id)
    assert revision.revision == 3


async def test_what_became_of_a_cited_document_is_told(services: Services) -> None:
    document_id = await add(services, OLD)
    ended = await ask(services, QUESTION)

    async def read() -> list[Any]:
        async with open_client(make_app(services)) as client:
            run = (await client.get(f"/api/runs/{ended['run_id']}")).json()
            [turn] = (await client.get(f"/api/threads/{ended['thread_id']}")).json()["turns"]
            listed = (await client.get("/api/runs")).json()["runs"][0]["outdated"]
        [told], [shown] = run["ended"]["citations"], turn["ended"]["citations"]
        assert told == shown
        return [told.get("since"), listed]

    assert await read() == [None, 0]
    await add(services, NEW)
    assert await read() == ["changed", 1]
    await add(services, OLD)
    assert await read() == [None, 0], "it holds again what was cited, in another revision"
    await services.library.ingestion.delete("default", document_id)
    assert await read() == ["deleted", 1]
    await add(services, NEW)
    assert await read() == ["changed", 1]


@pytest.mark.parametrize(
    ("path", "fields"),
    [("/api/chat?stream=false", ["question", "thread_id"]), ("/v1/chat/completions", ["messages", "model"])],
)
async def test_a_model_is_told_no_answer_whose_document_is_gone(
    settings: Settings, path: str, fields: list[str]
) -> None:
    pool = b"# Pool\n\nThe pool opens at noon."
    async with (
        serve_models(settings, {"prices.md": OLD, "pool.md": pool}) as (services, server),
        open_client(make_app(services)) as client,
    ):
        said: list[dict[str, Any]] = []
        last: dict[str, Any] = {"thread_id": None}

        async def go_on(question: str) -> set[tuple[str, ...]]:
            """What models were told of earlier answers."""
            server.requests.clear()
            said.append({"role": "user", "content": question})
            asked = {"question": question, "thread_id": last["thread_id"], "messages": said, "model": "fast"}
            answer = await client.post(path, json={each: asked[each] for each in fields})
            last.update(thread_id=answer.headers["x-thread-id"], run_id=answer.headers["x-run-id"])
            whole = answer.json()
            said.append(whole["choices"][0]["message"] if "choices" in whole else {"content": whole["answer"]})
            told = [each["messages"][1:] for each in server.requests]
            assert all(each["role"] == ("user", "assistant")[n % 2] for shown in told for n, each in enumerate(shown))
            return {tuple(each["content"] for each in shown[1::2]) for shown in told}

        await go_on(QUESTION)
        assert "nine euros" in said[1]["content"]
        assert await go_on("And when does the pool open?") == {(said[1]["content"],)}
        document_id = await add(services, NEW)
        gone = read_catalogue("en").library.held_back
        assert await go_on("And what was the price again?") == {(gone, gone)}, "the second may repeat the first"
        replay = {"run_id": last["run_id"], "tape": "strict"}
        again = await client.post(f"/api/threads/{last['thread_id']}/replay?stream=false", json=replay)
        assert again.json()["comparison"]["identical"]
        assert "nine euros" not in again.text
        await services.library.ingestion.delete("default", document_id)
        assert await go_on("And is there a price for children?") == {(gone, gone, gone)}
        await add(services, OLD)
        [told] = await go_on("And is there a discount?")
        assert [told[0], told[1], told[2]] == [said[1]["content"], said[3]["content"], gone]


async def test_no_word_of_an_answer_whose_document_is_gone_is_carried_on(services: Services) -> None:
    address = b"# Addresses\n\nPetra Lindqvist has her office in Dock Road."
    claims = await services.library.ingestion.add(
        "default", "claims.md", b"# Claims\n\nPetra Lindqvist handles claims."
    )
    await services.library.ingestion.add("default", "addresses.md", address)
    thread_id = (await ask(services, "Who handles claims?"))["thread_id"]
    followed = await ask(services, "And where is her office?", thread_id=thread_id)
    assert "Lindqvist" in followed["standalone_question"]
    assert claims.document_id is not None
    await services.library.ingestion.delete("default", claims.document_id)
    followed = await ask(services, "And when is she there?", thread_id=thread_id)
    assert followed["standalone_question"].startswith("And when is she there?")
    assert "Lindqvist" not in followed["standalone_question"]


async def test_of_copies_an_answer_shows_one(services: Services) -> None:
    for name in ("one.md", "two.md", "three.md"):
        await services.library.ingestion.add("default", name, OLD)
    ended, seen = await ask_for_events(services, QUESTION)
    assert len(ended["citations"]) == 1
    [sources] = [event["citations"] for event in seen if event["type"] == "sources"]
    assert len(sources) == 1
