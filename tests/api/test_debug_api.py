"""What the debugger's page asks the API for."""

import asyncio
import json
from contextlib import aclosing
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from app.answering.requests import Ask
from app.serving.application import make_app
from app.settings import Settings
from app.wiring.services import Services, open_services
from app.workbench.fleet.fleet import make_variant
from askgraph import AsyncClient, InputError, NotFound, Unavailable
from domain.history.run_lists import RunFilter
from domain.ports.question_sets import SetQuestion, SetRun
from domain.scope import DEFAULT_SCOPE
from tests.asking import QUESTION, ask, list_thread, with_models
from tests.conftest import HANDBOOK, MANUAL
from tests.http_client import open_client
from tests.wire.openai import serve_openai


async def test_a_run_tells_its_states_and_steps(services: Services, client: httpx.AsyncClient) -> None:
    done = await ask(services)
    await ask(services, "And of the battery?", thread_id=done["thread_id"])
    run = f"/api/runs/{done['run_id']}"
    ranked = (await client.get(f"{run}/states/rerank")).json()["values"]
    assert [len(ranked[field]) > 0 for field in ("sources", "answer")] == [True, False]
    assert (await client.get(f"{run}/states/__start__")).json()["values"]["question"] == QUESTION
    missing = await client.get(f"{run}/states/rerank@2")
    assert (missing.status_code, "has no step 'rerank@2'" in missing.text) == (404, True)

    history = f"/api/threads/{done['thread_id']}/history"
    own = (await client.get(history, params={"run_id": done["run_id"]})).json()["steps"]
    every = (await client.get(history)).json()["steps"]
    assert own == [step for step in every if step["run_id"] == done["run_id"]]
    assert 0 < len(own) < len(every)


async def test_a_run_that_goes_on_is_traced_up_to_now(settings: Settings) -> None:
    async with serve_openai(rate=20, length=60) as server, open_services(with_models(settings, server)) as services:
        await services.library.ingestion.add("default", "handbook.md", HANDBOOK)
        await services.library.ingestion.add("default", "manual.md", MANUAL)
        async with (
            open_client(make_app(services)) as client,
            services.make_run_manager() as turns,
        ):
            accepted = await turns.start(Ask(QUESTION))
            path = f"/api/runs/{accepted.run_id}"
            async for event in turns.follow(accepted):
                if event.event["type"] != "content":
                    continue
                traced = (await client.get(f"{path}/trace")).json()
                assert (traced["running"], traced["outcome"], traced["taped"]) == (True, None, False)
                assert traced["question"] == QUESTION
                assert traced["path"][:3] == ["route", "retrieve", "rerank"]
                assert (await client.get(f"{path}/why")).status_code == 404
                await client.post(f"{path}/cancel")
                break
            async for _ in turns.follow(accepted):
                pass
            assert (await client.get(f"{path}/trace")).json()["running"] is False


async def test_many_runs_are_planned_replayed_and_stopped(services: Services, client: httpx.AsyncClient) -> None:
    done = await ask(services)
    await ask(services, "Hello there!")
    change = {"set": {"profile.rerank.keep": 1}, "where": ["outcome == answered"]}
    plan = (await client.post("/api/replays/plan", json=change)).json()
    assert (plan["runs"], plan["affected"], plan["begins"], plan["repeated_cost"]) == (1, 1, {"rerank": 1}, 0)
    streamed = (await client.post("/api/replays", json=change)).text
    names = [line.removeprefix("event: ") for line in streamed.splitlines() if line.startswith("event: ")]
    assert (names[0], set(names[1:-1]), names[-1]) == ("plan", {"progress"}, "report")
    report = json.loads(streamed.rpartition("data: ")[2])["report"]
    assert (report["tried"], [row["run_id"] for row in report["runs"]]) == (1, [done["run_id"]])
    assert await list_thread(services, done["thread_id"]) != []
    assert (await client.get("/api/runs", params={"where": "replay = true"})).json()["runs"] == []

    for wrong, says in (
        ({}, "Say what to change"),
        ({"set": {"confidence": 1}}, "only knobs"),
        ({"set": {"profile.wings": 1}}, "wings"),
        ({"mode": "fast", "where": ["colour = red"]}, "A run has no"),
        ({"mode": "fast", "limit": 5000}, "1000"),
    ):
        refused = await client.post("/api/replays", json=wrong)
        assert (refused.status_code // 100, says in refused.text) == (4, True), refused.text


@pytest.mark.usefixtures("library")
async def test_a_set_of_questions_is_kept_asked_and_remembered(services: Services, client: httpx.AsyncClient) -> None:
    done, other = await ask(services), await ask(services, "What does a ticket to the moon cost?")
    async with AsyncClient("http://127.0.0.1", http={"transport": client._transport}) as python:
        assert await python.sets() == []
        with pytest.raises(NotFound, match="no set 'held'"):
            await python.run_set("held")
        for run, said, status in (
            (done["run_id"], {"answers": ["36 months", "three years"]}, 204),
            (other["run_id"], {"answerable": False}, 204),
            (other["run_id"], {"answers": ["7 euros"]}, 204),
            (other["run_id"], {"answers": []}, 422),
            (other["run_id"], {"answers": ["7"], "question": "w" * 2001}, 422),
            ("none", {"answers": ["7"]}, 404),
        ):
            # The same set, in other letters and with a blank behind.
            path = f"/api/sets/{'held' if run == done['run_id'] else 'HELD '}/questions/{run}"
            put = await client.put(path, json={"question": QUESTION} | said)
            assert put.status_code == status, put.text
        result = await python.run_set("held", mode="fast")
        assert (result.mode, result.asked, result.right, [*result.wrong]) == ("fast", 2, 1, [other["run_id"]])
        [kept] = await python.sets()
        assert (kept.name, [question.id for question in kept.questions]) == ("held", [done["run_id"], other["run_id"]])
        assert kept.runs == [result]
        with pytest.raises(InputError, match="no mode"):
            await python.run_set("held", mode="none")
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(services.admission, "most", 0)
            with pytest.raises(Unavailable):
                await python.run_set("held")
        for run, status in ((done["run_id"], 204), (done["run_id"], 404)):
            gone = await client.delete(f"/api/sets/Held/questions/{run}")
            assert gone.status_code == status
        # With the last question of a set what came of it goes, also what comes of it later.
        await services.make_forgetting().forget_thread("default", other["thread_id"])
        assert await python.sets() == []
        await services.sets.record("default", "held", SetRun(datetime.now(UTC), "fast", "1", 1, 1, {}))
        await services.sets.put("default", "held", SetQuestion(done["run_id"], QUESTION, ["36"], True))
        assert [each.runs for each in await python.sets()] == [[]]


@pytest.mark.usefixtures("library")
async def test_a_replay_whose_reader_leaves_is_stopped(services: Services) -> None:
    for number in range(3):
        await ask(services, f"How long is the warranty of the Falke in {2030 + number}?")
    wanted = RunFilter(datetime.now(UTC) - timedelta(days=1))
    variant = make_variant({"profile.rerank.keep": 1}, None)
    async with aclosing(services.make_debugger().replay_many(DEFAULT_SCOPE, wanted, variant)) as events:
        assert (await anext(events))["type"] == "plan"
        assert services.admission.running == 1
    assert services.admission.running == 0
    left = [task for task in asyncio.all_tasks() if "work_through" in repr(task.get_coro())]
    assert left == []
