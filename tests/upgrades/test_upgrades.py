"""Databases written by releases keep working after the upgrade.

The fixtures are dumps of whole databases; `record.py` makes them. The tests use the HTTP API only, as an existing
deployment does.
"""

import asyncio
import json
import lzma
from collections.abc import AsyncIterator
from typing import Any

import httpx
import psycopg
import pytest
import pytest_asyncio

from app.adapters.embedded import Servers
from app.adapters.postgres.pool import open_pool, open_session
from app.history.state_check import check_states
from app.serving.application import make_app
from app.settings import read_settings
from app.wiring.services import Services, open_services
from domain.assistants import Draft
from domain.people.access import OWNER
from domain.scope import Scope
from tests.conftest import create_database
from tests.http_client import open_client
from tests.upgrades.record import DUMPS

TAPED = ("standard", "follow_up", "thorough", "fast", "abstained", "small_talk", "branch")

Runs = dict[str, dict[str, Any]]


@pytest.fixture(scope="module", params=DUMPS)
def dump(request: pytest.FixtureRequest) -> str:
    return lzma.decompress(DUMPS[request.param].read_bytes()).decode()


of_the_first = pytest.mark.parametrize("dump", ["1.0.0"], indirect=True)
"""For what only that release kept otherwise."""


@pytest.fixture
def runs(dump: str) -> Runs:
    """The recorded runs by name: their ids, mode and answer."""
    described: Runs = json.loads(dump.partition("\n")[0].removeprefix("--"))
    return described


@pytest_asyncio.fixture
async def old_url(servers: Servers, dump: str) -> AsyncIterator[str]:
    async with create_database(servers, "template1") as url:
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
            await connection.execute(dump.encode())
        yield url


@pytest_asyncio.fixture
async def services(old_url: str, redis_url: str) -> AsyncIterator[Services]:
    settings = read_settings(DATABASE_URL=old_url, REDIS_URL=redis_url, load_samples=False)
    async with open_services(settings) as opened:
        yield opened


@pytest_asyncio.fixture
async def client(services: Services) -> AsyncIterator[httpx.AsyncClient]:
    async with open_client(make_app(services)) as opened:
        yield opened


async def post_chat(client: httpx.AsyncClient, question: str, **options: Any) -> dict[str, Any]:
    response = await client.post("/api/chat?stream=false", json={"question": question, **options})
    assert response.status_code == 200, response.text
    return dict(response.json())


async def read_steps(
    client: httpx.AsyncClient, run: dict[str, Any], workspace: str = "default"
) -> list[dict[str, Any]]:
    response = await client.get(f"/api/threads/{run['thread_id']}/history?workspace={workspace}")
    assert response.status_code == 200, response.text
    return [step for step in response.json()["steps"] if step["run_id"] == run["run_id"]]


async def replay(client: httpx.AsyncClient, run: dict[str, Any], **body: Any) -> dict[str, Any]:
    response = await client.post(f"/api/threads/{run['thread_id']}/replay?stream=false", json=body)
    assert response.status_code == 200, response.text
    return dict(response.json())


async def test_documents_are_listed(client: httpx.AsyncClient) -> None:
    listed = (await client.get("/api/documents")).json()["documents"]
    assert [document["source"] for document in listed] == ["expenses.html", "handbook.md", "ws-400-manual.pdf"]
    assert all(document["chunks"] > 0 for document in listed)
    [other] = (await client.get("/api/documents?workspace=other")).json()["documents"]
    assert other["title"] == "Notes"


async def test_questions_are_answered_from_old_documents(client: httpx.AsyncClient) -> None:
    answer = await post_chat(client, "What does a private car cost per kilometre?", mode="thorough")
    assert "38 cents" in answer["answer"]
    [citation, *_] = answer["citations"]
    assert citation["title"] == "Travel and Expense Policy"


async def test_an_unchanged_file_is_recognised_and_a_changed_one_replaces_its_document(
    client: httpx.AsyncClient,
) -> None:
    notes = "# Notes\n\nThe cellar key hangs behind the door of room 12.\n"
    for text, status in ((notes, "unchanged"), (notes.replace("12", "14"), "updated")):
        files = {"files": ("notes.md", text.encode(), "text/markdown")}
        response = await client.post("/api/documents", files=files, params={"workspace": "other"})
        [report] = response.json()["documents"]
        assert report["status"] == status
    answer = await post_chat(client, "Where does the cellar key hang?", workspace="other")
    assert "room 14" in answer["answer"]


async def test_every_saved_state_can_be_run_on_from(services: Services) -> None:
    found = await check_states(services.runs.saved_states, None)
    assert found.states > 40
    assert found.failures == []


async def test_history_of_old_threads_is_shown(client: httpx.AsyncClient, runs: Runs) -> None:
    nodes = {
        name: [step["node"] for step in await read_steps(client, run, "other" if name == "other" else "default")]
        for name, run in runs.items()
    }
    assert nodes["standard"] == ["__start__", "route", "retrieve", "rerank", "grade", "generate"]
    # Depending on the version, it searched a second time.
    assert nodes["thorough"][:5] == nodes["standard"][:5]
    assert nodes["thorough"][-2:] == ["generate", "verify"]
    assert nodes["abstained"][-1] == "abstain"
    assert nodes["small_talk"] == ["__start__", "route", "converse"]
    assert nodes["cached"] == ["cache"]
    assert (nodes["branch"][0], nodes["branch"][-1]) == ("fork", "generate")
    for name, run in runs.items():
        steps = await read_steps(client, run, "other" if name == "other" else "default")
        assert [step["changed"]["answer"] for step in steps if "answer" in step["changed"]][-1] == run["answer"]


async def test_old_runs_have_outcomes(client: httpx.AsyncClient, services: Services, runs: Runs) -> None:
    """In the states, in the events that ended them, and in the records."""
    for name, run in runs.items():
        workspace = "other" if name == "other" else "default"
        outcome = run["outcome"]
        state: dict[str, Any] = {}
        for step in await read_steps(client, run, workspace):
            state |= step["changed"]
        assert (name, state["outcome"]) == (name, outcome)
        assert state["turns"][-1]["outcome"] == outcome
        ended = (await client.get(f"/api/runs/{run['run_id']}?workspace={workspace}")).json()["ended"]
        record = await services.runs.log.get(workspace, run["run_id"])
        assert record is not None
        assert (ended["outcome"], record.outcome, ended["abstained"]) == (outcome, outcome, outcome == "abstained")
        assert record.outcome_reasons == ended["outcome_reasons"]


async def test_records_and_costs_of_old_runs_are_kept(client: httpx.AsyncClient, runs: Runs) -> None:
    status = (await client.get(f"/api/runs/{runs['thorough']['run_id']}")).json()
    assert status["state"] == "done"
    costs = (await client.get("/api/costs?by=mode&since=3650d")).json()
    assert costs["total"]["runs"] == len(runs) - 1
    assert costs["total"]["cached"] == 1


async def test_an_old_thread_takes_a_follow_up(client: httpx.AsyncClient, runs: Runs) -> None:
    answer = await post_chat(client, "And how many days for part-time staff?", thread_id=runs["follow_up"]["thread_id"])
    assert "Part-time staff have the same share" in answer["answer"]
    assert answer["thread_id"] == runs["follow_up"]["thread_id"]


async def test_an_old_run_whose_requests_are_todays_is_replayed_from_its_tape(
    client: httpx.AsyncClient, runs: Runs
) -> None:
    again = await replay(client, runs["small_talk"], run_id=runs["small_talk"]["run_id"], tape="strict")
    assert again["comparison"]["identical"], again["comparison"]
    assert again["answer"] == runs["small_talk"]["answer"]


async def test_a_replay_of_an_old_run_never_asks_what_its_tape_does_not_hold(
    client: httpx.AsyncClient, runs: Runs
) -> None:
    """Today's steps may ask the library other things than those of the recording version. A strict replay says so."""
    for run in (runs[name] for name in TAPED):
        body = {"run_id": run["run_id"], "tape": "strict"}
        response = await client.post(f"/api/threads/{run['thread_id']}/replay?stream=false", json=body)
        if response.status_code == 200:
            assert response.json()["answer"] == run["answer"]
        else:
            assert (response.status_code, response.json()["error"]["code"]) == (422, "not_on_tape")


async def test_a_run_without_a_tape_is_refused(client: httpx.AsyncClient, runs: Runs) -> None:
    body = {"run_id": runs["other"]["run_id"], "tape": "strict", "workspace": "other"}
    response = await client.post(f"/api/threads/{runs['other']['thread_id']}/replay?stream=false", json=body)
    assert (response.status_code, response.json()["error"]["code"]) == (404, "unknown_tape")


async def test_an_old_checkpoint_can_be_forked(client: httpx.AsyncClient, runs: Runs) -> None:
    steps = await read_steps(client, runs["thorough"])
    retrieve = next(step["checkpoint_id"] for step in steps if step["node"] == "retrieve")
    branch = await replay(client, runs["thorough"], checkpoint_id=retrieve, set={"profile.rerank.keep": 2})
    assert "130 euros" in branch["answer"]
    assert branch["thread_id"] != runs["thorough"]["thread_id"]
    grade = next(step["checkpoint_id"] for step in steps if step["node"] == "grade")
    refused = await replay(
        client, runs["thorough"], checkpoint_id=grade, set={"confidence": 0.1, "profile.grade.max_retries": 0}
    )
    assert refused["outcome"] == "showed_passages"


COUNT = """
    SELECT workspace_id, groups, term, count(*)::int FROM chunk_terms JOIN documents USING (workspace_id, document_id),
        unnest(terms || -1) AS term GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
"""


@of_the_first
async def test_words_are_counted_for_each_set_of_groups(old_url: str, redis_url: str) -> None:
    async with await psycopg.AsyncConnection.connect(old_url, autocommit=True) as connection:
        for source, groups in (("handbook.md", "{b,a}"), ("expenses.html", "{us}")):
            await connection.execute("UPDATE documents SET groups = %s WHERE source = %s", [groups, source])
        settings = read_settings(DATABASE_URL=old_url, REDIS_URL=redis_url, load_samples=False)
        async with open_services(settings):
            kept = "SELECT workspace_id, groups, term, chunks FROM term_frequencies WHERE chunks <> 0 ORDER BY 1, 2, 3"
            counted = await (await connection.execute(kept)).fetchall()
            assert counted == await (await connection.execute(COUNT)).fetchall()
            assert {str(groups) for _, groups, _, _ in counted} == {"[]", "['b', 'a']", "['us']"}


ASSISTANTS = """
INSERT INTO assistants (workspace_id, assistant_id, version, current, name, description, setup, metadata, created_by)
    SELECT 'default', assistant_id, version, version = 2, name, '', '{"mode": "fast"}', '{}', 'ann' FROM (VALUES
        ('00000000-0000-0000-0000-00000000000a'::uuid, 1, 'Old'), ('00000000-0000-0000-0000-00000000000a', 2, 'Straße'),
        ('00000000-0000-0000-0000-00000000000b', 2, 'STRASSE'), ('00000000-0000-0000-0000-00000000000c', 2, 'Ｓtrasse')
    ) AS made (assistant_id, version, name)
"""


@of_the_first
async def test_assistants_are_everybodys_and_those_of_one_name_get_numbers(old_url: str, redis_url: str) -> None:
    async with await psycopg.AsyncConnection.connect(old_url, autocommit=True) as connection:
        await connection.execute(ASSISTANTS.encode())
    settings = read_settings(DATABASE_URL=old_url, REDIS_URL=redis_url, load_samples=False)
    async with open_services(settings) as services:
        asker = Scope.within("default", groups=["us"])
        names = [(each.name, each.groups, each.version) for each in await services.assistants.list(asker)]
        assert names == [("Straße", [], 2), ("STRASSE (2)", [], 2), ("Ｓtrasse (3)", [], 2)]
        old = await services.assistants.find(asker, "00000000-0000-0000-0000-00000000000A")
        assert [each.name for each in await services.assistants.list_versions(asker, old.assistant_id)] == [
            "Straße",
            "Old",
        ]
        # Row-level security holds back those of groups.
        await services.assistants.change(
            Scope("default"), Draft(name="Straße", groups=["them"]), OWNER, old.assistant_id
        )
        async with open_pool(old_url, vectors=False) as pool, open_session(pool, asker) as session:
            assert len(await session.fetch("SELECT FROM assistants")) == 2


# What a server of 1.0.0 leaves that was killed with a run and a file in hand, and others waiting behind them.
FIRST, SECOND = (f"00000000-0000-0000-0000-00000000000{n}" for n in (1, 2))
LEFT_OVER = """
INSERT INTO procrastinate_workers (id) OVERRIDING SYSTEM VALUE VALUES (90);
INSERT INTO procrastinate_jobs (id, queue_name, task_name, priority, lock, args, status, worker_id, attempts) VALUES
    (901, 'runs', 'execute_run', 0, 'thread', '{"workspace_id": "default", "run_id": "00000000-0000-0000-0000-000000000002"}', 'todo', NULL, 0),
    (902, 'runs', 'execute_run', 1, NULL, '{"workspace_id": "default", "run_id": "00000000-0000-0000-0000-000000000001"}', 'doing', 90, 1),
    (903, 'ingestion', 'ingest', 0, 'a', '{"workspace_id": "default", "ingestion_id": "begun"}', 'doing', 90, 3),
    (904, 'ingestion', 'ingest', -1, 'b', '{"workspace_id": "default", "ingestion_id": "waits"}', 'todo', NULL, 0);
INSERT INTO accepted_runs (workspace_id, run_id, thread_id, request, state, attempt, job_id)
    SELECT 'default', new.id, thread_id,
        jsonb_set(jsonb_set(request, '{run_id}', to_jsonb(new.id)), '{turn,run_id}', to_jsonb(new.id)),
        new.state, new.attempt, new.job
    FROM accepted_runs, (VALUES
        ('00000000-0000-0000-0000-000000000001', 'running', 1, 902),
        ('00000000-0000-0000-0000-000000000002', 'queued', 0, 901)
    ) AS new (id, state, attempt, job)
    WHERE run_id = %s;
INSERT INTO ingestions (workspace_id, ingestion_id, source, state, begun, content) VALUES
    ('default', 'begun', 'begun.md', 'running', 1, '# Begun'), ('default', 'waits', 'waits.md', 'queued', 0, '# Waits');
"""


@of_the_first
async def test_runs_and_files_that_the_old_version_left_unfinished_are_finished_in_order(
    old_url: str, redis_url: str, runs: Runs
) -> None:
    async with await psycopg.AsyncConnection.connect(old_url, autocommit=True) as connection:
        for statement in LEFT_OVER.replace("%s", f"'{runs['standard']['run_id']}'").split(";\n"):
            await connection.execute(statement.encode())
    settings = read_settings(DATABASE_URL=old_url, REDIS_URL=redis_url, load_samples=False)
    async with open_services(settings) as services, open_client(make_app(services)) as client, asyncio.timeout(60):
        for path in (f"/api/runs/{FIRST}", f"/api/runs/{SECOND}", "/api/ingestions/begun", "/api/ingestions/waits"):
            while (status := (await client.get(path)).json())["state"] in ("queued", "running"):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
            assert status["state"] == "done", status
        turns = await services.runs.queue.list_turns(Scope("default"), runs["standard"]["thread_id"], 9)
    assert [(turn.request.run_id, turn.attempt) for turn in turns][-2:] == [(FIRST, 2), (SECOND, 1)]
    first, second = turns[-2:]
    assert first.ended_at
    assert second.started_at
    assert first.ended_at < second.started_at
    async with await psycopg.AsyncConnection.connect(old_url, autocommit=True) as connection:
        left = await connection.execute(
            "SELECT relname FROM pg_class WHERE relname LIKE 'procrastinate%' UNION ALL "
            "SELECT proname FROM pg_proc WHERE proname LIKE 'procrastinate%' UNION ALL "
            "SELECT typname FROM pg_type WHERE typname LIKE '%procrastinate%'"
        )
        assert await left.fetchall() == []
