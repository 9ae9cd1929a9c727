"""What the debugger's page asks the API for."""

import asyncio
import json
import resource
from collections.abc import AsyncIterator
from contextlib import aclosing
from datetime import UTC, datetime, timedelta

import httpx
import pytest
import pytest_asyncio
import zstandard

from app.answering.requests import Ask
from app.serving.application import make_app
from app.settings import Settings
from app.wiring.services import Services, open_services
from app.workbench.explain.bundle_view import MAX_SENT
from app.workbench.fleet.fleet import make_variant
from app.workbench.replay.bundle import read_bundle
from app.workbench.tapes.tape_codec import pack, unpack
from domain.history.run_lists import RunFilter
from domain.scope import DEFAULT_SCOPE
from tests.asking import QUESTION, ask, with_models
from tests.conftest import HANDBOOK, MANUAL
from tests.http_client import open_client
from tests.wire.openai import serve_openai


@pytest_asyncio.fixture
async def client(services: Services, library: dict[str, str]) -> AsyncIterator[httpx.AsyncClient]:
    async with open_client(make_app(services)) as opened:
        yield opened


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


async def test_branches_are_a_tree(services: Services, client: httpx.AsyncClient) -> None:
    done = await ask(services)
    replay = f"/api/threads/{done['thread_id']}/replay?stream=false"
    change = {"node": "rerank", "set": {"profile.rerank.keep": 1}, "tape": "fill"}
    branch = (await client.post(replay, json={"run_id": done["run_id"], **change})).json()
    again = (
        await client.post(
            f"/api/threads/{branch['thread_id']}/replay?stream=false",
            json={"run_id": branch["run_id"], "node": "grade"},
        )
    ).json()
    tree = (await client.get(f"/api/runs/{again['run_id']}/branches")).json()
    assert [(run["run_id"], run["parent"]) for run in tree["runs"]] == [
        (done["run_id"], None),
        (branch["run_id"], done["run_id"]),
        (again["run_id"], branch["run_id"]),
    ]
    assert tree["runs"][1]["forked_from"]["changed"] == ["profile.rerank.keep"]


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


async def test_a_bundle_is_shown_and_not_believed(services: Services, client: httpx.AsyncClient) -> None:
    done = await ask(services)
    path = f"/api/runs/{done['run_id']}"
    bundle = (await client.get(f"{path}/bundle")).content
    shown = (await client.post("/api/bundles/open", content=bundle)).json()
    assert shown["trace"] == (await client.get(f"{path}/trace")).json()
    assert shown["why"] == (await client.get(f"{path}/why")).json()
    assert read_bundle(bundle).made_with == shown["made_with"]

    async def refuse(data: bytes) -> str:
        refused = await client.post("/api/bundles/open", content=data)
        assert refused.status_code == 422, refused.text
        return str(refused.json()["error"]["message"])

    assert "no run of askgraph" in await refuse(b"")
    assert "no run of askgraph" in await refuse(bundle[:-40])
    assert "holds more than 30 MB" in await refuse(zstandard.compress(b"0" * 30_000_001))
    held = unpack(zstandard.decompress(bundle))
    held["record"]["confidence"] = float("nan")
    strange = await client.post("/api/bundles/open", content=zstandard.compress(pack(held)))
    assert (strange.status_code, strange.json()["why"]) == (200, shown["why"])
    many = held["steps"][-1]["values"]["candidates"] * 1_000
    held["steps"][-1]["values"]["candidates"] = many
    assert "more than 2,000 candidates" in await refuse(zstandard.compress(pack(held)))
    held["steps"][-1]["values"]["candidates"] = [{"chunk_id": "c"}]
    assert "This file is damaged" in await refuse(zstandard.compress(pack(held)))
    held["steps"][-1]["values"] |= {"candidates": [], "sources": 3}
    assert "This file is damaged" in await refuse(zstandard.compress(pack(held)))
    large = await client.post("/api/bundles/open", content=b"0" * (MAX_SENT + 1))
    assert large.status_code == 413


@pytest.mark.usefixtures("parser_processes")
async def test_a_bundle_that_would_take_gigabytes_takes_none_of_the_service(client: httpx.AsyncClient) -> None:
    count = 29_000_000
    bomb = zstandard.compress(b"\x81\xa1x\xdd" + count.to_bytes(4) + b"\x80" * count)
    assert len(bomb) < 1_000_000
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    refused = await client.post("/api/bundles/open", content=bomb)
    assert refused.status_code == 422
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 500_000


async def test_many_runs_are_planned_replayed_and_stopped(services: Services, client: httpx.AsyncClient) -> None:
    done = await ask(services)
    await ask(services, "Hello there!")
    change = {"set": {"profile.rerank.keep": 1}, "where": ["outcome == answered"]}
    plan = (await client.post("/api/replays/plan", json=change)).json()
    assert (plan["runs"], plan["affected"], plan["begins"], plan["repeated_cost"]) == (1, 1, {"rerank": 1}, 0)
    report = (await client.post("/api/replays", params={"stream": "false"}, json=change)).json()
    assert (report["tried"], [row["run_id"] for row in report["runs"]]) == (1, [done["run_id"]])

    streamed = (await client.post("/api/replays", json=change)).text
    names = [line.removeprefix("event: ") for line in streamed.splitlines() if line.startswith("event: ")]
    assert (names[0], set(names[1:-1]), names[-1]) == ("plan", {"progress"}, "report")
    last = json.loads(streamed.rpartition("data: ")[2])["report"]
    assert last == report
    assert await services.runs.log.list_thread("default", done["thread_id"]) != []
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
