"""Opening saved states, and running on from them."""

import asyncio
import json
from typing import Any

import psycopg
import pytest

from app.answering.requests import Ask, collect
from app.history.steps import HistoryStep
from app.settings import Settings
from app.wiring.services import Services
from app.workbench.replay.replay import Replay
from domain.errors import DatabaseUnavailable, QuestionError, StateError, UnknownCheckpoint, UnknownMode, UnknownThread
from domain.events import Done, Event
from tests.asking import read_state, steps_of

QUESTION = "How long is the warranty of the Falke?"


@pytest.fixture
async def answered(services: Services, library: dict[str, str]) -> Done:
    ended, _ = await collect(await services.make_run_manager().ask(Ask(QUESTION)))
    assert ended["type"] == "done"
    return ended


async def find_step(services: Services, thread_id: str, node: str) -> HistoryStep:
    return next(s for s in await services.make_history_reader().read("default", thread_id) if s["node"] == node)


async def run_on(
    services: Services,
    thread_id: str,
    checkpoint_id: str,
    changes: dict[str, Any] | None = None,
    mode: str | None = None,
    workspace: str = "default",
) -> tuple[Done, list[Event]]:
    wanted = Replay(workspace, thread_id, checkpoint_id, changes=changes or {}, mode=mode)
    async with services.make_run_manager() as turns:
        ended, events = await collect(await services.make_replayer(turns).run(wanted))
    assert ended["type"] == "done", ended
    return ended, events


async def replay(services: Services, thread_id: str, node: str, **options: Any) -> Done:
    step = await find_step(services, thread_id, node)
    ended, _ = await run_on(services, thread_id, step["checkpoint_id"], **options)
    return ended


async def test_history_names_each_node_what_it_changed_and_how_long_it_took(services: Services, answered: Done) -> None:
    steps = await services.make_history_reader().read("default", answered["thread_id"])
    assert [s["node"] for s in steps] == ["__start__", "route", "retrieve", "rerank", "grade", "generate"]
    assert [s["next"] for s in steps] == [["route"], ["retrieve"], ["rerank"], ["grade"], ["generate"], []]
    by_node = {s["node"]: s for s in steps}
    assert by_node["__start__"]["changed"]["question"] == QUESTION
    assert set(by_node["retrieve"]["changed"]) == {"candidates", "queries_tried"}
    assert set(by_node["rerank"]["changed"]) == {"candidates", "sources"}
    assert by_node["generate"]["changed"]["answer"] == answered["answer"]
    assert all(s["ms"] is not None and s["ms"] > 0 for s in steps[1:])
    assert {s["run_id"] for s in steps} == {answered["run_id"]}


async def test_an_unchanged_replay_gives_the_same_answer_from_every_state(services: Services, answered: Done) -> None:
    for node in ("__start__", "route", "retrieve", "rerank", "grade"):
        again = await replay(services, answered["thread_id"], node)
        assert (again["answer"], again["citations"]) == (answered["answer"], answered["citations"])
        assert again["thread_id"] != answered["thread_id"]
        assert again["run_id"] != answered["run_id"]
        assert not again["cached"]


async def test_a_changed_confidence_takes_another_edge(services: Services, answered: Done) -> None:
    step = await find_step(services, answered["thread_id"], "grade")
    changes = {"confidence": "0.1", "profile.grade.max_retries": 0}
    ended, events = await run_on(services, answered["thread_id"], step["checkpoint_id"], changes)
    assert ended["abstained"]
    assert [e["step"] for e in events if e["type"] == "thinking"] == ["abstain"]


async def test_a_branch_can_be_replayed_itself(services: Services, answered: Done) -> None:
    branch = await replay(services, answered["thread_id"], "route", changes={"profile.rerank.keep": 2})
    steps = await services.make_history_reader().read("default", branch["thread_id"])
    assert steps[0]["node"] == "fork"
    again = await replay(services, branch["thread_id"], "fork")
    assert again["answer"] == branch["answer"]


async def test_a_replay_is_logged_with_where_it_came_from(services: Services, answered: Done) -> None:
    again = await replay(services, answered["thread_id"], "rerank", changes={"profile.grade.sufficient": 0.5})
    record = await services.runs.log.get("default", again["run_id"])
    assert record is not None
    assert record.forked_from is not None
    assert record.forked_from["thread_id"] == answered["thread_id"]
    assert record.forked_from["changed"] == ["profile.grade.sufficient"]


async def test_a_replay_past_generate_puts_its_turn_in_place_of_the_original(
    services: Services, library: dict[str, str]
) -> None:
    async with services.make_run_manager() as turns:
        ended, _ = await collect(await turns.ask(Ask(QUESTION, mode="thorough")))
    assert ended["type"] == "done"
    again = await replay(services, ended["thread_id"], "generate")
    remembered = await read_turns(services, again["thread_id"])
    assert [(t["question"], t["run_id"]) for t in remembered] == [(QUESTION, again["run_id"])]


async def replay_run(services: Services, run_id: str, **options: Any) -> tuple[Done, list[str]]:
    """The end of a replay of a run, and the nodes that ran."""
    async with services.make_run_manager() as turns:
        ended, events = await collect(
            await services.make_replayer(turns).run(Replay("default", run_id=run_id, **options))
        )
    assert ended["type"] == "done", ended
    return ended, steps_of(events)


async def test_a_node_runs_again_with_its_saved_input(services: Services, answered: Done) -> None:
    changes = {"profile.rerank.keep": "1"}
    ended, ran = await replay_run(services, answered["run_id"], node="rerank", changes=changes)
    assert ran == ["rerank", "grade", "generate"]
    steps = await services.make_history_reader().read("default", ended["thread_id"])
    assert [len(step["changed"]["sources"]) for step in steps if "sources" in step["changed"]][-1] == 1
    record = await services.runs.log.get("default", ended["run_id"])
    assert record is not None
    assert record.forked_from is not None
    assert record.forked_from["node"] == "rerank"
    # It runs even where the edge before it would now decide otherwise, and so does a replay of the branch.
    forced, ran = await replay_run(
        services, answered["run_id"], node="generate", changes={"confidence": 0.1, "profile.grade.max_retries": 0}
    )
    assert (ran, forced["outcome"]) == (["generate"], "answered_with_caveat")
    assert (await replay_run(services, forced["run_id"]))[1] == ["generate"]
    other, ran = await replay_run(
        services, answered["run_id"], after="grade", changes={"confidence": 0.1, "profile.grade.max_retries": 0}
    )
    assert (ran, other["abstained"]) == (["abstain"], True)


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"after": "rerank", "changes": {"profile.rerank.keep": 1}}, "Replay the run with --from rerank "),
    ({"node": "generate", "changes": {"profile.retrieval.fusion": "rrf"}}, "--from retrieve "),
    ({"node": "rerank", "changes": {"confidence": 0.2}}, "--after grade "),
    ({"changes": {"confidence": 0.2}}, "--after grade "),
    ({"node": "generate", "changes": {"profile.rerank.keep": 5}}, "is that already"),
    ({"changes": {"candidates": []}}, "is that already"),
    ({"node": "generate", "after": "grade"}, "starts from one place"),
    ({"after": "generate", "mode": "fast"}, "no step that would run now reads it"),
]


async def test_what_cannot_take_effect_is_refused_with_what_to_do(services: Services, answered: Done) -> None:
    for options, says in REFUSED:
        with pytest.raises(StateError, match=says):
            await replay_run(services, answered["run_id"], **options)
    with pytest.raises(UnknownCheckpoint, match="It ran: route → retrieve → rerank → grade → generate"):
        await replay_run(services, answered["run_id"], node="rerank@2")


async def test_a_replayed_follow_up_still_knows_what_was_said(services: Services, answered: Done) -> None:
    async with services.make_run_manager() as turns:
        asked = Ask("And how long does its battery last?", thread_id=answered["thread_id"])
        ended, _ = await collect(await turns.ask(asked))
    assert ended["type"] == "done"
    steps = await services.make_history_reader().read("default", ended["thread_id"])
    for node in ("__start__", "retrieve"):
        step = [s for s in steps if s["node"] == node][-1]
        again, _ = await run_on(services, ended["thread_id"], step["checkpoint_id"])
        assert again["answer"] == ended["answer"]
        remembered = await read_turns(services, again["thread_id"])
        assert [t["run_id"] for t in remembered] == [answered["run_id"], again["run_id"]]


async def read_turns(services: Services, thread_id: str) -> Any:
    return (await read_state(services, thread_id))["turns"]


async def test_values_of_the_wrong_type_are_refused(services: Services, answered: Done) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"confidence": "high"}, "confidence"),
        ({"retries": "1.5"}, "retries"),
        ({"sources": "[1, 2]"}, "sources"),
        ({"nonsense": "1"}, "cannot be set"),
        ({"workspace_id": "other"}, "cannot be set"),
        ({"scope": {"workspace_id": "other"}}, "set its parts"),
        ({"profile.rerank.keep": "many"}, "profile.rerank.keep"),
        ({"profile.rerank.nonsense": "1"}, "profile.rerank.nonsense"),
        ({"route": "nowhere"}, "route"),
        ({"mode": "thorough"}, "--mode"),
        ({"mode": "no-such-mode"}, "--mode"),
        ({"confidence": "NaN"}, "confidence"),
        ({"confidence": float("inf")}, "confidence"),
        ({"profile.retrieval.rrf_k": "1" + 30 * "0"}, "64 bits"),
        ({"retries": -1}, "retries"),
        ({"retries": "1" + 5000 * "0"}, "retries"),
        ({"query": "a\0b"}, "NUL"),
        ({"query": "a\ud800b"}, "surrogate"),
        ({"queries_tried": ["fine", "a\0b"]}, "NUL"),
        (
            {"verification": {"status": "skipped", "claims": [], "score": float("nan")}},
            "finite",
        ),
        ({"missing": "[" * 100_000}, "missing"),
        ({"query": "x" * 150_000, "missing": ["x" * 60_000]}, "200,000"),
    ]
    for changes, message in cases:
        step = await find_step(services, answered["thread_id"], "retrieve")
        with pytest.raises(StateError, match=message):
            await run_on(services, answered["thread_id"], step["checkpoint_id"], changes)


async def test_unknown_threads_checkpoints_and_modes_are_refused(services: Services, answered: Done) -> None:
    thread = answered["thread_id"]
    with pytest.raises(UnknownThread):
        await run_on(services, "no-such-thread", "x")
    with pytest.raises(UnknownThread):
        await run_on(services, thread, "x", workspace="other")
    for checkpoint in ("x", "1f0c5c1e-0000-6000-8000-000000000000"):
        with pytest.raises(UnknownCheckpoint):
            await run_on(services, thread, checkpoint)
    step = await find_step(services, thread, "retrieve")
    with pytest.raises(UnknownMode):
        await run_on(services, thread, step["checkpoint_id"], mode="nonsense")


async def test_a_changed_question_must_be_one(services: Services, answered: Done) -> None:
    step = await find_step(services, answered["thread_id"], "__start__")
    with pytest.raises(QuestionError):
        await run_on(services, answered["thread_id"], step["checkpoint_id"], {"question": "?"})


async def test_the_end_of_a_turn_has_nothing_left_to_run_and_leaves_nothing_behind(
    services: Services, settings: Settings, answered: Done
) -> None:
    step = await find_step(services, answered["thread_id"], "generate")
    before = await count_threads(settings)
    with pytest.raises(StateError, match="earlier"):
        await run_on(services, answered["thread_id"], step["checkpoint_id"])
    assert await count_threads(settings) == before


async def connect(settings: Settings) -> psycopg.AsyncConnection:
    assert settings.database_url
    return await psycopg.AsyncConnection.connect(settings.database_url.get_secret_value())


async def count_threads(settings: Settings) -> Any:
    query = "SELECT (SELECT count(*) FROM threads), (SELECT count(DISTINCT thread_id) FROM state_packs)"
    async with await connect(settings) as connection:
        return await (await connection.execute(query)).fetchone()


@pytest.mark.parametrize("operation", ["history", "replay"])
async def test_a_connection_that_ends_while_states_are_read_is_an_error_of_ours(
    services: Services, settings: Settings, answered: Done, operation: str
) -> None:
    thread = answered["thread_id"]
    step = await find_step(services, thread, "retrieve")
    async with await connect(settings) as connection:
        # The thread is found, then its states are waited for: that wait is what ends.
        await connection.execute("LOCK TABLE state_packs IN ACCESS EXCLUSIVE MODE")
        work: asyncio.Task[Any] = asyncio.create_task(
            services.make_history_reader().read("default", thread)
            if operation == "history"
            else run_on(services, thread, step["checkpoint_id"])
        )
        ended = 0
        while not ended and not work.done():
            cursor = await connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock' "
                "AND datname = current_database()"
            )
            ended = len(await cursor.fetchall())
            await asyncio.sleep(0.02)
        with pytest.raises(DatabaseUnavailable):
            await work


async def save_without(services: Services, answered: Done, node: str, *missing: str) -> str:
    """A branch as another version could have saved it: the state after `node`, without some fields."""
    step = await find_step(services, answered["thread_id"], node)
    snapshot = await services.runs.graph.aget_state(
        {
            "configurable": {
                "thread_id": answered["thread_id"],
                "checkpoint_id": step["checkpoint_id"],
                "workspace_id": "default",
            }
        }
    )
    thread = f"old-{node}"
    await services.runs.thread_store.claim("default", thread)
    values = {key: value for key, value in snapshot.values.items() if key not in missing}
    origin = {"thread_id": answered["thread_id"], "checkpoint_id": step["checkpoint_id"], "changed": []}
    await services.runs.graph.aupdate_state(
        {
            "configurable": {"thread_id": thread, "workspace_id": "default"},
            "metadata": {"forked_from": json.dumps(origin), "forked_as": node},
        },
        values,
        as_node=node,
    )
    return thread


LATER_FIELDS = ("steps", "turns", "judgement", "missing", "level", "queries_tried", "citations", "verification")


async def test_a_state_from_before_some_fields_is_shown_run_on_from_and_continued(
    services: Services, answered: Done
) -> None:
    thread = await save_without(services, answered, "retrieve", *LATER_FIELDS)
    [step] = await services.make_history_reader().read("default", thread)
    assert step["next"] == ["rerank"]
    assert step["ms"] is None
    assert (await replay(services, thread, "fork"))["answer"] == answered["answer"]
    async with services.make_run_manager() as turns:
        asked = Ask("How long does the battery of the Falke last?", thread_id=thread)
        ended, _ = await collect(await turns.ask(asked))
    assert ended["type"] == "done"
    assert "14 months" in ended["answer"]


async def test_steps_of_another_shape_are_shown(services: Services, answered: Done) -> None:
    await services.runs.graph.aupdate_state(
        {"configurable": {"thread_id": answered["thread_id"], "workspace_id": "default"}},
        {"steps": [{"name": "x"}]},
        as_node="reconcile",
    )
    steps = await services.make_history_reader().read("default", answered["thread_id"])
    assert steps[-1]["ms"] is None


async def test_a_state_that_this_version_cannot_run_is_refused(services: Services, answered: Done) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"sources": [{"number": 1}]}, "sources.0.document_id"),
        ({"profile": {"name": "x", "gone": 1}}, "gone"),
    ]
    for values, says in cases:
        step = await find_step(services, answered["thread_id"], "grade")
        config = await services.runs.graph.aupdate_state(
            {
                "configurable": {
                    "thread_id": answered["thread_id"],
                    "checkpoint_id": step["checkpoint_id"],
                    "workspace_id": "default",
                }
            },
            values,
            as_node="retrieve",
        )
        with pytest.raises(StateError, match=f"another version .*{says}"):
            await run_on(services, answered["thread_id"], config["configurable"]["checkpoint_id"])
