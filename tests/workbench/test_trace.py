"""What happened in a run, step by step."""

import pytest

from app.settings import Settings
from app.wiring.services import Services
from app.workbench.explain.trace import Trace, trace
from app.workbench.explain.why import explain_run
from domain.scope import DEFAULT_SCOPE
from tests.asking import QUESTION, ask, serve_models
from tests.conftest import DOCUMENTS


async def read_trace(services: Services, run_id: str) -> Trace:
    return trace(await services.make_debugger().read(DEFAULT_SCOPE, run_id))


@pytest.mark.usefixtures("library")
async def test_candidates_are_followed_from_the_searches_to_the_answer(services: Services) -> None:
    await ask(services, "Hello there!")
    done = await ask(services, mode="thorough", limit=2)
    traced = await read_trace(services, done["run_id"])
    assert traced["path"] == ["route", "retrieve", "rerank", "grade", "generate", "verify"]
    by_name = {step["name"]: step for step in traced["steps"]}
    assert by_name["__start__"]["changed"] == []
    assert {"field": "retries", "text": "0 → 1"} not in by_name["retrieve"]["changed"]
    assert [change["field"] for change in by_name["retrieve"]["changed"]] == ["candidates", "queries_tried"]

    first, *others = by_name["rerank"]["candidates"]
    assert (first["title"], first["dense"]["rank"], first["lexical"]["rank"]) == ("Station handbook › Warranty", 1, 1)
    assert "36 months" in str(first["snippet"])
    assert (first["rerank"]["rank"], first["moved"], first["source"], first["cited"]) == (1, 0, 1, True)
    assert first["dropped"] is None
    # Sources are widened, and hold the neighbours of what they were made of.
    read = {(each["source"], each["cited"], each["dropped"]) for each in others if each["source"] is not None}
    assert read == {(1, True, None), (2, False, "was read as source 2, and nothing of it was cited")}
    grade = by_name["grade"]["grade"]
    assert grade is not None
    assert grade["confidence"] == done["confidence"]
    assert by_name["verify"]["claims"] == done["verification"]["claims"]
    assert [call["method"] for call in by_name["rerank"]["calls"]][:1] == ["read_passages"]

    narrow = await read_trace(services, (await ask(services, limit=1))["run_id"])
    [ranked] = [step["candidates"] for step in narrow["steps"] if step["name"] == "rerank"]
    dropped = [each["dropped"] for each in ranked if each["source"] is None]
    assert "th where 1 are kept (profile.rerank.keep): relevance " in str(dropped[-1])


@pytest.mark.usefixtures("library")
async def test_what_a_threshold_left_out_is_named(services: Services) -> None:
    done = await ask(services, threshold=0.48)
    run = await services.make_debugger().read(DEFAULT_SCOPE, done["run_id"])
    [search] = [step for step in trace(run)["steps"] if step["node"] == "retrieve"]
    kept, *left_out = search["candidates"]
    assert (kept["title"], kept["fused"]["rank"], kept["dropped"]) == ("Station handbook › Warranty", 1, None)
    assert left_out[0]["title"] == "Amsel manual › Warranty"
    assert "funnel" in str(left_out[0]["snippet"])
    assert "below profile.retrieval.similarity_threshold, 0.48" in str(left_out[0]["dropped"])
    [named] = [fact["text"] for fact in explain_run(run)["facts"] if fact["about"] == "left out"]
    assert "0.48, left out 4 passages; the nearest, Amsel manual › Warranty, missed it by 0.0" in named


async def test_prompts_and_replies_are_shown_as_the_model_had_them(settings: Settings) -> None:
    async with serve_models(settings, DOCUMENTS) as (services, server):
        done = await ask(services)
        traced = await read_trace(services, done["run_id"])
        server.behaviour.faults = ["rate_limit"]
        retried = await read_trace(services, (await ask(services, "Who handles claims for the Falke?"))["run_id"])
    calls = [call for step in retried["steps"] for call in step["calls"] if call["failures"]]
    assert [(call["error"], len(call["failures"])) for call in calls] == [(None, 1)]
    assert calls[0]["failures"][0].startswith("429: ")
    assert "Rate limit reached" in calls[0]["failures"][0]
    [written] = [
        call
        for step in traced["steps"]
        if step["node"] == "generate"
        for call in step["calls"]
        if call["port"].startswith("ChatModel")
    ]
    assert [message["role"] for message in written["messages"]] == ["system", "user"]
    assert QUESTION in written["messages"][-1]["content"]
    assert written["reply"]
    assert written["output_tokens"] > 0
