"""Runs on tape: run again without a call, to the same events and the same state."""

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock

import numpy as np
import psycopg
import pytest
from pydantic import SecretStr

from app.answering.requests import Ask, collect
from app.settings import Settings, read_settings
from app.wiring.services import Services, open_services
from app.workbench.replay.replay import Replay
from app.workbench.tapes import tapes
from app.workbench.tapes.observing import Tapes
from app.workbench.tapes.tape import Tape
from app.workbench.tapes.tape_codec import pack, unpack
from app.workbench.tapes.tapes import decode_tape
from domain.errors import StateError, UnknownRun, UnknownTape
from domain.events import Done, Event, Failed
from domain.execution.budget import Budget
from graphs.answer import build_answer_graph
from tests.asking import QUESTION, ask, with_graph, with_models
from tests.conftest import HANDBOOK, MANUAL
from tests.wire.openai import OpenAIServer, serve_openai

KEY = "sk-a-key-that-no-tape-may-hold"
MODES = ("fast", "standard", "thorough")


async def replay(services: Services, run_id: str, **options: Any) -> tuple[Done | Failed, list[Event]]:
    async with services.make_run_manager() as turns:
        return await collect(await services.make_replayer(turns).run(Replay("default", run_id=run_id, **options)))


async def rehearse(services: Services, run_id: str, **options: Any) -> list[str]:
    """The differences that a strict replay finds."""
    _, events = await replay(services, run_id, tape="strict", **options)
    [comparison] = [event for event in events if event["type"] == "comparison"]
    assert comparison["identical"] == (not comparison["differences"])
    return comparison["differences"]


async def read_tape(services: Services, run_id: str) -> Tape:
    stored = await services.runs.log.get_tape("default", run_id)
    assert stored is not None
    return decode_tape(stored)


@asynccontextmanager
async def serve(
    settings: Settings, *, model_timeout: float = 5, **behaviour: Any
) -> AsyncIterator[tuple[Services, OpenAIServer, AsyncExitStack]]:
    """Services with a model, its server, and what stops the server: the services stay."""
    async with AsyncExitStack() as stack, AsyncExitStack() as serving:
        server = await serving.enter_async_context(serve_openai(api_key=KEY, **behaviour))
        connected = with_models(settings, server, openai_api_key=SecretStr(KEY), model_timeout=model_timeout)
        services = await stack.enter_async_context(open_services(connected))
        await services.library.ingestion.add("default", "handbook.md", HANDBOOK)
        await services.library.ingestion.add("default", "manual.md", MANUAL)
        yield services, server, serving


async def change_library(services: Services) -> None:
    """What was found is there no more."""
    await services.library.ingestion.add("default", "handbook.md", b"# Station handbook\n\nThere is no warranty.\n")
    for document in await services.library.documents.list("default"):
        if document.source == "manual.md":
            await services.library.ingestion.delete("default", document.id)


@pytest.mark.usefixtures("library")
async def test_a_run_without_a_model_is_repeated_whatever_became_of_the_documents(services: Services) -> None:
    runs = [await ask(services, mode=mode) for mode in MODES]
    runs.append(await ask(services, "And of its battery?", thread_id=runs[1]["thread_id"]))
    runs.append(await ask(services, "Hello there!"))
    runs.append(await ask(services, "Who won the football world cup of 1954?"))
    runs.append(await ask(services, "What documents do you have?"))
    await change_library(services)
    for run in runs:
        assert await rehearse(services, run["run_id"]) == []
    steps = await services.make_history_reader().read("default", runs[3]["thread_id"])
    for step in steps:
        if step["run_id"] == runs[3]["run_id"] and step["next"]:
            assert await rehearse(services, runs[3]["run_id"], checkpoint_id=step["checkpoint_id"]) == []


async def test_a_run_with_models_is_repeated_when_their_server_is_gone(settings: Settings) -> None:
    async with serve(settings) as (services, server, serving):
        runs = [await ask(services, mode=mode) for mode in MODES]
        runs.append(await ask(services, "And by whom are claims handled?", thread_id=runs[1]["thread_id"]))
        runs.append(await ask(services, "Hello there!"))
        server.behaviour.replies = [
            "The Falke has a warranty of 36 months [1]. The warranty also covers lightning for 99 years [1] [7].",
        ]
        runs.append(await ask(services, "How long is the warranty?", mode="thorough"))
        assert runs[-1]["verification"]["status"] == "reconciled"
        await serving.aclose()
        await change_library(services)
        for run in runs:
            ended, events = await replay(services, run["run_id"], tape="strict")
            assert next(event for event in events if event["type"] == "comparison")["differences"] == []
            assert ended["type"] == "done"
            assert {**ended, "timings": {}} == {**run, "timings": {}}
        streamed = [event for event in events if event["type"] == "content"]
        assert len(streamed) > 5


@pytest.mark.parametrize(
    "behaviour",
    [
        {"fault": "unauthorized"},
        {"fault": "refusal"},
        {"model_faults": {"gpt-4.1-mini": "cut"}},
        {"model_faults": {"gpt-4.1-mini": "content_filter"}},
        {"fault": "stall_before", "model_timeout": 1},
        {"model_faults": {"gpt-4.1-mini": "stall_within"}, "model_timeout": 1},
    ],
    ids=str,
)
async def test_what_a_model_failed_to_say_is_repeated_without_the_wait(
    settings: Settings, behaviour: dict[str, Any]
) -> None:
    async with serve(settings, **behaviour) as (services, _, serving):
        hurried = with_graph(services, build_answer_graph(services.runs.graph.checkpointer, model_timeout=0.2))  # type: ignore[arg-type]
        done = await ask(hurried)
        assert done["warnings"]
        await serving.aclose()
        assert await rehearse(services, done["run_id"]) == []


async def test_what_a_budget_cut_short_is_cut_short_again(settings: Settings) -> None:
    async with serve(settings, model_timeout=1, fault="stall_before") as (services, _, serving):
        hasty = services.modes["standard"].model_copy(update={"budget": Budget(seconds=0.3)})
        done = await ask(replace(services, modes={"standard": hasty}), "Why is the warranty 36 months?")
        assert {given_up["code"] for given_up in done["degraded"]} == {"over_budget"}
        await serving.aclose()
        assert await rehearse(services, done["run_id"]) == []


async def test_a_changed_request_fails_and_shows_the_nearest_that_was_made(settings: Settings) -> None:
    async with serve(settings) as (services, server, _):
        done = await ask(services)
        asked = len(server.requests)
        ended, events = await replay(
            services, done["run_id"], tape="strict", changes={"question": "How long is the warranty of the Amsel?"}
        )
        assert ended["type"] == "error"
        assert ended["code"] == "not_on_tape"
        assert all(f"How long is the warranty of the {name}?" in ended["message"] for name in ("Falke", "Amsel"))
        assert events[-1] == ended
        assert "comparison" not in {event["type"] for event in events}
        assert len(server.requests) == asked


async def test_a_change_that_asks_for_nothing_new_is_answered_on_tape_and_compared(settings: Settings) -> None:
    async with serve(settings) as (services, _, serving):
        done = await ask(services)
        await serving.aclose()
        differences = await rehearse(services, done["run_id"], changes={"profile.grade.caveat": 0.15})
        assert any(line.startswith("+") and "0.15" in line for line in differences)


async def test_filling_calls_what_is_missing_and_nothing_else(settings: Settings) -> None:
    async with serve(settings) as (services, server, serving):
        done = await ask(services, mode="standard")
        asked = len(server.requests)
        again, _ = await replay(services, done["run_id"], tape="fill")
        assert again["type"] == "done"
        assert len(server.requests) == asked
        assert (again["answer"], again["citations"]) == (done["answer"], done["citations"])
        assert again["usage"] == []
        verified, _ = await replay(services, done["run_id"], tape="fill", changes={"profile.verify": True})
        assert verified["type"] == "done"
        assert verified["verification"]["status"] == "supported"
        # The answer is in the words of its source, which needs no judge.
        assert len(server.requests) == asked
        await serving.aclose()
        for run in (again, verified):
            assert await rehearse(services, run["run_id"]) == []


async def test_a_branch_with_an_edited_prompt_is_repeated(settings: Settings) -> None:
    prompt = "Answer in one sentence, and cite like [1]."
    async with serve(settings) as (services, server, serving):
        done = await ask(services)
        branch, _ = await replay(
            services, done["run_id"], node="generate", changes={"profile.prompts.generate": prompt}
        )
        assert branch["type"] == "done"
        assert server.requests[-1]["messages"][0]["content"] == prompt
        await serving.aclose()
        assert await rehearse(services, branch["run_id"]) == []


async def test_no_tape_holds_a_key(settings: Settings) -> None:
    async with serve(settings) as (services, server, _):
        runs = [await ask(services)]
        server.behaviour.api_key = "another"
        runs.append(await ask(services, "How long does the battery of the Falke last?"))
        assert runs[-1]["warnings"]
        for run in runs:
            tape = await read_tape(services, run["run_id"])
            packed = pack({"ports": tape.ports, "calls": tape.calls, "events": tape.events})
            assert b"Falke" in packed
            assert KEY.encode() not in packed
            assert b"uthorization" not in packed
            assert b"Bearer" not in packed


@pytest.mark.usefixtures("library")
async def test_another_process_repeats_a_run(services: Services, settings: Settings) -> None:
    """Which has another order of sets, and no run of its own before."""
    done = await ask(services, mode="thorough")
    assert settings.database_url
    assert settings.redis_url
    environment = {
        **os.environ,
        "DATABASE_URL": settings.database_url.get_secret_value(),
        "REDIS_URL": settings.redis_url.get_secret_value(),
        "PYTHONHASHSEED": "7" if os.environ.get("PYTHONHASHSEED") != "7" else "8",
    }
    command = [sys.executable, "-m", "app.cli", "replay", done["run_id"], "--tape", "strict", "--json"]
    told = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)  # noqa: ASYNC221
    assert told.returncode == 0, told.stderr
    assert json.loads(told.stdout)["comparison"] == {"run_id": done["run_id"], "identical": True, "differences": []}


@pytest.mark.usefixtures("library")
async def test_a_run_without_a_tape_says_why(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    done = await ask(services)
    cached = await ask(services)
    assert cached["cached"]
    with pytest.raises(UnknownTape, match="cache"):
        await replay(services, cached["run_id"], tape="strict")
    for number, off in enumerate((Tapes(enabled=False), Tapes(frozenset({"default"})))):
        run = await ask(replace(services, tapes=off), f"{QUESTION} {number}")
        with pytest.raises(UnknownTape, match="off"):
            await replay(services, run["run_id"], tape="fill")
    monkeypatch.setattr(tapes, "MAX_TAPE", 1000)
    large = await ask(services, "How long does the battery of the Amsel last?")
    record = await services.runs.log.get("default", large["run_id"])
    assert record is not None
    assert record.warnings[-1].startswith("The tape of this run was not kept: it has")
    with pytest.raises(UnknownTape, match="was not kept"):
        await replay(services, large["run_id"], tape="strict")
    with pytest.raises(UnknownRun):
        await replay(services, "no-such-run", tape="strict")
    with pytest.raises(UnknownRun):
        await replay(services, done["run_id"], thread_id="another")


@pytest.mark.usefixtures("library")
async def test_a_run_that_was_stopped_cannot_be_compared(services: Services) -> None:
    async with services.make_run_manager() as turns:
        started = await turns.start(Ask(QUESTION))
        async with aclosing(turns.follow(started)) as events:
            await anext(events)
        await turns.stop(started.workspace_id, started.run_id)
    async with await psycopg.AsyncConnection.connect(database_of(services)) as connection:
        [(run_id,)] = await (await connection.execute("SELECT run_id FROM runs")).fetchall()
    with pytest.raises(StateError, match="stopped"):
        await replay(services, run_id, tape="strict")
    record = await services.runs.log.get("default", run_id)
    assert record is not None
    # Where it is stopped before it has begun, or by another process, there is no tape.
    log = SimpleNamespace(get_tape=AsyncMock(return_value=None))
    with pytest.raises(UnknownTape, match="it was stopped"):
        await tapes.read_tape(log, record)
    ended, _ = await replay(services, run_id, tape="fill")
    assert ended["type"] == "done"
    assert "36 months" in ended["answer"]


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("table", ["runs", "threads"])
async def test_a_tape_goes_with_its_run_and_its_thread(services: Services, table: str) -> None:
    kept, gone = await ask(services), await ask(services, "Hello!")
    async with await psycopg.AsyncConnection.connect(database_of(services)) as connection:
        await connection.execute(f"DELETE FROM {table} WHERE thread_id = %s", (gone["thread_id"],))
    assert await services.runs.log.get_tape("default", gone["run_id"]) is None
    assert await services.runs.log.get_tape("default", kept["run_id"]) is not None
    assert await services.runs.log.get_tape("other", kept["run_id"]) is None


def database_of(services: Services) -> str:
    assert services.settings.database_url
    return services.settings.database_url.get_secret_value()


@pytest.mark.parametrize("shape", [(384,), (0, 384), (3, 5)])
def test_arrays_come_back_bit_by_bit(shape: tuple[int, ...]) -> None:
    array = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    again = unpack(pack({"array": array.T}))["array"]
    assert again.dtype == np.float32
    assert again.shape == array.T.shape
    assert again.tobytes() == np.ascontiguousarray(array.T).tobytes()


def test_workspaces_without_tapes_are_named_with_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASKGRAPH_UNTAPED_WORKSPACES", "legal, hr")
    assert read_settings().untaped_workspaces == {"legal", "hr"}
