"""After a document or a thread was forgotten, nothing that is stored holds it."""

from typing import Any, cast

import pytest
import zstandard

from app.adapters.postgres.checkpoints.packs import PACKED
from app.adapters.postgres.erasure.redaction import Redactor
from app.adapters.postgres.pool import ALL_WORKSPACES, open_session
from app.answering.requests import Ask, collect
from app.serving.application import make_app
from app.wiring.services import Services
from domain.errors import UnknownDocument, UnknownThread
from domain.events import Done
from domain.history.erasure import ERASED
from tests.http_client import open_client

SECRET = b"# Severance of Ottilie Quandt\n\nOttilie Quandt receives a severance of ninety thousand francs in March.\n"
OTHER = b"# Canteen\n\nThe canteen serves lunch from half past eleven until two in the afternoon.\n"
SAID = ["Ottilie Quandt receives", "ninety thousand francs", "Severance of Ottilie"]
QUESTION = "How much severance does she receive in March?"


async def ask(services: Services, question: str, thread_id: str | None = None) -> Done:
    async with services.make_run_manager() as turns:
        ended, _ = await collect(await turns.ask(Ask(question, thread_id=thread_id, mode="thorough")))
    assert ended["type"] == "done", ended
    return ended


async def dump(services: Services) -> dict[str, str]:
    """Every row of every table as text, packed values unpacked, and every key of the cache server."""
    pool: Any = cast(Any, services.runs.eraser)._pool
    dumped: dict[str, str] = {}
    async with open_session(pool, ALL_WORKSPACES) as session:
        tables = await session.fetch("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")
        for table in (row["tablename"] for row in tables):
            rows = await session.fetch(f"SELECT t::text AS said FROM {table} AS t", prepare=False)
            dumped[table] = "\n".join(row["said"] for row in rows)
        packs = await session.fetch("SELECT blob FROM checkpoint_blobs WHERE type = %(type)s", type=PACKED)
        tapes = await session.fetch("SELECT tape AS blob FROM tapes")
    for name, rows in (("packs", packs), ("unpacked tapes", tapes)):
        bodies = (zstandard.ZstdDecompressor().decompressobj().decompress(bytes(row["blob"])) for row in rows)
        dumped[name] = "\n".join(body.decode("utf-8", "replace") for body in bodies)
    eraser: Any = services.runs.cache_eraser
    async for key in eraser._redis.scan_iter(match="*"):
        dumped[f"key {key.decode()}"] = repr(await eraser._read(key))
    return dumped


def find(dumped: dict[str, str], *wanted: str) -> list[tuple[str, str]]:
    """Each place that holds one of the strings, plain or as hexadecimal bytes."""
    return [
        (name, each) for name, said in dumped.items() for each in wanted if each in said or each.encode().hex() in said
    ]


@pytest.fixture
async def document_id(services: Services) -> str:
    await services.library.ingestion.add("default", "canteen.md", OTHER)
    await services.library.ingestion.add("default", "quandt.md", SECRET.replace(b"ninety", b"eighty"))
    report = await services.library.ingestion.add("default", "quandt.md", SECRET)
    assert report.document_id is not None
    return report.document_id


async def test_nothing_of_a_forgotten_document_is_left(services: Services, document_id: str) -> None:
    first = await ask(services, QUESTION)
    assert "ninety thousand" in first["answer"]
    thread_id = first["thread_id"]
    await ask(services, "And when is lunch served in the canteen?", thread_id)
    await ask(services, QUESTION)
    beside = await ask(services, "When does the canteen serve lunch?")
    quoted = "Ottilie Quandt receives a severance of ninety thousand francs"
    await services.runs.feedback.put("default", first["run_id"], "down", "wrong", f"Is it so? {quoted}.", "ann")
    await services.runs.thread_store.rename("default", thread_id, quoted)
    await services.runs.client_threads.note("default", thread_id, {"about": quoted})
    before = await dump(services)
    held = {name.split(":")[0] for name, _ in find(before, document_id, *SAID)}
    assert held >= {
        *("documents", "document_revisions", "runs", "accepted_runs", "packs", "unpacked tapes", "originals"),
        *("feedback", "threads"),
    }
    assert any(name.startswith("key ") for name in held)

    erasure = await services.make_forgetting().forget_document("default", document_id)
    assert not erasure.found
    assert erasure.searched > 20
    assert len(erasure.needles.sentences) >= 2
    assert erasure.rows["tapes"] >= 2
    after = await dump(services)
    assert find(after, document_id, "quandt.md", "eighty thousand", *SAID) == []

    steps = await services.make_history_reader().read("default", thread_id)
    assert len(steps) > 5
    assert any(ERASED in str(step) for step in steps)
    state = await services.runs.graph.aget_state({"configurable": {"thread_id": thread_id, "workspace_id": "default"}})
    assert state.values["turns"][0]["answer"] == ERASED
    again = await ask(services, "When does the canteen serve lunch?", thread_id)
    assert again["answer"] == beside["answer"]
    with pytest.raises(UnknownDocument):
        await services.make_forgetting().forget_document("other", document_id)


async def test_a_document_that_was_deleted_before_can_still_be_forgotten(services: Services, document_id: str) -> None:
    await ask(services, QUESTION)
    await services.library.ingestion.delete("default", document_id)
    erasure = await services.make_forgetting().forget_document("default", document_id)
    assert not erasure.found
    assert find(await dump(services), document_id, *SAID) == []


async def test_nothing_of_a_forgotten_thread_is_left(services: Services, document_id: str) -> None:
    question = "How much severance does Ottilie of the nightingale department receive?"
    mine = await ask(services, question)
    other = await ask(services, "When does the canteen serve lunch?")
    async with open_client(make_app(services)) as client:
        branched = await client.post(
            f"/api/threads/{mine['thread_id']}/replay?stream=false", json={"run_id": mine["run_id"]}
        )
        branch = branched.json()["thread_id"]
        erased = await client.delete(f"/api/threads/{mine['thread_id']}")
        assert erased.status_code == 200
        assert erased.json()["found"] == {}
        assert set(erased.json()["ids"]) == {mine["thread_id"], branch}
        assert (await client.delete(f"/api/threads/{mine['thread_id']}")).status_code == 404
    # The audit log says that somebody erased the thread.
    assert find(await dump(services), mine["thread_id"], branch, "nightingale") == [("audit_log", mine["thread_id"])]
    assert (await services.make_history_reader().read("default", other["thread_id"]))[0]
    with pytest.raises(UnknownThread):
        await services.make_forgetting().forget_thread("other", other["thread_id"])


async def test_the_api_erases_a_document_everywhere(services: Services, document_id: str) -> None:
    await ask(services, QUESTION)
    async with open_client(make_app(services)) as client:
        erased = (await client.delete(f"/api/documents/{document_id}", params={"everywhere": True})).json()
        assert erased["found"] == {}
        assert erased["erased"]["documents"] == 1
        again = await client.delete(f"/api/documents/{document_id}", params={"everywhere": True})
        assert again.status_code == 404


def test_a_redactor_leaves_what_does_not_hold_the_document() -> None:
    redactor = Redactor(("id", "a/b.md"), ["The long title"], ["One two three four five six seven."], ["Only six."])
    kept = {"answer": "Six.", "sources": [{"document_id": "other", "text": "one two three four five"}]}
    assert redactor.redact(kept) is kept
    assert redactor.redact(["x two, three four FIVE six seven!", "Only six.", "see a/b.md"]) == [
        ERASED,
        ERASED,
        f"see {ERASED}",
    ]
    cited = {"document_id": "id", "text": "t", "title": "T", "heading_path": ["T"], "start": 3}
    assert redactor.redact(cited) == {
        "document_id": ERASED, "text": ERASED, "title": ERASED, "heading_path": [], "start": 3,
    }  # fmt: skip
