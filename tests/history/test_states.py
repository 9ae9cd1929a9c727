"""States that an older version saved.

`thread-of-version-1.json.gz` is a thread as the commit of 22 November 2026, 01:23 (3dac15e) stored it, without a
model, from the documents of `tests/conftest.py`: `How long is the warranty of the Falke?` in thorough mode, then `What
does the Falke cost in Norway?` in standard mode, which retried. It holds the thread's rows by table, bytes in base64.
`thread-of-version-2.json.gz` is the same conversation as commit 2e0204d stored it, its first question asked of the
document `Station handbook` alone, with the rows of the runs that were accepted.
"""

import base64
import gzip
import json
from pathlib import Path
from typing import Any

import ormsgpack
import psycopg
import pytest
import pytest_asyncio
from langchain_core.runnables import RunnableConfig
from psycopg.sql import SQL, Identifier, Placeholder
from psycopg.types.json import Jsonb

from app.answering.requests import collect
from app.history.state_check import Failure, check_states, describe_state_check
from app.history.states import bring_up_to_date, complete_state, find_problem, migrate, read_version
from app.history.steps import HistoryStep
from app.wiring.services import Services
from app.workbench.replay.replay import Replay
from domain.errors import StateError
from domain.events import Done
from domain.scope import Scope
from domain.state import STATE_VERSION, TurnInput
from tests.asking import ask

OLD = "a-thread-of-version-1"
TAKEN_OVER = "a-thread-of-version-2"


@pytest_asyncio.fixture
async def old_thread(services: Services, library: dict[str, str], database_url: str) -> str:
    """Store the thread as it was stored then, and return its id."""
    await store_thread(database_url, OLD)
    return OLD


@pytest_asyncio.fixture
async def packed_thread(services: Services, library: dict[str, str], database_url: str) -> str:
    """Store the thread as version 2 stored it, and return its id."""
    await store_thread(database_url, TAKEN_OVER)
    return TAKEN_OVER


async def store_thread(database_url: str, thread_id: str) -> None:
    file = Path(__file__).with_name(f"{thread_id.removeprefix('a-')}.json.gz")
    stored: dict[str, list[dict[str, Any]]] = json.loads(gzip.decompress(file.read_bytes()))
    async with await psycopg.AsyncConnection.connect(database_url) as connection:
        for table, rows in stored.items():
            for row in rows:
                statement = SQL("INSERT INTO {} ({}) VALUES ({})").format(
                    Identifier(table), SQL(", ").join(map(Identifier, row)), SQL(", ").join(map(Placeholder, row))
                )
                await connection.execute(statement, {key: read_value(key, value) for key, value in row.items()})


def read_value(key: str, value: Any) -> Any:
    if key == "blob" and value is not None:
        return base64.b64decode(value)
    return Jsonb(value) if isinstance(value, dict | list) else value


async def find_step(services: Services, node: str) -> HistoryStep:
    return [step for step in await services.make_history_reader().read("default", OLD) if step["node"] == node][-1]


async def run_on(services: Services, node: str, **options: Any) -> Done:
    step = await find_step(services, node)
    async with services.make_run_manager() as turns:
        wanted = Replay("default", OLD, step["checkpoint_id"], **options)
        ended, _ = await collect(await services.make_replayer(turns).run(wanted))
    assert ended["type"] == "done", ended
    return ended


async def test_history_shows_an_older_state_in_the_shape_of_today(services: Services, old_thread: str) -> None:
    steps = await services.make_history_reader().read("default", old_thread)
    first = "__start__ route retrieve rerank grade generate verify"
    second = "__start__ route retrieve rerank grade reformulate retrieve rerank grade reformulate abstain"
    assert [step["node"] for step in steps] == f"{first} {second}".split()
    assert steps[2]["changed"]["candidates"][0]["relevance"] is None
    reformulated = next(step for step in steps if step["node"] == "reformulate")
    assert reformulated["changed"]["previous"]["candidates"] == []


async def test_an_older_state_is_run_on_from(services: Services, old_thread: str) -> None:
    for node in ("__start__", "route", "retrieve", "rerank", "grade", "reformulate"):
        ended = await run_on(services, node)
        assert ended["abstained"]
    changed = {"question": "How long does the Falke's battery last?"}
    assert "14 months" in (await run_on(services, "__start__", changes=changed))["answer"]


async def test_a_follow_up_knows_what_was_said_under_an_older_version(services: Services, old_thread: str) -> None:
    ended = await ask(services, "How long does its battery last?", thread_id=old_thread)
    assert "Falke" in ended["standalone_question"]
    assert "14 months" in ended["answer"]
    values = (
        await services.runs.graph.aget_state({"configurable": {"thread_id": old_thread, "workspace_id": "default"}})
    ).values
    assert [turn["question"] for turn in values["turns"]] == [
        "How long is the warranty of the Falke?",
        "What does the Falke cost in Norway?",
        "How long does its battery last?",
    ]


async def test_an_examination_finds_nothing_wrong_with_older_states(services: Services, old_thread: str) -> None:
    ended = await ask(services)
    found = await check_states(services.runs.saved_states, None)
    assert found.failures == []
    assert found.versions[1] == 20
    assert (
        found.versions[STATE_VERSION]
        == len(await services.make_history_reader().read("default", ended["thread_id"])) + 1
    )
    assert found.states == found.versions.total()


@pytest.mark.parametrize(("with_writes", "following"), [(True, "rerank"), (False, "retrieve")])
async def test_a_run_that_an_older_version_began_is_brought_up_to_date(
    services: Services, old_thread: str, database_url: str, with_writes: bool, following: str
) -> None:
    """As if the process had died in a second search, or right after it: a newer one runs on in the same thread."""
    steps = await services.make_history_reader().read("default", old_thread)
    step = next(step for step in steps if step["node"] == "reformulate")
    async with await psycopg.AsyncConnection.connect(database_url) as connection:
        await connection.execute("DELETE FROM checkpoints WHERE checkpoint_id > %s", [step["checkpoint_id"]])
        if not with_writes:
            await connection.execute("DELETE FROM checkpoint_writes WHERE checkpoint_id = %s", [step["checkpoint_id"]])
    snapshot = await bring_up_to_date(services.runs.graph, "default", old_thread)
    assert read_version(snapshot.metadata) == STATE_VERSION
    assert find_problem(snapshot.values) is None
    assert snapshot.values["previous"]["candidates"] == []
    assert snapshot.next == (following,)
    last = (await services.make_history_reader().read("default", old_thread))[-1]
    assert (last["node"], last["run_id"]) == ("migration", step["run_id"])
    assert await bring_up_to_date(services.runs.graph, "default", old_thread) == snapshot


async def test_a_version_2_state_is_read_with_its_scope_gathered(
    services: Services, packed_thread: str, library: dict[str, str]
) -> None:
    steps = await services.make_history_reader().read("default", packed_thread)
    asked = [step["changed"]["scope"] for step in steps if "scope" in step["changed"]]
    everything = {"workspace_id": "default", "document_ids": None}
    assert asked == [everything | {"document_ids": [library["Station handbook"]]}, everything]
    assert not any(key in step["changed"] for step in steps for key in ("workspace_id", "document_ids"))
    assert (await check_states(services.runs.saved_states, None)).failures == []
    [ended, _] = await services.runs.log.list_thread("default", packed_thread)
    status = await services.runs.queue.get("default", ended.run_id)
    assert status is not None
    assert status.request.turn["scope"] == asked[0]


@pytest.mark.parametrize("node", ["__start__", "route", "retrieve", "rerank", "grade"])
async def test_a_version_2_state_is_run_on_from(services: Services, packed_thread: str, node: str) -> None:
    step = next(
        step for step in await services.make_history_reader().read("default", packed_thread) if step["node"] == node
    )
    async with services.make_run_manager() as manager:
        wanted = Replay("default", packed_thread, step["checkpoint_id"])
        ended, _ = await collect(await services.make_replayer(manager).run(wanted))
    assert ended["type"] == "done"
    assert "36 months" in ended["answer"]


async def test_a_version_2_run_that_was_interrupted_goes_on(
    services: Services, packed_thread: str, database_url: str
) -> None:
    """The process died when the writes of its first step were stored and the state that they make was not."""
    steps = await services.make_history_reader().read("default", packed_thread)
    first = next(step["checkpoint_id"] for step in steps if step["node"] == "__start__")
    async with await psycopg.AsyncConnection.connect(database_url) as connection:
        await connection.execute("DELETE FROM checkpoints WHERE checkpoint_id > %s", [first])
        await connection.execute("DELETE FROM checkpoint_writes WHERE checkpoint_id >= %s", [first])
    snapshot = await bring_up_to_date(services.runs.graph, "default", packed_thread)
    assert snapshot.next == ("retrieve",)
    assert snapshot.values["scope"]["document_ids"]
    config: RunnableConfig = {"configurable": {"thread_id": packed_thread, "workspace_id": "default"}}
    values = await services.runs.graph.ainvoke(None, config, context=services.make_context())
    assert "36 months" in values["answer"]
    assert find_problem((await services.runs.graph.aget_state(config)).values) is None


async def test_a_state_of_a_newer_version_is_not_run_on_from(
    services: Services, old_thread: str, database_url: str
) -> None:
    async with await psycopg.AsyncConnection.connect(database_url) as connection:
        await connection.execute("""UPDATE checkpoints SET metadata = metadata || '{"state_version": 99}'""")
    with pytest.raises(StateError, match=r"state_version: 99 is of a newer askgraph"):
        await run_on(services, "grade")


def test_a_state_that_is_not_what_its_version_says_is_left_as_it_is() -> None:
    turn = TurnInput(run_id="", question="", scope=Scope("").to_json(), mode="", profile={"name": "standard"})
    values = {**turn, "candidates": ["no candidate"]}
    assert migrate(values, 1) == values
    problem = find_problem(complete_state(values, 1))
    assert problem is not None
    assert problem[0] == "candidates.0"


async def test_an_examination_names_what_cannot_be_run_on_from(
    services: Services, old_thread: str, database_url: str
) -> None:
    ended = await ask(services)
    healthy = await check_states(services.runs.saved_states, None)
    assert (healthy.failed, healthy.states) == (0, 27)
    steps = {
        step["node"]: step["checkpoint_id"] for step in await services.make_history_reader().read("default", old_thread)
    }
    damage = [
        ("sources", steps["retrieve"], ormsgpack.packb("no list")),
        ("profile", steps["route"], ormsgpack.packb({"name": "standard", "rerank": {"method": "by hand"}})),
        ("verification", steps["verify"], b"\xc1"),
    ]
    async with await psycopg.AsyncConnection.connect(database_url) as connection:
        for field, checkpoint_id, blob in damage:
            await connection.execute(
                """
                UPDATE checkpoint_blobs SET blob = %s FROM checkpoints
                WHERE checkpoints.thread_id = %s AND checkpoint_id = %s AND channel = %s
                    AND checkpoint_blobs.thread_id = checkpoints.thread_id
                    AND version = checkpoint -> 'channel_versions' ->> channel
                """,
                [blob, old_thread, checkpoint_id, field],
            )
        await connection.execute(
            "UPDATE checkpoint_blobs SET blob = 'no pack' WHERE thread_id = %s", [ended["thread_id"]]
        )
    seen: list[tuple[int, int]] = []
    found = await check_states(services.runs.saved_states, None, lambda _, done, total: seen.append((done, total)))
    assert (found.states, seen[-1]) == (27, (27, 27))
    by_field: dict[str, list[Failure]] = {}
    for failure in found.failures:
        by_field.setdefault(failure.field, []).append(failure)
    assert set(by_field) == {"sources", "profile.rerank.method", "verification", "checkpoint"}
    assert steps["retrieve"] in {failure.checkpoint_id for failure in by_field["sources"]}
    assert "list" in by_field["sources"][0].why
    assert all(failure.readable for failure in by_field["sources"] + by_field["profile.rerank.method"])
    assert {failure.thread_id for failure in by_field["verification"]} == {old_thread}
    assert not any(failure.readable for failure in by_field["verification"] + by_field["checkpoint"])
    assert [failure.thread_id for failure in by_field["checkpoint"]] == [ended["thread_id"]] * 7
    assert found.failed == len(found.failures)

    assert (await check_states(services.runs.saved_states, "elsewhere")).states == 0
    described = describe_state_check(found)
    assert described["versions"] == {"1": 20, str(STATE_VERSION): 7}
    assert json.loads(json.dumps(described))["failures"][0]["why"]
    # What fails can be run on from, with what is wrong set.
    step = next(failure.checkpoint_id for failure in by_field["sources"] if failure.checkpoint_id == steps["retrieve"])
    async with services.make_run_manager() as turns:
        wanted = Replay("default", OLD, step, changes={"sources": "[]"}, mode="standard")
        replayed, _ = await collect(await services.make_replayer(turns).run(wanted))
    assert replayed["type"] == "done"
