"""After a document or a thread was forgotten, nothing that is stored holds it."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import pytest
import zstandard
from redis.asyncio import Redis

from app.adapters.postgres.pool import ALL_WORKSPACES, open_session
from app.adapters.redis.erasure import _read
from app.answering import run_execution
from app.cli.support.auditing import record_command
from app.history import forgetting
from app.history.forgetting import UNKNOWN
from app.serving.application import make_app
from app.settings import Settings, read_settings
from app.wiring.services import Services, open_services
from domain.assistants import Draft
from domain.errors import UnknownDocument, UnknownThread
from domain.events import Done
from domain.history.erasure import ERASED, Erasure, Needles, write_notice
from domain.people.access import OWNER, Caller
from domain.ports.question_sets import SetQuestion
from domain.scope import Scope
from tests.asking import ask, serve_models
from tests.http_client import open_client

SECRET = b"# Severance of Ottilie Quandt\n\nOttilie Quandt receives a severance of ninety thousand francs in March.\n"
OTHER = b"# Canteen\n\nThe canteen serves lunch from half past eleven until two in the afternoon.\n"
SAID = ["Ottilie Quandt receives", "ninety thousand francs", "Severance of Ottilie"]
QUESTION = "How much severance does she receive in March?"


async def dump(services: Services) -> dict[str, str]:
    """Every row of every table as text, packed values unpacked, and every key of the cache server."""
    pool: Any = cast(Any, services.runs.eraser)._pool
    dumped: dict[str, str] = {}
    async with open_session(pool, ALL_WORKSPACES) as session:
        tables = await session.fetch("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")
        for table in (row["tablename"] for row in tables):
            rows = await session.fetch(f"SELECT t::text AS said FROM {table} AS t", prepare=False)
            dumped[table] = "\n".join(row["said"] for row in rows)
        packs = await session.fetch("SELECT pack AS blob FROM state_packs")
        tapes = await session.fetch("SELECT tape AS blob FROM tapes")
    for name, rows in (("packs", packs), ("unpacked tapes", tapes)):
        bodies = (zstandard.ZstdDecompressor().decompressobj().decompress(bytes(row["blob"])) for row in rows)
        dumped[name] = "\n".join(body.decode("utf-8", "replace") for body in bodies)
    assert services.settings.redis_url
    async with Redis.from_url(services.settings.redis_url.get_secret_value()) as client:
        async for key in client.scan_iter(match="*"):
            dumped[f"key {key.decode()}"] = repr(await _read(client, key))
    return dumped


def find(dumped: dict[str, str], *wanted: str) -> list[tuple[str, str]]:
    """Each place that holds one of the strings, plain or as hexadecimal bytes."""
    return [
        (name, each) for name, said in dumped.items() for each in wanted if each in said or each.encode().hex() in said
    ]


def keep_tables(dumped: dict[str, str]) -> dict[str, str]:
    """Leave out the cache server: events of a run are written there a little after it has ended."""
    return {name: said for name, said in dumped.items() if not name.startswith("key ")}


async def forget(services: Services, document_id: str, *wanted: str) -> Erasure:
    """Forget a document, and look for its id and these strings everywhere."""
    erasure = await services.make_forgetting().forget_document("default", document_id)
    assert not erasure.found
    assert find(await dump(services), document_id, *wanted) == []
    return erasure


async def add(services: Services, name: str, text: str, workspace: str = "default") -> str:
    report = await services.library.ingestion.add(workspace, name, text.encode())
    return str(report.document_id)


@pytest.fixture
async def document_id(services: Services) -> str:
    await services.library.ingestion.add("default", "canteen.md", OTHER)
    ingestion = services.library.ingestion
    first = await ingestion.add("default", "former.md", SECRET.replace(b"ninety", b"eighty"))
    await record_command(services.audit, "sync", "default", ["former.md"])
    report = await ingestion.add("default", "quandt.md", SECRET, moved_from=first.document_id)
    assert report.document_id == first.document_id
    return str(report.document_id)


async def test_nothing_of_a_forgotten_document_is_left(services: Services, document_id: str) -> None:
    first = await ask(services, QUESTION, mode="thorough", noted={"metadata": {"of": "Severance of Ottilie"}})
    assert "ninety thousand" in first["answer"]
    thread_id = first["thread_id"]
    await ask(services, "And when is lunch served in the canteen?", thread_id=thread_id, mode="thorough")
    await ask(services, QUESTION, mode="thorough")
    beside = await ask(services, "When does the canteen serve lunch?", mode="thorough")
    # An assistant names the document, and so does a run that never saw it.
    written = f"Read quandt.md ({document_id}).\nformer.md says: {SECRET.decode().split(chr(10))[2]}"
    draft = Draft(
        name="desk", description=written, instructions=written, metadata={"of": ["quandt.md", {written: written}]},
        document_ids=[document_id], filter={"path": "canteen.md"},
    )  # fmt: skip
    await services.assistants.create(Scope("default"), draft, OWNER)
    blind = await ask(services, QUESTION, mode="desk")
    quoted = "Ottilie Quandt receives a severance of ninety thousand francs"
    await services.runs.feedback.put("default", first["run_id"], "down", "wrong", f"Is it so? {quoted}.", Caller("ann"))
    await services.runs.thread_store.rename(Scope("default"), thread_id, quoted)
    await services.runs.client_threads.note("default", thread_id, {"about": quoted})
    await services.sets.put("default", "desk", SetQuestion(first["run_id"], QUESTION, [quoted], True))
    # A set knows what its question was answered from, also when the run is gone.
    await services.sets.put("default", "old", SetQuestion(first["run_id"], QUESTION, [quoted], True))
    async with open_session(cast(Any, services.runs.eraser)._pool, ALL_WORKSPACES) as session:
        await session.execute("UPDATE set_questions SET id = 'gone' WHERE set_name = 'old'")
    # Somebody has typed its words for a question of another run.
    typed = SetQuestion(beside["run_id"], QUESTION, [SECRET.decode().split("\n")[2]], True)
    await services.sets.put("default", "typed", typed)
    before = await dump(services)
    held = {name.split(":")[0] for name, _ in find(before, document_id, *SAID)}
    assert held >= {
        *("documents", "document_revisions", "runs", "accepted_runs", "packs", "unpacked tapes", "originals"),
        *("feedback", "threads", "assistants", "set_questions"),
    }
    assert any(name.startswith("key ") for name in held)

    erasure = await forget(services, document_id, "quandt.md", "former.md", "eighty thousand", *SAID)
    assert erasure.searched > 20
    assert len(erasure.needles.sentences) >= 2
    assert erasure.rows["tapes"] >= 2
    after = await dump(services)
    assert (await ask(services, QUESTION, mode="desk"))["outcome"] == blind["outcome"] == "abstained"
    # A run that found it and did not tell of it keeps its answer, and loses its steps.
    with pytest.raises(UnknownThread):
        await services.make_history_reader().read("default", beside["thread_id"])
    assert beside["answer"] in after["accepted_runs"]
    async with open_client(make_app(services)) as client:
        turns = (await client.get(f"/api/threads/{thread_id}")).json()["turns"]
    assert [turn["question"] for turn in turns] == [QUESTION, ERASED]
    assert turns[0]["ended"]["answer"] == write_notice()
    assert str(datetime.now(UTC).date()) in write_notice()
    again = await ask(services, "When does the canteen serve lunch?", thread_id=thread_id, mode="thorough")
    assert again["answer"] == beside["answer"]
    with pytest.raises(UnknownDocument):
        await services.make_forgetting().forget_document("other", document_id)


async def test_what_never_existed_is_not_forgotten(services: Services, document_id: str) -> None:
    await ask(services, QUESTION, mode="thorough")
    before = await dump(services)
    forgetting = services.make_forgetting()
    for unknown in ("severance", "quandt.md", document_id[:-1], str(uuid4())):
        with pytest.raises(UnknownDocument):
            await forgetting.forget_document("default", unknown)
        with pytest.raises(UnknownThread):
            await forgetting.forget_thread("default", unknown)
    assert keep_tables(await dump(services)) == keep_tables(before)


async def test_the_name_of_a_forgotten_document_stays_a_word_of_others(services: Services) -> None:
    handbook = "# Debian Handbook\n\nThe package manager apt resolves what packages depend upon by itself.\n"
    document_id = await add(services, "debian.md", handbook)
    await add(services, "canteen.md", OTHER.decode())
    cited = await ask(services, "What does the package manager apt resolve by itself?", mode="thorough")
    assert "depend upon" in cited["answer"]
    other = await ask(services, "When does the canteen serve lunch?", thread_id="debian.md", mode="thorough")
    said = "Is it in the Debian Handbook, or in debian.md? Debian is a distribution."
    await services.runs.feedback.put("default", other["run_id"], "down", "wrong", said, Caller("ann"))
    await services.runs.thread_store.rename(Scope("default"), "debian.md", said)
    await services.runs.client_threads.note("default", "debian.md", {"about": said})

    await forget(services, document_id, "apt resolves")
    after = await dump(services)
    assert all(said in after[table] for table in ("feedback", "threads"))
    assert other["answer"] in after["runs"]

    erasure = await services.make_forgetting().forget_thread("default", "debian.md")
    assert not erasure.found
    assert (await dump(services))["runs"].count(ERASED)


async def test_a_dry_run_erases_nothing_and_counts_what_would_go(services: Services, document_id: str) -> None:
    asked = await ask(services, QUESTION, mode="thorough")
    forgetting = services.make_forgetting()
    before = await dump(services)
    of_document = await forgetting.forget_document("default", document_id, dry_run=True)
    of_thread = await forgetting.forget_thread("default", asked["thread_id"], dry_run=True)
    assert keep_tables(await dump(services)) == keep_tables(before)
    assert (await forgetting.forget_document("default", document_id)).rows == of_document.rows
    assert of_document.rows["documents"] == of_document.rows["tapes"] == 1
    assert of_thread.rows["runs"] == of_thread.rows["tapes"] == 1


async def test_a_document_that_was_deleted_before_can_still_be_forgotten(services: Services, document_id: str) -> None:
    await ask(services, QUESTION, mode="thorough")
    await services.library.ingestion.delete("default", document_id)
    await forget(services, document_id, *SAID)


async def test_forgetting_may_be_repeated(services: Services, document_id: str) -> None:
    await ask(services, QUESTION, mode="thorough")
    for _ in range(2):
        await forget(services, document_id, *SAID)
    # What somebody writes afterwards is found by nobody; what was left the first time, the second time.
    other = await add(services, "copy.md", SECRET.decode().replace("Ottilie", "Ottokar"))
    forgetting = services.make_forgetting()

    class Forgetful:
        """An eraser that overlooks what a run says."""

        def __getattr__(self, name: str) -> Any:
            return getattr(forgetting.eraser, name)

        async def erase_document(self, *given: Any, **options: Any) -> int:
            return 0

    asked = await ask(services, QUESTION, mode="thorough")
    erasure = await replace(forgetting, eraser=cast(Any, Forgetful())).forget_document("default", other)
    assert erasure.found[f"runs, run {asked['run_id']}"] == 1
    assert not [name for name, _ in find(await dump(services), "Ottokar Quandt receives") if name == "erasures"]
    erasure = await forget(services, other, "Ottokar Quandt receives")
    assert erasure.needles.sentences


async def test_what_no_run_has_recorded_is_searched_for_and_erased(
    services: Services, document_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody has typed it, or a client has sent it as a conversation. It is erased although time is over."""
    monkeypatch.setattr(forgetting, "BUSY_SECONDS", 0)
    said = "Ottilie Quandt receives a severance of ninety thousand francs in March."
    beside = await ask(services, "When does the canteen serve lunch?")
    async with open_client(make_app(services)) as client:
        messages = [{"role": "user", "content": "What did she get?"}, {"role": "assistant", "content": said}]
        for last in ("When does the canteen serve lunch?", f"Is it true? {said}"):
            sent = {"model": "fast", "messages": [*messages, {"role": "user", "content": last}]}
            assert (await client.post("/v1/chat/completions", json=sent)).status_code == 200
    await services.library.ingestion.delete("default", document_id)
    await services.library.ingestion.add("default", "quandt.md", SECRET)
    await forget(services, document_id, *SAID)
    assert beside["answer"] in (await dump(services))["runs"]


async def test_its_path_stays_in_no_entry_of_the_audit_log(services: Services) -> None:
    path = "dismissal, of jorgen, vandrel.md"
    many = [f"{number}{'x' * 50}.md" for number in range(20)]
    async with open_client(make_app(services)) as client:
        for names in ([path, "other.md"], [*many, path]):
            sent = [("files", (name, f"# {name}\n\nText of {name}.".encode())) for name in names]
            assert (await client.post("/api/documents", files=sent)).status_code == 200
        assert (await client.delete(f"/api/documents/{path}")).status_code == 404
        document = await services.library.documents.find("default", path)
        assert document is not None
        entries = await services.audit.list(datetime.now(UTC) - timedelta(hours=1), 10)
        assert [each.targets for each in entries] == [
            (path,), (*many[:18], "and 3 more"), (path, "other.md"),
        ]  # fmt: skip
        assert (await client.delete(f"/api/documents/{document.id}?everywhere=true")).json()["found"] == {}
        entries = await services.audit.list(datetime.now(UTC) - timedelta(hours=1), 10)
        assert [each.targets[:2] for each in entries] == [
            (document.id, "everywhere=true"), (ERASED,), tuple(many[:2]), (ERASED, "other.md"),
        ]  # fmt: skip
        # That somebody erased it stays when it is repeated, and whoever names it later is found.
        await client.delete(f"/api/documents/{path}")
        needles = Needles("default", (document.id,), (path,))
        _, found = await services.runs.eraser.search(needles)
        assert [str(each) for each in found] == ["audit_log"]


async def test_its_path_stays_in_no_filter(services: Services) -> None:
    path = "hr/dismissal of jorgen-vandrel.md"
    document_id = await add(services, path, "# Notice\n\nThe employee of hall seven is dismissed on the ninth of May.")
    other = await add(services, f"more {path}", "# Hall\n\nHall seven is painted blue on the tenth of May each year.")
    question = "Why is the employee of hall seven dismissed?"
    async with open_client(make_app(services)) as client:
        for name, named in (("hr", path), ("more", {"in": [path, f"more {path}"]})):
            made = await client.post("/api/assistants", json={"name": name, "filter": {"path": named}})
            assert made.status_code == 201, made.text
            for body in ({"filter": {"path": named}}, {"mode": name}):
                asked = await client.post("/api/chat?stream=false", json={"question": question, **body})
                assert asked.status_code == 200, asked.text
        assert find(await dump(services), f'"{path}')
        await forget(services, document_id, f'"{path}')
        after = await dump(services)
        assert not [place for place, _ in find(after, path) if f"more {path}" not in after[place]]
        kept = [each["filter"] for each in (await client.get("/api/assistants")).json()["assistants"]]
        assert sorted(map(str, kept)) == sorted(
            map(str, [{"path": ERASED}, {"path": {"in": [ERASED, f"more {path}"]}}])
        )
        assert (
            await client.post("/api/chat?stream=false", json={"question": question, "mode": "more"})
        ).status_code == 200
    assert [each.id for each in await services.library.documents.list("default")] == [other]


async def test_a_table_without_a_sentence_is_looked_for_by_its_numbers(services: Services) -> None:
    pins = "name,pin\n" + "".join(f'"Bob ""{number}"" Q",{70000 + number}\n' for number in range(30))
    document_id = await add(services, "pins.csv", pins)
    other = await add(services, "canteen.md", OTHER.decode())
    asked = await ask(services, "What is the pin of Bob 7?")
    assert "70007" in asked["answer"]
    beside = await ask(services, "When does the canteen serve lunch?")
    erasure = await forget(services, document_id, "70007", "70029")
    assert len(erasure.needles.tokens) == 30
    assert beside["answer"] in (await dump(services))["runs"]
    assert (await services.library.documents.get("default", other)) is not None


async def test_what_was_taken_from_it_word_by_word_goes_where_somebody_wrote_it(services: Services) -> None:
    """However it is marked up there, however short it is, and of whatever it was made."""
    many = "\n\n".join(f"## Section {number} of the almanac\n\nPlot {number} bears sacks." for number in range(44))
    text = f"""---
title: Dismissal of Cornelius Quakenbush
surgeon: Dr Wendelin Zapfhahn
---
# Ledger\n\n## Was Max Moorwood fired?\n\nHe was.\n\n## Overview\n\n## The canteen serves lunch\n
## Warum ging Bu\u0308rgermeister Ka\u0308sebrod?\n\nEr ging.\n
<b>Agathe</b> ~~Klemm~~ drinks [vermouth](http://x.example/v) at "Lark &amp; Sons".\n
{many}\n\n## Why was Plinkadoon Vuxwell dismissed?\n\nNobody knows it.\n
| Name | Salary |\n|---|---|\n| Quentin Vosskuehler | 88120 |\n| Ludmilla Trottenbeck | 77310 |\n"""
    taken = [
        *("Dismissal of Cornelius Quakenbush", "Dr Wendelin Zapfhahn", "Was Max Moorwood fired?"),
        *(
            "warum ging Bürgermeister Käsebrod?",
            'Agathe Klemm drinks vermouth at "Lark & Sons"',
            "Agathe drinks vermouth",
        ),
        *("Why was Plinkadoon Vuxwell dismissed?", "What is the salary of Quentin Vosskuehler?"),
        "Quentin Vosskuehler 88120",
    ]
    ids = [await add(services, name, said) for name, said in (("ledger.md", text), ("canteen.md", OTHER.decode()))]
    canteen = Scope("default", (ids[1],))
    beside = await ask(services, "When does the canteen serve lunch?", scope=canteen)
    await services.sets.put("default", "typed", SetQuestion("none", "Who drinks?", [f"It is told. {taken[2]}"], True))
    runs = [beside, *[await ask(services, question, scope=canteen) for question in taken]]
    for asked, said in zip(runs[1:], taken, strict=True):
        await services.runs.thread_store.rename(Scope("default"), asked["thread_id"], said)
    await services.runs.feedback.put("default", runs[1]["run_id"], "down", None, f"Wrong! {taken[2]}", Caller("ann"))
    # What another document has, too, or is too short, is not this one's.
    kept = ["Overview", "the canteen serves lunch", "Nobody knows it of Max"]
    for question in kept:
        await ask(services, question, scope=canteen)
    async with open_client(make_app(services)) as client:
        sent = [{"role": role, "content": said} for role, said in (("user", taken[2]), ("assistant", "Yes."))]
        body = {"model": "fast", "messages": [*sent, {"role": "user", "content": "When does the canteen open?"}]}
        assert (await client.post("/v1/chat/completions", json=body)).status_code == 200
    await forget(services, ids[0], *taken)
    after = await dump(services)
    assert all(said in after["runs"] for said in (*kept, beside["answer"]))


async def test_a_copy_in_another_document_is_neither_left_nor_erased(services: Services) -> None:
    text = "# Copy\n\nThe quintuple lantern of Barrowmere burns whale oil on alternate Sundays."
    mine, other = await add(services, "a.md", text), await add(services, "b.md", text, "beta")
    question = "What does the quintuple lantern of Barrowmere burn?"
    told = await ask(services, question)
    async with open_client(make_app(services)) as client:
        body = {"question": question, "workspace": "beta"}
        theirs = (await client.post("/api/chat?stream=false", json=body)).json()
    assert "whale oil" in told["answer"]
    assert "whale oil" in theirs["answer"]
    await forget(services, mine)
    after = await dump(services)
    assert theirs["answer"] in after["runs"]
    assert told["answer"] not in after["runs"].replace(theirs["answer"], "", 1)
    assert await services.library.documents.get("beta", other) is not None


async def test_what_a_slow_run_has_shown_goes_too(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_execution, "SHOWN_SECONDS", 0.02)
    async with serve_models(settings, {"canteen.md": OTHER}, ttft=0.3) as (services, _):
        document_id = str((await services.library.ingestion.add("default", "quandt.md", SECRET)).document_id)
        first = await ask(services, QUESTION)
        await ask(services, "And in which month?", thread_id=first["thread_id"])
        for _ in range(2):
            await forget(services, document_id, *SAID)


WAYS: list[tuple[str, str, dict[str, Any]]] = [
    ("POST", "/v1/chat/completions", {"model": "standard", "messages": [{"role": "user", "content": QUESTION}]}),
    ("POST", "/v1/responses", {"model": "fast", "input": QUESTION}),
    ("POST", "/langgraph/runs/wait", {"assistant_id": "standard", "input": {"question": QUESTION}}),
    (
        "POST",
        "/api/ui/chat",
        {"id": "c1", "messages": [{"role": "user", "parts": [{"type": "text", "text": QUESTION}]}]},
    ),
    ("POST", "/api/chat?stream=false", {"question": "Summarise Severance of Ottilie Quandt", "thread_id": "sum"}),
    ("POST", "/api/chat?stream=false", {"question": "Which documents are there?", "thread_id": "sum"}),
    ("POST", "/api/chat?stream=false", {"question": QUESTION, "mode": "research", "thread_id": "sum"}),
    ("POST", "/api/chat?stream=false", {"question": "Hello!"}),
    ("POST", "/api/threads/$thread/replay?stream=false", {"run_id": "$run", "set": {"profile.rerank.keep": 2}}),
    ("POST", "/api/threads/$thread/replay?stream=false", {"run_id": "$run", "node": "rerank", "tape": "fill"}),
    ("POST", "/api/runs/$run/whatif", {"sets": [{"profile.rerank.keep": 1}]}),
]


@pytest.mark.parametrize("with_model", [False, True])
async def test_documents_are_forgotten_while_questions_about_them_are_answered(
    settings: Settings, *, with_model: bool
) -> None:
    async with AsyncExitStack() as stack:
        if with_model:
            services, _ = await stack.enter_async_context(serve_models(settings, {}))
        else:
            services = await stack.enter_async_context(open_services(settings))
        client = await stack.enter_async_context(open_client(make_app(services)))
        await add(services, "canteen.md", OTHER.decode())
        names = ["Ottilie", "Ottokar", "Odette"]
        texts = [SECRET.decode().replace("Ottilie", name).replace("ninety", f"{name.lower()}ty") for name in names]
        ids = [await add(services, f"{name}.md", text) for name, text in zip(names, texts, strict=True)]
        first = await ask(services, QUESTION)

        async def use(way: tuple[str, str, dict[str, Any]]) -> None:
            method, path, body = way
            path = path.replace("$run", first["run_id"]).replace("$thread", first["thread_id"])
            body = {key: first["run_id"] if each == "$run" else each for key, each in body.items()}
            answer = await client.request(method, path, json=body, timeout=60)
            # What is replayed may be forgotten by then.
            assert answer.status_code in (200, 404, 409, 422, 429, 503), answer.text

        for way in WAYS:
            await use(way)
        asking = [asyncio.create_task(use(way)) for way in WAYS * 2]
        await asyncio.sleep(0.3)
        eraser = services.make_forgetting()
        proofs = await asyncio.gather(*(eraser.forget_document("default", each) for each in ids))
        await asyncio.gather(*asking)
        # An answer that was being written may still stand among the events: forgetting may be repeated.
        for each in [each for each, proof in zip(ids, proofs, strict=True) if proof.found]:
            assert dict((await eraser.forget_document("default", each)).found) == {}
        said = [each for name in names for each in (f"{name} Quandt receives", f"{name.lower()}ty thousand")]
        assert find(await dump(services), *ids, *said) == []


async def test_a_document_of_the_same_name_stays(services: Services) -> None:
    ids = []
    for group, text in (("board", SECRET), ("staff", OTHER)):
        asking = frozenset({group})
        added = await services.library.ingestion.add("default", "a.md", text, groups=[group], asking=asking)
        ids.append(added.document_id)
    await forget(services, ids[0] or "", *SAID)
    assert [each.id for each in await services.library.documents.list("default")] == [ids[1]]


async def test_what_was_asked_of_a_restricted_document_is_not_shown_to_others_afterwards(services: Services) -> None:
    hidden = await services.library.ingestion.add("default", "quandt.md", SECRET, groups=["board"])
    await ask(services, QUESTION)
    await services.make_forgetting().forget_document("default", str(hidden.document_id))
    assert not find(await dump(services), "severance does she")


async def test_nothing_of_a_forgotten_thread_is_left(services: Services, document_id: str) -> None:
    question = "How much severance does Ottilie of the nightingale department receive?"
    mine = await ask(services, question, mode="thorough")
    other = await ask(services, "When does the canteen serve lunch?", mode="thorough")
    typed = "Ottilie of the nightingale department is paid in kind"
    await services.sets.put("default", "desk", SetQuestion(mine["run_id"], question, [f"{typed}."], True))
    shown = await services.make_forgetting().forget_thread("default", mine["thread_id"], dry_run=True)
    assert any(typed in sentence for sentence in shown.needles.sentences)
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


async def test_the_api_says_what_may_have_been_meant_and_shows_what_would_go(
    services: Services, document_id: str
) -> None:
    thread_id = (await ask(services, QUESTION, mode="thorough"))["thread_id"]
    async with open_client(make_app(services)) as client:
        for path, given, meant in (
            (f"/api/documents/{document_id[:-2]}", {}, document_id),
            ("/api/documents/quandt.md", {}, document_id),
            ("/api/documents/quandt.md", {"everywhere": True}, document_id),
            (f"/api/threads/{thread_id[:-2]}", {}, thread_id),
        ):
            refused = await client.delete(path, params=given)
            assert refused.status_code == 404
            assert meant in refused.json()["error"]["message"]
        for path, table in ((f"/api/documents/{document_id}", "documents"), (f"/api/threads/{thread_id}", "threads")):
            shown = await client.delete(path, params={"dry_run": True})
            assert shown.status_code == 200
            assert shown.json()["erased"][table] == 1
        assert (await client.get(f"/api/documents/{document_id}")).status_code == 200
        assert (await client.get(f"/api/threads/{thread_id}")).status_code == 200


TRESOR = b"# Tresor\n\nThe Tresor safe combination is 7391 and its key is kept by Ottilie Quandt in the cellar.\n"
TOLD = ["safe combination", "7391 and", "Ottilie", "in the cellar"]


async def ask_twice(services: Services) -> tuple[str, Done]:
    """Return the id of a document, and the second of two turns about it."""
    document_id = await add(services, "tresor.md", TRESOR.decode())
    await add(services, "canteen.md", OTHER.decode())
    first = await ask(services, "What opens the Tresor?")
    assert "7391" in first["answer"]
    second = await ask(services, "And who keeps its key?", thread_id=first["thread_id"])
    return document_id, second


@pytest.mark.parametrize("killed_in", ["delete_document", "eraser", "files"])
async def test_what_was_being_forgotten_is_forgotten_at_the_next_start(services: Services, killed_in: str) -> None:
    """Its process may die before the document is deleted, before what was made from it is, and before the cache is."""
    document_id, second = await ask_twice(services)
    # Only what is looked for finds this: no run has read it.
    await services.runs.thread_store.rename(Scope("default"), second["thread_id"], "kept by Ottilie Quandt")
    beside = await ask(services, "When does the canteen serve lunch?")
    said = TRESOR.decode().split("\n")[2]
    await services.runs.feedback.put("default", beside["run_id"], "down", None, said, Caller("ann"))

    class Killed(BaseException):
        pass

    class Dying:
        """A part in which the process dies."""

        def __init__(self, part: Any) -> None:
            self.part = part

        def __getattr__(self, name: str) -> Any:
            if name in ("erase_document", "rewrite"):
                raise Killed
            return getattr(self.part, name)

        def __call__(self, *_: Any) -> Any:
            raise Killed

    forgetting = services.make_forgetting()
    part = getattr(forgetting, killed_in)
    with pytest.raises(Killed):
        await replace(forgetting, **cast(Any, {killed_in: Dying(part)})).forget_document("default", document_id)
    await services.make_forgetting().resume()
    after = await dump(services)
    assert find(after, document_id, *TOLD) == []
    assert after["erasures"].startswith("(default,forgotten,")
    assert "\n" not in after["erasures"]
    again = await services.make_forgetting().forget_document("default", document_id)
    assert UNKNOWN in again.remarks
    assert not any(second["run_id"] in name for name in after), "the events of its run are gone"


async def test_files_of_the_home_hold_nothing_that_was_forgotten(tmp_path: Path) -> None:
    def count() -> dict[str, int]:
        held = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
        return {
            str(path.relative_to(tmp_path)): found
            for path, data in held.items()
            if (found := sum(data.count(each.encode()) for each in TOLD))
        }

    said = TRESOR.decode().splitlines()[2]
    settings = read_settings(home=tmp_path, DATABASE_URL=None, REDIS_URL=None, load_samples=False)
    async with open_services(settings) as services:
        document_id, _ = await ask_twice(services)
        await asyncio.sleep(1.5)  # Valkey writes its log every second
        assert {name.split("/")[0] for name in count()} == {"postgres", "valkey"}
        # The planner keeps samples.
        pool = cast(Any, services.runs.eraser)._pool
        async with open_session(pool, ALL_WORKSPACES) as session:
            await session.execute("ANALYZE")
            assert said in repr(await session.fetch("SELECT s::text FROM pg_stats AS s"))
        erasure = await services.make_forgetting().forget_document("default", document_id)
        assert (dict(erasure.found), erasure.remarks) == ({}, ())
        assert count() == {}
        async with open_session(pool, ALL_WORKSPACES) as session:
            assert said not in repr(await session.fetch("SELECT s::text FROM pg_stats AS s"))
        # What is left is found, wherever it is.
        (tmp_path / "valkey.damaged").mkdir()
        (tmp_path / "valkey.damaged" / "log").write_bytes(b"..." + TRESOR[10:])
        assert await services.runs.files.search([said]) == {"files in valkey.damaged": 1}
        (tmp_path / "valkey.damaged" / "log").unlink()
    assert count() == {}
    async with open_services(settings):
        assert count() == {}


async def branch_twice(services: Services, thread_id: str) -> list[str]:
    """Make a branch, and one of the branch, that nobody runs. Return their ids."""
    made = [thread_id]
    async with services.make_run_manager() as manager:
        for sufficient in (0.2, 0.3):
            steps = await services.make_history_reader().read("default", made[-1])
            checkpoint_id = next((step for step in steps if step["node"] == "rerank"), steps[-1])["checkpoint_id"]
            changes = {"profile.grade.sufficient": sufficient}
            replayer = services.make_replayer(manager)
            branch = await replayer.branch("default", made[-1], checkpoint_id, OWNER, changes=changes)
            made.append(branch.thread_id)
    return made[1:]


@pytest.mark.parametrize("question", [QUESTION, "When does the canteen serve lunch in March?"])
async def test_branches_that_nobody_ran_are_forgotten(services: Services, document_id: str, question: str) -> None:
    """They hold copies of what a run was shown, whether it quoted the document or found it only."""
    asked = await ask(services, question, mode="thorough")
    branches = await branch_twice(services, asked["thread_id"])
    # Clients may see them as branches of a thread that was never shown the document.
    await services.runs.client_threads.create("default", "root", {}, "ann")
    for branch in (asked["thread_id"], *branches):
        await services.runs.client_threads.branch("default", "root", branch, "")
    assert find(await dump(services), document_id)
    await forget(services, document_id, *SAID)


async def test_branches_of_a_deleted_branch_are_forgotten(services: Services, document_id: str) -> None:
    asked = await ask(services, QUESTION, mode="thorough")
    first, second = await branch_twice(services, asked["thread_id"])
    pool: Any = cast(Any, services.runs.eraser)._pool
    async with open_session(pool, ALL_WORKSPACES) as session:
        await session.execute("DELETE FROM threads WHERE thread_id = %(first)s", first=first)
    erasure = await services.make_forgetting().forget_thread("default", asked["thread_id"])
    assert set(erasure.needles.ids) == {asked["thread_id"], second}
