"""Saved states of another version. An upgrade is made up here, because version 1 is the first."""

import json
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from app.adapters.postgres.checkpoints.packs import Owner, Pack
from app.answering.requests import collect
from app.history import states
from app.history.state_check import Failure, check_states, describe_state_check
from app.history.states import bring_up_to_date, complete_state, find_problem, migrate, read_version
from app.history.steps import HistoryStep
from app.wiring.services import Services
from app.workbench.replay.replay import Replay
from domain.errors import StateError
from domain.events import Done
from domain.scope import Scope
from domain.state import STATE_VERSION, TurnInput
from tests.asking import ask, with_graph

NEWER = STATE_VERSION + 1
RETRIED = "What does the Falke cost in Norway?"


def shout_query(values: dict[str, Any]) -> dict[str, Any]:
    """A made-up change of the state's types: the query is in capitals."""
    return values | {"query": values["query"].upper()} if "query" in values else values


@pytest.fixture
def upgraded(services: Services, monkeypatch: pytest.MonkeyPatch) -> Services:
    """The services of a next version, in which the query is in capitals."""
    monkeypatch.setattr(states, "STATE_VERSION", NEWER)
    monkeypatch.setattr(states, "UPGRADES", {STATE_VERSION: shout_query})
    return with_graph(services, services.runs.graph.with_config(metadata={"state_version": NEWER}))


async def read_steps(services: Services, thread_id: str) -> list[HistoryStep]:
    return await services.make_history_reader().read("default", thread_id)


async def repack(database_url: str, change: Callable[[Pack], None]) -> None:
    """Change what is stored."""
    async with await psycopg.AsyncConnection.connect(database_url) as connection:
        for number, body in await (await connection.execute("SELECT number, pack FROM state_packs")).fetchall():
            pack = Pack.decode(Owner("", None, 1), body)
            change(pack)
            await connection.execute(
                "UPDATE state_packs SET checkpoints = %s, pack = %s WHERE number = %s",
                [list(pack.checkpoints), pack.encode(), number],
            )


async def run_on(services: Services, thread_id: str, checkpoint_id: str, **options: Any) -> Done:
    async with services.make_run_manager() as turns:
        wanted = Replay("default", thread_id, checkpoint_id, **options)
        ended, _ = await collect(await services.make_replayer(turns).run(wanted))
    assert ended["type"] == "done", ended
    return ended


@pytest.mark.usefixtures("library")
async def test_older_states_are_read_and_run_on_from_in_the_shape_of_today(
    services: Services, upgraded: Services
) -> None:
    asked = await ask(services, RETRIED)
    thread_id = asked["thread_id"]
    steps = await read_steps(upgraded, thread_id)
    routed = next(step for step in steps if step["node"] == "route")
    assert routed["changed"]["query"] == asked["standalone_question"].upper()
    assert (await run_on(upgraded, thread_id, routed["checkpoint_id"]))["outcome"] == asked["outcome"]
    follow_up = await ask(upgraded, "How long does its battery last?", thread_id=thread_id)
    assert "14 months" in follow_up["answer"]
    found = await check_states(upgraded.runs.saved_states, None)
    assert found.failures == []
    assert found.versions[STATE_VERSION] == len(steps) + 1
    assert found.versions[NEWER] > 0


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize(("with_writes", "following"), [(True, "abstain"), (False, "grade")])
async def test_a_run_that_an_older_version_began_is_brought_up_to_date(
    services: Services, upgraded: Services, database_url: str, with_writes: bool, following: str
) -> None:
    """As if the process had died right after its judgement, or right before: a newer one runs on in the same thread."""
    thread_id = (await ask(services, RETRIED))["thread_id"]
    step = next(step for step in await read_steps(services, thread_id) if step["node"] == "rerank")

    def cut(pack: Pack) -> None:
        # The writes of the next step stay.
        pack.checkpoints = {name: each for name, each in pack.checkpoints.items() if name <= step["checkpoint_id"]}

    await repack(database_url, cut)
    if not with_writes:
        before: Any = {
            "configurable": {
                "thread_id": thread_id, "workspace_id": "default", "checkpoint_id": step["parent_checkpoint_id"]
            },
            "metadata": {"run_id": step["run_id"]},
        }  # fmt: skip
        await services.runs.graph.aupdate_state(before, step["changed"], as_node="rerank")
    snapshot = await bring_up_to_date(upgraded.runs.graph, "default", thread_id)
    assert read_version(snapshot.metadata) == NEWER
    assert find_problem(snapshot.values) is None
    assert snapshot.values["query"].isupper()
    assert snapshot.next == (following,)
    last = (await read_steps(upgraded, thread_id))[-1]
    assert (last["node"], last["run_id"]) == ("migration", step["run_id"])
    assert await bring_up_to_date(upgraded.runs.graph, "default", thread_id) == snapshot


@pytest.mark.usefixtures("library")
async def test_a_state_of_a_newer_version_is_not_run_on_from(services: Services, database_url: str) -> None:
    thread_id = (await ask(services))["thread_id"]
    last = (await read_steps(services, thread_id))[-2]
    serde = JsonPlusSerializer()

    def renumber(pack: Pack) -> None:
        for name, each in pack.checkpoints.items():
            metadata = serde.dumps_typed({**serde.loads_typed(each.metadata), "state_version": 99})
            pack.checkpoints[name] = each._replace(metadata=metadata)

    await repack(database_url, renumber)
    with pytest.raises(StateError, match=r"state_version: 99 is of a newer askgraph"):
        await run_on(services, thread_id, last["checkpoint_id"])


@pytest.mark.usefixtures("upgraded")
def test_a_state_that_is_not_what_its_version_says_is_left_as_it_is() -> None:
    turn = TurnInput(run_id="", question="", scope=Scope("").to_json(), mode="", profile={"name": "standard"})
    values = {**turn, "query": ["no query"]}
    assert migrate(values, STATE_VERSION) == values
    problem = find_problem(complete_state(values, STATE_VERSION))
    assert problem is not None
    assert problem[0] == "query"


@pytest.mark.usefixtures("library")
async def test_an_examination_names_what_cannot_be_run_on_from(services: Services, database_url: str) -> None:
    damaged, ended = [await ask(services), await ask(services, "How long does the Falke's battery last?")]
    thread_id = damaged["thread_id"]
    healthy = await check_states(services.runs.saved_states, None)
    assert healthy.failed == 0
    graph = services.runs.graph
    retrieved = next(step for step in await read_steps(services, thread_id) if step["node"] == "retrieve")
    place: Any = {
        "configurable": {
            "thread_id": thread_id, "workspace_id": "default", "checkpoint_id": retrieved["checkpoint_id"]
        },
        "metadata": {"forked_as": "rerank"},
    }  # fmt: skip
    wrong_sources = await graph.aupdate_state(place, {"sources": "no list"}, as_node="rerank")
    wrong_profile = {"profile": {"name": "standard", "retrieval": {"fusion": "by hand"}}}
    await graph.aupdate_state(place, wrong_profile, as_node="retrieve")
    await services.runs.states.flush("default", thread_id)
    async with await psycopg.AsyncConnection.connect(database_url) as connection:
        await connection.execute("UPDATE state_packs SET pack = 'no pack' WHERE thread_id = %s", [ended["thread_id"]])
    seen: list[tuple[int, int]] = []
    found = await check_states(services.runs.saved_states, None, lambda _, done, total: seen.append((done, total)))
    total = healthy.states + 2
    assert (found.states, seen[-1]) == (total, (total, total))
    by_field: dict[str, list[Failure]] = {}
    for failure in found.failures:
        by_field.setdefault(failure.field, []).append(failure)
    assert set(by_field) == {"sources", "profile.retrieval.fusion", "checkpoint"}
    checkpoint_id = wrong_sources["configurable"]["checkpoint_id"]
    assert [failure.checkpoint_id for failure in by_field["sources"]] == [checkpoint_id]
    assert "list" in by_field["sources"][0].why
    assert all(failure.readable for failure in by_field["sources"] + by_field["profile.retrieval.fusion"])
    assert not any(failure.readable for failure in by_field["checkpoint"])
    assert {failure.thread_id for failure in by_field["checkpoint"]} == {ended["thread_id"]}
    assert found.failed == len(found.failures)

    assert (await check_states(services.runs.saved_states, "elsewhere")).states == 0
    described = describe_state_check(found)
    assert described["versions"] == {str(STATE_VERSION): total}
    assert json.loads(json.dumps(described))["failures"][0]["why"]
    # What fails can be run on from, with what is wrong set.
    await run_on(services, thread_id, checkpoint_id, changes={"sources": "[]"}, mode="standard")
