"""Saved states that this version cannot run on from."""

import json
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from app.adapters.postgres.checkpoints.packs import Owner, Pack
from app.answering.requests import collect
from app.history.state_check import Failure, check_states, describe_state_check
from app.history.steps import HistoryStep
from app.wiring.services import Services
from app.workbench.replay.replay import Replay
from domain.errors import StateError
from domain.events import Done
from domain.state import STATE_VERSION
from tests.asking import ask


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
