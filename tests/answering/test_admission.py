"""Overload: a process refuses runs that it has no room for before they exist, and finishes those that it has."""

import asyncio
from contextlib import aclosing

import httpx
import psycopg
import pytest

from app.answering import admission
from app.answering.requests import Ask
from app.serving.application import make_app
from app.settings import Settings
from app.support.cancelling import end_tasks
from app.wiring.services import Services, open_services
from domain.errors import Saturated, ThreadBusy, TooManyRuns
from domain.people.access import Caller
from tests.asking import QUESTION, with_models
from tests.conftest import HANDBOOK
from tests.http_client import open_client
from tests.wire.openai import OpenAIServer, serve_openai


async def count_runs(settings: Settings) -> int:
    assert settings.database_url
    async with await psycopg.AsyncConnection.connect(settings.database_url.get_secret_value()) as connection:
        row = await (await connection.execute("SELECT count(*) FROM accepted_runs")).fetchone()
    assert row
    return int(row[0])


async def never_answer(services: Services, model: OpenAIServer) -> None:
    """Let every run wait for the model, which is asked only where something was found."""
    await services.library.ingestion.add("default", "handbook.md", HANDBOOK)
    model.behaviour.stall, model.behaviour.fault = 300, "stall_before"


async def test_a_question_too_many_is_refused_before_it_exists(settings: Settings) -> None:
    async with serve_openai() as model:
        async with open_services(with_models(settings, model, max_runs=2, max_runs_per_caller=1)) as services:
            await never_answer(services, model)
            app = make_app(services)
            async with open_client(app) as http:
                manager = app.state.manager
                mine = await manager.start(Ask(QUESTION))
                with pytest.raises(TooManyRuns, match="as many as you may ask at once"):
                    await manager.start(Ask(QUESTION))
                await expect_refusal(http, 429, "too_many_runs")
                hers = await manager.start(Ask(QUESTION, caller=Caller("Ann")))
                with pytest.raises(Saturated):
                    await manager.start(Ask(QUESTION, caller=Caller("Ben")))
                await manager.stop("default", mine.run_id)
                async with asyncio.timeout(10):
                    while services.admission.running > 1:  # noqa: ASYNC110
                        await asyncio.sleep(0.01)
                third = await manager.start(Ask(QUESTION, caller=Caller("Cleo")))
                await expect_refusal(http, 503, "saturated")
                assert await count_runs(settings) == 3
                for run in (hers, third):
                    await manager.stop("default", run.run_id)
        assert services.admission.running == 0


async def expect_refusal(http: httpx.AsyncClient, status: int, code: str) -> None:
    for path, body in (("/api/chat", {"question": QUESTION}), ("/api/threads/x/replay", {"run_id": "x"})):
        refused = await http.post(path, json=body)
        assert (refused.status_code, refused.json()["error"]["code"]) == (status, code)
        assert refused.headers["Retry-After"] == "5"


async def test_of_many_questions_at_once_few_are_accepted(settings: Settings) -> None:
    async with serve_openai() as model, open_services(with_models(settings, model, max_runs=2)) as services:
        await never_answer(services, model)
        app = make_app(services)
        async with open_client(app) as http:
            asked = [
                asyncio.create_task(http.post("/api/chat?stream=false", json={"question": f"{QUESTION} {number}"}))
                for number in range(10)
            ]
            async with asyncio.timeout(20):
                while sum(each.done() for each in asked) < 8 or services.admission.running < 2:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            assert {each.result().status_code for each in asked if each.done()} == {503}
            assert services.admission.running == 2
            # Not read either: of a body that is not valid, who has room says so.
            await expect_refusal(http, 503, "saturated")
            assert (await http.post("/api/chat", json={})).status_code == 503
            # An answer that is waited for counts as a run, and not as a request as well.
            services.admission.most = 3
            assert (await http.post("/api/chat", json={})).status_code == 422
            await end_tasks(*asked)


async def test_a_conversation_has_a_limited_number_of_waiting_questions(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.adapters.postgres.queue.runs.MOST_WAITING", 1)
    async with (
        serve_openai() as model,
        open_services(with_models(settings, model)) as services,
        services.make_run_manager() as manager,
    ):
        await never_answer(services, model)
        first = await manager.start(Ask(QUESTION))
        await manager.start(Ask("And the battery?", thread_id=first.thread_id))
        with pytest.raises(ThreadBusy, match="1 questions of this conversation are waiting"):
            await manager.start(Ask("And the price?", thread_id=first.thread_id))
        model.behaviour.fault = None
        for run in await services.runs.queue.list_unfinished("default", first.thread_id):
            await manager.stop("default", run.request.run_id)


async def test_runs_search_and_judge_in_turn_and_all_are_answered(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admission, "PREPARING_LOCALLY", 1)
    async with open_services(settings) as services:
        async with services.make_run_manager() as manager:
            await services.library.ingestion.add("default", "handbook.md", HANDBOOK)
            waited = []

            async def ask(number: int) -> str:
                run = await manager.start(Ask(f"{QUESTION} Number {number} asks."))
                async with aclosing(manager.follow(run)) as events:
                    async for event in events:
                        waited.append(services.admission.waiting)
                        ended = event.type
                return ended

            assert await asyncio.gather(*(ask(number) for number in range(4))) == ["done"] * 4
            assert max(waited) > 0
        assert services.admission.waiting == services.admission.running == 0


async def test_who_waits_for_a_silent_model_keeps_no_other_question_waiting(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admission, "PREPARING_LOCALLY", 1)
    async with serve_openai() as model:
        only_writes = with_models(settings, model, model_small="none", model_judge="none")
        async with open_services(only_writes) as services, services.make_run_manager() as manager:
            await never_answer(services, model)
            waiting = [await manager.start(Ask(QUESTION)), await manager.start(Ask(f"{QUESTION} Please."))]
            async with asyncio.timeout(10):
                async with aclosing(manager.follow(await manager.start(Ask("Hello!")))) as events:
                    assert [event.type async for event in events][-1] == "done"
            for run in waiting:
                await manager.stop("default", run.run_id)
