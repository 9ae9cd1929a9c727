"""Opening saved states, and running on from them."""

from typing import Any

import pytest

from app.runs.history import HistoryStep, read_history
from app.runs.replay import open_branch
from app.runs.turns import Ask, Turns, collect
from app.services import Services
from domain.errors import StateError, UnknownCheckpoint, UnknownMode, UnknownThread
from domain.events import Done
from nodes.abstain import ABSTENTION

QUESTION = "How long is the warranty of the Falke?"


@pytest.fixture
async def answered(services: Services, library: dict[str, str]) -> Done:
    ended, _ = await collect(await Turns(services).start(Ask(QUESTION)))
    assert ended["type"] == "done"
    return ended


async def find_step(services: Services, thread_id: str, node: str) -> HistoryStep:
    return next(s for s in await read_history(services.graph, thread_id) if s["node"] == node)


async def replay(services: Services, thread_id: str, node: str, **options: Any) -> Done:
    step = await find_step(services, thread_id, node)
    branch = await open_branch(services, "default", thread_id, step["checkpoint_id"], **options)
    turns = Turns(services)
    ended, _ = await collect(turns.resume(branch))
    await turns.close()
    assert ended["type"] == "done", ended
    return ended


async def test_history_names_each_node_what_it_changed_and_how_long_it_took(services: Services, answered: Done) -> None:
    steps = await read_history(services.graph, answered["thread_id"])
    assert [s["node"] for s in steps] == ["__start__", "route", "retrieve", "rerank", "grade", "generate"]
    assert [s["next"] for s in steps] == [["route"], ["retrieve"], ["rerank"], ["grade"], ["generate"], []]
    by_node = {s["node"]: s for s in steps}
    assert by_node["__start__"]["changed"]["question"] == QUESTION
    assert set(by_node["retrieve"]["changed"]) == {"candidates", "queries_tried"}
    assert set(by_node["rerank"]["changed"]) == {"sources"}
    assert by_node["generate"]["changed"]["answer"] == answered["answer"]
    assert all(s["ms"] is not None and s["ms"] > 0 for s in steps[1:])
    assert {s["run_id"] for s in steps} == {answered["run_id"]}


@pytest.mark.parametrize("node", ["__start__", "route", "retrieve", "rerank", "grade"])
async def test_an_unchanged_replay_gives_the_same_answer_from_every_state(
    services: Services, answered: Done, node: str
) -> None:
    again = await replay(services, answered["thread_id"], node)
    assert (again["answer"], again["citations"]) == (answered["answer"], answered["citations"])
    assert again["thread_id"] != answered["thread_id"]
    assert again["run_id"] != answered["run_id"]
    assert not again["cached"]


async def test_the_original_stays_untouched(services: Services, answered: Done) -> None:
    before = await read_history(services.graph, answered["thread_id"])
    await replay(services, answered["thread_id"], "retrieve", changes={"profile.rerank.keep": "1"})
    assert await read_history(services.graph, answered["thread_id"]) == before


async def test_a_changed_confidence_takes_another_edge(services: Services, answered: Done) -> None:
    step = await find_step(services, answered["thread_id"], "grade")
    branch = await open_branch(
        services,
        "default",
        answered["thread_id"],
        step["checkpoint_id"],
        {"confidence": "0.1", "profile.grade.max_retries": 0},
    )
    ended, events = await collect(Turns(services).resume(branch))
    assert ended["type"] == "done"
    assert ended["answer"].startswith(ABSTENTION)
    assert [e["step"] for e in events if e["type"] == "thinking"] == ["abstain"]


async def test_a_replay_in_another_mode_verifies(services: Services, answered: Done) -> None:
    again = await replay(services, answered["thread_id"], "grade", mode="thorough")
    assert again["mode"] == "thorough"
    assert again["verification"]["status"] == "supported"


async def test_a_changed_question_is_answered(services: Services, answered: Done) -> None:
    again = await replay(
        services,
        answered["thread_id"],
        "__start__",
        changes={"question": "How long does the battery of the Falke last?"},
    )
    assert "14 months" in again["answer"]


async def test_a_branch_can_be_replayed_itself(services: Services, answered: Done) -> None:
    branch = await replay(services, answered["thread_id"], "route", changes={"profile.rerank.keep": 2})
    steps = await read_history(services.graph, branch["thread_id"])
    assert steps[0]["node"] == "fork"
    again = await replay(services, branch["thread_id"], "fork")
    assert again["answer"] == branch["answer"]


async def test_a_replay_is_logged_with_where_it_came_from(services: Services, answered: Done) -> None:
    again = await replay(services, answered["thread_id"], "rerank", changes={"confidence": 0.9})
    record = await services.runs.get("default", again["run_id"])
    assert record is not None
    assert record.forked_from is not None
    assert record.forked_from["thread_id"] == answered["thread_id"]
    assert record.forked_from["changed"] == ["confidence"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"confidence": "high"}, "confidence"),
        ({"retries": "1.5"}, "retries"),
        ({"sources": "[1, 2]"}, "sources"),
        ({"nonsense": "1"}, "cannot be set"),
        ({"workspace_id": "other"}, "cannot be set"),
        ({"profile.rerank.keep": "many"}, "profile.rerank.keep"),
        ({"profile.rerank.nonsense": "1"}, "profile.rerank.nonsense"),
        ({"route": "nowhere"}, "route"),
    ],
)
async def test_values_of_the_wrong_type_are_refused(
    services: Services, answered: Done, changes: dict[str, str], message: str
) -> None:
    step = await find_step(services, answered["thread_id"], "retrieve")
    with pytest.raises(StateError, match=message):
        await open_branch(services, "default", answered["thread_id"], step["checkpoint_id"], changes)


async def test_unknown_threads_checkpoints_and_modes_are_refused(services: Services, answered: Done) -> None:
    thread = answered["thread_id"]
    with pytest.raises(UnknownThread):
        await open_branch(services, "default", "no-such-thread", "x")
    with pytest.raises(UnknownThread):
        await open_branch(services, "other", thread, "x")
    for checkpoint in ("x", "1f0c5c1e-0000-6000-8000-000000000000"):
        with pytest.raises(UnknownCheckpoint):
            await open_branch(services, "default", thread, checkpoint)
    step = await find_step(services, thread, "retrieve")
    with pytest.raises(UnknownMode):
        await open_branch(services, "default", thread, step["checkpoint_id"], mode="nonsense")


async def test_the_end_of_a_turn_has_nothing_left_to_run(services: Services, answered: Done) -> None:
    step = await find_step(services, answered["thread_id"], "generate")
    with pytest.raises(StateError, match="earlier"):
        await open_branch(services, "default", answered["thread_id"], step["checkpoint_id"])
